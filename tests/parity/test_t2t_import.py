"""Weights of Tensor2Tensor models of every version, size and depth, and what is refused."""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.interop.t2t import convert_variables
from t2017_plugin.interop.t2t_dictionary import T2TDictionary
from t2017_plugin.models.config import T2017TransformerConfig
from t2017_plugin.models.transformer_2017 import T2017Transformer
from tests.parity.t2t_golden import load
from tests.parity.t2t_names import under_t2t_names

pytestmark = pytest.mark.parity

Arrays = dict[str, np.ndarray]
BASE: dict[str, Any] = {"layers": 2, "d_model": 32, "d_ff": 64, "heads": 4, "d_k": 8, "d_v": 8, "sinusoid": "t2t"}


def recorded() -> Arrays:
    """The variables of ``base_nobias``, by the names of 1.0."""
    return {key[4:]: array for key, array in load("base_nobias").items() if key.startswith("var/")}


def config(**settings: Any) -> T2017TransformerConfig:
    return T2017TransformerConfig(**{**BASE, **settings})


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert sorted(ours) == sorted(theirs)
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


def between(variables: Arrays) -> Arrays:
    """The names of 1.1 and 1.2: one scope a sub-layer, the matrices of 1.0."""
    return {_scoped(name): array for name, array in variables.items()}


def _scoped(name: str) -> str:
    side = "encoder" if "/encoder/" in name else "decoder"
    sublayers = ["self_attention", "ffn"] if side == "encoder" else ["self_attention", "encdec_attention", "ffn"]
    name = re.sub(r"(en|de)coder_self_attention/", "self_attention/multihead_attention/", name)
    name = name.replace("encdec_attention/", "encdec_attention/multihead_attention/")
    name = name.replace("conv_hidden_relu/", "ffn/conv_hidden_relu/")
    norm = re.search(r"/layer_norm(?:_(\d))?/", name)
    if norm:
        place = f"/{sublayers[int(norm[1] or 0)]}/layer_postprocess/layer_norm/"
        name = name.replace(norm[0], place)
    return name


def newer(variables: Arrays) -> Arrays:
    """The names of 1.3 and later: q, k, v one by one, matrices of two axes, no biases in attention, no target space."""
    result: Arrays = {}
    for old, array in between(variables).items():
        name = "transformer/" + re.sub(r"ffn/conv_hidden_relu/(conv\d)_single", r"ffn/\1", old)
        if "/target_space_embedding/" in name or re.search(r"_transform_single/bias", name):
            continue
        if array.ndim == 4:
            array = array[0, 0]
        stacked = re.search(r"/(qkv|kv|q)_transform_single/", name)
        if stacked:
            for letter, part in zip(stacked[1], np.split(array, len(stacked[1]), axis=1), strict=True):
                result[name.replace(stacked[0], f"/{letter}/")] = part
        else:
            result[name.replace("output_transform_single", "output_transform")] = array
    return result


def sharded(variables: Arrays, parts: int = 16) -> Arrays:
    """Tables of tokens in parts, as T2T stores them by default; where rows are left over, the first have one more."""
    result: Arrays = {}
    for name, array in variables.items():
        if name.startswith("symbol_modality_"):
            pieces = np.array_split(array, parts)
            result |= {name.replace("weights_0", f"weights_{part}"): piece for part, piece in enumerate(pieces)}
        else:
            result[name] = array
    return result


def prefixed(variables: Arrays) -> Arrays:
    return {f"var/{name}": array for name, array in variables.items()}


def with_bookkeeping(variables: Arrays) -> Arrays:
    """What a checkpoint of a training run holds beside the weights."""
    extra = {name: np.zeros(1) for name in ("global_step", "beta1_power", "beta2_power", "train_stats/problem_0_steps")}
    extra |= {"losses_avg/problem_0/total_loss": np.zeros(()), "training/beta1_power": np.zeros(())}
    extra |= {f"{name}/Adam{which}": array for name, array in variables.items() for which in ("", "_1")}
    return {**variables, **extra}


ALL = (newer, sharded, with_bookkeeping, prefixed)
FORMS = [(between,), (newer,), (sharded,), (prefixed,), (with_bookkeeping,), ALL]


@pytest.mark.parametrize("forms", FORMS, ids=lambda forms: "+".join(form.__name__ for form in forms))
def test_every_form_is_the_same_model(forms: tuple[Callable[[Arrays], Arrays], ...]) -> None:
    variables = recorded()
    for form in forms:
        variables = form(variables)
    assert_same(convert_variables(variables, config()), convert_variables(recorded(), config()))


def test_what_the_model_returns_is_its_own() -> None:
    variables = recorded()
    state = convert_variables(variables, config())
    before = {name: array.copy() for name, array in variables.items()}
    for tensor in state.values():
        tensor.zero_()
    assert all(np.array_equal(variables[name], before[name]) for name in before)


SHAPES = [
    {},
    {"layers": 1, "heads": 2, "d_k": 5, "d_v": 3, "d_ff": 7},
    {"layers": 3, "d_model": 12, "attention_bias": True},
    {"layers": 12, "d_model": 8, "heads": 1, "d_k": 4, "d_v": 8, "target_space_embedding": True},
    {"embeddings": "separate", "attention_bias": True, "target_space_embedding": True},
    {"embeddings": "decoder"},
]


def random_model(seed: int, settings: dict[str, Any]) -> tuple[T2017Transformer, dict[str, Any], Arrays]:
    """A model with random weights, its settings and its variables by the names of 1.0."""
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


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_other_seeds_sizes_and_depths(seed: int, settings: dict[str, Any]) -> None:
    model, sizes, variables = random_model(seed, settings)
    state = convert_variables(sharded(variables, 3), model.config, sizes["tspace"], source_types=sizes["vin"])
    assert_same(state, dict(model.state_dict()))
    model.load_state_dict(state, strict=True)


def changed(variables: Arrays, **arrays: np.ndarray | None) -> Arrays:
    """Variables whose name ends so, replaced, or removed with None; new ones are added."""
    result = dict(variables)
    for ending, array in arrays.items():
        names = [name for name in variables if name.endswith(ending)] or [ending]
        for name in names:
            if array is None:
                del result[name]
            else:
                result[name] = array
    return result


LAYER = "body/encoder/layer_1/"
QKV, OUTPUT, FFN, NORM, TABLE, SPACE = (
    f"{LAYER}encoder_self_attention/qkv_transform_single/",
    f"{LAYER}encoder_self_attention/output_transform_single/",
    f"{LAYER}conv_hidden_relu/conv1_single/",
    f"{LAYER}ffn/layer_preprocess/layer_norm/",
    "shared/weights_0",
    "target_space_embedding/kernel",
)
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("encoder/layer_1/self_attention/qkv/kernel is missing", {f"{QKV}kernel": None}, {}),
    ("encoder/layer_2/self_attention/qkv/kernel is missing.*--layers 3", {}, {"layers": 3}),
    ("body/(en|de)coder/layer_1/.* is not part of the model.*--layers 1", {}, {"layers": 1}),
    (r"conv1_single/bias has shape \(63,\) where \(64,\)", {f"{FFN}bias": np.zeros(63)}, {}),
    (r"conv1_single/kernel has shape \(32,\) where \(32, 64\)", {f"{FFN}kernel": np.zeros(32)}, {}),
    (r"conv1_single/kernel has shape \(2, 32, 64\) where", {f"{FFN}kernel": np.zeros((2, 32, 64))}, {}),
    (r"qkv_transform_single/kernel has shape \(1, 1, 32, 96\) where \(32, 80\).*--d-k 6", {}, {"d_k": 6}),
    (r"weights_0 has shape \(64, 32\) where \('any', 16\)", {}, {"d_model": 16}),
    ("body/extra/kernel is not part of the model", {"body/extra/kernel": np.zeros(3)}, {}),
    ("qkv_transform_single/bias is not zero.*--attention-bias", {f"{QKV}bias": np.ones(96)}, {}),
    ("self_attention/output/bias is missing", {f"{OUTPUT}bias": None}, {"attention_bias": True}),
    ("row 9 of .*kernel is not zero.*--target-space-embedding", {SPACE: np.ones((32, 32))}, {}),
    ("target_space_embedding/kernel is missing", {SPACE: None}, {"target_space_embedding": True}),
    ("target space 9: .* has 8 rows", {SPACE: np.ones((8, 32))}, {}),
    ("layer_preprocess.*: a pre-norm model", {f"{NORM}layer_norm_bias": np.zeros(32)}, {}),
    ("do not fit --embeddings separate", {}, {"embeddings": "separate"}),
    ("the token tables are missing", {TABLE: None}, {}),
    ("the 1 parts of symbol_modality_64_32/shared have 60 rows together", {TABLE: np.zeros((60, 32))}, {}),
    ("are the same variable", {f"transformer/body/{SPACE}": np.zeros((32, 32))}, {}),
]


@pytest.mark.parametrize(("message", "changes", "settings"), REFUSED, ids=[case[0] for case in REFUSED])
def test_refused_in_one_line(message: str, changes: dict[str, Any], settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=message) as refusal:
        convert_variables(changed(recorded(), **changes), config(**settings))
    assert "\n" not in str(refusal.value)


def test_a_missing_part_of_a_table_is_named() -> None:
    variables = sharded(recorded())
    del variables["symbol_modality_64_32/shared/weights_3"]
    with pytest.raises(UsageError, match="symbol_modality_64_32/shared/weights_3 is missing"):
        convert_variables(variables, config())
    variables = sharded(recorded())
    del variables["symbol_modality_64_32/shared/weights_15"]
    with pytest.raises(UsageError, match="15 parts of symbol_modality_64_32/shared have 60 rows together"):
        convert_variables(variables, config())


def test_two_tables_need_to_know_which_is_the_source() -> None:
    model, _, variables = random_model(1, {"embeddings": "decoder"})
    with pytest.raises(UsageError, match="which of symbol_modality_31_32/shared and symbol_modality_61_32/shared"):
        convert_variables(variables, model.config)
