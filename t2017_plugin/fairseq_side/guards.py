"""What is refused, in one line, before or while fairseq would go wrong."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from t2017_plugin.errors import UsageError

SUPPORTED_FAIRSEQ = "0.12.3.1"
INSTALL = {
    "torch": "pip install torch==2.13.0, or another PyTorch from 2.6 on",
    "fairseq": (
        "pip install -r requirements/build.txt -r requirements/fairseq.txt and then "
        "pip install --no-deps --no-build-isolation -r requirements/fairseq-fixed.txt"
        f" (fairseq-fixed {SUPPORTED_FAIRSEQ})"
    ),
}
SET_UP = "in the plugin's checkout, 'make venv' makes an environment with everything; to mend this one"
# How many processes a launcher says it started: torchrun, Slurm's srun (not the batch script around it), mpirun.
PROCESSES = ("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE")
FP16_NEEDS_GPU = (
    "fairseq's --fp16 (common.fp16=true) scales the loss on a GPU only: on a CPU use --bf16 (common.bf16=true) or "
    "leave it out (common.fp16=false)"
)


def require_fairseq() -> None:
    """Import torch and fairseq, or end with one line that names the missing one and the commands that install it.

    Raises:
        UsageError: one of them is not there, is hidden by a folder of that name, or cannot be imported by this Python.
    """
    if sys.version_info < (3, 11):  # noqa: UP036 (pip checks this, --user-dir does not)
        version = ".".join(str(part) for part in sys.version_info[:3])
        raise UsageError(f"t2017_plugin needs Python 3.11 or later, and {sys.executable} is {version}")
    for name in ("torch", "fairseq"):
        problem = _problem_with(name)
        if problem:
            raise UsageError(f"t2017_plugin needs {name}, {problem}: {SET_UP}, {INSTALL[name]}")


def _problem_with(name: str) -> str:
    """Say in one phrase what is wrong with a library; empty when it imports."""
    try:
        module = importlib.import_module(name)
    except Exception as error:  # a broken build raises anything: OSError for a missing library, RuntimeError, ...
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            return f"which is not installed for {sys.executable}"
        # fairseq 0.12.2 comes here with "ValueError: mutable default ... use default_factory".
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return f"and the one that is there cannot be imported by {sys.executable} ({said})"
    if getattr(module, "__file__", None) is None:
        del sys.modules[name]
        folder = list(module.__path__)[0]
        return f"and the folder {folder} hides it or there is none (starting in another directory may do)"
    return ""


def refuse_unjoined_processes() -> None:
    """Stop when a launcher such as ``torchrun`` started several processes and fairseq joined none of them.

    fairseq divides the number of processes by the number of GPUs; on a CPU each process then trains alone, into the
    same folder as the others.

    Raises:
        UsageError: a launcher's variable is above 1 and there is no process group.
    """
    import torch.distributed

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return
    for name in PROCESSES:
        processes = os.environ.get(name, "")
        if processes.isdecimal() and int(processes) > 1:
            raise UsageError(
                f"{processes} processes were started ({name}) but fairseq joined none, each would train alone: on a "
                "CPU give every process --cpu --distributed-backend gloo --ddp-backend legacy_ddp "
                "--distributed-no-spawn --distributed-world-size N --distributed-rank R "
                "--distributed-init-method tcp://127.0.0.1:PORT (recipes/launch shows it); where they are meant to be "
                f"separate runs, unset {name}"
            )


def has_gpu() -> bool:
    """Whether torch sees one."""
    import torch

    return torch.cuda.is_available()


def refuse_fp16_without_gpu() -> None:
    """Stop a training in float16 on a machine without a GPU.

    Raises:
        UsageError: there is none.
    """
    if not has_gpu():
        raise UsageError(FP16_NEEDS_GPU)


def check_command_line(args: Any) -> None:
    """Refuse, as soon as fairseq-train's flags are read, what could only fail later; set right what ``--bf16`` implies.

    Raises:
        UsageError: ``--memory-efficient-*`` with ``t2017_adam``, which keeps its state in the precision of the weights;
            ``--fp16`` without a GPU, where the first gradient that overflows would end in a traceback; a ``--save-dir``
            that cannot be written.
    """
    for name in ("memory_efficient_fp16", "memory_efficient_bf16"):
        if getattr(args, name, False) and getattr(args, "optimizer", None) == "t2017_adam":
            raise UsageError(
                f"--{name.replace('_', '-')} keeps no float32 weights, which t2017_adam needs: "
                f"use --{name[-4:]}, or --optimizer adam"
            )
    on_cpu = getattr(args, "cpu", False) or not has_gpu()
    if on_cpu and getattr(args, "fp16", False):
        raise UsageError(FP16_NEEDS_GPU)
    # fairseq turns its TPU mode on with --bf16, which a CPU or GPU must not get.
    if getattr(args, "bf16", False) and getattr(args, "tpu", False) and not importlib.util.find_spec("torch_xla"):
        args.tpu = False
        # Nor can the one flat tensor of all gradients, which is only faster, be made without a GPU.
        if on_cpu:
            args.fp16_no_flatten_grads = True
    if getattr(args, "save_dir", None) and not getattr(args, "no_save", False):
        refuse_unwritable(args.save_dir)


def refuse_unwritable(folder: str | os.PathLike[str]) -> None:
    """Stop before anything is trained where the run's folder cannot be made or written.

    Raises:
        UsageError: a part of the path is a file, or there is no permission.
    """
    path = Path(folder).absolute()
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not existing.is_dir():
        raise UsageError(f"--save-dir {folder}: {existing} is a file; name a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"--save-dir {folder}: no permission to write in {existing}; name another folder")


def stop_if_diverged(update: int) -> None:
    """End a run whose gradients are no longer finite, or whose loss scale has reached its floor.

    fairseq handles both by going through the batch once more, to find the module that failed, while the error is
    being handled; this is called from that second pass, by the task's ``train_step``. ``crash.pt`` is written by then.

    Raises:
        UsageError: an error of that kind is being handled.
    """
    error = sys.exc_info()[1]
    if isinstance(error, FloatingPointError):
        raise UsageError(
            f"training diverged at update {update + 1} ({str(error).splitlines()[0]}); {last_finite(update)}; resume "
            "from an earlier checkpoint with a smaller --noam-scale or more --warmup-updates, with --clip-norm 1, or "
            "with --bf16 where it was --fp16"
        )


def last_finite(update: int) -> str:
    """Say the loss (bits per token) and gradient norm of the last update that was logged, in whatever epoch."""
    from fairseq.logging import metrics

    found = {name: metrics.get_meter("default", name) for name in ("loss", "gnorm")}
    known = [f"{name} {float(meter.val):.4g}" for name, meter in found.items() if meter and meter.count]
    if not known:
        return "no update before it was finite"
    return f"update {update}, the last finite one, had {' and '.join(known)}"
