"""Weights of Tensor2Tensor models of every version, size and depth, and what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.t2t.weights import convert_variables
from tests.parity.t2t_golden import load
from tests.parity.t2t_random import SHAPES, config, random_model
from tests.parity.t2t_versions import Arrays, between, newer, prefixed, sharded, with_bookkeeping

pytestmark = pytest.mark.parity


def recorded() -> Arrays:
    """Load the variables of ``base_nobias``, by the names of 1.0."""
    return {key[4:]: array for key, array in load("base_nobias").items() if key.startswith("var/")}


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert sorted(ours) == sorted(theirs)
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


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
