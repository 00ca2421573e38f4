"""Every place where stock fairseq has another setting than the paper and this plugin a switch for it.

An arm of a comparison is the paper's settings with one of these changed, so that one sees what each is worth. What
stock can be told (schedule, limit on length) is copied from the settings file of the stock arm; what stock has built
in stands here. A test holds the latter together with the switches under which both models compute the same.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

from t2017_plugin.errors import UsageError

Tree = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """One difference: its name, what it is, the switch, and what is copied from the stock arm's settings.

    ``copied`` names sections, which are replaced whole, or single settings. ``decoding`` differences need no training.
    """

    name: str
    what: str
    switch: dict[str, Any] = field(default_factory=dict)
    copied: tuple[str, ...] = ()
    decoding: bool = False


DIFFERENCES = (
    Difference("positions", "sinusoid in halves, other exponent, first position 2", {"model.sinusoid": "stock"}),
    Difference("attention_bias", "biases on the projections of attention", {"model.attention_bias": True}),
    Difference("decoder_start", "EOS instead of a zero vector as first input", {"model.decoder_start": "eos"}),
    Difference("layer_norm_eps", "epsilon of the norm 1e-5 instead of 1e-6", {"model.layer_norm_eps": 1e-5}),
    Difference("init", "stock's initial weights", {"model.init": "stock"}),
    Difference("smoothing", "smoothing over the other classes, not all", {"criterion.smoothing_over": "others"}),
    Difference("adam", "Adam's epsilon before the bias correction", {"optimizer.adam_epsilon_form": "t2t"}),
    Difference("schedule", "inverse_sqrt, one update late", copied=("lr_scheduler", "optimization.lr")),
    Difference("length_penalty", "length ^ alpha as penalty", {"task.length_penalty_form": "power"}, decoding=True),
    # fairseq's search has its penalty built in and reads its limit from these two settings only.
    Difference(
        "search",
        "fairseq's whole search: its penalty, limit and stopping rule",
        {"task.search": "stock"},
        ("generation.max_len_a", "generation.max_len_b"),
        decoding=True,
    ),
)
# Half of the first: fairseq's layout and exponent with the paper's first position.
LAYOUT = Difference("positions_layout", "the first without its first position, which is 0", {"model.sinusoid": "t2t"})
SINGLES = {difference.name: difference for difference in (DIFFERENCES[0], LAYOUT, *DIFFERENCES[1:])}
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
    """The arms of a comparison, in order; ``all`` has every difference at once, so what is left to stock is code."""
    return [PAPER, STOCK, *(SINGLES if singles else ()), *((ALL,) if singles else ())]


def only_decoding(name: str) -> bool:
    """Whether an arm differs from the paper's in decoding alone, and so takes over its trained model."""
    return name in SINGLES and SINGLES[name].decoding


def arm_settings(name: str, paper: Tree, stock: Tree) -> Tree:
    """The settings of an arm, from those of the paper's and stock's arm.

    Raises:
        UsageError: there is no arm of that name.
    """
    if name == STOCK:
        return copy.deepcopy(stock)
    if name not in (PAPER, ALL) and name not in SINGLES:
        raise UsageError(f"there is no arm {name!r}; there are {', '.join(arm_names(singles=True))}")
    chosen = DIFFERENCES if name == ALL else () if name == PAPER else (SINGLES[name],)
    settings = copy.deepcopy(paper)
    for difference in chosen:
        for place in difference.copied:
            section, _, setting = place.partition(".")
            if setting:
                settings[section][setting] = stock[section][setting]
            else:
                settings[section] = copy.deepcopy(stock[section])
        for place, value in difference.switch.items():
            section, _, setting = place.partition(".")
            settings[section][setting] = value
    return settings


def built_in(settings: dict[str, Any]) -> dict[str, Any]:
    """Values of this plugin's switches that stock's parts, as far as ``settings`` (dotted) name them, have built in."""
    return {
        key: value
        for difference in DIFFERENCES
        for key, value in difference.switch.items()
        if settings.get(f"{key.split('.')[0]}._name") == STOCK_NAMES[key.split(".")[0]]
    }


def in_our_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Stock's dotted settings under this plugin's names where both have the setting; others stay as they are."""
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
