"""Label smoothing (section 5.4) against the sum over all classes, written out."""

import math

import pytest
import torch
from torch import Tensor

from t2017_plugin.fairseq_side.training import smoothed_cross_entropy

pytestmark = pytest.mark.unit
PAD = 1


def by_hand(logits: Tensor, target: Tensor, epsilon: float, over: str) -> tuple[float, float]:
    """- sum_k q'(k) log p(k) and - log p(y), over all targets that are not padding, in float64."""
    loss = likelihood = 0.0
    classes = logits.size(-1)
    for row, y in zip(logits.double().flatten(0, 1), target.flatten().tolist(), strict=True):
        if y == PAD:
            continue
        log_p = row - math.log(float(row.exp().sum()))
        for k in range(classes):
            if over == "all":
                q = (1 - epsilon) * (k == y) + epsilon / classes
            else:
                q = 1 - epsilon if k == y else epsilon / (classes - 1)
            loss -= q * float(log_p[k])
        likelihood -= float(log_p[y])
    return loss, likelihood


@pytest.mark.parametrize("over", ["all", "others"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("classes", [2, 8, 331])
def test_against_the_sum_over_classes(over: str, epsilon: float, classes: int) -> None:
    generator = torch.Generator().manual_seed(classes)
    logits = 3 * torch.randn(2, 5, classes, generator=generator)
    target = torch.randint(0, classes, (2, 5), generator=generator)
    loss, likelihood = smoothed_cross_entropy(torch.log_softmax(logits, -1), target, epsilon, PAD, over)
    # float32 sums over at most ten tokens
    assert (float(loss), float(likelihood)) == pytest.approx(by_hand(logits, target, epsilon, over), rel=2e-6, abs=1e-6)


def test_the_two_forms_differ_by_the_weight_of_the_target() -> None:
    """eps / K on the target too, or not: at K = 8 the uniform part of 0.1 moves 0.0125 of the mass."""
    log_probabilities = torch.log_softmax(torch.arange(8.0), -1)[None, None]
    target = torch.tensor([[7]])
    every, _ = smoothed_cross_entropy(log_probabilities, target, 0.1, PAD, "all")
    others, _ = smoothed_cross_entropy(log_probabilities, target, 0.1, PAD, "others")
    mean_of_others = float(log_probabilities[0, 0, :7].mean())
    # Both put 0.1 outside the target but the first gives 0.1 / 8 of it back, so its loss is lower by that much mass.
    expected = 0.1 / 8 * (mean_of_others - float(log_probabilities[0, 0, 7]))
    assert float(every - others) == pytest.approx(expected, rel=1e-5)


def test_gradient_is_p_minus_q() -> None:
    """d loss / d logits = p - q' at every target and nothing at padding."""
    logits = torch.randn(1, 3, 6, generator=torch.Generator().manual_seed(0)).requires_grad_()
    target = torch.tensor([[4, PAD, 2]])
    loss, _ = smoothed_cross_entropy(torch.log_softmax(logits, -1), target, 0.1, PAD, "all")
    loss.backward()
    q = 0.9 * torch.nn.functional.one_hot(target, 6) + 0.1 / 6
    expected = (torch.softmax(logits.detach(), -1) - q) * target.ne(PAD).unsqueeze(-1)
    torch.testing.assert_close(logits.grad, expected, atol=3e-7, rtol=0)
