"""Checkpoints while things go wrong (kills, a full disk, a folder that cannot be written), and those by the clock."""

import json
import resource
from pathlib import Path

import pytest
import torch

from benchmarks import crash
from t2017_plugin.checkpoints.averaging import last_checkpoints
from t2017_plugin.commands.main import main
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.patches import (
    CheckpointClock,
    WholeFiles,
    clear_leftovers,
    refuse_unwritable,
    save_whole,
)
from tests.commands.fairseq_runs import Corpus, run_here, training

pytestmark = pytest.mark.commands

SAVING = ("--disable-validation", "--no-epoch-checkpoints", "--save-interval-updates", 5)


@pytest.mark.slow
def test_killed_six_times_a_run_ends_as_if_nobody_had(corpus: Corpus, tmp_path: Path) -> None:
    """Three of the kills hit the middle of writing; dropout on; bit for bit."""
    answer = tmp_path / "crash.json"
    call = ("--data-bin", corpus.data_bin, "--folder", tmp_path / "runs", "--kills", 6, "--save-every", 4)
    assert crash.main([*map(str, call), "--max-update", "50", "--output", str(answer)]) == 0
    content = json.loads(answer.read_text())
    assert set(content["equal"].values()) == {True}
    rows = content["rows"]
    assert len(rows) == 6 and set(crash.STAGES) == {row["when"] for row in rows[1::2]}
    assert {row["signal"] for row in rows} == {"SIGKILL", "SIGTERM"}
    # The kills in the middle of writing left something half-written, and the last whole checkpoint stood.
    assert all(row["half-written"] != "-" for row in rows[1::2])
    assert all(row["whole after it"] >= row["went on from"] for row in rows)
    assert rows[-1]["whole after it"] > 0
    # Nothing of it is left at the end.
    assert not list((tmp_path / "runs" / "killed").glob("*.tmp"))


def test_a_full_disk_harms_no_earlier_checkpoint(corpus: Corpus, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk; without it the same command goes on."""
    whole = run_here("train", *training(corpus.data_bin, tmp_path / "whole", *SAVING, "--max-update", 10))
    assert whole.status == 0, whole.error
    folder = tmp_path / "full"
    assert run_here("train", *training(corpus.data_bin, folder, *SAVING, "--max-update", 5)).status == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before["checkpoint_last.pt"]) // 2, limits[1]))
    try:
        outcome = run_here("train", *training(corpus.data_bin, folder, *SAVING, "--max-update", 10))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert outcome.status == 1
    line = outcome.error.splitlines()[-1]
    # The first that is due: at the end of the epoch, after eight updates.
    assert "checkpoint_last.pt could not be written (file too large" in line
    assert "goes on from checkpoint_last.pt" in line
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert run_here("train", *training(corpus.data_bin, folder, *SAVING, "--max-update", 10)).status == 0
    states = [torch.load(path / "checkpoint_last.pt", weights_only=True) for path in (tmp_path / "whole", folder)]
    assert crash.same(states[0]["model"], states[1]["model"])


def test_a_folder_that_cannot_be_written_stops_at_once(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    outcome = run_here("train", *training(corpus.data_bin, tmp_path / "file" / "run", *SAVING, "--max-update", 1))
    assert outcome.status == 1 and not outcome.logged("train_inner")
    assert "--save-dir" in outcome.error and f"{tmp_path / 'file'} is a file" in outcome.error
    assert outcome.error.count("\n") == 0


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as a user who may write anywhere."""
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(UsageError, match="no permission to write in"):
        refuse_unwritable(tmp_path / "a" / "b")


def test_what_is_written_is_written_whole(tmp_path: Path) -> None:
    """A write that fails half-way leaves the file that was there, and nothing beside it."""
    path = tmp_path / "checkpoint_last.pt"
    save_whole({"update": 1}, str(path))

    class Unwritable:
        def __reduce__(self) -> str:
            raise OSError(28, "No space left on device")

    with pytest.raises(UsageError, match="no space left on device; [0-9,]+ MiB are free"):
        save_whole({"big": torch.zeros(10_000), "bad": Unwritable()}, str(path))
    assert torch.load(path, weights_only=True) == {"update": 1}
    copy = tmp_path / "copy.pt"
    assert WholeFiles.copy(str(path), str(copy), overwrite=True)
    assert copy.read_bytes() == path.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint_last.pt", "copy.pt"]
    (tmp_path / "checkpoint_1_7.pt.tmp").write_bytes(b"half")
    assert clear_leftovers(tmp_path) == ["checkpoint_1_7.pt.tmp"]
    assert len(list(tmp_path.iterdir())) == 2


def test_the_clock() -> None:
    """Ten minutes of training, counted over sessions."""
    clock = CheckpointClock(10, seconds=0.0)
    assert [clock.due(seconds) for seconds in (1, 599.9, 600, 601)] == [False, False, True, True]
    clock.saved(601)
    assert [clock.due(seconds) for seconds in (602, 1199, 1200)] == [False, False, True]
    # Gone on with at 19 minutes: one is due a minute later.
    again = CheckpointClock(10, seconds=1140.0)
    assert [again.due(seconds) for seconds in (1141, 1199, 1201)] == [False, False, True]
    assert not CheckpointClock(0, 0.0).due(1e9)


def test_checkpoints_by_the_clock_and_by_updates(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both at once; averaging can take either kind, and says what there is."""
    more = ("--save-interval-updates", 10, "--save-interval-minutes", 0.001, "--max-update", 39)
    outcome = run_here("train", *training(corpus.data_bin, tmp_path, *SAVING, *more))
    assert outcome.status == 0, outcome.error
    # At the ends of epochs, every eight updates, fairseq writes checkpoint_last.pt only.
    names = {by: [path.name for path in last_checkpoints(tmp_path, 2, by)] for by in ("any", "update", "minutes")}
    assert [name.rpartition("_")[2] for name in names["update"]] == ["20.pt", "30.pt"]
    by_clock = [path for path in last_checkpoints(tmp_path, 3, "minutes")]
    assert len(by_clock) == 3 and any(not path.name.endswith("0.pt") for path in by_clock)
    assert main(["average", "--last", "3", "--by", "minutes", "--output", str(tmp_path / "avg.pt"), str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert all(path.name in printed for path in by_clock) and "mean of 3 minutes checkpoints" in printed
    with pytest.raises(UsageError, match="holds 3 update checkpoints .* without --by there are"):
        last_checkpoints(tmp_path, 9, "update")


def test_a_negative_interval_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    more = (*SAVING, "--max-update", 1, "--save-interval-minutes", -1)
    outcome = run_here("train", *training(corpus.data_bin, tmp_path, *more))
    assert outcome.status == 1 and "--save-interval-minutes is -1" in outcome.error
