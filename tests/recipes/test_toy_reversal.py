"""The recipes' own scripts from nothing to a score, on the toy: killed, resumed, run again, with two processes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
TOY = ROOT / "recipes" / "toy_reversal"
SCRIPTS = ("1_prepare.sh", "2_train.sh", "3_average.sh", "4_decode.sh", "5_score.sh")
pytestmark = [pytest.mark.recipes, pytest.mark.slow]


def environment() -> dict[str, str]:
    """The tests' own Python environment; one thread, so that several runs at a time do not slow each other down."""
    return {**os.environ, "T2017_ENVIRONMENT": sys.prefix, "OMP_NUM_THREADS": "1"}


def call(script: str, run: Path, *options: str, cwd: Path | None = None) -> str:
    """Run a script of the toy to its end and return what it printed."""
    command = ["bash", str(TOY / script), "--run", str(run), *options]
    outcome = subprocess.run(
        command, cwd=cwd or run.parent, env=environment(), capture_output=True, text=True, check=False, timeout=900
    )
    assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-3000:]
    return outcome.stdout


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose data is prepared, in a folder with a space in its name."""
    run = tmp_path_factory.mktemp("recipes") / "toy run"
    call("1_prepare.sh", run)
    return run


def kill_in_the_middle(run: Path) -> None:
    """Start training in a process group of its own and kill the group once there are two checkpoints."""
    command = ["bash", str(TOY / "2_train.sh"), "--run", str(run)]
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 600
    while len(list(run.glob("t2017/checkpoints/checkpoint_*_*.pt"))) < 2:
        assert process.poll() is None, "training ended before it could be killed"
        assert time.monotonic() < deadline, "no checkpoint after ten minutes"
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def finished(prepared: Path) -> tuple[Path, str]:
    """The run to its end, after a kill in the middle of training that also left half a last checkpoint; the output."""
    kill_in_the_middle(prepared)
    last = prepared / "t2017" / "checkpoints" / "checkpoint_last.pt"
    last.write_bytes(last.read_bytes()[:1000])
    return prepared, call("run.sh", prepared)


def test_killed_training_is_resumed(finished: tuple[Path, str]) -> None:
    run, printed = finished
    assert "training resumes from checkpoint_" in printed
    log = (run / "t2017" / "logs" / "train.log").read_text(encoding="utf-8")
    assert log.count("Loaded checkpoint") == 1
    assert "Stopping training due to num_updates: 400 >= max_update: 400" in log


def test_the_toy_is_learned_and_both_ways_of_decoding_agree(finished: tuple[Path, str]) -> None:
    run, printed = finished
    scores = json.loads((run / "t2017" / "scores.json").read_text(encoding="utf-8"))
    # Guessing digits of the right number scores about 1; 90 leaves one wrong digit in about forty.
    assert scores["sacrebleu"]["score"] > 90
    assert scores["paper_bleu"]["score"] > 90
    assert scores["sentences"] == 200
    assert scores["lines_that_translate_and_generate_disagree_on"] == 0
    assert scores["training"]["updates"] == 400
    assert "0 of 200 lines differ" in printed
    # What t2017 batch said an update would hold; the last interval of the log is not whole epochs, hence not exactly.
    said = float(re.search(r"^wpb ([\d.]+)", printed, flags=re.MULTILINE)[1])
    assert said == pytest.approx(scores["training"]["target_tokens_an_update"], rel=0.05)
    assert "| sacreBLEU |" in printed and "signature" in (run / "report.md").read_text(encoding="utf-8")


def test_sides_stay_aligned_through_every_step(finished: tuple[Path, str]) -> None:
    run, _ = finished

    def lines(path: str) -> list[str]:
        return (run / path).read_text(encoding="utf-8").splitlines()

    for split, pairs in (("train", 8000), ("valid", 100), ("test", 200)):
        for folder, middle in (("corpus", ""), ("text", ".bpe")):
            source, target = (lines(f"{folder}/{split}{middle}.{language}") for language in ("en", "de"))
            assert len(source) == len(target) == pairs
            assert all(one.split() == other.split()[::-1] for one, other in zip(source, target, strict=True))


def test_a_second_run_skips_every_step(finished: tuple[Path, str]) -> None:
    run, _ = finished
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.is_file() and path.suffix != ".json"}
    printed = call("run.sh", run, cwd=Path("/"))
    assert printed.count("done before, nothing has changed") == 8
    assert "+ " not in printed  # no command was run
    # The report is written again; nothing else is.
    changed = [path.name for path, when in before.items() if path.stat().st_mtime_ns != when]
    assert set(changed) <= {"report.md", ".lock"}


def test_a_changed_setting_redoes_what_depends_on_it(finished: tuple[Path, str]) -> None:
    run, _ = finished
    printed = call("4_decode.sh", run, "--set", "generation.beam=1")
    assert "generate: settings changed, to be done again" in printed
    call("4_decode.sh", run)
    printed = call("2_train.sh", run, "--set", "model.d_ff=32", "--set", "optimization.max_update=1")
    assert "its checkpoints are now in" in printed
    assert len(list(run.glob("t2017/checkpoints.2*/checkpoint_last.pt"))) == 1


def parameters(run: Path) -> dict[str, Any]:
    """The weights that a run ended with."""
    model = torch.load(run / "t2017" / "checkpoints" / "checkpoint_last.pt", weights_only=True)["model"]
    return {name: weight for name, weight in model.items() if weight.is_floating_point()}


def test_two_processes_train_as_one_with_twice_the_batches(prepared: Path, tmp_path: Path) -> None:
    settings = ("optimization.max_update=3", "optimization.update_freq=[2]")
    options = [option for setting in settings for option in ("--set", setting)]
    weights = {}
    for processes in ("1", "2"):
        run = tmp_path / f"processes {processes}"
        for folder in ("corpus", "text", "data-bin", "steps"):
            shutil.copytree(prepared / folder, run / folder)
        printed = call("2_train.sh", run, *options, "--processes", processes)
        assert f"training with {processes} process(es)" in printed
        weights[processes] = parameters(run)
    assert weights["1"].keys() == weights["2"].keys()
    for name, weight in weights["1"].items():
        # The same sums in another order, in float32, after 3 updates.
        torch.testing.assert_close(weights["2"][name], weight, rtol=0, atol=1e-6, msg=name)


def test_two_scripts_do_not_work_in_one_run(prepared: Path, tmp_path: Path) -> None:
    with (prepared / ".lock").open("w") as lock:
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        command = ["bash", str(TOY / "3_average.sh"), "--run", str(prepared)]
        outcome = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert outcome.returncode == 1
    assert "is at work in" in outcome.stderr and outcome.stderr.count("\n") == 1


@pytest.mark.parametrize("script", [*SCRIPTS, "run.sh"])
@pytest.mark.parametrize("job", ["toy_reversal", "demo"])
def test_help_and_wrong_calls(job: str, script: str, tmp_path: Path) -> None:
    def outcome(*options: str) -> subprocess.CompletedProcess[str]:
        command = ["bash", str(ROOT / "recipes" / job / script), "--run", str(tmp_path / "run"), *options]
        return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)

    helped = outcome("--help")
    assert (helped.returncode, helped.stderr) == (0, "")
    assert helped.stdout.startswith("usage: ") and "--processes N" in helped.stdout
    for wrong in (("--procs", "2"), ("--processes", "0"), ("--set",)):
        refused = outcome(*wrong)
        assert refused.returncode == 2
        assert refused.stderr.count("\n") == 1 and "see --help" in refused.stderr
    assert not list(tmp_path.rglob("*.json"))
