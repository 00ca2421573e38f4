"""One step of a search, faster: keys and values remembered, the decoder as a plain chain of products.

``CachedModel`` replaces ``paper.search.WholePrefix``, ``DecoderStep`` replaces the decoder of
``paper.model`` at its newest position, and ``best_of_many`` replaces ``paper.search.top_k``.
tests/unit/test_fast.py and tests/unit/test_best.py hold them equal to what they replace. In a search
with few hypotheses a step takes a millisecond, and half of that would go into calling modules.

What is remembered: the hypotheses of a sentence share one pool of keys and values, with a place for
each position and each of ``beam`` slots, written once and never moved. A mask says which places are
a hypothesis's own; when hypotheses change places, only the mask is reordered. Keys and values of the
encoder's output have one copy for each sentence.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2017_plugin.paper.model import Decoder, DecoderLayer, LearnedPositions, attention, without_blind_queries

POSITIONS_AT_FIRST = 16
POSITIONS_AT_ONCE = 64
# Numbers in a matrix that is worth a copy; what a larger one costs is reading it, whichever way round it is.
LARGEST_COPY = 4_000_000
BLOCK = 64
# Below so many scores, topk as it is takes less time than what ``best_of_many`` does.
MANY = 50_000


def additive(hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """Make minus infinity of what is hidden and 0 of the rest: the form of mask that costs least in every layer.

    Shape:
        (...) -> the same
    """
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)


def layers_of(decoder: Decoder) -> list[DecoderLayer]:
    """Return the layers of a decoder, typed."""
    return [layer for layer in decoder.layers if isinstance(layer, DecoderLayer)]


class DecoderCache:
    """Keys and values of all decoder layers for a batch of B sentences with ``beam`` hypotheses each.

    Keys and values stand side by side as the projections make them, width h * (d_k + d_v).

    Args:
        beam: slots for each sentence and position; with fairseq's own search every row is a sentence with one slot

    Shape:
        memory: (B, S, d_model); memory_hidden: (B, 1, 1, S)
    """

    def __init__(self, decoder: Decoder, memory: Tensor, memory_hidden: Tensor, beam: int) -> None:
        # Of the encoder's output, for each layer: (B, S, width). Added to the scores over it: (B, 1, 1, S).
        self.memory: list[Tensor] = [layer.encoder_attention.w_kv(memory) for layer in layers_of(decoder)]
        self.memory_mask = additive(without_blind_queries(memory_hidden), memory.dtype)
        self.beam = beam
        self.length = 0
        self.pools: list[Tensor | None] = [None] * len(self.memory)
        # (B, 1, hypotheses, length * beam); with one hypothesis for each sentence all places are its own.
        self.mask: Tensor | None = None
        self._slots = additive(~torch.eye(beam, dtype=torch.bool, device=memory.device), memory.dtype)

    @property
    def sentences(self) -> int:
        """B, the number of sentences that are still searched."""
        return len(self.memory_mask)

    def begin_step(self, hypotheses: int) -> None:
        """Open a new position for ``hypotheses`` newest tokens of each sentence: one at first, then ``beam``."""
        self.length += 1
        if self.beam > 1:
            own = self._slots[:hypotheses].expand(self.sentences, 1, -1, -1)
            self.mask = own if self.mask is None else torch.cat([self.mask, own], dim=-1)

    def append(self, layer: int, newest: Tensor) -> Tensor:
        """Write the newest position of a layer, and return the pool up to it.

        Shape:
            newest: (B, hypotheses, width) -> (B, length * beam, width)
        """
        pool = self.pools[layer]
        if pool is None or pool.size(1) < self.length:
            pool = self.pools[layer] = self._grown(pool, newest)
        pool[:, self.length - 1, : newest.size(1)] = newest
        return pool[:, : self.length].flatten(1, 2)

    def _grown(self, pool: Tensor | None, like: Tensor) -> Tensor:
        positions = POSITIONS_AT_FIRST if pool is None else 2 * pool.size(1)
        # Zeros, not whatever was in memory: a hidden slot is multiplied by weight 0, and 0 * nan is not 0.
        grown = like.new_zeros(self.sentences, positions, self.beam, like.size(-1))
        if pool is not None:
            grown[:, : pool.size(1)] = pool
        return grown

    def choose_parents(self, parents: Tensor) -> None:
        """Let hypothesis i of each sentence continue hypothesis ``parents[:, i]``. Shape: (B, beam)."""
        if self.mask is not None:
            index = parents[:, None, :, None].expand(-1, -1, -1, self.mask.size(-1))
            self.mask = self.mask.gather(2, index)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Keep these sentences, in this order. Shape: (new B,).

        Where sentences from the end fill the places of those that left, only they are copied, and only what is filled.
        """
        count = len(sentences)
        moved = (sentences != torch.arange(count, device=sentences.device)).nonzero().flatten()
        source = sentences[moved]
        in_place = bool((source >= count).all())

        def keep(store: Tensor, filled: int) -> Tensor:
            if not in_place:
                return store.index_select(0, sentences)
            if len(moved):
                store[moved, :filled] = store[source, :filled]
            return store[:count]

        self.pools = [pool if pool is None else keep(pool, self.length) for pool in self.pools]
        self.memory = [keep(memory, memory.size(1)) for memory in self.memory]
        self.memory_mask = self.memory_mask.index_select(0, sentences)
        if self.mask is not None:
            self.mask = self.mask.index_select(0, sentences)


class Product:
    """x W (+ b) with the matrix the way round in which a CPU reads it fastest when x has few rows."""

    def __init__(self, linear: nn.Linear | nn.Embedding, copy: bool) -> None:
        self.matrix: Tensor = linear.weight.t()
        if copy and linear.weight.numel() <= LARGEST_COPY:
            self.matrix = self.matrix.contiguous()
        self.bias: Tensor | None = getattr(linear, "bias", None)

    def __call__(self, x: Tensor) -> Tensor:
        """Shape: x: (rows, in) -> (rows, out)."""
        return torch.mm(x, self.matrix) if self.bias is None else torch.addmm(self.bias, x, self.matrix)

    def added_to(self, x: Tensor, y: Tensor) -> Tensor:
        """Compute y W (+ b) + x in one call. Shape: x: (rows, out); y: (rows, in) -> (rows, out)."""
        return torch.addmm(x if self.bias is None else x + self.bias, y, self.matrix)


class Norm:
    """The layer normalisation behind a sub-layer."""

    def __init__(self, norm: nn.LayerNorm) -> None:
        self.shape, self.weight, self.bias, self.epsilon = norm.normalized_shape, norm.weight, norm.bias, norm.eps

    def __call__(self, x: Tensor) -> Tensor:
        """Shape: (rows, d_model) -> the same."""
        return torch.layer_norm(x, self.shape, self.weight, self.bias, self.epsilon)


class LayerStep:
    """A decoder layer's part of the step."""

    def __init__(self, layer: DecoderLayer, copy: bool) -> None:
        attention = layer.self_attention
        self.h, self.d_k, self.d_v = attention.h, attention.d_k, attention.d_v
        self.query_width = self.h * self.d_k
        self.stored_width = self.h * (self.d_k + self.d_v)
        self.qkv, self.self_o = Product(attention.w_qkv, copy), Product(attention.w_o, copy)
        self.query = Product(layer.encoder_attention.w_q, copy)
        self.memory_o = Product(layer.encoder_attention.w_o, copy)
        self.w_1, self.w_2 = Product(layer.feed_forward.w_1, copy), Product(layer.feed_forward.w_2, copy)
        self.self_norm, self.memory_norm = Norm(layer.self_attention_norm.norm), Norm(layer.encoder_attention_norm.norm)
        self.feed_forward_norm = Norm(layer.feed_forward_norm.norm)

    def __call__(
        self, x: Tensor, cache: DecoderCache, layer: int, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Shape: x: (B * hypotheses, d_model) -> the same, and weights (B, h, hypotheses, S) or None."""
        sentences = cache.sentences
        projected = self.qkv(x).view(sentences, -1, self.query_width + self.stored_width)
        query, newest = projected.split_with_sizes((self.query_width, self.stored_width), -1)
        key, value = self._keys_values(cache.append(layer, newest))
        heads = F.scaled_dot_product_attention(self._heads(query, self.d_k), key, value, attn_mask=cache.mask)
        x = self.self_norm(self.self_o.added_to(x, self._rows(heads)))

        query = self._heads(self.query(x).view(sentences, -1, self.query_width), self.d_k)
        key, value = self._keys_values(cache.memory[layer])
        weights = None
        if need_weights:
            _, weights = attention(query, key, value, cache.memory_mask.isneginf(), nn.Dropout(0.0))
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=cache.memory_mask)
        x = self.memory_norm(self.memory_o.added_to(x, self._rows(heads)))
        return self.feed_forward_norm(self.w_2.added_to(x, self.w_1(x).relu_())), weights

    def _heads(self, x: Tensor, width: int) -> Tensor:
        """Shape: (B, n, h * width) -> (B, h, n, width)."""
        return x.unflatten(2, (self.h, width)).transpose(1, 2)

    def _keys_values(self, stored: Tensor) -> tuple[Tensor, Tensor]:
        """Shape: (B, n, h * (d_k + d_v)) -> (B, h, n, d_k), (B, h, n, d_v)."""
        key, value = stored.split_with_sizes((self.query_width, self.h * self.d_v), -1)
        return self._heads(key, self.d_k), self._heads(value, self.d_v)

    def _rows(self, heads: Tensor) -> Tensor:
        """Shape: (B, h, n, d_v) -> (B * n, h * d_v)."""
        return heads.transpose(1, 2).reshape(-1, self.h * self.d_v)


class DecoderStep:
    """All layers' steps, and the projection to the vocabulary.

    Args:
        copy: keep transposed copies of the matrices. Only for weights that do not change any more; a change that torch
            counts or that moves them (loading, another device or precision) is noticed by ``refresh``.
    """

    def __init__(self, decoder: Decoder, copy: bool = False) -> None:
        self.decoder, self.copy = decoder, copy
        positions = decoder.positions
        self.longest = positions.embedding.num_embeddings if isinstance(positions, LearnedPositions) else None
        self._made_of: list[tuple[int, int]] = []
        self.refresh()

    def refresh(self) -> None:
        """Take the decoder's weights as they are now."""
        made_of = [(weight.data_ptr(), weight._version) for weight in self.decoder.parameters()]
        if made_of != self._made_of:
            self._made_of = made_of
            self.layers = [LayerStep(layer, self.copy) for layer in layers_of(self.decoder)]
            self.output = Product(self.decoder.output, self.copy)
            self.table = self.decoder.embedding.weight
            # sqrt(d_model) for every token; padding becomes the zero vector.
            self.factors = torch.full_like(self.table[:, :1], self.decoder.embedding.scale)
            self.factors[self.decoder.embedding.padding_index] = 0.0
            self.positions = self.table.new_zeros(0, self.table.size(1))

    def embed(self, tokens: Tensor, position: int) -> Tensor:
        """As ``Decoder.embed``, for tokens that all stand at one position. Shape: (B, n) -> (B, n, d_model)."""
        if position >= len(self.positions):
            length = position + POSITIONS_AT_ONCE
            if self.longest is not None:
                length = max(position + 1, min(length, self.longest))
            self.positions = self.decoder.positions(torch.arange(length, device=tokens.device), length)
        here = self.positions[position]
        if position == 0 and self.decoder.zero_start:
            return here.expand(*tokens.shape, -1)
        return torch.addcmul(here, torch.embedding(self.table, tokens), torch.embedding(self.factors, tokens))

    def features(self, tokens: Tensor, cache: DecoderCache, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Compute the features of every newest position, and, if wanted, the last layer's weights over the memory.

        Shape:
            tokens: (B, hypotheses), the newest token of each -> (B * hypotheses, d_model), (B, h, hypotheses, S)
        """
        x = self.embed(tokens, cache.length).flatten(0, 1)
        cache.begin_step(tokens.size(1))
        weights = None
        for i, layer in enumerate(self.layers):
            x, weights = layer(x, cache, i, need_weights and i == len(self.layers) - 1)
        return x, weights

    def logits(self, features: Tensor) -> Tensor:
        """Project before the softmax (section 3.4). Shape: (rows, d_model) -> (rows, V)."""
        return self.output(features)


class CachedModel:
    """One model in a search: the next tokens from keys and values that are remembered.

    Shape:
        memory: (B, S, d_model); memory_hidden: (B, 1, 1, S)
    """

    def __init__(self, step: DecoderStep, memory: Tensor, memory_hidden: Tensor, beam: int) -> None:
        self.step = step
        self.cache = DecoderCache(step.decoder, memory, memory_hidden, beam)

    def log_p(self, newest: Tensor) -> Tensor:
        """As ``paper.search.NextTokens``. Shape: (B, n) -> (B, n, V)."""
        features, _ = self.step.features(newest, self.cache)
        return torch.log_softmax(self.step.logits(features), dim=-1, dtype=torch.float32).view(*newest.shape, -1)

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """As ``paper.search.NextTokens``. Shape: (B, beam), (new B,)."""
        self.cache.choose_parents(parents)
        if sentences is not None:
            self.cache.keep_sentences(sentences)


def best_of_many(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return what ``topk`` over the last axis does, several times faster on a CPU when that axis is long.

    torch sorts copies of whole rows there. The best ``count`` values stand in the ``count`` blocks with the largest
    maxima, and maxima of blocks are cheap; only those blocks are then sorted.

    Shape:
        scores: (..., V) -> values and indices (..., min(count, V))
    """
    width = scores.size(-1)
    count = min(count, width)
    blocks = width // BLOCK
    if scores.device.type != "cpu" or blocks < 4 * count or scores.numel() < MANY:
        return scores.topk(count)
    rows = scores.reshape(-1, width)
    whole = rows[:, : blocks * BLOCK].unflatten(1, (blocks, BLOCK))
    chosen = whole.amax(dim=2).topk(count).indices
    candidates = whole.gather(1, chosen.unsqueeze(2).expand(-1, -1, BLOCK)).flatten(1)
    places = (chosen.unsqueeze(2) * BLOCK + torch.arange(BLOCK, device=scores.device)).flatten(1)
    rest = rows[:, blocks * BLOCK :]
    if rest.size(1):
        candidates = torch.cat([candidates, rest], dim=1)
        tail = torch.arange(blocks * BLOCK, width, device=scores.device).expand(len(rows), -1)
        places = torch.cat([places, tail], dim=1)
    values, index = candidates.topk(count)
    shape = (*scores.shape[:-1], count)
    return values.view(shape), places.gather(1, index).view(shape)
