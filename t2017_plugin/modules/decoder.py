"""The decoder (section 3.1, figure 1 right): N layers of masked self-attention, attention over the encoder's output and
feed-forward network, then the projection before the softmax."""

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor, nn

from t2017_plugin.fast.cache import DecoderCache, additive
from t2017_plugin.fast.dropout import Dropout
from t2017_plugin.fast.step import DecoderStep
from t2017_plugin.modules.attention import EncoderDecoderAttention, SelfAttention, visible
from t2017_plugin.modules.embeddings import TokenEmbedding
from t2017_plugin.modules.feed_forward import FeedForward
from t2017_plugin.modules.residual import ResidualNorm

CACHE = "t2017_decoder"
STEP = "t2017_decoder_step"


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, feed-forward network (section 3.1).

    Shape:
        x: (B, T, d_model); memory: (B, S, d_model); memory_hidden: (B, 1, 1, S), True hides a key
        -> (B, T, d_model) and, if wanted, the weights (B, h, T, T) and (B, h, T, S)
    """

    def __init__(self, config: Any) -> None:
        super().__init__()
        d_model = config.d_model
        shape = (d_model, config.heads, config.d_k, config.d_v, config.attention_dropout, config.attention_bias)
        self.self_attention = SelfAttention(*shape)
        self.self_attention_norm = ResidualNorm(d_model, config.dropout, config.layer_norm_eps)
        self.encoder_attention = EncoderDecoderAttention(*shape)
        self.encoder_attention_norm = ResidualNorm(d_model, config.dropout, config.layer_norm_eps)
        self.feed_forward = FeedForward(d_model, config.d_ff, config.relu_dropout)
        self.feed_forward_norm = ResidualNorm(d_model, config.dropout, config.layer_norm_eps)

    def forward(
        self, x: Tensor, memory: Tensor, memory_hidden: Tensor | None, need_weights: bool = False
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """All positions at once; each sees itself and earlier ones only (section 3.2.3)."""
        attended, self_weights = self.self_attention(x, causal=True, need_weights=need_weights)
        x = self.self_attention_norm(x, attended)
        key, value = self.encoder_attention.project_memory(memory)
        attended, weights = self.encoder_attention(x, key, value, memory_hidden, need_weights)
        x = self.encoder_attention_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(x)), weights, self_weights


class Decoder(FairseqIncrementalDecoder):
    """Predicts the next target token at every position.

    Targets are padded on the right: no real position can then see padding, and no mask is needed beside the causal one.
    """

    def __init__(
        self, config: Any, dictionary: Any, embedding: TokenEmbedding, output: nn.Embedding, positions: nn.Module
    ) -> None:
        super().__init__(dictionary)
        self.embedding = embedding
        self.output = output
        self.positions = positions
        self.zero_start = config.decoder_start == "zeros"
        self.dropout = Dropout(config.dropout)
        self.layers: Any = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.longest = config.max_learned_positions if config.positions == "learned" else None
        self.need_weights = False
        self.final = False

    def embed(self, tokens: Tensor) -> Tensor:
        """Dropout(embedding * sqrt(d_model) + position) of the shifted targets (sections 3.4, 3.5, 5.4).

        fairseq writes EOS in front of the shifted targets. The authors' code puts a zero vector there, and so do we
        unless ``--decoder-start eos`` asks for stock's way.

        Shape:
            tokens: (B, T) -> (B, T, d_model)
        """
        x = self.embedding(tokens)
        if self.zero_start:
            x = F.pad(x[:, 1:], (0, 0, 1, 0))
        length = tokens.size(1)
        return self.dropout(x + self.positions(torch.arange(length, device=tokens.device), length))

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]],
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
        return_all_hiddens: bool = False,
        need_weights: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Logits (or features) of every position, or of the newest one when ``incremental_state`` is given.

        Shape:
            prev_output_tokens: (B, T), or (B * beam, T) with a cache -> (B, T, V) or (B * beam, 1, V); the second value
            holds "attn" (weights of the last layer averaged over heads, (B, T, S), or None), "inner_states",
            "self_attention_weights" and "encoder_attention_weights" (a list over layers)
        """
        if incremental_state is None:
            x, extra = self._all_positions(prev_output_tokens, encoder_out, return_all_hiddens, need_weights)
        else:
            x, extra = self._newest_position(prev_output_tokens, encoder_out, incremental_state, need_weights)
        if not features_only:
            x = self.output_layer(x)
        return x, extra

    def _all_positions(
        self, tokens: Tensor, encoder_out: dict[str, list[Tensor]], return_all_hiddens: bool, need_weights: bool
    ) -> tuple[Tensor, dict[str, Any]]:
        memory, memory_hidden = encoder_out["encoder_out"][0], self._hidden(encoder_out)
        x = self.embed(tokens)
        states, self_weights, encoder_weights = [x], [], []
        for layer in self.layers:
            x, across, within = layer(x, memory, memory_hidden, need_weights)
            if return_all_hiddens:
                states.append(x)
            self_weights.append(within)
            encoder_weights.append(across)
        return x, {
            "attn": [encoder_weights[-1].mean(dim=1) if need_weights else None],
            "inner_states": states if return_all_hiddens else None,
            "self_attention_weights": self_weights if need_weights else [],
            "encoder_attention_weights": encoder_weights if need_weights else [],
        }

    def _newest_position(
        self, tokens: Tensor, encoder_out: dict[str, list[Tensor]], state: dict[str, Any], need_weights: bool
    ) -> tuple[Tensor, dict[str, Any]]:
        rows = tokens.size(0)
        if CACHE not in state:
            state[CACHE] = self.start_cache(encoder_out, rows // encoder_out["encoder_out"][0].size(0))
            state[STEP] = DecoderStep(self)
        newest = tokens[:, -1].view(state[CACHE].sentences, -1)
        x, weights = state[STEP].features(newest, state[CACHE], need_weights or self.need_weights)
        if weights is not None:
            weights = weights.mean(dim=1).reshape(rows, 1, -1)
        return x.reshape(rows, 1, -1), {"attn": [weights], "inner_states": None}

    def start_cache(self, encoder_out: dict[str, list[Tensor]], beam: int) -> DecoderCache:
        """Keys and values of the encoder's output, once for each sentence, and nothing decoded yet."""
        memory = encoder_out["encoder_out"][0]
        projected = [layer.encoder_attention.w_kv(memory) for layer in self.layers]
        return DecoderCache(projected, additive(visible(self._hidden(encoder_out)), memory.dtype), beam)

    @staticmethod
    def _hidden(encoder_out: dict[str, list[Tensor]]) -> Tensor:
        return encoder_out["encoder_padding_mask"][0][:, None, None, :]

    def extract_features(self, prev_output_tokens: Tensor, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """``forward`` without the projection, under the name fairseq uses."""
        return self.forward(prev_output_tokens, features_only=True, **kwargs)

    def output_layer(self, features: Tensor) -> Tensor:
        """The projection before the softmax: the output matrix as it is, not scaled, no bias (section 3.4).

        Shape:
            features: (..., d_model) -> (..., V)
        """
        return F.linear(features, self.output.weight)

    def reorder_incremental_state(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        """Called by fairseq's own search, in which each hypothesis has its own copy of the encoder's output."""
        if CACHE in incremental_state:
            incremental_state[CACHE].keep_sentences(new_order)

    def make_generation_fast_(self, need_attn: bool = False, **unused: Any) -> None:
        """fairseq's word that the weights stay as they are from now on, and whether attention is to be returned."""
        self.need_weights = bool(need_attn)
        self.final = True

    def max_positions(self) -> int:
        """Longest target in tokens: none for sinusoids (a figure fairseq can compute with), the table's for learned."""
        return self.longest or 1_000_000
