"""How many parameters a model has, and how many floating-point operations its training takes.

Parameters, with V symbols in one shared dictionary, N layers in each stack and no biases in attention:

    attention     2 d_model h d_k + 2 d_model h d_v                 W^Q, W^K and W^V, W^O (section 3.2.2)
    feed-forward  2 d_model d_ff + d_ff + d_model                   W_1, b_1, W_2, b_2 (equation 2)
    norm          2 d_model                                         gain and bias
    encoder       N (attention + feed-forward + 2 norms)
    decoder       N (2 attentions + feed-forward + 3 norms)
    embeddings    V d_model, once: one matrix used three times (section 3.4)

Operations, by the paper's rule (Table 2) and by counting:

    rule          training time * number of GPUs * sustained single-precision rate of the GPU
    counting      2 for each multiply-add of a matrix product; backward takes twice what forward takes

Counted are the products of sections 3.2 to 3.4: projections, scores, weighted sums, both layers of
the feed-forward networks, and the projection before the softmax. Softmax, norms, dropout and Adam
are left out (together a percent or two). Of masked self-attention all n * n scores count, as they
are computed.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.architectures import ARCHITECTURES
from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.paper.table3 import ROWS

# "About 37,000" symbols, says section 5.1.
PAPERS_VOCABULARY = 37_000
# The paper's footnote to Table 2, in operations per second.
SUSTAINED = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
# Section 5.2 and Table 2: hours of training on eight P100, and the operations that the table prints.
TABLE_2 = {"t2017_base": (12.0, 3.3e18), "t2017_big": (84.0, 2.3e19), "t2017_big_enfr": (84.0, 2.3e19)}
# Of a training, for each multiply-add of the forward pass.
OPERATIONS = 2 * 3
# How many tables of embeddings there are.
TABLES = {"shared": 1, "decoder": 2, "separate": 3}


def count_by_formula(settings: Mapping[str, Any], vocabulary: int) -> dict[str, int]:
    """Return the parameters of each part by the equations above, with the switches that add some.

    Args:
        settings: sizes and switches by their names in the model's configuration.
        vocabulary: symbols of the dictionary, special ones included; both sides have the same number.
    """
    layers, d_model, d_ff, h = (settings[name] for name in ("layers", "d_model", "d_ff", "heads"))
    d_k, d_v = settings["d_k"], settings["d_v"]
    attention = 2 * d_model * h * d_k + 2 * d_model * h * d_v
    if settings["attention_bias"]:
        attention += 2 * h * d_k + h * d_v + d_model
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    positions = 2 * settings["max_learned_positions"] * d_model if settings["positions"] == "learned" else 0
    return {
        "embeddings": TABLES[str(settings["embeddings"])] * vocabulary * d_model,
        "positions": positions,
        "target space": d_model if settings["target_space_embedding"] else 0,
        "encoder self-attention": layers * attention,
        "encoder feed-forward": layers * feed_forward,
        "encoder norms": layers * 2 * norm,
        "decoder self-attention": layers * attention,
        "decoder attention to the encoder": layers * attention,
        "decoder feed-forward": layers * feed_forward,
        "decoder norms": layers * 3 * norm,
    }


def count_built(settings: Mapping[str, Any], vocabulary: int) -> dict[str, int]:
    """Return the parameters of each part of a model that is built with these settings, without memory for its weights.

    Raises:
        UsageError: the vocabulary has no room for the special symbols.
    """
    dictionary = _dictionary(vocabulary)
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    with torch.device("meta"):
        model = T2017Transformer.build_model(Namespace(**settings), task)
    parts = dict.fromkeys(count_by_formula(settings, vocabulary), 0)
    for name, parameter in model.named_parameters():
        parts[_part(name)] += parameter.numel()
    return parts


def _dictionary(vocabulary: int) -> Dictionary:
    dictionary = Dictionary()
    if vocabulary < len(dictionary):
        raise UsageError(f"a dictionary has {len(dictionary)} special symbols, so --vocab cannot be {vocabulary}")
    for number in range(vocabulary - len(dictionary)):
        dictionary.add_symbol(f"symbol{number}")
    return dictionary


def _part(name: str) -> str:
    """Return the part of the breakdown that a parameter belongs to, by its name in the model."""
    stack, *inner = name.split(".")
    if inner[0] in ("embedding", "output"):
        return "embeddings"
    if inner[0] == "positions":
        return "positions"
    if inner[0] == "target_space":
        return "target space"
    module = inner[2]
    kinds = {
        "self_attention": "self-attention",
        "encoder_attention": "attention to the encoder",
        "feed_forward": "feed-forward",
    }
    return f"{stack} {kinds.get(module, 'norms')}"


def printed_millions() -> dict[str, int | None]:
    """Return the rows of Table 3 that are architectures, in the table's order, with the size printed there."""
    return {f"t2017_{row.name}": row.millions for row in ROWS if f"t2017_{row.name}" in ARCHITECTURES}


@dataclass(frozen=True)
class Tokens:
    """What a training sees in all, and the mean lengths of a pair, in tokens with EOS."""

    source: float
    target: float
    source_length: float
    target_length: float


def forward_multiply_adds(settings: Mapping[str, Any], vocabulary: int, tokens: Tokens) -> dict[str, float]:
    """Return the multiply-adds of the forward pass over all tokens, by part."""
    n, d, ff, h = (settings[name] for name in ("layers", "d_model", "d_ff", "heads"))
    d_k, d_v = settings["d_k"], settings["d_v"]
    queries, keys_values, output = d * h * d_k, d * h * (d_k + d_v), h * d_v * d
    attended = h * (d_k + d_v)  # for each query and each key: a score and a weighted value
    source, target = tokens.source, tokens.target
    return {
        "encoder, projections": n * source * (queries + keys_values + output),
        "encoder, attention": n * source * tokens.source_length * attended,
        "encoder, feed-forward": n * source * 2 * d * ff,
        "decoder, projections": n * (target * (2 * queries + keys_values + 2 * output) + source * keys_values),
        "decoder, attention": n * target * (tokens.target_length + tokens.source_length) * attended,
        "decoder, feed-forward": n * target * 2 * d * ff,
        "before the softmax": target * d * vocabulary,
    }


def training_operations(settings: Mapping[str, Any], vocabulary: int, tokens: Tokens) -> float:
    """Return the operations of forward and backward over all tokens of a training."""
    return OPERATIONS * sum(forward_multiply_adds(settings, vocabulary, tokens).values())


def by_the_rule(seconds: float, gpus: int, rate: float) -> float:
    """Return the operations by the paper's rule; ``rate`` is in operations per second of one GPU."""
    return seconds * gpus * rate
