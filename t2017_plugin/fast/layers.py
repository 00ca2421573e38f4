"""Two parts of a layer, faster: equation (1) in one call of torch, and dropout on a CPU.

``fused_attention`` replaces ``paper.model.attention`` where its weights are not wanted;
tests/unit/test_attention.py holds the two equal. ``Dropout`` replaces ``nn.Dropout``;
tests/unit/test_dropout.py holds its rate, its scale and its gradient to the formula.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2017_plugin.paper.model import without_blind_queries


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None, dropout: nn.Dropout
) -> tuple[Tensor, None]:
    """Compute equation (1) by torch's ``scaled_dot_product_attention``, which never has all weights at once.

    A mask without a batch is the causal one, the only such mask of the model; torch has its own way for it.

    Shape:
        query: (B, h, T, d_k); key: (B, h, S, d_k); value: (B, h, S, d_v); hidden: (B, 1, 1, S) or (T, T)
        -> (B, h, T, d_v)
    """
    causal = hidden is not None and hidden.dim() == 2
    rate = dropout.p if dropout.training else 0.0
    if hidden is None or causal:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=rate, is_causal=causal), None
    seen = ~without_blind_queries(hidden)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=seen, dropout_p=rate), None


class _DropoutOfFloats(torch.autograd.Function):
    """Keeps one byte for each value for the backward pass, as torch does."""

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


class Dropout(nn.Dropout):
    """Dropout (section 5.4): a value is zero with probability P_drop, else divided by 1 - P_drop.

    On a CPU drawing the zeros costs more than anything else that is not a matrix product. torch draws
    a double for each value; here it is a float, from 24 random bits (docs/performance.md). The
    probability is met to 2^-24, and the same seed gives other zeros than torch's own.

    Shape:
        (...) -> the same
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.p == 0.0 or x.device.type != "cpu" or x.dtype != torch.float32:
            return F.dropout(x, self.p, self.training)
        dropped: Tensor = _DropoutOfFloats.apply(x, self.p)
        return dropped


def use_fast_dropout(model: nn.Module) -> None:
    """Put ``Dropout`` in the place of every ``nn.Dropout`` of a model."""
    for module in model.modules():
        for name, child in module.named_children():
            if type(child) is nn.Dropout:
                setattr(module, name, Dropout(child.p))
