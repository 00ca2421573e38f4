"""The arms of the comparison with stock: the paper's settings with one difference changed.

So one sees what each difference is worth. What stock can be told (schedule, limit on length) is
copied from the settings of the stock run; what stock has built in is in the register. A test holds
the latter together with the switches under which both models compute the same.
"""

from __future__ import annotations

import copy
from typing import Any

from t2017_plugin.differences.register import differences
from t2017_plugin.errors import UsageError

Tree = dict[str, Any]


SINGLES = {arm.name: arm for difference in differences() for arm in difference.arms}
# What all of stock's differences together are: without the arms that are a part of another.
TOGETHER = [arm for arm in SINGLES.values() if not arm.part_of]
PAPER, STOCK, ALL = "t2017", "stock", "all"

# Which of stock's registered things a switch stands for, by section.
STOCK_NAMES = {
    "model": "transformer",
    "criterion": "label_smoothed_cross_entropy",
    "optimizer": "adam",
    "task": "translation",
}

# What is set once here and for each stack in stock.
OF_BOTH_STACKS = {
    "layers": "layers",
    "d_model": "embed_dim",
    "d_ff": "ffn_embed_dim",
    "heads": "attention_heads",
    "norm_first": "normalize_before",
}


def arm_names(singles: bool) -> list[str]:
    """Return the arms of a comparison, in order; what is left between ``all`` and stock is code."""
    return [PAPER, STOCK, *(SINGLES if singles else ()), *((ALL,) if singles else ())]


def only_decoding(name: str) -> bool:
    """Whether an arm differs from the paper's in decoding alone, and so takes over its trained model."""
    return name in SINGLES and SINGLES[name].only_decoding


def arm_settings(name: str, paper: Tree, stock: Tree) -> Tree:
    """Return the settings of an arm, from those of the paper's and stock's arm.

    Raises:
        UsageError: there is no arm of that name.
    """
    if name == STOCK:
        return copy.deepcopy(stock)
    if name not in (PAPER, ALL) and name not in SINGLES:
        raise UsageError(f"there is no arm {name!r}; there are {', '.join(arm_names(singles=True))}")
    chosen = TOGETHER if name == ALL else [] if name == PAPER else [SINGLES[name]]
    settings = copy.deepcopy(paper)
    for arm in chosen:
        for place in arm.copied:
            section, _, setting = place.partition(".")
            if setting:
                settings[section][setting] = stock[section][setting]
            else:
                settings[section] = copy.deepcopy(stock[section])
        for place, value in arm.set.items():
            section, _, setting = place.partition(".")
            settings[section][setting] = value
    return settings


def built_in(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the switches with the values that stock's parts have built in, as far as dotted ``settings`` name them."""
    return {
        key: value
        for arm in TOGETHER
        for key, value in arm.set.items()
        if settings.get(f"{key.split('.')[0]}._name") == STOCK_NAMES[key.split(".")[0]]
    }


def in_our_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Put stock's dotted settings under this plugin's names where both have the setting; others stay as they are."""
    if settings.get("model._name") != STOCK_NAMES["model"]:
        return dict(settings)
    result = dict(settings)
    for ours, theirs in OF_BOTH_STACKS.items():
        encoder, decoder = (f"model.{stack}.{theirs}" for stack in ("encoder", "decoder"))
        if encoder in result and result[encoder] == result.get(decoder):
            result[f"model.{ours}"] = result.pop(encoder)
            del result[decoder]
    if not result.get("model.norm_first", True):
        del result["model.norm_first"]  # after the sub-layer: nothing else is possible here
    if "model.d_model" in result and "model.heads" in result:
        result["model.d_k"] = result["model.d_v"] = result["model.d_model"] // result["model.heads"]
    if result.pop("model.share_all_embeddings", False):
        result["model.embeddings"] = "shared"
    # What stock cannot have, or has unless told otherwise.
    result.setdefault("model.target_space_embedding", False)
    if not any(result.get(f"model.{stack}.learned_pos") for stack in ("encoder", "decoder")):
        result.setdefault("model.positions", "sinusoid")
    if "model.activation_dropout" in result:
        result["model.relu_dropout"] = result.pop("model.activation_dropout")
    return result
