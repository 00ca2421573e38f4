"""The mean of model states that are added one after another, with tied weights and low precision handled."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.errors import UsageError

PIECE = 2**20  # numbers


@dataclass
class _Sum:
    """A running sum for the keys that share one tensor in every file so far."""

    keys: list[str]
    total: Tensor
    dtype: torch.dtype


def _sharing(model: Mapping[str, Tensor]) -> dict[str, tuple[Any, ...]]:
    """For each key what identifies its piece of memory: keys with equal values are one tensor."""
    return {
        key: (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        if tensor.numel()
        else (key,)
        for key, tensor in model.items()
    }


def _accumulator_dtype(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex:
        return torch.complex128
    return torch.float32 if dtype.itemsize <= 2 else torch.float64


def _output_dtype(dtype: torch.dtype) -> torch.dtype:
    """Half-precision weights become float32: rounding the mean back would throw away what averaging won."""
    return torch.float32 if dtype.itemsize <= 2 else dtype


def _is_averaged(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


class RunningMean:
    """The mean of model states that are added one after another.

    Sums are kept in float64 for float32 weights and in float32 for float16 and bfloat16, and every sum is a tensor
    of its own: adding in place to weights that share memory (section 3.4: one matrix used three times) would add
    them thrice.
    """

    def __init__(self) -> None:
        self.count = 0
        self.sums: list[_Sum] = []
        self.shapes: dict[str, tuple[torch.Size, torch.dtype]] = {}
        self.first_name = ""
        self.buffers: dict[str, Tensor] = {}

    def add(self, model: Mapping[str, Tensor], name: str, keep_buffers: bool = True) -> bytes:
        """Add one model state and return a digest of its averaged values, equal only for equal weights.

        Args:
            name: what to call this state in errors.
            keep_buffers: take what is not averaged (integers, booleans) from this state.

        Raises:
            UsageError: the keys, shapes or types differ from those of the first state, or a value is not finite.
        """
        self._compare(model, name)
        groups = _sharing(model)
        digest = hashlib.blake2b(digest_size=16)
        self.sums = [part for entry in self.sums for part in _split(entry, groups)]
        if not self.count:
            self.sums = self._start(model, groups)
        for entry in self.sums:
            values = model[entry.keys[0]].detach().reshape(-1)
            total = entry.total.view(-1)
            # Piece by piece, since a conversion of a whole embedding table would need as much memory again.
            for start in range(0, values.numel(), PIECE):
                piece = values[start : start + PIECE]
                # One single number is no weight: stock keeps a never initialised one as a buffer to know its device.
                if values.numel() > 1 and not bool(torch.isfinite(piece).all()):
                    raise UsageError(
                        f"{name}: {entry.keys[0]} holds values that are not finite; leave this checkpoint out"
                    )
                total[start : start + PIECE] += piece
                digest.update(piece.view(torch.uint8).numpy().data)
        self.count += 1
        if keep_buffers:
            self.buffers = {key: tensor.clone() for key, tensor in model.items() if not _is_averaged(tensor)}
        return digest.digest()

    def mean(self) -> dict[str, Tensor]:
        """The mean, in the order of the first state's keys; to be called once, since it uses up the sums.

        Keys that share a tensor in every state share the mean too.
        """
        means: dict[str, Tensor] = {}
        while self.sums:
            entry = self.sums.pop()
            mean = entry.total.div_(self.count).to(_output_dtype(entry.dtype))
            means.update(dict.fromkeys(entry.keys, mean))
        return {key: means[key] if key in means else self.buffers[key] for key in self.shapes}

    def _start(self, model: Mapping[str, Tensor], groups: dict[str, tuple[Any, ...]]) -> list[_Sum]:
        keys: dict[tuple[Any, ...], list[str]] = {}
        for key, tensor in model.items():
            if _is_averaged(tensor):
                keys.setdefault(groups[key], []).append(key)
        return [
            _Sum(members, torch.zeros(tensor.shape, dtype=_accumulator_dtype(tensor.dtype)), tensor.dtype)
            for members in keys.values()
            for tensor in [model[members[0]]]
        ]

    def _compare(self, model: Mapping[str, Tensor], name: str) -> None:
        shapes = {key: (tensor.shape, tensor.dtype) for key, tensor in model.items()}
        if not self.shapes:
            self.shapes, self.first_name = shapes, name
            return
        if shapes.keys() != self.shapes.keys():
            key = sorted(shapes.keys() ^ self.shapes.keys())[0]
            has, lacks = (name, self.first_name) if key in shapes else (self.first_name, name)
            raise UsageError(f"{has} has {key} and {lacks} has not: they are not checkpoints of one model")
        for key, (shape, dtype) in shapes.items():
            first_shape, first_dtype = self.shapes[key]
            if shape != first_shape:
                shapes_told = f"{key} is {tuple(first_shape)} in {self.first_name} and {tuple(shape)} in {name}"
                raise UsageError(f"{shapes_told}: they are not checkpoints of one model")
            if dtype != first_dtype:
                raise UsageError(
                    f"{key} is {first_dtype} in {self.first_name} and {dtype} in {name}: average files of one precision"
                )


def _split(entry: _Sum, groups: dict[str, tuple[Any, ...]]) -> list[_Sum]:
    """Give keys that no longer share a tensor sums of their own (a file from a GPU holds tied weights apart)."""
    parts: dict[tuple[Any, ...], list[str]] = {}
    for key in entry.keys:
        parts.setdefault(groups[key], []).append(key)
    members = list(parts.values())
    return [_Sum(members[0], entry.total, entry.dtype)] + [
        _Sum(keys, entry.total.clone(), entry.dtype) for keys in members[1:]
    ]
