"""Projection and smoothed loss together, a few target tokens at a time.

The logits of all target tokens are the largest tensor of an update: with 37,000 classes, 4,096 tokens take 0.6 GB, and
softmax, loss and gradients each make another. Here only a slice of them exists at a time; its gradient

    d loss / d logits = p - q',   q' = (1 - eps) [k = y] + eps / K

is turned into gradients of the decoder's features and of the output matrix at once, in the forward pass. The sums are
the same up to float32 rounding.
"""

from typing import Any

import torch
from torch import Tensor

# Values of a slice of logits: 8 MB, which stays in a CPU's cache.
SLICE = 1 << 21


class ChunkedLoss(torch.autograd.Function):
    """``smoothed_loss`` with gradients; see there."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, target: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
        """Both sums; the gradients of the first are computed on the way and kept."""
        tokens, classes = len(target), len(weight)
        step = max(1, min(tokens, SLICE // classes))
        with_gradients = features.requires_grad or weight.requires_grad
        features_gradient = torch.empty_like(features) if with_gradients else None
        weight_gradient = torch.zeros_like(weight) if with_gradients else None
        slice_of_logits = features.new_empty(step, classes)
        loss = features.new_zeros((), dtype=torch.float64)
        likelihood = features.new_zeros((), dtype=torch.float64)
        for start in range(0, tokens, step):
            x, y = features[start : start + step], target[start : start + step].unsqueeze(1)
            logits = torch.mm(x, weight.T, out=slice_of_logits[: len(x)])
            largest = logits.amax(dim=1, keepdim=True)
            of_target, mean = logits.gather(1, y) - largest, logits.mean(dim=1, keepdim=True) - largest
            p = logits.sub_(largest).exp_()
            total = p.sum(dim=1, keepdim=True)
            log_total = total.log()
            likelihood += (of_target - log_total).sum()
            loss -= ((1.0 - epsilon) * (of_target - log_total) + epsilon * (mean - log_total)).sum()
            if features_gradient is not None and weight_gradient is not None:
                p.div_(total).sub_(epsilon / classes)
                p.scatter_add_(1, y, p.new_full(y.shape, epsilon - 1.0))
                torch.mm(p, weight, out=features_gradient[start : start + step])
                weight_gradient.addmm_(p.T, x)
        ctx.save_for_backward(features_gradient, weight_gradient)
        ctx.mark_non_differentiable(nll := -likelihood.to(features.dtype))
        return loss.to(features.dtype), nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """The kept gradients, scaled."""
        features_gradient, weight_gradient = ctx.saved_tensors
        return features_gradient * gradients[0], weight_gradient * gradients[0], None, None


def smoothed_loss(features: Tensor, weight: Tensor, target: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Smoothed loss and negative log-likelihood in nats, summed over target tokens, without ever having all logits.

    Equals ``smoothed_cross_entropy`` over ``features @ weight.T`` with ``--smoothing-over all``.

    Shape:
        features: (N, d_model) in float32; weight: (V, d_model); target: (N,), none of them padding -> two scalars
    """
    loss, likelihood = ChunkedLoss.apply(features, weight, target, epsilon)
    return loss, likelihood
