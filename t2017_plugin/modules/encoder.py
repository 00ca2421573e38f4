"""The encoder (section 3.1, figure 1 left): N layers of self-attention and feed-forward network."""

from typing import Any

import torch
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from t2017_plugin.fast.dropout import Dropout
from t2017_plugin.modules.attention import SelfAttention
from t2017_plugin.modules.embeddings import TokenEmbedding
from t2017_plugin.modules.feed_forward import FeedForward
from t2017_plugin.modules.positions import positions_of
from t2017_plugin.modules.residual import ResidualNorm


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each inside a residual connection with norm (section 3.1).

    Shape:
        x: (B, S, d_model); hidden: (B, 1, 1, S), True hides a key -> (B, S, d_model) and weights (B, h, S, S) or None
    """

    def __init__(self, config: Any) -> None:
        super().__init__()
        d_model = config.d_model
        self.self_attention = SelfAttention(
            d_model, config.heads, config.d_k, config.d_v, config.attention_dropout, config.attention_bias
        )
        self.self_attention_norm = ResidualNorm(d_model, config.dropout, config.layer_norm_eps)
        self.feed_forward = FeedForward(d_model, config.d_ff, config.relu_dropout)
        self.feed_forward_norm = ResidualNorm(d_model, config.dropout, config.layer_norm_eps)

    def forward(self, x: Tensor, hidden: Tensor | None, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        attended, weights = self.self_attention(x, hidden, need_weights=need_weights)
        x = self.self_attention_norm(x, attended)
        return self.feed_forward_norm(x, self.feed_forward(x)), weights


class Encoder(FairseqEncoder):
    """Embeds a batch of source sentences and runs the N layers over it.

    Its output is batch-first, unlike stock's: ``encoder_out[0]`` has shape (B, S, d_model) and
    ``encoder_padding_mask[0]`` (B, S), True at padding. Nothing outside this model looks inside.
    """

    def __init__(self, config: Any, dictionary: Any, embedding: TokenEmbedding, positions: nn.Module) -> None:
        super().__init__(dictionary)
        self.padding_index: int = dictionary.pad()
        self.embedding = embedding
        self.positions = positions
        # Tensor2Tensor 1.0 adds one learned vector to every source position; the paper has none.
        self.target_space = nn.Parameter(torch.empty(config.d_model)) if config.target_space_embedding else None
        self.dropout = Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.longest = config.max_learned_positions if config.positions == "learned" else None

    def embed(self, tokens: Tensor) -> Tensor:
        """Dropout(embedding * sqrt(d_model) + position) (sections 3.4, 3.5, 5.4). Shape: (B, S) -> (B, S, d_model)."""
        x = self.embedding(tokens)
        if self.target_space is not None:
            x = x + self.target_space
        return self.dropout(x + self.positions(positions_of(tokens, self.padding_index), tokens.size(1)))

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None = None,
        return_all_hiddens: bool = False,
        need_weights: bool = False,
        **unused: Any,
    ) -> dict[str, list[Tensor]]:
        """Runs the stack; padding may stand on either side and is hidden from every query.

        Shape:
            src_tokens: (B, S) -> encoder_out[0]: (B, S, d_model); encoder_states: one such tensor a layer, after the
            embedding; attention_weights: one (B, h, S, S) a layer, if asked for
        """
        padding = src_tokens.eq(self.padding_index)
        hidden = padding[:, None, None, :]
        x = self.embed(src_tokens)
        states = [x]
        all_weights = []
        for layer in self.layers:
            x, weights = layer(x, hidden, need_weights)
            if return_all_hiddens:
                states.append(x)
            if weights is not None:
                all_weights.append(weights)
        return {
            "encoder_out": [x],
            "encoder_padding_mask": [padding],
            "encoder_states": states if return_all_hiddens else [],
            "attention_weights": all_weights,
        }

    def reorder_encoder_out(self, encoder_out: dict[str, list[Tensor]], new_order: Tensor) -> dict[str, list[Tensor]]:
        """Selects sentences of a batch, as fairseq's own search asks for. Shape: new_order: (new B,)."""
        return {key: [tensor.index_select(0, new_order) for tensor in value] for key, value in encoder_out.items()}

    def max_positions(self) -> int:
        """Longest source in tokens: none for sinusoids (a figure fairseq can compute with), the table's for learned."""
        return self.longest or 1_000_000
