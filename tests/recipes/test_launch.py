"""The launchers print what they would run: every flag of the settings, the ranks, and the paper's batch."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.fairseq_runs import make_corpus

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "recipes" / "launch"
pytestmark = pytest.mark.recipes


@pytest.fixture(scope="module")
def data_bin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("digits")).data_bin


def launched(script: str, *options: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """To its end, without what Slurm may have put into the environment of the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
    environment = {**kept, "PYTHONPATH": str(ROOT), **variables}
    call = ["bash", str(LAUNCH / script), *map(str, options)]
    return subprocess.run(call, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def with_t2017(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH with this Python's programs and a ``t2017`` that runs this checkout."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "t2017").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m t2017_plugin "$@"\n')
    (folder / "t2017").chmod(0o755)
    return f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.fixture(scope="module")
def with_recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The same with programs that answer at once what the real ones do for 32 GPUs; one launcher asks the real ones."""
    folder = tmp_path_factory.mktemp("recorded")
    flags = "--arch t2017_base --distributed-world-size 32 --save-dir run --max-tokens 3125 --update-freq 1".split()
    answers = {"python": "\\0000".join([*flags, ""]), "t2017": "--max-tokens 900 --update-freq 1\\n"}
    for name, answer in answers.items():
        (folder / name).write_text(f"#!/bin/sh\nprintf '%b' '{answer}'\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.mark.parametrize(
    ("script", "options", "variables", "start", "end"),
    [
        ("spawn.sh", ("--gpus", 2), {}, ["fairseq-train"], []),
        (
            "torchrun.sh",
            ("--gpus", 8, "--nodes", 4),
            {"MASTER_ADDR": "first", "NODE_RANK": "3"},
            ["torchrun", "--nnodes", "4", "--nproc-per-node", "8", "--node-rank", "3", "--master-addr", "first"],
            [],
        ),
        ("slurm.sh", ("--gpus", 8), {"SLURM_JOB_NUM_NODES": "4"}, ["srun"], ["--distributed-port", "29417"]),
    ],
)
def test_what_is_run(
    data_bin: Path,
    with_t2017: str,
    with_recorded: str,
    script: str,
    options: tuple[object, ...],
    variables: dict[str, str],
    start: list[str],
    end: list[str],
) -> None:
    call = ("--data-bin", data_bin, "--save-dir", "run", *options, "--dry-run", "--", "--max-update", 7)
    outcome = launched(script, *call, PATH=with_t2017 if script == "spawn.sh" else with_recorded, **variables)
    assert outcome.returncode == 0, outcome.stderr
    words = shlex.split(outcome.stdout.splitlines()[-1])[1:]
    assert words[: len(start)] == start and words[len(words) - len(end) :] == end
    processes = 2 if script == "spawn.sh" else 32
    for flag, value in {"--distributed-world-size": processes, "--save-dir": "run", "--arch": "t2017_base"}.items():
        assert words[words.index(flag) + 1] == str(value)
    # The last of two wins: first the settings file's, then the batch for so many GPUs, then one's own.
    last = {flag: words[len(words) - 1 - words[::-1].index(flag) + 1] for flag in ("--update-freq", "--max-update")}
    assert last == {"--update-freq": "4" if processes == 2 else "1", "--max-update": "7"}


@pytest.mark.parametrize("script", ["spawn.sh", "torchrun.sh", "slurm.sh"])
def test_help_and_wrong_calls(script: str) -> None:
    helped = launched(script, "--help")
    assert helped.returncode == 0 and helped.stdout.startswith("usage: ") and "--gpus N" in helped.stdout
    for wrong in (("--gpu", 2), ("--gpus",), ()):
        refused = launched(script, *wrong)
        assert refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr


@pytest.mark.parametrize("options", [("--device",), ("--gpus", "2")])
def test_calls_of_the_gpu_check(options: tuple[str, ...]) -> None:
    script = [str(ROOT / "benchmarks" / "gpu_check.sh")]
    helped = subprocess.run(["bash", *script, "--help"], capture_output=True, text=True, check=False)
    assert helped.returncode == 0 and "--device cpu" in helped.stdout
    refused = subprocess.run(["bash", *script, *options], capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "see --help" in refused.stderr
