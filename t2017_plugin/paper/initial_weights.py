"""Initial weights. The paper does not say; the authors' code decides, and stock's way is a choice.

t2t    Every matrix is Glorot uniform, U(-L, L) with L = sqrt(6 / (fan_in + fan_out)), taken over the
       stacked matrix: W^Q, W^K and W^V of a self-attention are smaller by 1 / sqrt(2) than they
       would be one by one. Biases are 0 (tensor2tensor 1.0.14, utils/trainer_utils.py).
stock  W^Q, W^K and W^V are each Glorot with gain 1 / sqrt(2), W^O Glorot. The feed-forward networks
       and the biases of attention are left as torch's nn.Linear makes them, but W^O's bias is 0
       (fairseq, multihead_attention.py:168-182). The padding row of the embedding tables is 0, that
       of an output matrix of its own is not.

Token tables and learned positions are N(0, 1 / d_model) in both.
"""

from __future__ import annotations

import math

from torch import nn

from t2017_plugin.paper.config import Model
from t2017_plugin.paper.model import (
    Encoder,
    EncoderDecoderAttention,
    MultiHeadAttention,
    SelfAttention,
    TokenEmbedding,
    Transformer,
)


def make_transformer(
    config: Model, source_vocabulary: int, target_vocabulary: int | None = None, padding_index: int = 0
) -> Transformer:
    """Build a model and draw its weights; arguments as those of ``Transformer``."""
    model = Transformer(config, source_vocabulary, target_vocabulary, padding_index)
    draw_initial_weights(model, config.initial_weights)
    return model


def draw_initial_weights(model: nn.Module, scheme: str) -> None:
    """Draw all weights of a model anew, ``t2t`` or ``stock``, in a fixed order: same seed, same weights."""
    if scheme == "t2t":
        _draw_as_t2t(model)
    else:
        _draw_as_stock(model)
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
            if scheme == "stock" and isinstance(module, TokenEmbedding):
                nn.init.zeros_(module.weight.detach()[module.padding_index])


def _draw_as_t2t(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, Encoder) and module.target_space is not None:
            # A row of the authors' table of 32 target spaces.
            bound = math.sqrt(6.0 / (32 + module.target_space.numel()))
            nn.init.uniform_(module.target_space, -bound, bound)


def _draw_as_stock(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.reset_parameters()
        elif isinstance(module, Encoder) and module.target_space is not None:
            nn.init.zeros_(module.target_space)
    for module in model.modules():
        if isinstance(module, SelfAttention):
            _draw_one_by_one(module.w_qkv, [module.h * module.d_k] * 2 + [module.h * module.d_v])
        elif isinstance(module, EncoderDecoderAttention):
            _draw_one_by_one(module.w_q, [module.h * module.d_k])
            _draw_one_by_one(module.w_kv, [module.h * module.d_k, module.h * module.d_v])
        if isinstance(module, MultiHeadAttention):
            nn.init.xavier_uniform_(module.w_o.weight)
            if module.w_o.bias is not None:
                nn.init.zeros_(module.w_o.bias)


def _draw_one_by_one(stacked: nn.Linear, widths: list[int]) -> None:
    """Draw each matrix of a stacked one by itself."""
    for matrix in stacked.weight.detach().split(widths):
        nn.init.xavier_uniform_(matrix, gain=1 / math.sqrt(2))
