"""Loss and projection in slices against the loss over all log-probabilities."""

import pytest
import torch

from t2017_plugin.fast import loss as sliced_loss
from t2017_plugin.fast.loss import smoothed_loss
from t2017_plugin.paper.training import smoothed_cross_entropy

pytestmark = pytest.mark.unit


# One slice, several whole ones, a shorter last one, and a slice for each token.
@pytest.mark.parametrize("slice_values", [1 << 21, 4 * 50, 7 * 50, 1])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_equals_the_plain_loss_with_gradients(
    slice_values: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sliced_loss, "SLICE", slice_values)
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
            loss, likelihood = smoothed_cross_entropy(log_probabilities, target, epsilon, -1)
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


# One rounding of each gradient of a logit, and of each sum; the loss is in float32, from rounded logits, either way.
HALF = {torch.float16: 2e-3, torch.bfloat16: 1.6e-2}


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize("slice_values", [1 << 21, 7 * 50])
def test_half_precision_equals_the_plain_path(
    dtype: torch.dtype, slice_values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a loss scale as fairseq's: gradients are computed after scaling."""
    monkeypatch.setattr(sliced_loss, "SLICE", slice_values)
    target = torch.randint(50, (1, 20), generator=torch.Generator().manual_seed(0))
    results = []
    for sliced in (True, False):
        features = torch.randn(20, 16, generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()
        weight = torch.randn(50, 16, generator=torch.Generator().manual_seed(2)).to(dtype).requires_grad_()
        if sliced:
            loss, likelihood = smoothed_loss(features, weight, target[0], 0.1)
        else:
            log_probabilities = torch.log_softmax((features @ weight.T).float(), -1).unsqueeze(0)
            loss, likelihood = smoothed_cross_entropy(log_probabilities, target, 0.1, -1)
        assert loss.dtype == torch.float32
        (loss * 128.0).backward()
        assert features.grad is not None and features.grad.dtype == weight.grad.dtype == dtype
        results.append([loss.detach(), likelihood.detach(), features.grad.float(), weight.grad.float()])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=HALF[dtype], atol=HALF[dtype] * float(other.abs().max()))


def test_small_gradients_survive_in_float16_once_the_loss_is_scaled() -> None:
    """1 / 60,000 and smaller of the logits' gradient would be lost without the scale."""
    classes = 60_000
    features = torch.zeros(1, 4, dtype=torch.float16).fill_(0.5).requires_grad_()
    weight = torch.zeros(classes, 4, dtype=torch.float16).requires_grad_()
    loss, _ = smoothed_loss(features, weight, torch.tensor([0]), 0.1)
    (loss * 2.0**13).backward()
    # p - q' = 0.9 / 60,000 for all but the target, times x = 0.5
    assert weight.grad is not None
    assert float(weight.grad[7, 0]) == pytest.approx(0.9 / classes * 2**13 * 0.5, rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_tokens_that_do_not_count(dtype: torch.dtype) -> None:
    """Weight 0 for padding is leaving padding out, as a GPU does it."""
    target = torch.tensor([3, 1, 4, 1, 5])
    real = target.ne(1)
    results = []
    for masked in (True, False):
        features = torch.randn(5, 8, generator=torch.Generator().manual_seed(1)).to(dtype).requires_grad_()
        weight = torch.randn(9, 8, generator=torch.Generator().manual_seed(2)).to(dtype).requires_grad_()
        if masked:
            loss, likelihood = smoothed_loss(features, weight, target, 0.1, real.float())
        else:
            loss, likelihood = smoothed_loss(features[real], weight, target[real], 0.1)
        loss.backward()
        results.append([loss.detach(), likelihood.detach(), features.grad, weight.grad])
    for one, other in zip(*results, strict=True):
        tolerance = 1e-6 if dtype == torch.float32 else 2**-7
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)
