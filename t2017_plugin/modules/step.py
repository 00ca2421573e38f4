"""One step of the decoder in a search: the newest position of every hypothesis, from the cache.

It computes what ``Decoder.forward`` computes at its last position (a test holds the two together), written down as the
plain chain of products that it is: in a search with few hypotheses a step takes a millisecond, and half of that would
go into calling modules.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2017_plugin.modules.attention import attention_weights
from t2017_plugin.modules.cache import DecoderCache

POSITIONS_AT_ONCE = 64


class Product:
    """x W (+ b) with the matrix the way round in which a CPU reads it fastest when x has few rows."""

    def __init__(self, weight: Tensor, bias: Tensor | None, copy: bool) -> None:
        self.matrix = weight.t().contiguous() if copy else weight.t()
        self.bias = bias

    def __call__(self, x: Tensor) -> Tensor:
        """Shape: x: (rows, in) -> (rows, out)."""
        return torch.mm(x, self.matrix) if self.bias is None else torch.addmm(self.bias, x, self.matrix)


class LayerStep:
    """A decoder layer's part of the step."""

    def __init__(self, layer: Any, copy: bool) -> None:
        def product(linear: nn.Linear) -> Product:
            return Product(linear.weight, linear.bias, copy)

        self.h, self.d_k, self.d_v = layer.self_attention.h, layer.self_attention.d_k, layer.self_attention.d_v
        self.qkv, self.self_o = product(layer.self_attention.w_qkv), product(layer.self_attention.w_o)
        self.query, self.memory_o = product(layer.encoder_attention.w_q), product(layer.encoder_attention.w_o)
        self.w_1, self.w_2 = product(layer.feed_forward.w_1), product(layer.feed_forward.w_2)
        self.norms: list[nn.LayerNorm] = [
            layer.self_attention_norm.norm,
            layer.encoder_attention_norm.norm,
            layer.feed_forward_norm.norm,
        ]

    def __call__(
        self, x: Tensor, cache: DecoderCache, layer: int, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None]:
        """Shape: x: (B * hypotheses, d_model) -> the same, and weights (B, h, hypotheses, S) or None."""
        sentences, h = cache.sentences, self.h
        stacked = self.qkv(x).view(sentences, -1, h * (2 * self.d_k + self.d_v))
        query, key, value = stacked.split([h * self.d_k, h * self.d_k, h * self.d_v], dim=-1)
        key, value = cache.append(layer, self._heads(key), self._heads(value))
        heads = F.scaled_dot_product_attention(self._heads(query), key, value, attn_mask=cache.mask)
        x = self._residual(0, x, self.self_o(self._rows(heads)))

        query = self._heads(self.query(x).view(sentences, -1, h * self.d_k))
        key, value = cache.memory[layer]
        weights = attention_weights(query, key, cache.memory_mask.isneginf()) if need_weights else None
        heads = F.scaled_dot_product_attention(query, key, value, attn_mask=cache.memory_mask)
        x = self._residual(1, x, self.memory_o(self._rows(heads)))
        return self._residual(2, x, self.w_2(self.w_1(x).relu_())), weights

    def _heads(self, x: Tensor) -> Tensor:
        """Shape: (B, hypotheses, h * d) -> (B, h, hypotheses, d)."""
        return x.unflatten(-1, (self.h, -1)).transpose(1, 2)

    @staticmethod
    def _rows(heads: Tensor) -> Tensor:
        """Shape: (B, h, hypotheses, d) -> (B * hypotheses, h * d)."""
        return heads.transpose(1, 2).flatten(2).flatten(0, 1)

    def _residual(self, place: int, x: Tensor, output: Tensor) -> Tensor:
        """LayerNorm(x + Sublayer(x)); ``output`` is not needed any more and takes the sum."""
        norm = self.norms[place]
        return F.layer_norm(output.add_(x), norm.normalized_shape, norm.weight, norm.bias, norm.eps)


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
            self.output = Product(self.decoder.output.weight, None, self.copy)
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
        return torch.addcmul(here, F.embedding(tokens, self.table), F.embedding(tokens, self.factors))

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
