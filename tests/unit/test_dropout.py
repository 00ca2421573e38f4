"""Dropout: how many values are dropped, what becomes of the others, and when nothing is."""

import pytest
import torch

from t2017_plugin.fast.layers import Dropout

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_share_and_scale(p: float, dtype: torch.dtype) -> None:
    """A million values: the share of zeros within five standard deviations; the others are x / (1 - p)."""
    torch.manual_seed(0)
    x = torch.ones(1000, 1000, dtype=dtype)
    y = Dropout(p)(x)
    zeros = float(y.eq(0).double().mean())
    assert abs(zeros - p) < 5 * (p * (1 - p) / 1e6) ** 0.5
    kept = y[y.ne(0)].float()
    tolerance = 1e-6 if dtype == torch.float32 else 2**-7
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - p)), rtol=tolerance, atol=0)
    # Neighbours are drawn apart: the share of pairs that are both dropped.
    pairs = float((y[:, 1:].eq(0) & y[:, :-1].eq(0)).double().mean())
    assert abs(pairs - p * p) < 6 * (p * p / 1e6) ** 0.5


def test_gradients_go_where_values_did() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 40).requires_grad_()
    y = Dropout(0.2)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, torch.where(y.eq(0), 0.0, 1.25))


def test_nothing_in_evaluation_and_the_same_seed_twice() -> None:
    module, x = Dropout(0.4), torch.randn(30, 30)
    assert module.eval()(x) is x and Dropout(0.0).train()(x) is x
    drawn = []
    for _ in range(2):
        torch.manual_seed(5)
        drawn.append(module.train()(x))
    assert torch.equal(*drawn)
