"""t2017 score CKPT --data-bin: average, translate and score in one call, equal to the three calls by hand."""

import io
import json
import shutil
import sys
from types import SimpleNamespace

import pytest

from t2017_plugin.commands import main as cli
from t2017_plugin.text.pipeline import TextSettings


@pytest.fixture(scope="module")
def data_bin(corpus, tmp_path_factory):
    """The binarised digits with codes and text settings."""
    folder = tmp_path_factory.mktemp("score") / "data-bin"
    shutil.copytree(corpus.data_bin, folder)
    shutil.copy(corpus.codes, folder / "codes")
    TextSettings("en", "de", bpe_codes="codes").save(folder)
    return folder


def scored(capsys, *arguments):
    assert cli.main(["score", *(str(argument) for argument in arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_one_call_equals_average_translate_score(corpus, trained, data_bin, tmp_path, capsys, monkeypatch):
    raw = ("--source", corpus.raw / "test.en", "--ref", corpus.raw / "test.de")
    run = tmp_path / "run"
    run.mkdir()
    for path in [trained, *trained.parent.glob("checkpoint_*_*.pt")]:
        updates = path.stem.split("_")[-1]
        shutil.copy(path, run / ("checkpoint_99_999999.pt" if updates == "last" else path.name))
    last = len(list(run.iterdir()))
    at_once = scored(capsys, run, "--data-bin", data_bin, "--last", last, *raw)
    assert at_once["model"].startswith(f"mean of {last} checkpoints of {run} (updates ")
    assert at_once["averaged"] == last
    assert at_once["test_set"].startswith("raw text: ")

    average, output = tmp_path / "average.pt", tmp_path / "out.de"
    assert cli.main(["average", "--last", str(last), "--output", str(average), str(run)]) == 0
    written = io.TextIOWrapper(io.BytesIO())
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO((corpus.raw / "test.en").read_bytes())))
        patched.setattr(sys, "stdout", written)
        assert cli.main(["translate", "--checkpoint", str(average), "--data-bin", str(data_bin)]) == 0
    output.write_bytes(written.buffer.getvalue())
    capsys.readouterr()
    by_hand = scored(capsys, "--hyp", output, "--ref", corpus.raw / "test.de", "--target-lang", "de")
    for name in ("sacrebleu", "paper_bleu", "chrf2", "sentences"):
        assert at_once[name] == by_hand[name]

    # A single checkpoint is scored too, and it is told that the paper's figure is of an average.
    for checkpoint, averaged in ((average, last), (trained, 1)):
        assert cli.main(["score", str(checkpoint), "--data-bin", str(data_bin), *map(str, raw)]) == 0
        captured = capsys.readouterr()
        assert f"averaged      {averaged}\n" in captured.out
        assert ("is not an average" in captured.err) == (averaged == 1)


def test_raw_text_in_the_data_bin_is_found(corpus, trained, data_bin, tmp_path, capsys):
    with_raw = tmp_path / "data-bin"
    shutil.copytree(data_bin, with_raw)
    shutil.copytree(corpus.raw, with_raw / "raw")
    found = scored(capsys, trained, "--data-bin", with_raw)
    assert found["test_set"] == f"raw text: {with_raw}/raw/test.en and {with_raw}/raw/test.de"
    # These words lose nothing when they are tokenised, so the binarised set gives the same numbers, under another name.
    binarised = scored(capsys, trained, "--data-bin", data_bin)
    assert "not the raw text" in binarised["test_set"]
    assert binarised["sacrebleu"] == found["sacrebleu"]


def test_calls_that_make_no_sense(corpus, trained, data_bin, tmp_path, capsys):
    for arguments, status, message in (
        ([], 2, "name --hyp"),
        ([trained], 2, "CKPT is scored with --data-bin"),
        ([trained, "--data-bin", data_bin, "--hyp", "x"], 2, "without --hyp"),
        ([trained, "--data-bin", data_bin, "--source", corpus.raw / "test.en"], 1, "--source and --ref go together"),
        ([trained, "--data-bin", data_bin, "--subset", "test7"], 1, "name another --subset"),
        ([tmp_path, "--data-bin", data_bin], 1, "holds 0 update checkpoints"),
    ):
        assert cli.main(["score", *(str(argument) for argument in arguments)]) == status
        assert message in capsys.readouterr().err
    short = tmp_path / "short.de"
    short.write_text("one.\n")
    call = ["score", trained, "--data-bin", data_bin, "--source", corpus.raw / "test.en", "--ref", short]
    assert cli.main([str(argument) for argument in call]) == 1
    assert "the source has 21 lines and the reference has 1" in capsys.readouterr().err
