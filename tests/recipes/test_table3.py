"""The recipe of Table 3: plan and wrong calls, then rows to the table, a stop by the clock, data of another origin."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from recipes.table3 import report, results

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "recipes" / "table3"
pytestmark = pytest.mark.recipes
# A run of seconds, to try the steps.
QUICK = (
    "optimization.max_update=20 checkpoint.save_interval_updates=10 dataset.validate_interval_updates=10 "
    "dataset.max_tokens=400 common.log_interval=5 generation.beam=1 task.extra_length=3"
).split()


def call(script: str, *options: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a script of the recipe."""
    environment = {**os.environ, "T2017_ENVIRONMENT": sys.prefix, "OMP_NUM_THREADS": "1"}
    command = ["bash", str(RECIPE / script), *map(str, options)]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=900)


def quick() -> list[str]:
    """The options of a quick run."""
    return [option for setting in QUICK for option in ("--set", setting)]


def test_the_plan_lists_rows_and_commands_and_writes_nothing(tmp_path: Path) -> None:
    run = tmp_path / "a run"
    outcome = call(
        "run.sh", "--dry-run", "--run", run, "--updates", 600, "--seed", 5, "--set", "dataset.max_tokens=777"
    )
    assert (outcome.returncode, outcome.stderr) == (0, "")
    lines = outcome.stdout.splitlines()
    trainings = [line for line in lines if line.startswith("fairseq-train ")]
    assert len(trainings) == 20 and lines[0].startswith("# 20 rows")
    assert all(
        "--seed 5 " in line and "--max-update 600 " in line and "--max-tokens 777 " in line for line in trainings
    )
    generations = [line for line in lines if line.startswith("fairseq-generate ")]
    assert len(generations) == 20 and all("--gen-subset valid" in line for line in generations)
    assert not run.exists()


@pytest.mark.parametrize(
    "options",
    [
        ("--rows", "x"),
        ("--rows",),
        ("--row", "base"),
        ("--minutes", "soon"),
        ("--scale", "huge"),
        ("--updates", "0"),
        ("--stock",),
        ("--data-bin", "/nowhere"),
    ],
)
def test_wrong_calls(options: tuple[str, ...], tmp_path: Path) -> None:
    outcome = call("run.sh", "--run", tmp_path / "run", *options)
    assert outcome.returncode == 2
    assert outcome.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "script", ["1_prepare.sh", "2_train.sh", "3_average.sh", "4_decode.sh", "5_score.sh", "run.sh"]
)
def test_help(script: str) -> None:
    outcome = call(script, "--help")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("usage: ") and "--data-bin FOLDER" in outcome.stdout
    assert ("--minutes M" in outcome.stdout) == (script == "run.sh")


def test_training_before_preparing(tmp_path: Path) -> None:
    outcome = call("2_train.sh", "--run", tmp_path)
    assert outcome.returncode == 1
    assert "data.json is not there; run 1_prepare.sh first" in outcome.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rows on made-up text, to the table."""
    run = tmp_path_factory.mktemp("table3") / "a run"
    outcome = call("run.sh", "--run", run, "--generated", "--rows", "base,d_ls2", *quick())
    assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-3000:]
    return run


@pytest.mark.slow
def test_rows_to_the_table(finished: Path) -> None:
    rows = {row["row"]: row for row in json.loads((finished / "report.json").read_text(encoding="utf-8"))}
    assert list(rows) == ["base", "d_ls2"]
    for row in rows.values():
        assert row["updates"] == row["max_update"] == 20
        assert (row["first_validation"]["updates"], row["last_validation"]["updates"]) == (10, 20)
        assert row["perplexity"] == pytest.approx(2 ** row["last_validation"]["bits"])
        assert 0 <= row["sacrebleu"]["score"] <= 100
    # The same batches: the same tokens.
    assert rows["base"]["target_tokens"] == rows["d_ls2"]["target_tokens"] > 0
    assert rows["base"]["parameters"] == rows["d_ls2"]["parameters"]
    # Nothing is averaged.
    log = (finished / "rows" / "base" / "logs" / "generate.log").read_text(encoding="utf-8")
    assert "average.pt" in log and "valid" in log
    report = (finished / "report.md").read_text(encoding="utf-8")
    assert "GENERATED CORPUS" in report and "| d_ls2 | eps_ls 0.2 |" in report and "Not finished: a_h1" in report
    hypotheses = (finished / "rows" / "base" / "decode" / "generate.de").read_text(encoding="utf-8").splitlines()
    sources = (finished / "corpus" / "valid.en").read_text(encoding="utf-8").splitlines()
    assert len(hypotheses) == len(sources) > 0


@pytest.mark.slow
def test_what_is_finished_is_not_done_again(finished: Path) -> None:
    outcome = call("2_train.sh", "--run", finished, "--row", "d_ls2", *quick())
    assert outcome.returncode == 0 and "train: done before, nothing has changed" in outcome.stdout


@pytest.mark.slow
def test_what_does_not_belong_together_is_no_result(finished: Path, tmp_path: Path) -> None:
    other = call("5_score.sh", "--run", finished, "--row", "d_ls2", "--seed", "7", *quick())
    assert other.returncode == 1 and "was trained with other settings than this call's" in other.stderr
    untrained = call("4_decode.sh", "--run", finished, "--row", "e_learned", *quick())
    assert untrained.returncode == 1 and "row e_learned is not trained; run 2_train.sh" in untrained.stderr
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    assert results.finished(copy, "d_ls2")
    longer = [*quick(), "--set", "optimization.max_update=30"]
    assert call("2_train.sh", "--run", copy, "--row", "d_ls2", *longer).returncode == 0
    assert not results.finished(copy, "d_ls2")  # its translation is the shorter training's
    report.main([str(copy)])
    text = (copy / "report.md").read_text(encoding="utf-8")
    assert "\n| base |" in text and "\n| d_ls2 | eps_ls" not in text and "d_ls2" in text.split("Not finished: ")[1]


@pytest.mark.slow
def test_ending_the_call_or_its_time_ends_what_it_runs(finished: Path) -> None:
    command = ["bash", str(RECIPE / "run.sh"), "--run", str(finished), "--generated", "--rows", "c_n4", *quick()]
    command += ["--set", "optimization.max_update=100000"]
    environment = {**os.environ, "T2017_ENVIRONMENT": sys.prefix, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    checkpoints = finished / "rows" / "c_n4" / "checkpoints"
    deadline = time.monotonic() + 600
    while not list(checkpoints.glob("checkpoint_*_*.pt")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.2)
    # The positive control of the two checks below: a training that is at work is found.
    assert still_training(finished) != ""
    process.terminate()
    output = process.communicate(timeout=60)[0]
    assert process.returncode == 130 and "interrupted; the same call resumes it" in output
    assert still_training(finished) == ""
    in_time = call(RECIPE / "run.sh", *command[2:], "--minutes", "0.5")
    assert in_time.returncode == 0, in_time.stdout[-3000:] + in_time.stderr[-3000:]
    assert "training resumes from" in in_time.stdout
    assert "the 0.5 minutes are over, at 2_train.sh; the same call resumes it" in in_time.stdout
    assert still_training(finished) == ""


def still_training(run: Path) -> str:
    """The trainings of a run that are at work."""
    command = ["pgrep", "-f", f"fairseq-train {run}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_a_data_bin_of_another_origin(finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "data"
    shutil.copytree(finished / "data-bin", other)
    for path in other.glob("test.*"):
        path.unlink()  # data of another origin may have no test set
    run = tmp_path / "run"
    outcome = call("1_prepare.sh", "--run", run, "--data-bin", other)
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    facts = json.loads((run / "data.json").read_text(encoding="utf-8"))
    # No raw text lies there: the reference is joined from the units, and the report will say so.
    assert facts["reference_is_raw"] is False and "binarised" in facts["reference"]
    references = (run / "corpus" / "valid.de").read_text(encoding="utf-8").splitlines()
    raw = (finished / "corpus" / "valid.de").read_text(encoding="utf-8").splitlines()
    assert references == [line.replace(" .", ".") for line in raw]  # joined, so it is not the raw text
    for script in ("2_train.sh", "3_average.sh", "4_decode.sh", "5_score.sh"):
        outcome = call(script, "--run", run, "--row", "c_n2", *quick())
        assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-3000:]
    assert "binarised" in (run / "report.md").read_text(encoding="utf-8")
    wrong = call("1_prepare.sh", "--run", run, "--data-bin", finished / "data-bin")
    assert wrong.returncode == 1 and "take another --run" in wrong.stderr
    (other / "raw").mkdir()
    for side in ("en", "de"):
        (other / "raw" / f"valid.{side}").write_text("too few .\n", encoding="utf-8")
    uneven = call("1_prepare.sh", "--run", tmp_path / "raw", "--data-bin", other)
    assert uneven.returncode == 1 and "lines of valid" in uneven.stderr
    shutil.rmtree(other / "raw")
    (other / "train.en-de.de.idx").unlink()
    incomplete = call("1_prepare.sh", "--run", tmp_path / "new", "--data-bin", other)
    assert incomplete.returncode == 1 and "train.en-de.de.idx is missing" in incomplete.stderr
