"""A guard for launchers that start several processes which fairseq then does not join."""

import os

import torch.distributed

from t2017_plugin.errors import UsageError


def refuse_unjoined_processes() -> None:
    """Stops when a launcher such as ``torchrun`` started several processes and fairseq joined none of them.

    fairseq divides the number of processes by the number of GPUs; on a CPU each process then trains alone, into the
    same folder as the others.

    Raises:
        UsageError: WORLD_SIZE is above 1 and there is no process group.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1") or 1)
    if processes > 1 and not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        raise UsageError(
            f"{processes} processes were started but fairseq joined none, each would train alone: on a CPU give every "
            "process --cpu --distributed-backend gloo --distributed-no-spawn --distributed-world-size N "
            "--distributed-rank R --distributed-init-method tcp://127.0.0.1:PORT (recipes/common shows it)"
        )
