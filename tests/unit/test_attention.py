"""Attention (section 3.2): the formula in loops, the reason for the scale, masks, and both ways to compute it."""

import math

import pytest
import torch
from torch import Tensor

from t2017_plugin.fast.cache import additive
from t2017_plugin.modules.attention import (
    EncoderDecoderAttention,
    SelfAttention,
    attention_weights,
    causal_mask,
    visible,
)

pytestmark = pytest.mark.unit
# Sums of a few dozen float32 products in another order.
ROUNDING = 2e-6


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
@pytest.mark.parametrize("need_weights", [False, True])
def test_both_attentions_by_hand(h: int, d_k: int, d_v: int, need_weights: bool) -> None:
    torch.manual_seed(1)
    x, memory = torch.randn(2, 5, 32), torch.randn(2, 7, 32)
    own = SelfAttention(32, h, d_k, d_v)
    w_q, w_k, w_v = own.w_qkv.weight.T.split([h * d_k, h * d_k, h * d_v], dim=1)
    expected = by_hand(x, x, w_q, w_k, w_v, own.w_o.weight.T, h)
    torch.testing.assert_close(own(x, need_weights=need_weights)[0].double(), expected, atol=ROUNDING, rtol=0)

    other = EncoderDecoderAttention(32, h, d_k, d_v)
    w_k, w_v = other.w_kv.weight.T.split([h * d_k, h * d_v], dim=1)
    expected = by_hand(x, memory, other.w_q.weight.T, w_k, w_v, other.w_o.weight.T, h)
    actual = other(x, *other.project_memory(memory), need_weights=need_weights)[0]
    torch.testing.assert_close(actual.double(), expected, atol=ROUNDING, rtol=0)


def test_no_bias_unless_asked_for() -> None:
    assert [name for name, _ in SelfAttention(8, 2, 4, 4).named_parameters()] == ["w_o.weight", "w_qkv.weight"]
    assert sum(name.endswith("bias") for name, _ in SelfAttention(8, 2, 4, 4, bias=True).named_parameters()) == 2


@pytest.mark.parametrize("d_k", [16, 64, 256])
def test_scale_keeps_the_variance_of_scores(d_k: int) -> None:
    """Footnote 4: for unit-variance q and k the scores have variance 1 for any d_k, as they would not unscaled."""
    generator = torch.Generator().manual_seed(0)
    query, key = (torch.randn(1, 1, 1000, d_k, generator=generator) for _ in range(2))
    weights = attention_weights(query, key, None)
    # The logarithm of a softmax is the score less a constant of its row, which the variance does not see. Over 1,000
    # queries |q|^2 / d_k has a relative error of at most sqrt(2 / 16 / 1000) = 1 %; six of them.
    assert float(weights.log().var(-1).mean()) == pytest.approx(1.0, rel=0.06)
    expected = torch.softmax(query.double() @ key.double().transpose(-2, -1) / math.sqrt(d_k), dim=-1)
    torch.testing.assert_close(weights.double(), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_value_and_weights_paths_are_equal_with_gradients(causal: bool) -> None:
    torch.manual_seed(2)
    attention = SelfAttention(16, 4, 3, 5)
    hidden = torch.zeros(3, 1, 1, 6, dtype=torch.bool)
    hidden[1, ..., 4:] = True
    hidden[2, ..., :2] = True
    results = []
    for need_weights in (False, True):
        x = torch.randn(3, 6, 16, generator=torch.Generator().manual_seed(3)).requires_grad_()
        attention.zero_grad()
        output, weights = attention(x, None if causal else hidden, causal, need_weights)
        output.square().sum().backward()
        assert (weights is not None) is need_weights
        results.append([output, x.grad, *(p.grad.clone() for p in attention.parameters())])
    for fast, explicit in zip(*results, strict=True):
        torch.testing.assert_close(fast, explicit, atol=2e-5, rtol=1e-5)  # gradients sum over 18 positions


def test_weights_sum_to_one_and_hide() -> None:
    torch.manual_seed(0)
    query, key = torch.randn(1, 2, 4, 8), torch.randn(1, 2, 4, 8)
    weights = attention_weights(query, key, causal_mask(4, query.device))
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, 2, 4))
    assert weights.triu(1).eq(0).all()


@pytest.mark.parametrize("need_weights", [False, True])
def test_fully_masked_rows_are_finite(need_weights: bool) -> None:
    attention = SelfAttention(16, 2, 8, 8)
    x = torch.randn(2, 3, 16, requires_grad=True)
    hidden = torch.ones(2, 1, 1, 3, dtype=torch.bool)
    output, _ = attention(x, hidden, need_weights=need_weights)
    output.sum().backward()
    assert output.isfinite().all() and x.grad is not None and x.grad.isfinite().all()


def test_attention_dropout_only_when_training() -> None:
    torch.manual_seed(0)
    attention = SelfAttention(16, 2, 8, 8, dropout=0.5)
    x = torch.randn(1, 6, 16)
    assert not torch.equal(attention(x)[0], attention(x)[0])
    attention.eval()
    assert torch.equal(attention(x)[0], attention(x)[0])


def test_added_mask_of_decoding() -> None:
    """A mask of 0 and minus infinity hides what a boolean one hides."""
    torch.manual_seed(4)
    query, key, value = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 6)
    hidden = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])[:, None, None, :]
    expected = attention_weights(query, key, hidden) @ value
    mask = additive(visible(hidden), query.dtype)
    actual = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(actual, expected, atol=ROUNDING, rtol=0)
