"""Dropout (section 5.4): each value is zero with probability P_drop, the others are divided by 1 - P_drop.

On a CPU drawing the zeros costs more than anything else that is not a matrix product. torch draws a double for each
value; here it is a float, from 24 random bits, which takes half the time. The probability is met to 2^-24.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Dropout of any tensor. Shape: (...) -> the same."""
    if not training or p == 0.0 or x.device.type != "cpu" or x.dtype != torch.float32:
        return F.dropout(x, p, training)
    kept = torch.empty_like(x).uniform_().lt_(1.0 - p)
    return x * kept.mul_(1.0 / (1.0 - p))


class Dropout(nn.Dropout):
    """``dropout`` as a module. Shape: (...) -> the same."""

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)
