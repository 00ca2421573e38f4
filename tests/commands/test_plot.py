"""``t2017 plot`` and ``t2017 cost`` on the log of a run that fairseq-train wrote in both of its formats."""

import json
import shutil
from pathlib import Path

import pytest

from t2017_plugin.commands.main import main
from t2017_plugin.commands.plot import draw
from t2017_plugin.experiments.logs import find_logs, read_log
from tests.commands.fairseq_runs import Corpus, run_here, training

pytestmark = pytest.mark.commands


@pytest.fixture(scope="module")
def run_folder(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve updates logged as JSON, resumed to twenty logged as text; one log, as the recipes keep it."""
    folder = tmp_path_factory.mktemp("a run")
    log = ""
    for updates, layout in ((12, "json"), (20, "simple")):
        more = ("--max-update", updates, "--disable-validation", "--no-epoch-checkpoints", "--log-format", layout)
        outcome = run_here("train", *training(corpus.data_bin, folder / "checkpoints", *more, "--log-interval", 2))
        assert outcome.status == 0, outcome.error
        log += outcome.log
    (folder / "logs").mkdir()
    (folder / "logs" / "train.log").write_text(log)
    return folder


def test_the_log_goes_on_where_the_run_did(run_folder: Path) -> None:
    (log,) = find_logs(run_folder)
    assert log.name == run_folder.name and list(log.intervals) == list(range(2, 21, 2))
    for field in ("loss", "nll_loss", "ppl", "lr_used", "gnorm", "wps", "wpb", "bsz"):
        assert len(log.column(field)[0]) == 10, field
    assert log.parameters and log.devices == 1
    assert log.total("bsz") == pytest.approx(20 * 300 / 8, rel=0.05)  # not whole epochs


def test_four_panels_in_a_picture(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "curves.png"
    assert main(["plot", str(run_folder), "--output", str(output)]) == 0
    assert capsys.readouterr().out.strip() == str(output)
    assert output.read_bytes().startswith(b"\x89PNG")
    log = read_log(run_folder / "logs" / "train.log")
    panels = draw([log]).axes
    drawn = [[list(line.get_ydata()) for line in panel.get_lines()] for panel in panels]
    fields = (("nll_loss", "loss"), ("lr_used",), ("gnorm",), ("wps",))
    assert drawn == [[log.column(field)[1] for field in panel] for panel in fields]
    assert list(panels[0].get_lines()[0].get_xdata()) == list(range(2, 21, 2))


def test_two_arms_of_a_recipe(run_folder: Path, tmp_path: Path) -> None:
    for arm in ("stock", "t2017"):
        shutil.copytree(run_folder / "logs", tmp_path / "job" / arm / "logs")
    assert [log.name for log in find_logs(tmp_path / "job")] == ["job/stock", "job/t2017"]
    assert main(["plot", str(tmp_path / "job"), "--from-update", "10"]) == 0
    assert (tmp_path / "job" / "curves.png").is_file()


def test_cost_of_a_run(corpus: Corpus, run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["cost", str(run_folder), "--data-bin", str(corpus.data_bin), "--rate", "1e9", "--json"]
    assert main(call) == 0
    answer = json.loads(capsys.readouterr().out)
    log = read_log(run_folder / "logs" / "train.log")
    assert answer["updates"] == 20 and answer["target_tokens"] == pytest.approx(log.total("wpb"))
    assert answer["rule"] == pytest.approx(log.train_wall * 1e9)
    assert answer["counted"] == pytest.approx(sum(answer["parts"].values()))


def test_no_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.log").write_text("nothing of the kind\n")
    assert main(["plot", str(tmp_path)]) == 1
    assert "has no updates in it" in capsys.readouterr().err
