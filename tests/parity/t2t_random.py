"""Models with random weights, of several shapes, and their variables by T2T's names."""

import re
from types import SimpleNamespace
from typing import Any

import torch

from t2017_plugin.fairseq_side.dictionary import T2TDictionary
from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from tests.parity.t2t_names import under_t2t_names
from tests.parity.t2t_versions import Arrays

BASE: dict[str, Any] = {"layers": 2, "d_model": 32, "d_ff": 64, "heads": 4, "d_k": 8, "d_v": 8, "sinusoid": "t2t"}
SHAPES = [
    {},
    {"layers": 1, "heads": 2, "d_k": 5, "d_v": 3, "d_ff": 7},
    {"layers": 3, "d_model": 12, "attention_bias": True},
    {"layers": 12, "d_model": 8, "heads": 1, "d_k": 4, "d_v": 8, "target_space_embedding": True},
    {"embeddings": "separate", "attention_bias": True, "target_space_embedding": True},
    {"embeddings": "decoder"},
]


def config(**settings: Any) -> T2017TransformerConfig:
    """Return the settings of ``BASE`` but for those given."""
    return T2017TransformerConfig(**{**BASE, **settings})


def random_model(seed: int, settings: dict[str, Any]) -> tuple[T2017Transformer, dict[str, Any], Arrays]:
    """Make a model with random weights, its settings and its variables by the names of 1.0."""
    model_config = config(**settings)
    shared = model_config.embeddings == "shared"
    source = T2TDictionary(f"s{i}" for i in range(59))
    target = source if shared else T2TDictionary(f"t{i}" for i in range(29))
    torch.manual_seed(seed)
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target, cfg=SimpleNamespace())
    model = T2017Transformer.build_model(model_config, task)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    sizes = {
        "d": model_config.d_model, "ff": model_config.d_ff, "layers": model_config.layers, "shared": shared,
        "key": model_config.heads * model_config.d_k, "value": model_config.heads * model_config.d_v,
        "vin": len(source), "vout": len(target), "tspace": 4,
    }  # fmt: skip
    named = {name: array for name, array in under_t2t_names(sizes, model.state_dict()).items() if array is not None}
    if model_config.embeddings == "decoder":
        # T2T's "shared" with two vocabularies.
        named = {re.sub("input_emb|target_emb", "shared", n): a for n, a in named.items() if "/softmax/" not in n}
    return model, sizes, named
