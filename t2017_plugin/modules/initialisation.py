"""Initial weights. The paper does not say; the authors' code decides, stock's way is a switch.

    t2t    every matrix Glorot uniform, U(-L, L) with L = sqrt(6 / (fan_in + fan_out)), taken over the stacked matrix,
           so that W^Q, W^K, W^V of a self-attention are smaller by 1 / sqrt(2) than one by one; biases 0
           (tensor2tensor 1.0.14, utils/trainer_utils.py)
    stock  W^Q, W^K, W^V each Glorot with gain 1 / sqrt(2), W^O Glorot; the feed-forward network and all biases of
           attention as torch's nn.Linear leaves them, W^O's bias 0 (multihead_attention.py:168-182); the padding row of
           the embedding tables 0, but not of an output matrix of its own

Token tables and learned positions are N(0, 1 / d_model) in both.
"""

import math

from torch import nn

from t2017_plugin.modules.attention import EncoderDecoderAttention, MultiHeadAttention, SelfAttention
from t2017_plugin.modules.embeddings import TokenEmbedding
from t2017_plugin.modules.encoder import Encoder


def initialise(model: nn.Module, scheme: str) -> None:
    """Draws all weights of ``model`` anew by ``t2t`` or ``stock``, in a fixed order (same seed, same weights)."""
    if scheme == "t2t":
        _t2t(model)
    else:
        _stock(model)
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=module.embedding_dim**-0.5)
            if scheme == "stock" and isinstance(module, TokenEmbedding):
                nn.init.zeros_(module.weight.detach()[module.padding_index])


def _t2t(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, Encoder) and module.target_space is not None:
            # A row of the authors' table of 32 target spaces.
            bound = math.sqrt(6.0 / (32 + module.target_space.numel()))
            nn.init.uniform_(module.target_space, -bound, bound)


def _stock(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.reset_parameters()
        elif isinstance(module, Encoder) and module.target_space is not None:
            nn.init.zeros_(module.target_space)
    for module in model.modules():
        if isinstance(module, SelfAttention):
            _one_by_one(module.w_qkv, [module.h * module.d_k] * 2 + [module.h * module.d_v])
        elif isinstance(module, EncoderDecoderAttention):
            _one_by_one(module.w_q, [module.h * module.d_k])
            _one_by_one(module.w_kv, [module.h * module.d_k, module.h * module.d_v])
        if isinstance(module, MultiHeadAttention):
            nn.init.xavier_uniform_(module.w_o.weight)
            if module.w_o.bias is not None:
                nn.init.zeros_(module.w_o.bias)


def _one_by_one(stacked: nn.Linear, widths: list[int]) -> None:
    for matrix in stacked.weight.detach().split(widths):
        nn.init.xavier_uniform_(matrix, gain=1 / math.sqrt(2))
