"""Attention and multi-head attention (section 3.2).

    Attention(Q, K, V)    = softmax(Q K^T / sqrt(d_k)) V                        (1)
    MultiHead(Q, K, V)    = Concat(head_1, ..., head_h) W^O
    head_i                = Attention(Q W^Q_i, K W^K_i, V W^V_i)

The projections are matrices without bias, and d_k, d_v need not be d_model / h (rows A and B of Table 3). Matrices that
read the same input are stacked into one: [W^Q | W^K | W^V] for self-attention, [W^K | W^V] for the encoder's output, as
in the authors' first code, whose initialisation depends on it. Heads are contiguous blocks.

One convention for masks everywhere: boolean, True hides a key from a query.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2017_plugin.fast.dropout import Dropout


def visible(hidden: Tensor) -> Tensor:
    """The mask torch wants (True: may be seen). A query that may see nothing sees everything, and stays finite."""
    return ~hidden | hidden.all(dim=-1, keepdim=True)


def causal_mask(length: int, device: torch.device) -> Tensor:
    """Hides every later position (section 3.2.3). Shape: -> (length, length)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


def attention_weights(query: Tensor, key: Tensor, hidden: Tensor | None) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)), the softmax in float32 (equation 1).

    Shape:
        query: (B, h, T, d_k); key: (B, h, S, d_k); hidden: broadcastable to (B, h, T, S) -> (B, h, T, S)
    """
    # Divided before the product, which in float16 could overflow otherwise.
    scores = (query / math.sqrt(query.size(-1))) @ key.transpose(-2, -1)
    if hidden is not None:
        scores = scores.masked_fill(~visible(hidden), -math.inf)
    return torch.softmax(scores, dim=-1, dtype=torch.float32).type_as(scores)


class MultiHeadAttention(nn.Module):
    """What both attentions share: heads, equation (1), W^O.

    The value is computed by torch's scaled_dot_product_attention; where the weights are wanted, by the formula as it
    stands. A test proves the two equal.
    """

    def __init__(self, d_model: int, h: int, d_k: int, d_v: int, dropout: float, bias: bool) -> None:
        super().__init__()
        self.h, self.d_k, self.d_v = h, d_k, d_v
        self.dropout = Dropout(dropout)
        self.w_o = nn.Linear(h * d_v, d_model, bias=bias)

    def split_heads(self, x: Tensor) -> Tensor:
        """Shape: x: (B, T, h * d) -> (B, h, T, d)."""
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None, causal: bool, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Equation (1) in every head, then W^O.

        Shape:
            query: (B, h, T, d_k); key: (B, h, S, d_k); value: (B, h, S, d_v)
            -> (B, T, d_model) and, if wanted, the weights before dropout (B, h, T, S)
        """
        weights = None
        if need_weights:
            if causal:
                hidden = causal_mask(query.size(-2), query.device)
            weights = attention_weights(query, key, hidden)
            heads = self.dropout(weights) @ value
        else:
            heads = F.scaled_dot_product_attention(
                query,
                key,
                value,
                attn_mask=None if hidden is None else visible(hidden),
                dropout_p=self.dropout.p if self.training else 0.0,
                is_causal=causal,
            )
        return self.w_o(heads.transpose(1, 2).flatten(-2)), weights


class SelfAttention(MultiHeadAttention):
    """Queries, keys and values from the same sequence (section 3.2.3, second and third use)."""

    def __init__(self, d_model: int, h: int, d_k: int, d_v: int, dropout: float = 0.0, bias: bool = False) -> None:
        super().__init__(d_model, h, d_k, d_v, dropout, bias)
        self.w_qkv = nn.Linear(d_model, h * (2 * d_k + d_v), bias=bias)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Shape: x: (B, T, d_model) -> (B, h, T, d_k), (B, h, T, d_k), (B, h, T, d_v)."""
        widths = [self.h * self.d_k, self.h * self.d_k, self.h * self.d_v]
        query, key, value = (self.split_heads(part) for part in self.w_qkv(x).split(widths, dim=-1))
        return query, key, value

    def forward(
        self, x: Tensor, hidden: Tensor | None = None, causal: bool = False, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Shape: x: (B, T, d_model); hidden: (B, 1, 1, T) -> (B, T, d_model) and weights (B, h, T, T) or None."""
        query, key, value = self.project(x)
        return self.attend(query, key, value, hidden, causal, need_weights)


class EncoderDecoderAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder's output (section 3.2.3, first use)."""

    def __init__(self, d_model: int, h: int, d_k: int, d_v: int, dropout: float = 0.0, bias: bool = False) -> None:
        super().__init__(d_model, h, d_k, d_v, dropout, bias)
        self.w_q = nn.Linear(d_model, h * d_k, bias=bias)
        self.w_kv = nn.Linear(d_model, h * (d_k + d_v), bias=bias)

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Shape: memory: (B, S, d_model) -> (B, h, S, d_k), (B, h, S, d_v)."""
        key, value = self.w_kv(memory).split([self.h * self.d_k, self.h * self.d_v], dim=-1)
        return self.split_heads(key), self.split_heads(value)

    def forward(
        self, x: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None = None, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Attends over the encoder's output, whose keys and values come from ``project_memory``.

        Shape:
            x: (B, T, d_model); key, value: (B, h, S, d_k or d_v); hidden: (B, 1, 1, S)
            -> (B, T, d_model) and weights (B, h, T, S) or None
        """
        return self.attend(self.split_heads(self.w_q(x)), key, value, hidden, False, need_weights)
