"""Loss and projection in slices against the loss over all log-probabilities."""

import pytest
import torch

from t2017_plugin.criterions import chunked_loss
from t2017_plugin.criterions.chunked_loss import smoothed_loss
from t2017_plugin.criterions.label_smoothing import smoothed_cross_entropy

pytestmark = pytest.mark.unit


# One slice, several whole ones, a shorter last one, and a slice for each token.
@pytest.mark.parametrize("slice_values", [1 << 21, 4 * 50, 7 * 50, 1])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_equals_the_plain_loss_with_gradients(
    slice_values: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked_loss, "SLICE", slice_values)
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(50, (1, 20), generator=generator)
    results = []
    for sliced in (True, False):
        features = torch.randn(20, 16, generator=torch.Generator().manual_seed(1)).requires_grad_()
        weight = torch.randn(50, 16, generator=torch.Generator().manual_seed(2)).requires_grad_()
        if sliced:
            loss, likelihood = smoothed_loss(features, weight, target[0], epsilon)
        else:
            log_probabilities = torch.log_softmax(features @ weight.T, -1).unsqueeze(0)
            loss, likelihood = smoothed_cross_entropy(log_probabilities, target, epsilon, "all", -1)
        (loss * 0.25).backward()
        results.append([loss.detach(), likelihood.detach(), features.grad, weight.grad])
    for one, other in zip(*results, strict=True):
        # float32 sums of 20 to 50 products in another order
        torch.testing.assert_close(one, other, rtol=2e-6, atol=2e-6)


def test_large_logits_stay_finite() -> None:
    features = torch.full((2, 4), 100.0)
    weight = torch.tensor([[10.0] * 4, [-10.0] * 4, [0.0] * 4], requires_grad=True)
    loss, likelihood = smoothed_loss(features, weight, torch.tensor([0, 1]), 0.1)
    loss.backward()
    # log P is 0 for the first target and -8000 for the second
    assert float(likelihood) == pytest.approx(8000.0)
    assert weight.grad is not None and weight.grad.isfinite().all()


def test_without_gradients() -> None:
    with torch.no_grad():
        loss, _ = smoothed_loss(torch.zeros(3, 2), torch.zeros(5, 2), torch.tensor([0, 1, 2]), 0.1)
    assert float(loss) == pytest.approx(3 * torch.log(torch.tensor(5.0)).item())
