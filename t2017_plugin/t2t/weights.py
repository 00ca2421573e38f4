"""Tensor2Tensor's variables as this model's weights: the authors' own models, run by this plugin.

    here                    T2T 1.0                                    T2T 1.3 and later
    self_attention.w_qkv    (side)_self_attention/qkv_transform_single self_attention/multihead_attention/(q,k,v)
    encoder_attention.w_q   encdec_attention/q_transform_single        encdec_attention/multihead_attention/q
    encoder_attention.w_kv  encdec_attention/kv_transform_single       encdec_attention/multihead_attention/(k,v)
    (either).w_o            .../output_transform_single                .../output_transform
    (sub-layer)_norm.norm   layer_norm, layer_norm_1, layer_norm_2     (sub-layer)/layer_postprocess/layer_norm
    feed_forward.w_1, w_2   conv_hidden_relu/conv(1,2)_single          ffn/conv(1,2)

Version 1.2 has the names of 1.3 and the matrices of 1.0. A kernel is stored (in, out), or as a convolution of width 1:
(1, 1, in, out); a weight here is its transpose. A table of tokens is stored in several variables, row after row.
Attention has biases before 1.3. One row of a table of "target spaces" is added to every source position; later versions
can do without.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.t2t.variables import ATTENTION_BIAS, BOOKKEEPING, ENGLISH_GERMAN_BPE, TARGET_SPACE, canonical


def convert_variables(
    variables: Mapping[str, np.ndarray],
    config: T2017TransformerConfig,
    target_space_id: int = ENGLISH_GERMAN_BPE,
    source_types: int | None = None,
) -> dict[str, Tensor]:
    """Convert variables to the state of a ``T2017Transformer`` built with ``config``, in float32.

    Biases of attention and a target-space vector that the model has no place for are left out where they are zero.

    Args:
        variables: arrays by T2T's names, of any version; prefixes such as ``var/`` or ``transformer/`` do not matter
        config: the model's settings; ``--sinusoid t2t`` is needed for the same outputs
        target_space_id: the row of the table of target spaces that becomes ``encoder.target_space``
        source_types: rows of the source's table, which ``--embeddings decoder`` cannot tell from the target's otherwise

    Shape:
        a matrix (in, out), or (1, 1, in, out) of a convolution -> (out, in); a table (V, d_model) in parts
        of rows -> (V, d_model); scales and biases as they are
    Raises:
        UsageError: a variable is unknown, missing, misshapen, given twice, or not zero without a place.
    """
    given = _Variables(variables, config)
    state = _tables(given, config.embeddings, source_types)
    _target_space(given, config.target_space_embedding, target_space_id, state)
    for side in ("encoder", "decoder"):
        for i in range(config.layers):
            ours, theirs = f"{side}.layers.{i}", f"{side}/layer_{i}"
            state |= given.attention(f"{ours}.self_attention", f"{theirs}/self_attention", ("qkv",))
            if side == "decoder":
                state |= given.attention(f"{ours}.encoder_attention", f"{theirs}/encdec_attention", ("q", "kv"))
            state |= given.linear(f"{ours}.feed_forward.w_1", f"{theirs}/ffn/conv1", config.d_model, config.d_ff)
            state |= given.linear(f"{ours}.feed_forward.w_2", f"{theirs}/ffn/conv2", config.d_ff, config.d_model)
            state |= given.norm(f"{ours}.feed_forward_norm.norm", f"{theirs}/ffn/norm")
    given.refuse_rest()
    # A table that is used several times stays one.
    tensors = {id(array): torch.from_numpy(np.array(array, dtype=np.float32)) for array in state.values()}
    return {name: tensors[id(array)] for name, array in state.items()}


class _Variables:
    """T2T's variables under one form of names; each is taken once, and what is left in the end is refused."""

    def __init__(self, variables: Mapping[str, np.ndarray], config: T2017TransformerConfig) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.original: dict[str, str] = {}
        self.d_model: int = config.d_model
        self.widths = {"q": config.heads * config.d_k, "k": config.heads * config.d_k, "v": config.heads * config.d_v}
        self.attention_bias: bool = config.attention_bias
        self.sizes = (
            f"--layers {config.layers} --d-model {config.d_model} --d-ff {config.d_ff} --heads {config.heads} "
            f"--d-k {config.d_k} --d-v {config.d_v}"
        )
        for original, array in variables.items():
            if BOOKKEEPING.search(original):
                continue
            name = canonical(original)
            if name in self.arrays:
                raise UsageError(f"{original} and {self.original[name]} are the same variable: give one of them")
            self.arrays[name], self.original[name] = np.asarray(array), original

    def take(self, name: str, *shape: int | None) -> np.ndarray:
        """Take the array of this name without leading axes of length 1; None in ``shape`` allows any length."""
        if name not in self.arrays:
            raise UsageError(f"{name} is missing from the variables; the model was described by {self.sizes}")
        array = self.arrays.pop(name)
        inner = array.shape[max(0, array.ndim - len(shape)) :]
        fits = len(inner) == len(shape) and all(a in (None, b) for a, b in zip(shape, inner, strict=True))
        if not fits or array.size != np.prod(inner):
            wanted = tuple("any" if length is None else length for length in shape)
            raise UsageError(
                f"{self.original[name]} has shape {array.shape} where {wanted} is wanted; the model was described by "
                f"{self.sizes}"
            )
        return array.reshape(inner)

    def linear(self, ours: str, theirs: str, fan_in: int, fan_out: int, bias: bool = True) -> dict[str, np.ndarray]:
        """Take a matrix, transposed, and its bias."""
        state = {f"{ours}.weight": self.take(f"{theirs}/kernel", fan_in, fan_out).T}
        if bias:
            state[f"{ours}.bias"] = self.take(f"{theirs}/bias", fan_out)
        return state

    def attention(self, ours: str, theirs: str, projections: Sequence[str]) -> dict[str, np.ndarray]:
        """Take projections, W^O and the norm that follows; ``projections`` are our stacks, such as qkv."""
        state: dict[str, np.ndarray] = {}
        for letters in projections:
            state |= self.projection(f"{ours}.w_{letters}", theirs, letters)
        state |= self.linear(f"{ours}.w_o", f"{theirs}/output", self.widths["v"], self.d_model, self.attention_bias)
        return state | self.norm(f"{ours}_norm.norm", f"{theirs}/norm")

    def projection(self, ours: str, theirs: str, letters: str) -> dict[str, np.ndarray]:
        """Take W^Q, W^K, W^V or some of them, stacked: from one matrix, or from one each."""
        stacked, single = f"{theirs}/{letters}", f"{theirs}/{letters[0]}"
        if f"{stacked}/kernel" in self.arrays or f"{single}/kernel" not in self.arrays:
            width = sum(self.widths[letter] for letter in letters)
            return self.linear(ours, stacked, self.d_model, width, self.attention_bias)
        parts = [
            self.linear("", f"{theirs}/{letter}", self.d_model, self.widths[letter], self.attention_bias)
            for letter in letters
        ]
        return {ours + name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def norm(self, ours: str, theirs: str) -> dict[str, np.ndarray]:
        """Take scale and bias of a layer normalisation."""
        scale, bias = (self.take(f"{theirs}/{name}", self.d_model) for name in ("scale", "bias"))
        return {f"{ours}.weight": scale, f"{ours}.bias": bias}

    def table(self, modality: str) -> np.ndarray:
        """Join a table of tokens from its parts, ``weights_0`` and so on, whose rows follow one another."""
        parts = sum(name.startswith(f"{modality}/weights_") for name in self.arrays)
        table = np.concatenate([self.take(f"{modality}/weights_{part}", None, self.d_model) for part in range(parts)])
        if f"symbol_modality_{len(table)}_" not in modality:
            raise UsageError(f"the {parts} parts of {modality} have {len(table)} rows together: one part is missing")
        return table

    def refuse_rest(self) -> None:
        """Refuse what has no place, but for biases of attention that are zero."""
        for name, array in self.arrays.items():
            original = self.original[name]
            if ATTENTION_BIAS.search(name) and not self.attention_bias:
                if np.any(array):
                    raise UsageError(f"{original} is not zero, and the model has no such bias: add --attention-bias")
            elif "/layer_preprocess/" in name:
                raise UsageError(f"{original}: a pre-norm model (T2T's transformer_base_v2), which this one cannot be")
            else:
                raise UsageError(f"{original} is not part of the model described by {self.sizes}")


def _tables(given: _Variables, embeddings: str, source_types: int | None) -> dict[str, np.ndarray]:
    """Take the token tables; T2T's ``shared`` is one table per vocabulary: one in all, or source's and target's."""
    found = sorted({name.rpartition("/")[0] for name in given.arrays if name.startswith("symbol_modality_")})
    scopes = {"shared": ["shared"], "decoder": ["shared"] * 2, "separate": ["input_emb", "softmax", "target_emb"]}
    if sorted(name.rpartition("/")[2] for name in found) != scopes[embeddings]:
        tables_found = ", ".join(found) or "missing"
        raise UsageError(f"the token tables are {tables_found}: they do not fit --embeddings {embeddings}")
    if embeddings == "separate":
        by_scope = {name.rpartition("/")[2]: name for name in found}
        source, target, output = (given.table(by_scope[scope]) for scope in ("input_emb", "target_emb", "softmax"))
    else:
        tables = [given.table(name) for name in found]
        if embeddings == "decoder":
            tables.sort(key=lambda table: len(table) != source_types)
            if len(tables[0]) != source_types:
                raise UsageError(f"which of {' and '.join(found)} is the source's? give the number of its types")
        source, target = tables[0], tables[-1]
        output = target
    return {"encoder.embedding.weight": source, "decoder.embedding.weight": target, "decoder.output.weight": output}


def _target_space(given: _Variables, wanted: bool, row: int, state: dict[str, np.ndarray]) -> None:
    if not wanted and TARGET_SPACE not in given.arrays:
        return
    table = given.take(TARGET_SPACE, None, given.d_model)
    if not 0 <= row < len(table):
        raise UsageError(f"target space {row}: {given.original[TARGET_SPACE]} has {len(table)} rows")
    if wanted:
        state["encoder.target_space"] = table[row]
    elif np.any(table[row]):
        raise UsageError(f"row {row} of {given.original[TARGET_SPACE]} is not zero: add --target-space-embedding")
