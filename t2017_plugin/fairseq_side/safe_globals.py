"""The types that fairseq checkpoints hold beside tensors, made known to torch's weights-only loader.

Since torch 2.6 ``torch.load`` builds nothing but tensors and plain containers unless a type is registered. fairseq
stores more: an ``argparse.Namespace`` of all flags, numpy numbers among the logged metrics, meters and OmegaConf
nodes in files of older versions. All of these only hold data. Registering them lets stock ``fairseq-generate``,
``fairseq-interactive`` and a resumed ``fairseq-train`` read such files too, with the loader's protection left on.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import typing
from collections.abc import Callable, Iterator
from typing import Any

# A type, or a type with the full name under which a file may hold it.
SafeGlobal = Callable[..., Any] | type | tuple[Callable[..., Any] | type, str]


def _namespace_and_containers() -> Iterator[SafeGlobal]:
    yield argparse.Namespace
    yield collections.defaultdict
    yield collections.deque
    # Python's own name for them is typing.Any; OmegaConf nodes refer to it and to these builtins as value types.
    yield (typing.Any, "typing.Any")
    yield from (bool, bytes, dict, float, int, list, str, tuple, frozenset, slice)


def _numpy() -> Iterator[SafeGlobal]:
    import numpy

    # numpy 2 moved these two; a file written under one version must load under the other.
    own = importlib.import_module("numpy._core.multiarray" if hasattr(numpy, "_core") else "numpy.core.multiarray")
    yield numpy.dtype
    yield numpy.ndarray
    for module in ("numpy.core.multiarray", "numpy._core.multiarray"):
        yield (own.scalar, f"{module}.scalar")
        yield (own._reconstruct, f"{module}._reconstruct")
    for code in ("?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "e", "f", "d", "U", "S"):
        yield type(numpy.dtype(code))


def _fairseq() -> Iterator[SafeGlobal]:
    from fairseq.logging import meters

    for name in ("AverageMeter", "SumMeter", "TimeMeter", "StopwatchMeter", "MetersDict"):
        meter = getattr(meters, name, None)
        if meter is not None:
            yield (meter, f"fairseq.logging.meters.{name}")
            yield (meter, f"fairseq.meters.{name}")  # where they were until 0.9


def _omegaconf() -> Iterator[SafeGlobal]:
    import omegaconf
    from omegaconf import base, nodes

    yield omegaconf.DictConfig
    yield omegaconf.ListConfig
    yield base.Metadata
    yield base.ContainerMetadata
    for node in (
        "AnyNode",
        "BooleanNode",
        "BytesNode",
        "EnumNode",
        "FloatNode",
        "IntegerNode",
        "PathNode",
        "StringNode",
    ):
        if hasattr(nodes, node):
            yield getattr(nodes, node)


def _plugin() -> Iterator[SafeGlobal]:
    """The settings of everything this plugin has registered with fairseq."""
    from fairseq.models import MODEL_DATACLASS_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_DATACLASS_REGISTRY

    registries = [MODEL_DATACLASS_REGISTRY, TASK_DATACLASS_REGISTRY]
    registries += [entry["dataclass_registry"] for entry in REGISTRIES.values()]
    for registry in registries:
        for settings in registry.values():
            if getattr(settings, "__module__", "").startswith("t2017_plugin."):
                yield settings


def safe_globals() -> list[SafeGlobal]:
    """All that :func:`allow_safe_globals` registers."""
    groups = (_namespace_and_containers, _numpy, _fairseq, _omegaconf, _plugin)
    return [entry for group in groups for entry in group()]


def allow_safe_globals() -> None:
    """Register what fairseq checkpoints hold with torch's weights-only loader; calling it again does no harm."""
    import torch

    if hasattr(torch.serialization, "add_safe_globals"):  # since torch 2.4
        torch.serialization.add_safe_globals(safe_globals())
