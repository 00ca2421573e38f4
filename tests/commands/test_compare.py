"""t2017 compare on two small recorded runs: the page, what is printed, and every refusal in one line."""

import json
from xml.etree import ElementTree

import pytest

from t2017_plugin.commands import main as cli
from tests.recorded_runs import log, make_run, spoiled

pytestmark = pytest.mark.commands


@pytest.fixture
def runs(tmp_path):
    return [
        make_run(tmp_path, "t2017", hypotheses=spoiled(5)),
        make_run(tmp_path, "stock", hypotheses=spoiled(2), stock=True, log=log(2.5, 4500.0)),
    ]


def compare(tmp_path, *arguments):
    options = ["--output", tmp_path / "report.html", "--samples", 20]
    return cli.main(["compare", *map(str, arguments), *map(str, options)])


def test_page_and_markdown_are_written(runs, tmp_path, capsys):
    assert compare(tmp_path, *runs, "--markdown", tmp_path / "report.md") == 0
    printed = capsys.readouterr()
    scores = json.loads((runs[0] / "bleu.json").read_text(encoding="utf-8"))
    row = [f"{scores[name]['score']:.2f}" for name in ("sacrebleu", "paper_bleu", "chrf2")]
    assert f"| t2017 | 1 | {' | '.join(row)} |" in printed.out
    assert printed.out.splitlines()[-2:] == [str(tmp_path / "report.html"), str(tmp_path / "report.md")]
    assert printed.err == ""
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "| model.sinusoid | paper | stock (built in) |" in markdown
    assert "| t2017 | 200 | 900.0 | 2.000 | 2.500 | 9,000 | 0.3 | 512 | - | 1,449,984 |" in markdown
    assert not list(tmp_path.glob(".*.part"))


def break_run(run, kind):
    """Spoil a run in one way."""
    if kind == "no scores":
        (run / "bleu.json").unlink()
    elif kind == "no log":
        (run / "logs" / "train.log").unlink()
    elif kind == "no stamp":
        (run / "steps" / "generate.json").unlink()
    elif kind == "half a file":
        (run / "bleu.json").write_text('{"sacrebleu": {', encoding="utf-8")
    elif kind == "other translation":
        (run / "decode" / "generate.de").write_text("Etwas anderes .\n" * 40, encoding="utf-8")
    else:
        scores = json.loads((run / "bleu.json").read_text(encoding="utf-8"))
        scores["sacrebleu"]["score"] += 0.5
        (run / "bleu.json").write_text(json.dumps(scores), encoding="utf-8")


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("no scores", "has no scores (bleu.json); translate and score it first"),
        ("no log", "is no run: it has no logs/train.log"),
        ("no stamp", "steps/generate.json is not there"),
        ("half a file", "bleu.json is not readable as JSON"),
        ("other translation", "is not the translation that was scored; score it again"),
        ("other scores", "is recorded, but the translation has"),
    ],
)
def test_a_broken_run_is_refused_in_one_line(runs, tmp_path, capsys, kind, message):
    break_run(runs[1], kind)
    assert compare(tmp_path, *runs) == 1
    error = capsys.readouterr().err
    assert error.startswith("t2017 compare: ") and error.count("\n") == 1
    assert message in error and str(runs[1]) in error
    assert not (tmp_path / "report.html").exists()


def test_a_folder_of_arms_is_told_apart_from_a_run(runs, tmp_path, capsys):
    assert compare(tmp_path, tmp_path) == 1
    assert "name these" in capsys.readouterr().err
    assert compare(tmp_path, tmp_path / "nothing") == 1
    assert "is no folder" in capsys.readouterr().err
    assert cli.main(["compare", str(runs[0]), "--output", str(tmp_path / "no" / "report.html")]) == 1
    assert "make it first" in capsys.readouterr().err
    assert cli.main(["compare", str(runs[0])]) == 2


def test_one_run_alone_has_a_page_too(runs, tmp_path):
    assert compare(tmp_path, runs[0]) == 0
