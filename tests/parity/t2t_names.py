"""Our parameters by the names and in the shapes of Tensor2Tensor 1.0: the other way round than the plugin converts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

SINGLE = "_transform_single"


def under_t2t_names(config: Mapping[str, Any], ours: Mapping[str, Tensor]) -> dict[str, np.ndarray | None]:
    """Parameters (or gradients) by the names and in the shapes of T2T 1.0; None for what ours has not."""
    d, ff, keys, values = config["d"], config["ff"], config["key"], config["value"]
    arrays: dict[str, np.ndarray | None] = {}

    def matrix(theirs: str, name: str, fan_in: int, fan_out: int) -> None:
        bias = ours.get(f"{name}.bias")
        arrays[f"{theirs}/kernel"] = ours[f"{name}.weight"].numpy().T.reshape(1, 1, fan_in, fan_out)
        arrays[f"{theirs}/bias"] = None if bias is None else bias.numpy()

    for scope, name in {
        "vin/shared": "encoder.embedding", "vin/input_emb": "encoder.embedding",
        "vout/target_emb": "decoder.embedding", "vout/softmax": "decoder.output",
    }.items():  # fmt: skip
        rows, scope = scope.split("/")
        if (scope == "shared") == config["shared"]:
            arrays[f"symbol_modality_{config[rows]}_{d}/{scope}/weights_0"] = ours[f"{name}.weight"].numpy()
    arrays["body/target_space_embedding/kernel"] = None
    if "encoder.target_space" in ours:
        spaces = np.zeros((32, d), np.float32)
        spaces[config["tspace"]] = ours["encoder.target_space"].numpy()
        arrays["body/target_space_embedding/kernel"] = spaces
    for side in ("encoder", "decoder"):
        for i in range(config["layers"]):
            layer, t2t = f"{side}.layers.{i}", f"body/{side}/layer_{i}"
            norms = ["self_attention_norm", "feed_forward_norm"]
            matrix(f"{t2t}/{side}_self_attention/qkv{SINGLE}", f"{layer}.self_attention.w_qkv", d, 2 * keys + values)
            matrix(f"{t2t}/{side}_self_attention/output{SINGLE}", f"{layer}.self_attention.w_o", values, d)
            if side == "decoder":
                norms.insert(1, "encoder_attention_norm")
                matrix(f"{t2t}/encdec_attention/q{SINGLE}", f"{layer}.encoder_attention.w_q", d, keys)
                matrix(f"{t2t}/encdec_attention/kv{SINGLE}", f"{layer}.encoder_attention.w_kv", d, keys + values)
                matrix(f"{t2t}/encdec_attention/output{SINGLE}", f"{layer}.encoder_attention.w_o", values, d)
            matrix(f"{t2t}/conv_hidden_relu/conv1_single", f"{layer}.feed_forward.w_1", d, ff)
            matrix(f"{t2t}/conv_hidden_relu/conv2_single", f"{layer}.feed_forward.w_2", ff, d)
            for number, norm in enumerate(norms):
                place = f"{t2t}/layer_norm" + (f"_{number}" if number else "")
                arrays[f"{place}/layer_norm_scale"] = ours[f"{layer}.{norm}.norm.weight"].numpy()
                arrays[f"{place}/layer_norm_bias"] = ours[f"{layer}.{norm}.norm.bias"].numpy()
    return arrays
