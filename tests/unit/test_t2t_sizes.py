"""A Tensor2Tensor model's settings from its variables, and models that cannot be described or held."""

from typing import Any

import numpy as np
import pytest

from t2017_plugin.errors import UsageError
from t2017_plugin.t2t.variables import describe
from tests.parity.t2t_random import SHAPES, random_model
from tests.parity.t2t_versions import Arrays, newer, sharded

pytestmark = pytest.mark.unit

PLAIN = [settings for settings in SHAPES if not {"attention_bias", "target_space_embedding"} & set(settings)]


@pytest.mark.parametrize("settings", SHAPES, ids=str)
def test_what_was_built_is_found(settings: dict[str, Any]) -> None:
    model, sizes, variables = random_model(1, settings)
    found = describe(sharded(variables), model.config.heads, sizes["tspace"], source_types=sizes["vin"])
    assert found.settings.items() <= {**vars_of(model.config), "dropout": 0.1}.items()
    assert (found.source_types, found.target_types) == (sizes["vin"], sizes["vout"])


@pytest.mark.parametrize("settings", PLAIN, ids=str)
def test_names_of_later_versions(settings: dict[str, Any]) -> None:
    model, sizes, variables = random_model(2, settings)
    found = describe(newer(variables), model.config.heads, source_types=sizes["vin"])
    assert found == describe(variables, model.config.heads, source_types=sizes["vin"])


def vars_of(config: Any) -> dict[str, Any]:
    return {name: getattr(config, name) for name in config._get_all_attributes() if name != "_name"}


def test_zeros_ask_for_no_switch() -> None:
    _, sizes, variables = random_model(1, {"attention_bias": True, "target_space_embedding": True})
    zeros = {
        name: array * 0 if name.endswith("_transform_single/bias") or "target_space" in name else array
        for name, array in variables.items()
    }
    settings = describe(zeros, 4, sizes["tspace"]).settings
    assert not settings["attention_bias"] and not settings["target_space_embedding"]
    # Another row of the table is not this model's.
    assert describe(variables, 4, sizes["tspace"]).settings["target_space_embedding"]
    assert not describe(variables, 4, sizes["tspace"] + 1).settings["target_space_embedding"]


def test_dropout_is_the_authors() -> None:
    """0.3 in their big model of English-German; the one of English-French has three tables and 0.1."""
    shapes = {"layers": 1, "d_model": 1024, "d_ff": 4, "d_k": 1, "d_v": 1}
    for embeddings, dropout in (("shared", 0.3), ("separate", 0.1)):
        _, _, variables = random_model(1, {**shapes, "embeddings": embeddings})
        assert describe(variables, 4).settings["dropout"] == dropout


def without(variables: Arrays, ending: str) -> Arrays:
    return {name: array for name, array in variables.items() if not name.endswith(ending)}


def test_refused_in_one_line() -> None:
    _, sizes, variables = random_model(1, {})
    _, _, two_tables = random_model(1, {"embeddings": "decoder"})
    _, _, three_tables = random_model(1, {"embeddings": "separate"})
    norm = "body/decoder/layer_0/ffn/layer_preprocess/layer_norm/layer_norm_scale"
    layer = {"body/encoder/layer_2/layer_norm/layer_norm_scale": np.ones(1)}
    output = "layer_0/encoder_self_attention/output_transform_single/kernel"
    cases: list[tuple[str, Arrays, dict[str, Any]]] = [
        ("--heads 3 does not divide the 32 channels of the keys and 32 of the values", variables, {"heads": 3}),
        ("--heads 0 does not divide", variables, {"heads": 0}),
        ("a pre-norm model", {**variables, norm: np.ones(32)}, {}),
        (r"no variable .../encoder/layer_0/.*\(there are: a, b", {"b": np.ones(1), "a": np.ones(1)}, {}),
        (r"no variable .../encoder/layer_0/.*\(there are: none", {}, {}),
        ("3 layers in the encoder and 2 in the decoder", {**variables, **layer}, {}),
        ("ffn/conv1/kernel is missing", without(variables, "layer_0/conv_hidden_relu/conv1_single/kernel"), {}),
        ("output/kernel is missing", without(variables, output), {}),
        ("the token tables are missing", without(variables, "weights_0"), {}),
        ("tables are symbol_modality_31_32/shared, symbol_modality_61_32/shared: .*--source-rows", two_tables, {}),
        ("--source-rows", two_tables, {"source_types": 30}),
        ("there should be one shared one, two, or three separate ones", without(three_tables, "softmax/weights_0"), {}),
    ]  # fmt: skip
    for message, arrays, options in cases:
        with pytest.raises(UsageError, match=message) as refusal:
            describe(arrays, **{"heads": 4, **options})
        assert "\n" not in str(refusal.value)
    odd = {
        name: array[..., 1:] if "qkv_transform_single/kernel" in name else array for name, array in variables.items()
    }
    with pytest.raises(UsageError, match="qkv/kernel and output/kernel do not fit together"):
        describe(odd, 4)
