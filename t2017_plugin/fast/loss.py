"""Projection and smoothed loss together, a few target tokens at a time.

``smoothed_loss`` replaces ``paper.model.Decoder.logits`` followed by
``paper.training.smoothed_cross_entropy``; tests/unit/test_chunked_loss.py holds them equal.

The logits of all target tokens are the largest tensor of an update: with 37,000 classes, 4,096 tokens take 0.6 GB, and
softmax, loss and gradients each make another. Here only a slice of them exists at a time. Its gradient is

    d loss / d logits = p - q',   q' = (1 - eps) [k = y] + eps / K

In float32 it is turned into gradients of the decoder's features and of the output matrix at once, in the forward pass;
the sums are the same up to float32 rounding. In half precision that would be too early, since small gradients only
survive after the loss has been scaled: there the backward pass computes the slices once more, which costs one more
product with the output matrix. Softmax and loss are in float32 in either case.

No value is asked of the device on the way, so that a GPU need not be waited for.
"""

from typing import Any

import torch
from torch import Tensor

# Values of a slice of logits. On a CPU 8 MB, which stay in its cache; a GPU wants large products.
SLICE = 1 << 21
SLICE_ON_GPU = 1 << 26


def slice_length(tokens: int, classes: int, device: torch.device) -> int:
    """Choose how many tokens a slice has."""
    values = SLICE if device.type == "cpu" else SLICE_ON_GPU
    return max(1, min(tokens, values // classes))


class ChunkedLoss(torch.autograd.Function):
    """``smoothed_loss`` in float32, with gradients from the forward pass; see there.

    Shape:
        features: (N, d_model); weight: (V, d_model); target, counts: (N,) -> two scalars
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, target: Tensor, counts: Tensor | None, epsilon: float
    ) -> tuple[Tensor, Tensor]:
        """Both sums; the gradients of the first are computed on the way and kept."""
        tokens, classes = len(target), len(weight)
        step = slice_length(tokens, classes, features.device)
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
            each, smoothed = of_target - log_total, mean - log_total
            if counts is not None:
                here = counts[start : start + step].unsqueeze(1)
                each, smoothed = each * here, smoothed * here
            likelihood += each.sum()
            loss -= ((1.0 - epsilon) * each + epsilon * smoothed).sum()
            if features_gradient is not None and weight_gradient is not None:
                p.div_(total).sub_(epsilon / classes)
                p.scatter_add_(1, y, p.new_full(y.shape, epsilon - 1.0))
                if counts is not None:
                    p.mul_(here)
                torch.mm(p, weight, out=features_gradient[start : start + step])
                weight_gradient.addmm_(p.T, x)
        ctx.save_for_backward(features_gradient, weight_gradient)
        ctx.mark_non_differentiable(nll := -likelihood.to(features.dtype))
        return loss.to(features.dtype), nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        """Return the kept gradients, scaled."""
        features_gradient, weight_gradient = ctx.saved_tensors
        return features_gradient * gradients[0], weight_gradient * gradients[0], None, None, None


class ChunkedHalfLoss(torch.autograd.Function):
    """``smoothed_loss`` in float16 and bfloat16: slices are computed again for the gradients, after loss scaling.

    Shape:
        features: (N, d_model); weight: (V, d_model); target, counts: (N,) -> two scalars
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, target: Tensor, counts: Tensor | None, epsilon: float
    ) -> tuple[Tensor, Tensor]:
        """Both sums in float32; log Z of each token is kept."""
        tokens, classes = len(target), len(weight)
        step = slice_length(tokens, classes, features.device)
        log_z = features.new_empty(tokens, 1, dtype=torch.float32)
        loss = features.new_zeros((), dtype=torch.float64)
        likelihood = features.new_zeros((), dtype=torch.float64)
        for start in range(0, tokens, step):
            place = slice(start, start + step)
            logits = torch.mm(features[place], weight.T).float()
            torch.logsumexp(logits, dim=1, keepdim=True, out=log_z[place])
            each = logits.gather(1, target[place].unsqueeze(1)) - log_z[place]
            smoothed = logits.mean(dim=1, keepdim=True) - log_z[place]
            if counts is not None:
                here = counts[place].unsqueeze(1)
                each, smoothed = each * here, smoothed * here
            likelihood += each.sum()
            loss -= ((1.0 - epsilon) * each + epsilon * smoothed).sum()
        ctx.save_for_backward(features, weight, target, counts, log_z)
        ctx.epsilon = epsilon
        ctx.mark_non_differentiable(nll := -likelihood.float())
        return loss.float(), nll

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        """p - q' times the scaled loss's gradient in float32, rounded, then the two products; dW summed in float32."""
        features, weight, target, counts, log_z = ctx.saved_tensors
        tokens, classes = len(target), len(weight)
        step = slice_length(tokens, classes, features.device)
        features_gradient = torch.empty_like(features)
        weight_gradient = torch.zeros_like(weight, dtype=torch.float32)
        for start in range(0, tokens, step):
            place = slice(start, start + step)
            x, y = features[place], target[place].unsqueeze(1)
            p = torch.mm(x, weight.T).float().sub_(log_z[place]).exp_().sub_(ctx.epsilon / classes)
            p.scatter_add_(1, y, p.new_full(y.shape, ctx.epsilon - 1.0))
            p.mul_(gradients[0] if counts is None else gradients[0] * counts[place].unsqueeze(1))
            rounded = p.to(features.dtype)
            torch.mm(rounded, weight, out=features_gradient[place])
            weight_gradient += torch.mm(rounded.T, x)
        return features_gradient, weight_gradient.to(weight.dtype), None, None, None


def smoothed_loss(
    features: Tensor, weight: Tensor, target: Tensor, epsilon: float, counts: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the smoothed loss and the negative log-likelihood without ever having all logits.

    Both are in nats, summed over target tokens, as ``smoothed_cross_entropy`` gives them for ``features @ weight.T``
    with smoothing over ``all``. ``counts`` is 0 for tokens that do not count and 1 for others; without it all do.

    Shape:
        features: (N, d_model); weight: (V, d_model), of one type; target: (N,); counts: (N,) -> two float32 scalars
    """
    function = ChunkedLoss if features.dtype == torch.float32 else ChunkedHalfLoss
    loss, likelihood = function.apply(features, weight, target, counts, epsilon)
    return loss, likelihood
