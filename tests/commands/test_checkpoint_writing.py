"""Checkpoints while things go wrong (kills, a full disk, a folder that cannot be written)."""

import json
import resource
from pathlib import Path

import pytest
import torch
from fairseq import checkpoint_utils

from benchmarks import crash
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.guards import refuse_unwritable
from t2017_plugin.fairseq_side.patches import WholeFiles, clear_leftovers
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
    assert not list((tmp_path / "runs" / "killed").glob(".*.part"))


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
    assert "resumes from checkpoint_last.pt" in line
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


def test_what_is_written_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """fairseq's own function, with the plugin's file operations: a write that fails leaves the file that was there."""
    monkeypatch.setattr(checkpoint_utils, "PathManager", WholeFiles)
    path = tmp_path / "checkpoint_last.pt"
    checkpoint_utils.torch_persistent_save({"update": 1}, str(path))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(UsageError, match="could not be written .file too large; [0-9,]+ MiB are free"):
            checkpoint_utils.torch_persistent_save({"big": torch.zeros(10_000)}, str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert torch.load(path, weights_only=True) == {"update": 1}
    copy = tmp_path / "copy.pt"
    assert WholeFiles.copy(str(path), str(copy), overwrite=True)
    assert copy.read_bytes() == path.read_bytes()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint_last.pt", "copy.pt"]


def test_what_a_kill_left_is_removed_once(tmp_path: Path) -> None:
    """By the first checkpoint that a process writes into a folder; older runs left names that end in .tmp."""
    for name in (".checkpoint_1_7.pt.123.part", "checkpoint_1_7.pt.tmp"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / "checkpoint_1_6.pt").write_bytes(b"whole")
    assert clear_leftovers(tmp_path) == [".checkpoint_1_7.pt.123.part", "checkpoint_1_7.pt.tmp"]
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint_1_6.pt"]
    (tmp_path / "checkpoint_1_8.pt.tmp").write_bytes(b"half")
    assert clear_leftovers(tmp_path) == []
