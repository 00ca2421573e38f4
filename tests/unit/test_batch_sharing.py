"""The recipes' training step: the tokens of an update stay what the settings file gives, whatever the processes."""

import subprocess
from pathlib import Path

import pytest

from recipes.training import share_of_the_batch

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.unit


def shared(processes: int, world: int | None, update_freq: int, max_tokens: int) -> dict[str, int]:
    """The flags that are added for a number of processes."""
    flags = f"fairseq-train data --update-freq {update_freq} --max-tokens {max_tokens}"
    flags += f" --distributed-world-size {world}" if world else ""
    words = share_of_the_batch(flags.split(), processes)
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=True)}


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 5, 6, 7, 8, 12, 16])
def test_the_paper_s_batch_on_any_number_of_processes(processes: int) -> None:
    flags = shared(processes, world=8, update_freq=1, max_tokens=3125)
    update_freq = flags.get("--update-freq", 1)
    tokens = flags.get("--max-tokens", 3125)
    assert tokens <= 3125  # no process needs more memory than the settings ask for
    # Rounding down to whole tokens a batch costs less than one token a batch.
    assert 25_000 - processes * update_freq < processes * update_freq * tokens <= 25_000
    assert flags.get("--distributed-world-size", 8) == processes


def test_settings_for_one_process_are_shared_too() -> None:
    assert shared(1, world=None, update_freq=2, max_tokens=1000) == {}
    assert shared(2, world=None, update_freq=2, max_tokens=1000) == {
        "--update-freq": 1,
        "--distributed-world-size": 2,
    }
    assert shared(2, world=None, update_freq=1, max_tokens=1000)["--max-tokens"] == 500


@pytest.mark.parametrize(
    ("model", "seconds", "updates"), [("base", "", 1500), ("big", "", 600), ("base", "0.1", 6000), ("big", "700", 1)]
)
def test_checkpoints_every_ten_minutes(model: str, seconds: str, updates: int) -> None:
    """At the paper's speed that is what the settings files say."""
    settings = f"MODEL={model} CHECKPOINT_MINUTES=10 SECONDS_AN_UPDATE={seconds}"
    script = f"{settings}; source recipes/wmt14_common/job.sh; updates_in_minutes"
    outcome = subprocess.run(["bash", "-euc", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert int(outcome.stdout) == updates
    if not seconds:
        assert f"  save_interval_updates: {updates}\n" in (ROOT / "configs" / f"{model}.yaml").read_text()
