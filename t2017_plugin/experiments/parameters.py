"""How many parameters a model has: by hand from the paper's equations, and counted in the built model.

With V symbols in one shared dictionary, N layers in each stack and no biases in attention:

    attention     2 d_model h d_k + 2 d_model h d_v                 W^Q, W^K and W^V, W^O (section 3.2.2)
    feed-forward  2 d_model d_ff + d_ff + d_model                   W_1, b_1, W_2, b_2 (equation 2)
    norm          2 d_model                                         gain and bias
    encoder       N (attention + feed-forward + 2 norms)
    decoder       N (2 attentions + feed-forward + 3 norms)
    embeddings    V d_model, once: one matrix used three times (section 3.4)

The paper says "about 37,000" symbols, but the sizes it prints in Table 3 fit the 40,960 rows of the authors' code.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

AUTHORS_VOCABULARY = 40960

# Table 3: size in millions as printed; None where the paper prints none. The two rows of label smoothing share base's.
TABLE_3: dict[str, int | None] = {
    "t2017_base": 65,
    "t2017_a_h1": None,
    "t2017_a_h4": None,
    "t2017_a_h16": None,
    "t2017_a_h32": None,
    "t2017_b_dk16": 58,
    "t2017_b_dk32": 60,
    "t2017_c_n2": 36,
    "t2017_c_n4": 50,
    "t2017_c_n8": 80,
    "t2017_c_d256": 28,
    "t2017_c_d1024": 168,
    "t2017_c_ff1024": 53,
    "t2017_c_ff4096": 90,
    "t2017_d_drop0": None,
    "t2017_d_drop2": None,
    "t2017_e_learned": None,
    "t2017_big": 213,
}
TABLES = {"shared": 1, "decoder": 2, "separate": 3}


def count_by_formula(settings: Mapping[str, Any], vocabulary: int) -> dict[str, int]:
    """Parameters of each part by the equations above, with the switches that add some.

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
    """Parameters of each part of a model that is built with these settings, without memory for its weights."""
    import torch

    from t2017_plugin.fairseq_side.model import T2017Transformer

    dictionary = _dictionary(vocabulary)
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    with torch.device("meta"):
        model = T2017Transformer.build_model(Namespace(**settings), task)
    parts = dict.fromkeys(count_by_formula(settings, vocabulary), 0)
    for name, parameter in model.named_parameters():
        parts[_part(name)] += parameter.numel()
    return parts


def _dictionary(vocabulary: int) -> Any:
    from fairseq.data import Dictionary

    from t2017_plugin.errors import UsageError

    dictionary = Dictionary()
    if vocabulary < len(dictionary):
        raise UsageError(f"a dictionary has {len(dictionary)} special symbols, so --vocab cannot be {vocabulary}")
    for number in range(vocabulary - len(dictionary)):
        dictionary.add_symbol(f"symbol{number}")
    return dictionary


def _part(name: str) -> str:
    """The part of the breakdown that a parameter belongs to, by its name in the model."""
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


def table_3() -> dict[str, int | None]:
    """The rows of Table 3 that are registered as architectures, in the table's order, with the size printed there."""
    from fairseq.models import ARCH_MODEL_REGISTRY

    return {name: printed for name, printed in TABLE_3.items() if name in ARCH_MODEL_REGISTRY}
