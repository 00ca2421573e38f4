"""A guard for launchers that start several processes which fairseq then does not join."""

import os

import torch.distributed

from t2017_plugin.errors import UsageError

# How many processes a launcher says it started: torchrun, Slurm's srun (not the batch script around it), mpirun.
PROCESSES = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE")


def refuse_unjoined_processes() -> None:
    """Stops when a launcher such as ``torchrun`` started several processes and fairseq joined none of them.

    fairseq divides the number of processes by the number of GPUs; on a CPU each process then trains alone, into the
    same folder as the others.

    Raises:
        UsageError: a launcher's variable is above 1 and there is no process group.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return
    for name in PROCESSES:
        processes = os.environ.get(name, "")
        if processes.isdecimal() and int(processes) > 1:
            raise UsageError(
                f"{processes} processes were started ({name}) but fairseq joined none, each would train alone: on a "
                "CPU give every process --cpu --distributed-backend gloo --ddp-backend legacy_ddp "
                "--distributed-no-spawn --distributed-world-size N --distributed-rank R "
                "--distributed-init-method tcp://127.0.0.1:PORT (recipes/common shows it); where they are meant to be "
                f"separate runs, unset {name}"
            )
