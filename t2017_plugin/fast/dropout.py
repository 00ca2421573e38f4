"""Dropout (section 5.4): each value is zero with probability P_drop, the others are divided by 1 - P_drop.

On a CPU drawing the zeros costs more than anything else that is not a matrix product. torch draws a double for each
value; here it is a float, from 24 random bits, which takes less time (docs/performance.md). The probability is met to
2^-24.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class _DropoutOfFloats(torch.autograd.Function):
    """Keeps one byte a value for the backward pass, as torch does."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float) -> Tensor:
        kept = torch.empty_like(x).uniform_().lt_(1.0 - p)
        ctx.save_for_backward(kept.bool())
        ctx.scale = 1.0 / (1.0 - p)
        return kept.mul_(x).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return torch.ops.aten.native_dropout_backward(gradient, kept, ctx.scale), None


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout of any tensor. Shape: (...) -> the same."""
    if not training or p == 0.0 or x.device.type != "cpu" or x.dtype != torch.float32:
        return F.dropout(x, p, training)
    dropped: Tensor = _DropoutOfFloats.apply(x, p)
    return dropped


class Dropout(nn.Dropout):
    """``dropout`` as a module. Shape: (...) -> the same."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)
