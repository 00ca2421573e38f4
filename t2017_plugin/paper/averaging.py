"""Checkpoint averaging (section 6.1): the last 5 checkpoints for the base model, the last 20 for big.

mean[w] = (w_1 + ... + w_n) / n   for every parameter w
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

PIECE = 2**20  # numbers that are added at a time
# What identifies a tensor in memory.
Place = tuple[object, ...]


@dataclass
class _Sum:
    """A running sum for the names that have shared one tensor in every state so far."""

    names: list[str]
    total: Tensor
    dtype: torch.dtype


def is_averaged(tensor: Tensor) -> bool:
    """Whether a tensor has a mean: counters and other integers have none. Shape: any."""
    return tensor.is_floating_point() or tensor.is_complex()


class RunningMean:
    """The mean of the states of a model, added one after another.

    Sums are in float64 for float32 weights, and in float32 for half precision, whose mean is float32
    too: rounding it back would throw away what averaging won. Each sum is a tensor of its own.
    Adding in place to tied weights (section 3.4: one matrix used three times) would add them thrice.
    """

    def __init__(self) -> None:
        self.count = 0
        self.sums: list[_Sum] = []
        self.shapes: dict[str, tuple[torch.Size, torch.dtype]] = {}
        self.others: dict[str, Tensor] = {}

    def add(self, state: Mapping[str, Tensor], keep_others: bool = True) -> None:
        """Add a state. What is not averaged, such as integers, is taken from it if ``keep_others``.

        Raises:
            ValueError: names, shapes or types are not those of the first state, or a value is not finite.
        """
        self._compare(state)
        shared = _shared_tensors(state)
        self.sums = [part for each in self.sums for part in _split(each, shared)]
        if not self.count:
            self.sums = _start(state, shared)
        for each in self.sums:
            values, total = state[each.names[0]].detach().reshape(-1), each.total.view(-1)
            # In pieces, since converting a whole embedding table would need as much memory again.
            for start in range(0, values.numel(), PIECE):
                piece = values[start : start + PIECE]
                # A single number is no weight: stock keeps an uninitialised one to know its device.
                if values.numel() > 1 and not bool(torch.isfinite(piece).all()):
                    raise ValueError(f"{each.names[0]} holds values that are not finite")
                total[start : start + PIECE] += piece
        self.count += 1
        if keep_others:
            self.others = {name: tensor.clone() for name, tensor in state.items() if not is_averaged(tensor)}

    def mean(self) -> dict[str, Tensor]:
        """Return the mean, in the order of the first state's names. To be called once: it uses up the sums.

        Names that shared a tensor in every state share the mean too.
        """
        means: dict[str, Tensor] = {}
        while self.sums:
            each = self.sums.pop()
            dtype = torch.float32 if each.dtype.itemsize <= 2 else each.dtype
            means.update(dict.fromkeys(each.names, each.total.div_(self.count).to(dtype)))
        return {name: means[name] if name in means else self.others[name] for name in self.shapes}

    def _compare(self, state: Mapping[str, Tensor]) -> None:
        shapes = {name: (tensor.shape, tensor.dtype) for name, tensor in state.items()}
        self.shapes = self.shapes or shapes
        for name in sorted(shapes.keys() ^ self.shapes.keys()):
            raise ValueError(f"{name} is in one of them only")
        for name, (shape, dtype) in shapes.items():
            first_shape, first_dtype = self.shapes[name]
            if shape != first_shape:
                raise ValueError(f"{name} is {tuple(first_shape)} in the first and {tuple(shape)} here")
            if dtype != first_dtype:
                raise ValueError(f"{name} is {first_dtype} in the first and {dtype} here: average one precision")


def _shared_tensors(state: Mapping[str, Tensor]) -> dict[str, Place]:
    """For each name what identifies its memory: names with equal values share one tensor."""
    return {
        name: (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
        if tensor.numel()
        else (name,)
        for name, tensor in state.items()
    }


def _grouped(names: list[str], shared: dict[str, Place]) -> list[list[str]]:
    groups: dict[Place, list[str]] = {}
    for name in names:
        groups.setdefault(shared[name], []).append(name)
    return list(groups.values())


def _start(state: Mapping[str, Tensor], shared: dict[str, Place]) -> list[_Sum]:
    sums = []
    for names in _grouped([name for name, tensor in state.items() if is_averaged(tensor)], shared):
        first = state[names[0]]
        wide = torch.complex128 if first.is_complex() else torch.float32 if first.dtype.itemsize <= 2 else torch.float64
        sums.append(_Sum(names, torch.zeros(first.shape, dtype=wide), first.dtype))
    return sums


def _split(each: _Sum, shared: dict[str, Place]) -> list[_Sum]:
    """Give names that no longer share a tensor sums of their own: a file from a GPU holds tied weights apart."""
    first, *others = _grouped(each.names, shared)
    return [_Sum(first, each.total, each.dtype), *(_Sum(names, each.total.clone(), each.dtype) for names in others)]
