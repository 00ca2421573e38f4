"""The model, from section 3.1 to section 3.5, in torch alone.

Read it from top to bottom: positions (3.5), embeddings (3.4), the feed-forward network (3.3),
attention (3.2), the residual connection and its norm, the layers and the two stacks (3.1), and the
whole (figure 1). Each equation of the paper stands beside the lines that compute it.

    python -m t2017_plugin.paper.model    builds a small one, trains it, and searches with it

In shapes, B is sentences, S source positions, T target positions, V symbols of a vocabulary. Masks
are boolean, and True hides a key from a query. Padding may stand on either side of a source, and
on the right of a target.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2017_plugin.paper.config import SINUSOIDS, Model

# --- 3.5 Positional encoding ---------------------------------------------------------------------

FIRST_TABLE_LENGTH = 512


def sinusoid(length: int, d_model: int, layout: str = "paper", first_position: int = 0) -> Tensor:
    """Return the encodings of ``length`` positions in a row (section 3.5).

        PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))
        PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

    The layout ``t2t`` has all sines first, then all cosines, and pos * 10000^(-i / (d_model / 2 - 1))
    for an angle (tensor2tensor 1.0.14, common_attention.add_timing_signal_1d). ``stock`` is the same
    here; it differs in its first position. Angles are float64: in float32 that of position 1000 is
    already off by 5e-5. Of an odd ``d_model`` the paper's layout drops the last cosine; the other
    two leave the last channel zero, as their sources do.

    Shape:
        -> (length, d_model), float32
    Raises:
        ValueError: there is no such layout.
    """
    position = torch.arange(first_position, first_position + length, dtype=torch.float64).unsqueeze(1)
    table = torch.zeros(length, d_model, dtype=torch.float64)
    if layout == "paper":
        angle = position / 10000.0 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        table[:, 0::2] = angle.sin()
        table[:, 1::2] = angle.cos()[:, : d_model // 2]
    elif layout in SINUSOIDS:
        half = d_model // 2
        step = -math.log(10000.0) / max(half - 1, 1)
        angle = position * torch.exp(torch.arange(half, dtype=torch.float64) * step)
        table[:, :half] = angle.sin()
        table[:, half : 2 * half] = angle.cos()
    else:
        raise ValueError(f"unknown sinusoid {layout!r}: choose one of {', '.join(SINUSOIDS)}")
    return table.float()


def positions_of(tokens: Tensor, padding_index: int) -> Tensor:
    """Count positions from 0 over real tokens only, so that padding on the left changes nothing.

    Shape:
        tokens: (B, S) -> (B, S); padding gets a valid position without a meaning
    """
    return (tokens.ne(padding_index).long().cumsum(dim=1) - 1).clamp(min=0)


class SinusoidPositions(nn.Module):
    """Section 3.5 for any length: the table grows with the longest sentence, and is never saved.

    Shape:
        positions: (B, T) or (T,), each below ``length`` -> (B, T, d_model) or (T, d_model)
    """

    table: Tensor

    def __init__(self, d_model: int, layout: str, padding_index: int) -> None:
        super().__init__()
        self.d_model, self.layout = d_model, layout
        # Stock fairseq counts from padding index + 1, which is 2 with its dictionaries.
        self.first_position = padding_index + 1 if layout == "stock" else 0
        self.register_buffer("table", self.rows(FIRST_TABLE_LENGTH), persistent=False)

    def rows(self, length: int) -> Tensor:
        """Compute the first rows of the table. Shape: -> (length, d_model)."""
        return sinusoid(length, self.d_model, self.layout, self.first_position)

    def forward(self, positions: Tensor, length: int) -> Tensor:
        if length > self.table.size(0):
            self.table = self.rows(max(length, 2 * self.table.size(0))).to(self.table)
        return self.table[positions]


class LearnedPositions(nn.Module):
    """One trained vector for each position: row (E) of Table 3.

    Shape:
        positions: (B, T) or (T,), each below ``length`` -> (B, T, d_model) or (T, d_model)
    Raises:
        ValueError: a sentence is longer than the table.
    """

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(max_positions, d_model)

    def forward(self, positions: Tensor, length: int) -> Tensor:
        if length > self.embedding.num_embeddings:
            raise ValueError(
                f"a sentence has {length} tokens, and learned positions end at {self.embedding.num_embeddings}"
            )
        return self.embedding(positions)


def make_positions(config: Model, padding_index: int) -> SinusoidPositions | LearnedPositions:
    """Make the positional encoding of one stack."""
    if config.positions == "learned":
        return LearnedPositions(config.d_model, config.max_learned_positions)
    return SinusoidPositions(config.d_model, config.sinusoid, padding_index)


# --- 3.4 Embeddings and softmax ------------------------------------------------------------------


class TokenEmbedding(nn.Embedding):
    """Look tokens up, times sqrt(d_model). Padding becomes the zero vector, as in the authors' code.

    The row of the padding symbol itself may hold anything: it is a class of the softmax, and trained.

    Shape:
        tokens: (B, T) -> (B, T, d_model)
    """

    def __init__(self, vocabulary: int, d_model: int, padding_index: int) -> None:
        super().__init__(vocabulary, d_model)
        self.padding_index = padding_index
        self.scale = math.sqrt(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        is_real = tokens.ne(self.padding_index).unsqueeze(-1).to(self.weight.dtype)
        return super().forward(tokens) * (is_real * self.scale)


def make_tables(
    config: Model, source_vocabulary: int, target_vocabulary: int, source_padding: int, target_padding: int
) -> tuple[TokenEmbedding, TokenEmbedding, nn.Embedding]:
    """Make source embedding, target embedding and output matrix: one matrix, three times (section 3.4).

    With ``embeddings`` ``decoder`` the source has a table of its own; ``separate`` makes three.
    """
    source = TokenEmbedding(source_vocabulary, config.d_model, source_padding)
    target = source
    if config.embeddings != "shared":
        target = TokenEmbedding(target_vocabulary, config.d_model, target_padding)
    output: nn.Embedding = target
    if config.embeddings == "separate":
        output = nn.Embedding(target_vocabulary, config.d_model)
    return source, target, output


# --- 3.3 Position-wise feed-forward network ------------------------------------------------------


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2                                         (2)

    Dropout after the ReLU is 0 everywhere in the paper.

    Shape:
        x: (..., d_model) -> (..., d_model)
    """

    def __init__(self, d_model: int, d_ff: int, relu_dropout: float) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.relu_dropout = nn.Dropout(relu_dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(self.relu_dropout(torch.relu(self.w_1(x))))


# --- 3.2 Attention -------------------------------------------------------------------------------

# What computes equation (1): queries, keys, values, what is hidden, and dropout on the weights. The
# weights are returned before dropout; a faster way may return None for them.
Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None, nn.Dropout], tuple[Tensor, Tensor | None]]


def causal_mask(length: int, device: torch.device) -> Tensor:
    """Hide every later position (section 3.2.3). Shape: -> (length, length)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


def without_blind_queries(hidden: Tensor) -> Tensor:
    """Let a query that may see nothing see everything, so that a sentence of padding gives no NaN.

    Shape:
        (..., keys) -> the same
    """
    return hidden & ~hidden.all(dim=-1, keepdim=True)


def attention(
    query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None, dropout: nn.Dropout
) -> tuple[Tensor, Tensor]:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V                             (1)

    Illegal connections are set to minus infinity before the softmax (section 3.2.3).

    Shape:
        query: (B, h, T, d_k); key: (B, h, S, d_k); value: (B, h, S, d_v); hidden: broadcast to (B, h, T, S)
        -> values (B, h, T, d_v) and weights (B, h, T, S)
    """
    # Divided before the product, which could overflow in float16 otherwise.
    scores = (query / math.sqrt(query.size(-1))) @ key.transpose(-2, -1)
    if hidden is not None:
        scores = scores.masked_fill(without_blind_queries(hidden), -torch.inf)
    weights = torch.softmax(scores, dim=-1)
    return dropout(weights) @ value, weights


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O                  (section 3.2.2)
       head_i = Attention(Q W^Q_i, K W^K_i, V W^V_i)

    The projections are matrices, without biases; d_k and d_v need not be d_model / h. Matrices that
    read the same input are stacked, [W^Q | W^K | W^V] or [W^K | W^V], each head a block of columns:
    the authors' initial weights depend on it. What both uses have in common is here.
    """

    def __init__(self, config: Model) -> None:
        super().__init__()
        self.h, self.d_k, self.d_v = config.h, config.d_k, config.d_v
        self.dropout = nn.Dropout(config.attention_dropout)
        self.w_o = nn.Linear(self.h * self.d_v, config.d_model, bias=config.attention_bias)

    def split_heads(self, x: Tensor) -> Tensor:
        """Shape: (B, T, h * d) -> (B, h, T, d)."""
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    def join_heads(self, x: Tensor) -> Tensor:
        """Concat. Shape: (B, h, T, d) -> (B, T, h * d)."""
        return x.transpose(1, 2).flatten(-2)


class SelfAttention(MultiHeadAttention):
    """Queries, keys and values from one sequence (section 3.2.3, second and third use).

    Shape:
        x: (B, T, d_model); hidden: (B, 1, 1, T) or (T, T) -> (B, T, d_model), weights (B, h, T, T)
    """

    def __init__(self, config: Model) -> None:
        super().__init__(config)
        width = self.h * (2 * self.d_k + self.d_v)
        self.w_qkv = nn.Linear(config.d_model, width, bias=config.attention_bias)

    def forward(self, x: Tensor, hidden: Tensor | None, attend: Attend = attention) -> tuple[Tensor, Tensor | None]:
        widths = [self.h * self.d_k, self.h * self.d_k, self.h * self.d_v]
        query, key, value = (self.split_heads(part) for part in self.w_qkv(x).split(widths, dim=-1))
        heads, weights = attend(query, key, value, hidden, self.dropout)
        return self.w_o(self.join_heads(heads)), weights


class EncoderDecoderAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder's output (section 3.2.3, first use).

    Shape:
        x: (B, T, d_model); memory: (B, S, d_model); hidden: (B, 1, 1, S)
        -> (B, T, d_model), weights (B, h, T, S)
    """

    def __init__(self, config: Model) -> None:
        super().__init__(config)
        self.w_q = nn.Linear(config.d_model, self.h * self.d_k, bias=config.attention_bias)
        self.w_kv = nn.Linear(config.d_model, self.h * (self.d_k + self.d_v), bias=config.attention_bias)

    def forward(
        self, x: Tensor, memory: Tensor, hidden: Tensor | None, attend: Attend = attention
    ) -> tuple[Tensor, Tensor | None]:
        key, value = self.w_kv(memory).split([self.h * self.d_k, self.h * self.d_v], dim=-1)
        query = self.split_heads(self.w_q(x))
        heads, weights = attend(query, self.split_heads(key), self.split_heads(value), hidden, self.dropout)
        return self.w_o(self.join_heads(heads)), weights


# --- 3.1 Encoder and decoder stacks --------------------------------------------------------------


class ResidualNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x)))                              (sections 3.1, 5.4)

    Post-norm: nothing is normalised before a sub-layer, and nothing after the last layer. The mean
    and the population variance are over the last axis; epsilon stands inside the square root.

    Shape:
        x, sublayer_output: (..., d_model) -> (..., d_model)
    """

    def __init__(self, config: Model) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.P_drop)
        self.norm = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:
        return self.norm(x + self.dropout(sublayer_output))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network.

    Shape:
        x: (B, S, d_model); hidden: (B, 1, 1, S) -> (B, S, d_model), weights (B, h, S, S)
    """

    def __init__(self, config: Model) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config)
        self.self_attention_norm = ResidualNorm(config)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.relu_dropout)
        self.feed_forward_norm = ResidualNorm(config)

    def forward(self, x: Tensor, hidden: Tensor | None, attend: Attend = attention) -> tuple[Tensor, Tensor | None]:
        attended, weights = self.self_attention(x, hidden, attend)
        x = self.self_attention_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(x)), weights


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, then the feed-forward network.

    Shape:
        x: (B, T, d_model); memory: (B, S, d_model); later: (T, T); memory_hidden: (B, 1, 1, S)
        -> (B, T, d_model), weights (B, h, T, T) and (B, h, T, S)
    """

    def __init__(self, config: Model) -> None:
        super().__init__()
        self.self_attention = SelfAttention(config)
        self.self_attention_norm = ResidualNorm(config)
        self.encoder_attention = EncoderDecoderAttention(config)
        self.encoder_attention_norm = ResidualNorm(config)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.relu_dropout)
        self.feed_forward_norm = ResidualNorm(config)

    def forward(
        self, x: Tensor, later: Tensor, memory: Tensor, memory_hidden: Tensor | None, attend: Attend = attention
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        attended, self_weights = self.self_attention(x, later, attend)
        x = self.self_attention_norm(x, attended)
        attended, memory_weights = self.encoder_attention(x, memory, memory_hidden, attend)
        x = self.encoder_attention_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(x)), self_weights, memory_weights


class Encoder(nn.Module):
    """N layers over the embedded source (figure 1, left).

    Shape:
        source: (B, S) -> the memory (B, S, d_model), and the weights (B, h, S, S) of each layer
    """

    def __init__(self, config: Model, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = make_positions(config, embedding.padding_index)
        self.target_space = nn.Parameter(torch.empty(config.d_model)) if config.target_space_embedding else None
        self.dropout = nn.Dropout(config.P_drop)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.N))

    def hidden(self, source: Tensor) -> Tensor:
        """Hide padding from every query. Shape: (B, S) -> (B, 1, 1, S)."""
        return source.eq(self.embedding.padding_index)[:, None, None, :]

    def embed(self, source: Tensor) -> Tensor:
        """Dropout(embedding * sqrt(d_model) + position) (5.4). Shape: (B, S) -> (B, S, d_model)."""
        x = self.embedding(source)
        if self.target_space is not None:
            x = x + self.target_space
        return self.dropout(x + self.positions(positions_of(source, self.embedding.padding_index), source.size(1)))

    def forward(self, source: Tensor, attend: Attend = attention) -> tuple[Tensor, list[Tensor | None]]:
        x, hidden, each = self.embed(source), self.hidden(source), []
        for layer in self.layers:
            x, weights = layer(x, hidden, attend)
            each.append(weights)
        return x, each


class Decoder(nn.Module):
    """N layers over the embedded targets, "shifted right by one position" (figure 1, right).

    The first column of the shifted targets is a start symbol. With ``decoder_start`` ``zeros`` a
    zero vector stands in its place, as in the authors' code. Targets are padded on the right, so a
    real position never sees padding, and no mask is needed beside the causal one.

    Shape:
        shifted: (B, T); memory: (B, S, d_model); memory_hidden: (B, 1, 1, S)
        -> features (B, T, d_model), and of each layer the weights (B, h, T, T) and (B, h, T, S)
    """

    def __init__(self, config: Model, embedding: TokenEmbedding, output: nn.Embedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.output = output
        self.positions = make_positions(config, embedding.padding_index)
        self.zero_start = config.decoder_start == "zeros"
        self.dropout = nn.Dropout(config.P_drop)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.N))

    def embed(self, shifted: Tensor) -> Tensor:
        """Dropout(embedding * sqrt(d_model) + position) (5.4). Shape: (B, T) -> (B, T, d_model)."""
        x = self.embedding(shifted)
        if self.zero_start:
            x = F.pad(x[:, 1:], (0, 0, 1, 0))
        length = shifted.size(1)
        return self.dropout(x + self.positions(torch.arange(length, device=shifted.device), length))

    def forward(
        self, shifted: Tensor, memory: Tensor, memory_hidden: Tensor | None, attend: Attend = attention
    ) -> tuple[Tensor, list[Tensor | None], list[Tensor | None]]:
        x, later = self.embed(shifted), causal_mask(shifted.size(1), shifted.device)
        self_weights, memory_weights = [], []
        for layer in self.layers:
            x, within, across = layer(x, later, memory, memory_hidden, attend)
            self_weights.append(within)
            memory_weights.append(across)
        return x, self_weights, memory_weights

    def logits(self, features: Tensor) -> Tensor:
        """Project before the softmax: the table as it is, not scaled, no bias (section 3.4).

        Shape:
            features: (..., d_model) -> (..., V)
        """
        return F.linear(features, self.output.weight)


# --- Figure 1 ------------------------------------------------------------------------------------


class Transformer(nn.Module):
    """The whole model. Its weights are still to be drawn: ``initial_weights.draw_initial_weights``.

    Args:
        config: sizes, dropout and choices; base by default.
        source_vocabulary, target_vocabulary: symbols of each side; one vocabulary by default.
        padding_index: what fills up the shorter sentences of a batch, on both sides.

    Shape:
        source: (B, S); shifted: (B, T) -> logits (B, T, V)
    """

    def __init__(
        self, config: Model, source_vocabulary: int, target_vocabulary: int | None = None, padding_index: int = 0
    ) -> None:
        super().__init__()
        self.config = config
        sizes = source_vocabulary, target_vocabulary or source_vocabulary
        source, target, output = make_tables(config, *sizes, padding_index, padding_index)
        self.encoder = Encoder(config, source)
        self.decoder = Decoder(config, target, output)

    def forward(self, source: Tensor, shifted: Tensor) -> Tensor:
        memory, _ = self.encoder(source)
        features, _, _ = self.decoder(shifted, memory, self.encoder.hidden(source))
        return self.decoder.logits(features)


if __name__ == "__main__":
    from t2017_plugin.paper.toy import main

    main()
