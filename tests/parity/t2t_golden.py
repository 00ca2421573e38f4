"""The recorded arrays of the authors' code (tests/golden) and how ours are compared with them.

Every array belongs to one kind, and every kind has one tolerance with its reason. ``tests/golden/README.md`` says what
each array is; what is left out of a comparison is named in ``compared`` below and nowhere else.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "golden"
FILES = tuple(sorted(path.stem for path in FOLDER.glob("*.npz")))
PIECES = "pieces"


@dataclass(frozen=True)
class Kind:
    """Arrays that are compared alike; ``relative`` measures errors in units of the recorded value."""

    name: str
    keys: str
    tolerance: float
    reason: str
    relative: bool = False


# The first that fits counts. float32 throughout: one rounding is 6e-8 of the value.
KINDS = (
    Kind("settings", r"config_json|frozen_zero_vars|lr/.*/(step_num|warmup.*)", 0, "read and written, not computed"),
    Kind("inputs of pieces", r"xent/(logits|labels)|layer_norm/(x|scale|bias)|adam/(w0|grads|lr)", 0, "read only"),
    Kind("token ids", r"(train/)?(inputs|targets)(_\d)?", 0, "whole numbers"),
    Kind("weights", r"var/.*", 0, "converted there and back, not computed"),
    Kind("attention", r"attn/.*", 2e-5, "activations between 0 and 1"),
    Kind("activations", r"act/.*|(en|de)coder_(in|out)put", 2e-5, "values up to 5 after some dozen float32 sums"),
    Kind("logits", r"logits", 2e-5, "as activations; they reach 10"),
    Kind("summed losses", r"loss_num|loss_den", 1e-6, "sums of 85 nats: one float32 rounding is 8e-6", relative=True),
    Kind("losses", r"loss_.*|train/loss_.*", 1e-5, "logarithms of sums over the vocabulary, about 4 nats a token"),
    Kind("gradients", r"grad/.*", 2e-6, "means over 21 tokens, below 1, through all layers"),
    Kind("learning rates", r"train/lr_applied|lr/.*/lr_applied", 2e-6, "the recorded ones are float32", relative=True),
    Kind("three updates", r"var_after3/.*", 2e-5, "steps of up to 0.02; Adam divides small gradients by small roots"),
    Kind("beam scores", r"beam.*/scores", 1e-4, "sums of up to 60 log-probabilities"),
    Kind("beam ids", r"beam.*/(ids|best_ids|best_len)", 0, "whole numbers; competing scores are over 3e-5 apart"),
    Kind("greedy ids", r"greedy/ids", 0, "whole numbers"),
    Kind("positions", r"timing/.*", 2e-5, "the recorded angles are float32"),
    Kind("loss pieces", r"xent/.*", 1e-5, "as losses"),
    Kind("layer norm", r"layer_norm/.*", 2e-5, "as activations; epsilon 1e-5 would be 0.9 off"),
    Kind("adam steps", r"adam/.*", 2e-6, "weights of about 1, ten steps; epsilon's other place is 7e-4 off"),
    Kind("batching", r"batching/.*", 0, "whole numbers"),
)
# At position 1000 a float32 angle is off by 5e-5, ours are float64.
LONG_POSITIONS = ("timing/len1024_ch16_every31", 5e-5)

# Kind -> worst error so far and where; printed at the end of the run.
worst: dict[str, tuple[float, str]] = {}


@cache
def load(file: str) -> dict[str, np.ndarray]:
    """All arrays of a file."""
    with np.load(FOLDER / f"{file}.npz") as arrays:
        return {key: arrays[key] for key in arrays.files}


@cache
def settings(file: str) -> dict[str, Any]:
    """Sizes and switches of a file, T2T's defaults filled in."""
    given = json.loads(str(load(file)["config_json"]))
    return {"key": given.get("d"), "value": given.get("d"), "ls": 0.1, "probe": [0.0] * 3, "tspace": 9, **given}


def kind_of(key: str) -> Kind:
    """Return the kind an array belongs to."""
    for kind in KINDS:
        if re.fullmatch(kind.keys, key):
            return kind
    raise KeyError(f"no kind for the array {key}")


def cases() -> list[tuple[str, str]]:
    """Every file with every kind of array in it."""
    return [(file, kind) for file in FILES for kind in dict.fromkeys(kind_of(key).name for key in load(file))]


def compared(file: str, key: str, array: np.ndarray) -> np.ndarray:
    """Return what of an array is compared: all of it, but for

    * source positions that are padding, which nothing reads: T2T counts their position on, we do not;
    * lower entries of a batch's n-best lists, which in T2T depend on the neighbours (unless all ran to one limit);
    * biases of attention keys after updates: their gradient is zero, and Adam blows rounding up to full steps;
    * rows of the target-space table that the model does not use and that get no gradient.
    """
    if re.match(r"act/encoder|encoder_(in|out)put", key):
        return array[load(file)["inputs"] != 0]
    if key.startswith("attn/encoder"):
        return np.moveaxis(array, 1, 2)[load(file)["inputs"] != 0]
    if re.fullmatch(r"beam[^/]*(?<!_single)/(ids|scores)", key) and file != "base_nobias":
        return array[:, 0]
    if key.startswith("var_after3/") and settings(file).get("attn_bias"):
        keys = settings(file)["key"]
        if key.endswith("/qkv_transform_single/bias"):
            return np.delete(array, slice(keys, 2 * keys))
        if key.endswith("/kv_transform_single/bias"):
            return np.delete(array, slice(0, keys))
    if re.match(r"var(_after3)?/body/target_space_embedding", key) and settings(file).get("live_tspace"):
        return array[settings(file)["tspace"]]
    return array


def assert_matches(file: str, key: str, ours: Any) -> None:
    """Compare our array with the recorded one and remember the error."""
    kind, recorded, ours = kind_of(key), load(file)[key], np.asarray(ours)
    assert ours.shape == recorded.shape, f"{file}: {key}: ours has shape {ours.shape}, T2T's {recorded.shape}"
    ours, recorded = compared(file, key, ours), compared(file, key, recorded)
    if recorded.dtype.kind not in "fiu":
        assert np.array_equal(ours, recorded), f"{file}: {key}: {ours} is not {recorded}"
        error = 0.0
    else:
        difference = np.abs(ours.astype(np.float64) - recorded.astype(np.float64))
        error = float(np.max(difference / np.abs(recorded) if kind.relative else difference, initial=0.0))
    # "not <=" also catches a NaN.
    if not error <= worst.get(kind.name, (-1.0, ""))[0]:
        worst[kind.name] = (error, f"{file}: {key}")
    tolerance = LONG_POSITIONS[1] if key == LONG_POSITIONS[0] else kind.tolerance
    assert error <= tolerance, f"{file}: {key}: off by {error:.3g}, {tolerance:g} is allowed ({kind.reason})"


def summary() -> str:
    """One line: the worst error of each kind that was compared in this run."""
    errors = [f"{kind.name} {worst[kind.name][0]:.1g}" for kind in KINDS if kind.name in worst]
    return "worst errors against the authors' code: " + ", ".join(errors)
