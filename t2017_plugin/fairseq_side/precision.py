"""What fairseq's flags for half precision need before they work everywhere."""

import importlib.util
from typing import Any

import torch

from t2017_plugin.errors import UsageError

FP16_NEEDS_GPU = (
    "fairseq's --fp16 (common.fp16=true) scales the loss on a GPU only: on a CPU use --bf16 (common.bf16=true) or "
    "leave it out (common.fp16=false)"
)


def refuse_fp16_without_gpu() -> None:
    """Stops a training in float16 on a machine without a GPU.

    Raises:
        UsageError: there is none.
    """
    if not torch.cuda.is_available():
        raise UsageError(FP16_NEEDS_GPU)


def settle_precision(args: Any) -> None:
    """Corrects what fairseq derives from ``--fp16`` and ``--bf16``, after its flags are read.

    Raises:
        UsageError: ``--memory-efficient-*`` with ``t2017_adam``, which keeps its state in the precision of the weights;
            ``--fp16`` without a GPU, which the first gradient that overflows would end with a traceback.
    """
    for name in ("memory_efficient_fp16", "memory_efficient_bf16"):
        if getattr(args, name, False) and getattr(args, "optimizer", None) == "t2017_adam":
            raise UsageError(
                f"--{name.replace('_', '-')} keeps no float32 weights, which t2017_adam needs: "
                f"use --{name[-4:]}, or --optimizer adam"
            )
    on_cpu = getattr(args, "cpu", False) or not torch.cuda.is_available()
    if on_cpu and getattr(args, "fp16", False):
        raise UsageError(FP16_NEEDS_GPU)
    # fairseq turns its TPU mode on with --bf16, which a CPU or GPU must not get.
    if getattr(args, "bf16", False) and getattr(args, "tpu", False) and not importlib.util.find_spec("torch_xla"):
        args.tpu = False
        # Nor can the one flat tensor of all gradients, which is only faster, be made without a GPU.
        if on_cpu:
            args.fp16_no_flatten_grads = True
