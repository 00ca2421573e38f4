"""The dry parts of the comparison's recipe: its plan, wrong calls, order of arms."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recipes.compare_stock import arms
from t2017_plugin.differences.single_arms import SINGLES

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "recipes" / "compare_stock"
pytestmark = pytest.mark.recipes


def call(script: str, *options: object) -> subprocess.CompletedProcess[str]:
    """Run a script of the recipe."""
    environment = {**os.environ, "T2017_ENVIRONMENT": sys.prefix, "OMP_NUM_THREADS": "1"}
    command = ["bash", str(RECIPE / script), *map(str, options)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_the_plan_lists_arms_and_commands_and_writes_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ("--dry-run", "--seeds", 2, "--updates", 600, "--run", run, "--set", "dataset.max_tokens=777")
    outcome = call("run.sh", *options)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    assert lines[0].startswith("# 2 arms, 2 seed(s): 4 trainings of 600 updates, 4 translations")
    # And four more of the grid, whose seed 1 of the chosen rates is among the former; 600 of 4,000 updates each.
    assert lines[2] == f"# about {(4 + 4) * arms.MINUTES_PER_TRAINING * 600 / 4000 / 60:.1f} hours of one core"
    trainings = [line for line in lines if line.startswith("fairseq-train ")]
    assert len(trainings) == 4 and len([line for line in lines if line.startswith("fairseq-generate ")]) == 4
    for line, (arm, seed) in zip(trainings, (("t2017", 1), ("stock", 1), ("t2017", 2), ("stock", 2)), strict=True):
        assert f"--seed {seed} " in line and "--max-update 600 " in line and "--max-tokens 777 " in line
        assert f"--save-dir {run}/arms/{arm}/seed{seed}/checkpoints " in line
        assert ("--task translation " in line) == (arm == "stock")
    assert not run.exists()


def test_arms_of_the_single_differences_come_after_the_papers_and_stocks(capsys: pytest.CaptureFixture[str]) -> None:
    assert arms.main(["names", "--singles"]) == 0
    assert capsys.readouterr().out.split() == ["t2017", "stock", *SINGLES, "all"]


@pytest.mark.parametrize(
    "options",
    [
        ("--seeds", "0"),
        ("--seeds",),
        ("--arm", "stock"),
        ("--rate", "1.0"),
        ("--rates", "fast"),
        ("--size", "huge"),
        ("--data", "wmt"),
        ("--updates", "many"),
        ("--stock",),
        ("--dry-run", "--nonsense"),
    ],
)
def test_wrong_calls(options: tuple[str, ...], tmp_path: Path) -> None:
    outcome = call("run.sh", "--run", tmp_path / "run", *options)
    assert outcome.returncode == 2
    assert outcome.stderr.count("\n") == 1 and "see --help" in outcome.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "script", ["1_prepare.sh", "2_train.sh", "3_average.sh", "4_decode.sh", "5_score.sh", "run.sh"]
)
def test_help(script: str) -> None:
    outcome = call(script, "--help")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("usage: ") and "--arm NAME" in outcome.stdout
    assert ("--singles" in outcome.stdout) == (script == "run.sh")


def test_an_arm_of_the_search_needs_the_papers_training(tmp_path: Path) -> None:
    outcome = call("2_train.sh", "--run", tmp_path, "--arm", "search", "--seed", 2)
    assert outcome.returncode == 1
    assert "takes over the training of --arm t2017 --seed 2, which is not finished" in outcome.stderr
    settings = tmp_path / "arms" / "search" / "seed2" / "arm.yaml"
    assert "\n  search: stock\n" in settings.read_text(encoding="utf-8")
    written = settings.stat().st_mtime_ns
    assert call("3_average.sh", "--run", tmp_path, "--arm", "search", "--seed", 2).returncode == 0
    assert settings.stat().st_mtime_ns == written  # made once
