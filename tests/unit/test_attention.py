"""Attention (section 3.2): the formula in loops, the reason for the scale, masks, and both ways to compute it."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from t2017_plugin.fast.decoding import additive
from t2017_plugin.fast.layers import fused_attention
from t2017_plugin.paper.config import Model
from t2017_plugin.paper.model import (
    Attend,
    EncoderDecoderAttention,
    SelfAttention,
    attention,
    causal_mask,
    without_blind_queries,
)

pytestmark = pytest.mark.unit
# Sums of a few dozen float32 products in another order.
ROUNDING = 2e-6
# The formula as it stands, and the one call of torch.
BOTH = pytest.mark.parametrize("attend", [attention, fused_attention])


def sizes(d_model: int, h: int, d_k: int, d_v: int, **choices: Any) -> Model:
    return Model(d_model=d_model, h=h, d_k=d_k, d_v=d_v, **choices)


def weights_of(query: Tensor, key: Tensor, hidden: Tensor | None) -> Tensor:
    return attention(query, key, key, hidden, nn.Dropout(0.0))[1]


def by_hand(x: Tensor, memory: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, h: int) -> Tensor:
    """Section 3.2.2 in float64, head by head and query by query, without a mask; the W are (in, out)."""
    x, memory, w_q, w_k, w_v, w_o = (tensor.double() for tensor in (x, memory, w_q, w_k, w_v, w_o))
    d_k, d_v = w_q.size(1) // h, w_v.size(1) // h
    rows = []
    for sentence, keys in zip(x, memory, strict=True):
        heads = []
        for i in range(h):
            query = sentence @ w_q[:, i * d_k : (i + 1) * d_k]
            key = keys @ w_k[:, i * d_k : (i + 1) * d_k]
            value = keys @ w_v[:, i * d_v : (i + 1) * d_v]
            per_query = []
            for q in query:
                scores = torch.stack([(q * k).sum() / math.sqrt(d_k) for k in key])
                exponential = (scores - scores.max()).exp()
                per_query.append(((exponential / exponential.sum()).unsqueeze(1) * value).sum(0))
            heads.append(torch.stack(per_query))
        rows.append(torch.cat(heads, dim=-1) @ w_o)
    return torch.stack(rows)


# d_model / h, and both of rows A and B where d_k, d_v and d_model / h all differ.
@pytest.mark.parametrize("h, d_k, d_v", [(4, 8, 8), (2, 3, 16), (3, 12, 5)])
@BOTH
def test_both_attentions_by_hand(h: int, d_k: int, d_v: int, attend: Attend) -> None:
    torch.manual_seed(1)
    x, memory = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    own = SelfAttention(sizes(32, h, d_k, d_v))
    w_q, w_k, w_v = own.w_qkv.weight.T.split([h * d_k, h * d_k, h * d_v], dim=1)
    expected = by_hand(x, x, w_q, w_k, w_v, own.w_o.weight.T, h)
    torch.testing.assert_close(own(x, None, attend)[0].double(), expected, atol=ROUNDING, rtol=0)

    other = EncoderDecoderAttention(sizes(32, h, d_k, d_v))
    w_k, w_v = other.w_kv.weight.T.split([h * d_k, h * d_v], dim=1)
    expected = by_hand(x, memory, other.w_q.weight.T, w_k, w_v, other.w_o.weight.T, h)
    actual = other(x, memory, None, attend)[0]
    torch.testing.assert_close(actual.double(), expected, atol=ROUNDING, rtol=0)


def test_no_bias_unless_asked_for() -> None:
    assert [name for name, _ in SelfAttention(sizes(8, 2, 4, 4)).named_parameters()] == ["w_o.weight", "w_qkv.weight"]
    assert (
        sum(
            name.endswith("bias")
            for name, _ in SelfAttention(sizes(8, 2, 4, 4, attention_bias=True)).named_parameters()
        )
        == 2
    )


@pytest.mark.parametrize("d_k", [16, 64, 256])
def test_scale_keeps_the_variance_of_scores(d_k: int) -> None:
    """Footnote 4: for unit-variance q and k the scores have variance 1 for any d_k, as they would not unscaled."""
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 1, 1000, d_k, generator=generator) for _ in range(2))
    weights = weights_of(query, key, None)
    # The logarithm of a softmax is the score less a constant of its row, which the variance does not see. Over 1,000
    # queries |q|^2 / d_k has a relative error of at most sqrt(2 / 16 / 1000) = 1 %; six of them.
    assert float(weights.log().var(-1).mean()) == pytest.approx(1.0, rel=0.06)
    expected = torch.softmax(query.double() @ key.double().transpose(-2, -1) / math.sqrt(d_k), dim=-1)
    torch.testing.assert_close(weights.double(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_both_ways_are_equal_with_gradients(causal: bool) -> None:
    torch.manual_seed(2)
    module = SelfAttention(sizes(16, 4, 3, 5))
    hidden = torch.zeros(3, 1, 1, 6, dtype=torch.bool)
    hidden[1, ..., 4:] = True
    hidden[2, ..., :2] = True
    results = []
    for attend in (fused_attention, attention):
        x = torch.randn(3, 6, 16, generator=torch.Generator().manual_seed(3)).requires_grad_()
        module.zero_grad()
        output, weights = module(x, causal_mask(6, x.device) if causal else hidden, attend)
        output.square().sum().backward()
        assert (weights is None) is (attend is fused_attention)
        results.append([output, x.grad, *(p.grad.clone() for p in module.parameters())])
    for fast, explicit in zip(*results, strict=True):
        torch.testing.assert_close(fast, explicit, atol=2e-5, rtol=1e-5)  # gradients sum over 18 positions


def test_weights_sum_to_one_and_hide() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 4, 8)
    weights = weights_of(query, key, causal_mask(4, query.device))
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2, 4))
    assert weights.triu(1).eq(0).all()


@BOTH
def test_fully_masked_rows_are_finite(attend: Attend) -> None:
    module = SelfAttention(sizes(16, 2, 8, 8))
    x = torch.randn(2, 3, 16, requires_grad=True)
    hidden = torch.ones(2, 1, 1, 3, dtype=torch.bool)
    output, _ = module(x, hidden, attend)
    output.sum().backward()
    assert output.isfinite().all() and x.grad is not None and x.grad.isfinite().all()


@BOTH
def test_attention_dropout_only_when_training(attend: Attend) -> None:
    torch.manual_seed(0)
    module = SelfAttention(sizes(16, 2, 8, 8, attention_dropout=0.5))
    x = torch.randn(1, 6, 16)
    assert not torch.equal(module(x, None, attend)[0], module(x, None, attend)[0])
    module.eval()
    assert torch.equal(module(x, None, attend)[0], module(x, None, attend)[0])


def test_added_mask_of_decoding() -> None:
    """A mask of 0 and minus infinity hides what a boolean one hides."""
    torch.manual_seed(4)
    query, key, value = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 6)
    hidden = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])[:, None, None, :]
    expected = weights_of(query, key, hidden) @ value
    mask = additive(without_blind_queries(hidden), query.dtype)
    actual = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(actual, expected, atol=ROUNDING, rtol=0)
