"""Several processes on a CPU: joined they are one, and processes that are not joined are refused."""

import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.commands.fairseq_runs import PAPER, Corpus, finish_all, generation, run, run_here, start, training

pytestmark = pytest.mark.commands

# Nine batches an epoch: two processes have five and four, and the last update of an epoch has one real batch.
UPDATES = ("--max-tokens", 350, "--max-update", 11, "--no-epoch-checkpoints", "--dropout", 0)
# Validated then by both processes together.
SAVED = ("--save-interval-updates", 4)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def gloo(port: int, rank: int | None) -> tuple[object, ...]:
    """What joins two processes on a CPU; without a rank, fairseq starts them itself."""
    joined = (
        *("--distributed-world-size", 2, "--distributed-backend", "gloo"),
        *("--distributed-init-method", f"tcp://127.0.0.1:{port}"),
    )
    return joined if rank is None else (*joined, "--distributed-rank", rank, "--distributed-no-spawn")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"])


def assert_near(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> None:
    """To 1e-6: gradients are summed in another order."""
    assert one.keys() == other.keys()
    assert max((one[name] - other[name]).abs().max().item() for name in one) < 1e-6


@pytest.fixture(scope="module")
def alone(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """One process that takes two batches per update."""
    folder = tmp_path_factory.mktemp("alone")
    more = ("--update-freq", 2, "--disable-validation")
    outcome = run_here("train", *training(corpus.data_bin, folder, *UPDATES, *more))
    assert outcome.status == 0, outcome.error
    return weights(folder)


PYTORCH_DDP = """
import fairseq.models.distributed_fairseq_model as wrapping
# fairseq names GPU 0 here, also on a CPU.
ddp = wrapping.DistributedDataParallel
wrapping.DistributedDataParallel = lambda **settings: ddp(**{**settings, "device_ids": None, "output_device": None})
from fairseq_cli.train import cli_main
cli_main()
"""

SPAWN = """
import torch
# fairseq starts as many processes as there are GPUs.
torch.cuda.device_count = lambda: 2
from fairseq_cli.train import cli_main
if __name__ == "__main__":
    cli_main()
"""


@pytest.mark.slow
def test_two_processes_are_one_with_twice_the_batches(
    corpus: Corpus, tmp_path: Path, alone: dict[str, torch.Tensor]
) -> None:
    """Under both of fairseq's ways to sum gradients, each process started by hand."""
    script = tmp_path / "ddp.py"
    script.write_text(PYTORCH_DDP)
    programs = {"legacy_ddp": ("fairseq-train",), "pytorch_ddp": (Path(sys.executable).name, script)}
    for backend, program in programs.items():
        folder, port = tmp_path / backend, free_port()
        flags = training(corpus.data_bin, folder, *UPDATES, *SAVED, "--ddp-backend", backend)
        outcomes = finish_all([start([*program, *flags, *gloo(port, rank)]) for rank in (0, 1)])
        assert [outcome.status for outcome in outcomes] == [0, 0], outcomes[0].error[-2000:]
        # Only the first writes and logs.
        assert len(outcomes[0].logged("train_inner")) == 11 and not outcomes[1].logged("train_inner")
        assert_near(weights(folder), alone)
        assert len(list(folder.glob("checkpoint_*_*.pt"))) == 2


@pytest.mark.slow
def test_processes_that_fairseq_spawns_find_the_plugin(
    corpus: Corpus, tmp_path: Path, alone: dict[str, torch.Tensor]
) -> None:
    """Settings of the plugin's types travel to fresh interpreters, which have not seen --user-dir yet."""
    script = tmp_path / "spawn.py"
    script.write_text(SPAWN)
    folder = tmp_path / "out"
    more = ("--ddp-backend", "legacy_ddp", "--num-workers", 2, "--disable-validation", *gloo(free_port(), None))
    flags = training(corpus.data_bin, folder, *UPDATES, *more)
    outcome = run(Path(sys.executable).name, script, *flags, cwd=tmp_path)
    assert outcome.status == 0, outcome.error[-3000:]
    assert_near(weights(folder), alone)


def assert_refused(outcome: Any, folder: Path) -> None:
    """One line that says what to do, and nothing was trained."""
    assert outcome.status != 0
    assert "fairseq joined none" in outcome.error and "--ddp-backend legacy_ddp" in outcome.error
    assert not outcome.logged("train_inner")
    assert not folder.exists() or not list(folder.iterdir())


@pytest.mark.slow
def test_a_bare_torchrun_on_a_cpu_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    """fairseq would train twice into one folder."""
    folder = tmp_path / "out"
    program = Path(sys.executable).with_name("fairseq-train")
    flags = training(corpus.data_bin, folder, "--max-update", 2, "--disable-validation")
    outcome = run("torchrun", "--nproc-per-node", 2, "--master-port", free_port(), program, *flags, cwd=tmp_path)
    assert_refused(outcome, folder)


@pytest.mark.parametrize(
    "variables",
    [
        {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
        {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2"},
        {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"},
    ],
    ids=["torchrun", "srun", "mpirun"],
)
@pytest.mark.parametrize("ours", ["model and task", "optimiser", "model"])
def test_processes_of_a_launcher_that_fairseq_did_not_join(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], ours: str
) -> None:
    """Whichever part of the plugin is in use."""
    stock = {
        "model and task": ("--optimizer", "adam"),
        "optimiser": ("--task", "translation", "--arch", "t2017_transformer"),
        "model": (
            *("--task", "translation", "--optimizer", "adam", "--criterion", "label_smoothed_cross_entropy"),
            *("--lr-scheduler", "fixed", "--lr", 0.001, "--label-smoothing", 0.1),
        ),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    more = ("--max-update", 1, "--disable-validation", *stock[ours])
    paper = () if ours == "model" else PAPER
    call = training(corpus.data_bin, tmp_path / "out", *more, paper=paper)
    assert_refused(run_here("train", *call), tmp_path / "out")


def test_one_process_of_a_launcher_or_of_a_batch_job_trains(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm tells the only process of a batch script how many tasks the job may start: that is no launcher."""
    for name, value in {"WORLD_SIZE": "1", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "1", "SLURM_PROCID": "0"}.items():
        monkeypatch.setenv(name, value)
    outcome = run_here("train", *training(corpus.data_bin, tmp_path, "--max-update", 1, "--disable-validation"))
    assert outcome.status == 0, outcome.error


def test_several_processes_may_translate(corpus: Corpus, trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each a part of the sentences, say; only training is refused."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    outcome = run_here("generate", *generation(corpus.data_bin, trained, "--extra-length", 0))
    assert outcome.status == 0 and len(outcome.lines("H")) == 21
