"""Variables by the names of T2T 1.0 in the forms that other versions and other files give them."""

import re

import numpy as np

Arrays = dict[str, np.ndarray]


def between(variables: Arrays) -> Arrays:
    """Give the names of 1.1 and 1.2: one scope per sub-layer, the matrices of 1.0."""
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
    """Give the names of 1.3 and later: q, k, v apart, matrices of two axes, no biases in attention, no target space."""
    result: Arrays = {}
    scoped = between(variables)
    for old, array in scoped.items():
        name = "transformer/" + re.sub(r"ffn/conv_hidden_relu/(conv\d)_single", r"ffn/\1", old)
        if "/target_space_embedding/" in name or re.search(r"_transform_single/bias", name):
            continue
        if array.ndim == 4:
            array = array[0, 0]
        stacked = re.search(r"/(qkv|kv|q)_transform_single/", name)
        if stacked:
            values = scoped[re.sub(r"/(qkv|kv|q)_", "/output_", old)].shape[-2]
            keys = (array.shape[1] - values * stacked[1].count("v")) // (len(stacked[1]) - stacked[1].count("v"))
            ends = np.cumsum([values if letter == "v" else keys for letter in stacked[1]])[:-1]
            for letter, part in zip(stacked[1], np.split(array, ends, axis=1), strict=True):
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
    """Give the keys of files that hold more than variables."""
    return {f"var/{name}": array for name, array in variables.items()}


def with_bookkeeping(variables: Arrays) -> Arrays:
    """Add what a checkpoint of a training run holds beside the weights."""
    extra = {name: np.zeros(1) for name in ("global_step", "beta1_power", "beta2_power", "train_stats/problem_0_steps")}
    extra |= {"losses_avg/problem_0/total_loss": np.zeros(()), "training/beta1_power": np.zeros(())}
    extra |= {f"{name}/Adam{which}": array for name, array in variables.items() for which in ("", "_1")}
    return {**variables, **extra}
