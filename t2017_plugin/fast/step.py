"""One step of the decoder in a search: the newest position of every hypothesis, from the cache.

It computes what ``Decoder.forward`` computes at its last position (a test holds the two together), written down as the
plain chain of products that it is: in a search with few hypotheses a step takes a millisecond, and half of that would
go into calling modules.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2017_plugin.fast.cache import DecoderCache
from t2017_plugin.modules.attention import attention_weights

POSITIONS_AT_ONCE = 64
# Numbers in a matrix that is worth a copy; what a larger one costs is reading it, whichever way round it is.
LARGEST_COPY = 4_000_000


class Product:
    """x W (+ b) with the matrix the way round in which a CPU reads it fastest when x has few rows."""

    def __init__(self, linear: Any, copy: bool) -> None:
        self.matrix: Tensor = linear.weight.t()
        if copy and linear.weight.numel() <= LARGEST_COPY:
            self.matrix = self.matrix.contiguous()
        self.bias: Tensor | None = getattr(linear, "bias", None)

    def __call__(self, x: Tensor) -> Tensor:
        """Shape: x: (rows, in) -> (rows, out)."""
        return torch.mm(x, self.matrix) if self.bias is None else torch.addmm(self.bias, x, self.matrix)

    def added_to(self, x: Tensor, y: Tensor) -> Tensor:
        """y W (+ b) + x, in one go. Shape: x: (rows, out); y: (rows, in) -> (rows, out)."""
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

    def __init__(self, layer: Any, copy: bool) -> None:
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
        weights = attention_weights(query, key, cache.memory_mask.isneginf()) if need_weights else None
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
        decoder: this plugin's decoder
        copy: keep transposed copies of the matrices. Only for weights that do not change any more; a change that torch
            counts or that moves them (loading, another device or precision) is noticed by ``refresh``.
    """

    def __init__(self, decoder: Any, copy: bool = False) -> None:
        self.decoder, self.copy = decoder, copy
        self._made_of: list[tuple[int, int]] = []
        self.refresh()

    def refresh(self) -> None:
        """Takes the decoder's weights as they are now."""
        made_of = [(weight.data_ptr(), weight._version) for weight in self.decoder.parameters()]
        if made_of != self._made_of:
            self._made_of = made_of
            self.layers = [LayerStep(layer, self.copy) for layer in self.decoder.layers]
            self.output = Product(self.decoder.output, self.copy)
            self.table = self.decoder.embedding.weight
            # sqrt(d_model) for every token; padding becomes the zero vector.
            self.factors = torch.full_like(self.table[:, :1], self.decoder.embedding.scale)
            self.factors[self.decoder.embedding.padding_index] = 0.0
            self.positions = self.table.new_zeros(0, self.table.size(1))

    def embed(self, tokens: Tensor, position: int) -> Tensor:
        """``Decoder.embed`` for tokens that all stand at one position. Shape: (B, n) -> (B, n, d_model)."""
        if position >= len(self.positions):
            length = position + POSITIONS_AT_ONCE
            if self.decoder.longest is not None:
                length = max(position + 1, min(length, self.decoder.longest))
            self.positions = self.decoder.positions(torch.arange(length, device=tokens.device), length)
        here = self.positions[position]
        if position == 0 and self.decoder.zero_start:
            return here.expand(*tokens.shape, -1)
        return torch.addcmul(here, torch.embedding(self.table, tokens), torch.embedding(self.factors, tokens))

    def features(self, tokens: Tensor, cache: DecoderCache, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """Features of the newest position of every hypothesis, and, if wanted, the last layer's weights.

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
        """The projection before the softmax (section 3.4). Shape: (rows, d_model) -> (rows, V)."""
        return self.output(features)
