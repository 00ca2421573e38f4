"""A model that was trained before the package was laid out anew: same names, same bytes, same losses."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from t2017_plugin.checkpoints.loading import load_checkpoint
from t2017_plugin.fairseq_side.patches import FORMER_PLACES
from tests.commands.fairseq_runs import PLUGIN, run_here

pytestmark = pytest.mark.commands
BEFORE = Path(__file__).resolve().parents[1] / "assets" / "trained_before"
SIZES = ("--arch", "t2017_tiny", "--d-model", 32, "--d-ff", 64, "--heads", 4, "--d-k", 8, "--d-v", 8)
TRAINING = (
    *("--criterion", "t2017_label_smoothing", "--optimizer", "t2017_adam", "--lr-scheduler", "t2017_noam"),
    *("--warmup-updates", 300, "--noam-scale", 0.5, "--required-batch-size-multiple", 1, "--max-tokens", 1000),
    *("--num-workers", 0, "--seed", 1, "--cpu", "--disable-validation", "--no-epoch-checkpoints"),
    *("--log-format", "json", "--log-interval", 1),
)


def translate(*more: str) -> bytes:
    call = ["-m", "t2017_plugin", "translate", "--checkpoint", BEFORE / "average.pt", "--data-bin", BEFORE / "data-bin"]
    with open(BEFORE / "test.en", "rb") as source:
        run = subprocess.run([sys.executable, *call, "--cpu", *more], stdin=source, capture_output=True, check=True)
    return run.stdout


def test_it_translates_to_the_same_bytes() -> None:
    assert translate() == (BEFORE / "translate.de").read_bytes()


def test_its_other_hypotheses_are_the_same() -> None:
    """Scores may differ in the last digits of float32: another processor sums in another order."""
    lines = [text.decode().splitlines() for text in (translate("--scores", "--nbest", "4"), recorded("nbest4.txt"))]
    assert len(lines[0]) == len(lines[1]) > 200
    for now, then in zip(*lines, strict=True):
        (number, score, text), (old_number, old_score, old_text) = (line.split("\t") for line in (now, then))
        assert (number, text) == (old_number, old_text)
        assert float(score) == pytest.approx(float(old_score), abs=2e-4)


def recorded(name: str) -> bytes:
    return (BEFORE / f"translate.{name}").read_bytes()


def test_its_training_is_resumed_with_the_same_losses(tmp_path: Path) -> None:
    """Parameters and Adam's state keep their order, batches and dropout their random stream."""
    call = (BEFORE / "data-bin", "--user-dir", PLUGIN, "--task", "t2017_translation", *SIZES, *TRAINING)
    state = ("--restore-file", BEFORE / "training_state.pt", "--max-update", 45, "--save-dir", tmp_path)
    outcome = run_here("train", *call, *state)
    assert outcome.status == 0, outcome.error
    losses = json.loads((BEFORE / "resumed_losses.json").read_text())
    entries = {str(int(entry["num_updates"])): entry for entry in outcome.logged("train_inner")}
    assert entries.keys() == losses.keys()
    for update, then in losses.items():
        for name in ("loss", "nll_loss", "gnorm"):
            # Logged with three decimals; another processor may round the last one otherwise.
            assert entries[update][name] == pytest.approx(float(then[name]), abs=2e-3), (update, name)


@pytest.mark.parametrize("name", sorted(FORMER_PLACES))
def test_settings_under_their_former_names_still_load(name: str, tmp_path: Path) -> None:
    """A file that names a class where it was then, read by the weights-only loader."""
    from t2017_plugin.fairseq_side import settings, tasks, training

    now = next(getattr(module, name) for module in (settings, tasks, training) if hasattr(module, name))
    path, old = tmp_path / "new.pt", tmp_path / "old.pt"
    torch.save({"model": {}, "settings": now()}, path)
    here, there = (f"c{module}\n{name}\n".encode() for module in (now.__module__, FORMER_PLACES[name]))
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(old, "w") as target:
        for entry in source.infolist():
            content = source.read(entry)
            assert here in content or not entry.filename.endswith("data.pkl")
            target.writestr(entry, content.replace(here, there))
    state = load_checkpoint(old)
    assert type(state["settings"]) is now
