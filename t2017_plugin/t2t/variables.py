"""A Tensor2Tensor model's variables: read from an ``.npz`` file or a TensorFlow checkpoint, and what they say of it.

Every version of Tensor2Tensor has names of its own; :func:`canonical` gives them one form. Sizes and
switches follow from the shapes; only the number of heads leaves no trace.
"""

import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from t2017_plugin.errors import UsageError
from t2017_plugin.t2t.tf_checkpoint import TensorFlowCheckpoint, checkpoint_prefix

PREFIX = "var/"  # in files that hold more than variables
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError)
ENGLISH_GERMAN_BPE = 9  # T2T's number of the target space of wmt_ende_bpe32k
# What training leaves in a checkpoint beside the weights.
BOOKKEEPING = re.compile(r"(^|/)(global_step|beta[12]_power|Adam(_1)?)$|(^|/)(losses_avg|train_stats|training)/")
# Applied in turn, these give every version's names one form: encoder/layer_0/self_attention/qkv/kernel.
RENAMINGS = [
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"^(.*/)?(?=symbol_modality_)", ""),
        (r"^(.*/)?body/(?=encoder/|decoder/|target_space_embedding/)", ""),
        (r"/(encoder|decoder)_self_attention/", "/self_attention/"),
        (r"/multihead_attention/", "/"),
        (r"/(qkv|kv|q|output)_transform(_single)?/", r"/\1/"),
        (r"/(ffn/)?(conv_hidden_relu/)?(conv[12])(_single)?/", r"/ffn/\3/"),
        (r"(?<=\d)/layer_norm/", "/self_attention/layer_postprocess/layer_norm/"),
        (r"^(encoder/layer_\d+)/layer_norm_1/", r"\1/ffn/layer_postprocess/layer_norm/"),
        (r"^(decoder/layer_\d+)/layer_norm_1/", r"\1/encdec_attention/layer_postprocess/layer_norm/"),
        (r"^(decoder/layer_\d+)/layer_norm_2/", r"\1/ffn/layer_postprocess/layer_norm/"),
        (r"/layer_postprocess/layer_norm/layer_norm_", "/norm/"),
    )
]
ATTENTION_BIAS = re.compile(r"/(qkv|kv|q|k|v|output)/bias$")
LAYER = re.compile(r"(encoder|decoder)/layer_(\d+)/")
TABLE = re.compile(r"symbol_modality_(\d+)_(\d+)/(shared|input_emb|target_emb|softmax)/weights_\d+$")
FIRST = "encoder/layer_0"
TARGET_SPACE = "target_space_embedding/kernel"


def canonical(name: str) -> str:
    """Return the one form of a variable's name of any version: ``encoder/layer_0/self_attention/qkv/kernel``."""
    for pattern, replacement in RENAMINGS:
        name = pattern.sub(replacement, name)
    return name


@dataclass(frozen=True)
class SourceModel:
    """The variables of a model, as they were read.

    Attributes:
        name: the file, or the prefix of the checkpoint's files
        variables: weights by T2T's names
        bookkeeping: names of what training left beside them, which is not read: the optimiser's slots and counters
        updates: how many there were; 0 where the source does not say
    """

    name: str
    variables: dict[str, np.ndarray]
    bookkeeping: list[str]
    updates: int


def read_variables(path: str | os.PathLike[str]) -> SourceModel:
    """Read a model's variables.

    Args:
        path: an ``.npz`` file whose keys are ``var/NAME`` (other keys beside them are left alone) or bare names; or the
            prefix of a checkpoint such as ``model.ckpt-250000``, one of its files, or its folder

    Raises:
        UsageError: there is no such file, or it is damaged or another kind of file.
    """
    prefix = checkpoint_prefix(path)
    if prefix is not None:
        return _without_bookkeeping(prefix, TensorFlowCheckpoint(prefix))
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise UsageError(f"{path} is damaged, found at {damaged}: copy it again")
        with np.load(path, allow_pickle=False) as file:
            return _without_bookkeeping(str(path), file)
    except UsageError:
        raise
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file, and no {path}.index; name an .npz file or a checkpoint") from error
    except UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"{path} cannot be read as an .npz file of arrays ({reason}); "
            "a checkpoint of TensorFlow has a file that ends in .index, name that"
        ) from error


def _without_bookkeeping(name: str, arrays: Mapping[str, np.ndarray]) -> SourceModel:
    """Read only what belongs to the model: optimisers keep twice as much."""
    prefix = PREFIX if any(key.startswith(PREFIX) for key in arrays) else ""
    # A variable of TensorFlow calls itself NAME:0.
    keys = {key.removeprefix(prefix).removesuffix(":0"): key for key in arrays if key.startswith(prefix)}
    bookkeeping = [variable for variable in keys if BOOKKEEPING.search(variable)]
    variables = {variable: np.asarray(arrays[key]) for variable, key in keys.items() if variable not in bookkeeping}
    counter = next((keys[variable] for variable in bookkeeping if variable.endswith("global_step")), None)
    updates = 0 if counter is None else int(np.ravel(arrays[counter])[0])
    return SourceModel(str(Path(name)), variables, bookkeeping, updates)


@dataclass(frozen=True)
class Sizes:
    """The sizes and switches of a model.

    Attributes:
        settings: of ``T2017TransformerConfig``, by name
        source_types, target_types: rows of the tables
    """

    settings: dict[str, Any]
    source_types: int
    target_types: int


def describe(
    variables: Mapping[str, np.ndarray],
    heads: int = 8,
    target_space_id: int = ENGLISH_GERMAN_BPE,
    sinusoid: str = "t2t",
    source_types: int | None = None,
) -> Sizes:
    """Infer sizes and switches from the variables.

    Biases of attention and the target-space vector are switched on where they are not zero. Dropout leaves no trace:
    it is the authors' for models of this size.

    Args:
        variables: by T2T's names, of any version, without optimiser slots
        heads: h, of every attention
        target_space_id: the row of the table of target spaces that the model was trained with
        source_types: rows of the source's table; needed when each vocabulary has one table of T2T's ``shared`` kind

    Raises:
        UsageError: the variables are not those of a post-norm transformer with encoder and decoder, or ``heads`` does
            not divide the widths of attention.
    """
    arrays = {canonical(name): np.asarray(array) for name, array in variables.items()}
    _refuse_others(arrays)
    layers = _layers(arrays)
    keys, values = _attention_widths(arrays)
    if heads < 1 or keys % heads or values % heads:
        raise UsageError(
            f"--heads {heads} does not divide the {keys} channels of the keys and {values} of the values: "
            "give the number of heads that the model was trained with"
        )
    d_model, embeddings, source, target = _table_sizes(arrays, source_types)
    space = arrays.get(TARGET_SPACE, np.zeros((0, d_model)))
    row = space[target_space_id] if 0 <= target_space_id < len(space) else space
    settings = {
        "layers": layers,
        "d_model": d_model,
        "d_ff": _axis(arrays, f"{FIRST}/ffn/conv1/kernel", -1),
        "heads": heads,
        "d_k": keys // heads,
        "d_v": values // heads,
        # transformer_big of the authors has 0.3, all other models of translation 0.1.
        "dropout": 0.3 if d_model >= 1024 and embeddings == "shared" else 0.1,
        "sinusoid": sinusoid,
        "embeddings": embeddings,
        "attention_bias": any(ATTENTION_BIAS.search(name) and array.any() for name, array in arrays.items()),
        "decoder_start": "zeros",
        "layer_norm_eps": 1e-6,
        "target_space_embedding": bool(row.any()),
    }
    return Sizes(settings, source, target)


def _refuse_others(arrays: Mapping[str, np.ndarray]) -> None:
    pre_norm = next((name for name in arrays if "/layer_preprocess/" in name), None)
    if pre_norm:
        raise UsageError(
            f"{pre_norm}: a pre-norm model (transformer_base of Tensor2Tensor since 1.2.5), which this one cannot be"
        )
    if not any(name.startswith(f"{FIRST}/") for name in arrays):
        some = ", ".join(sorted(arrays)[:3]) or "none"
        raise UsageError(
            f"no variable .../{FIRST}/..., so this is no transformer of Tensor2Tensor's (there are: {some})"
        )


def _axis(arrays: Mapping[str, np.ndarray], name: str, axis: int) -> int:
    if name not in arrays or arrays[name].ndim < -axis:
        raise UsageError(f"{name} is missing from the variables, or has no such axis: the sizes cannot be found")
    return int(arrays[name].shape[axis])


def _layers(arrays: Mapping[str, np.ndarray]) -> int:
    """Count the layers N, the same in both stacks."""
    numbers: dict[str, set[int]] = {"encoder": set(), "decoder": set()}
    for name in arrays:
        if layer := LAYER.match(name):
            numbers[layer[1]].add(int(layer[2]))
    depth = {side: max(found, default=-1) + 1 for side, found in numbers.items()}
    if depth["encoder"] != depth["decoder"]:
        raise UsageError(
            f"{depth['encoder']} layers in the encoder and {depth['decoder']} in the decoder: both stacks have N layers"
        )
    return depth["encoder"]


def _attention_widths(arrays: Mapping[str, np.ndarray]) -> tuple[int, int]:
    """Find h * d_k and h * d_v, from one stacked matrix [q | k | v] or from one each."""
    attention = f"{FIRST}/self_attention"
    values = _axis(arrays, f"{attention}/output/kernel", -2)
    if f"{attention}/q/kernel" in arrays:
        return _axis(arrays, f"{attention}/q/kernel", -1), values
    keys, odd = divmod(_axis(arrays, f"{attention}/qkv/kernel", -1) - values, 2)
    if odd or keys < 1:
        raise UsageError(f"{attention}/qkv/kernel and output/kernel do not fit together: their widths are odd")
    return keys, values


def _table_sizes(arrays: Mapping[str, np.ndarray], source_types: int | None) -> tuple[int, str, int, int]:
    """Find d_model, --embeddings, and the rows of the source's and the target's table."""
    found = {(table[3], int(table[1]), int(table[2])) for name in arrays if (table := TABLE.match(name))}
    rows = {scope: count for scope, count, _ in found}
    names = ", ".join(f"symbol_modality_{count}_{width}/{scope}" for scope, count, width in sorted(found)) or "missing"
    widths = {width for _, _, width in found}
    scopes = sorted(scope for scope, _, _ in found)
    if len(widths) == 1:
        d_model = widths.pop()
        if scopes == ["input_emb", "softmax", "target_emb"] and rows["target_emb"] == rows["softmax"]:
            return d_model, "separate", rows["input_emb"], rows["target_emb"]
        if scopes == ["shared"]:
            return d_model, "shared", rows["shared"], rows["shared"]
        if scopes == ["shared", "shared"]:
            counts = [count for _, count, _ in found]
            if source_types not in counts:
                raise UsageError(f"the token tables are {names}: name the source's number of rows with --source-rows")
            return d_model, "decoder", source_types, sum(counts) - source_types
    raise UsageError(f"the token tables are {names}: there should be one shared one, two, or three separate ones")
