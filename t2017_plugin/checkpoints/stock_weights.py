"""Weights between this plugin's model and fairseq's stock ``transformer``.

Under ``STOCK_SWITCHES`` both compute the same function of the same weights; only names differ, and matrices that are
stacked here are separate there:

    self_attention.w_qkv = [W^Q | W^K | W^V]     self_attn.q_proj, k_proj, v_proj
    encoder_attention.w_kv = [W^K | W^V]         encoder_attn.k_proj, v_proj

What stock has no place for (d_k, d_v other than d_model / h, other positions, another first decoder input) is refused.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.errors import UsageError

# Settings of the model under which it computes what stock's ``transformer`` computes.
STOCK_SWITCHES: dict[str, Any] = {
    "positions": "sinusoid",
    "sinusoid": "stock",
    "decoder_start": "eos",
    "layer_norm_eps": 1e-5,
    "target_space_embedding": False,
}

# Our module inside a stack or layer -> stock's, in the order in which ours stacks them.
MODULES: dict[str, tuple[str, ...]] = {
    "embedding": ("embed_tokens",),
    "output": ("output_projection",),
    "self_attention.w_qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention.w_o": ("self_attn.out_proj",),
    "self_attention_norm.norm": ("self_attn_layer_norm",),
    "encoder_attention.w_q": ("encoder_attn.q_proj",),
    "encoder_attention.w_kv": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "encoder_attention.w_o": ("encoder_attn.out_proj",),
    "encoder_attention_norm.norm": ("encoder_attn_layer_norm",),
    "feed_forward.w_1": ("fc1",),
    "feed_forward.w_2": ("fc2",),
    "feed_forward_norm.norm": ("final_layer_norm",),
}
OURS = {stock: (ours, place) for ours, names in MODULES.items() for place, stock in enumerate(names)}
STOCK_BUFFER = re.compile(r"(?:encoder|decoder)\.(?:version|embed_positions\.(?:weights|_float_tensor))")
PARAMETER = re.compile(r"((?:encoder|decoder)\.(?:layers\.\d+\.)?)(.+)\.(weight|bias)")
# What stock writes; it takes weights with a lower number for those of an older layout.
STOCK_VERSION = 3.0


def check_switches(config: Any) -> None:
    """Refuses a model that stock's ``transformer`` cannot express.

    Raises:
        UsageError: with every flag that has to be set.
    """
    wanted = {**STOCK_SWITCHES, "d_k": config.d_model // config.heads, "d_v": config.d_model // config.heads}
    wrong = [name for name, value in wanted.items() if getattr(config, name) != value]
    if wrong:
        flags = ", ".join(f"--{name.replace('_', '-')} {wanted[name]}" for name in wrong)
        raise UsageError(f"stock fairseq's transformer cannot hold this model: it would have to be built with {flags}")


def copy_to_stock(model: Any) -> dict[str, Tensor]:
    """Return the weights of a ``t2017_transformer`` under stock's names, for a stock ``transformer`` to load.

    Stock's projections of attention always have biases: a model without them gets zeros, which changes nothing.

    Raises:
        UsageError: the model was not built under ``STOCK_SWITCHES``.
    """
    check_switches(model.config)
    state = {f"{stack}.version": torch.tensor([STOCK_VERSION]) for stack in ("encoder", "decoder")}
    for name, value in model.state_dict().items():
        prefix, module, kind = _split(name)
        names = MODULES[module]
        for stock, part in zip(names, value.chunk(len(names)), strict=True):
            state[f"{prefix}{stock}.{kind}"] = part.clone()
            if "attention.w_" in module:
                state.setdefault(f"{prefix}{stock}.bias", part.new_zeros(len(part)))
    return state


def from_stock(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a stock ``transformer``'s weights under this plugin's names, for a model with ``--attention-bias``.

    Raises:
        UsageError: there is a weight for which ``t2017_transformer`` has no place.
    """
    parts: dict[str, dict[int, Tensor]] = {}
    for name, value in state.items():
        if not STOCK_BUFFER.fullmatch(name):
            prefix, module, kind = _split(name)
            if module not in OURS:
                raise UsageError(f"{name} has no place in t2017_transformer: only a plain transformer can be read")
            ours, place = OURS[module]
            parts.setdefault(f"{prefix}{ours}.{kind}", {})[place] = value
    return {name: torch.cat([pieces[place] for place in sorted(pieces)]) for name, pieces in parts.items()}


def _split(name: str) -> tuple[str, str, str]:
    """``encoder.layers.0.fc1.weight`` -> ``encoder.layers.0.``, ``fc1``, ``weight``."""
    match = PARAMETER.fullmatch(name)
    if match is None:
        raise UsageError(f"{name} is no weight of a transformer with encoder and decoder")
    return match.group(1), match.group(2), match.group(3)
