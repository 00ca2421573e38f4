"""Every place where this plugin changes something inside fairseq, each with its reason.

Nothing else in the package assigns into fairseq, torch or argparse; a test proves it.

1. ``checkpoint_utils.PathManager``: checkpoints appear whole or not at all. fairseq copies
   ``checkpoint_last.pt`` in place, so that a kill leaves half a file, on which the next start stops;
   and it tries a failed write again, into the same open file, behind what was written before.
2. ``ARCH_CONFIG_REGISTRY["t2017_transformer"]``: the model's bare name checks the command line as the
   named architectures do. fairseq gives it a function that does nothing.
3. The types of fairseq's checkpoints are registered with torch's weights-only loader (its public
   ``add_safe_globals``), so that stock commands read them too, with the protection left on.
4. ``BackgroundConsumer._max_len``: at the end of the program the thread that loads batches is told to
   stop. A training that ends inside an epoch leaves it at work; where Python then ends it inside torch,
   the program aborts with status 134 though all was saved (3 of 40 runs of one update).
"""

from __future__ import annotations

import argparse
import atexit
import collections
import contextlib
import importlib
import os
import queue
import shutil
import threading
import time
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import torch
from fairseq import checkpoint_utils
from fairseq.data.iterators import BackgroundConsumer
from fairseq.file_io import PathManager
from fairseq.models import ARCH_CONFIG_REGISTRY, MODEL_DATACLASS_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY

from t2017_plugin.errors import UsageError
from t2017_plugin.files import whole_or_nothing

# --- 1. Whole checkpoints ------------------------------------------------------------------------

LEFTOVER = ".*.pt.*.part"


def write_whole_checkpoints() -> None:
    """Put ``WholeFiles`` in the place of the file operations that fairseq writes checkpoints with."""
    checkpoint_utils.PathManager = WholeFiles


class WholeFiles(PathManager):
    """fairseq's file operations, with files that appear whole or not at all."""

    folders: typing.ClassVar[set[Path]] = set()

    @staticmethod
    def supports_rename(path: str) -> bool:
        """Say no: fairseq's own way over a temporary name is not needed, ``open`` does it."""
        return False

    @staticmethod
    def open(path: str, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        """Open a file; one that is written appears under its name when it is closed without an error."""
        if mode != "wb" or not PathManager.supports_rename(path):
            return PathManager.open(path, mode, *arguments, **options)
        return written_whole(Path(path))

    @staticmethod
    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        """Copy a checkpoint to another name, such as ``checkpoint_last.pt``."""
        if not PathManager.supports_rename(dst_path):
            return bool(PathManager.copy(src_path, dst_path, overwrite))
        with open(src_path, "rb") as source, written_whole(Path(dst_path)) as file:
            shutil.copyfileobj(source, file, 1 << 20)
        return True


class FirstError:
    """A file that remembers the first failed write, and takes what follows without writing it.

    fairseq answers an error in torch.save with two more attempts and a traceback; this way it sees none,
    and ``written_whole`` reports it in one line.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.error: OSError | None = None

    def write(self, content: Any) -> int:
        """Write, unless a write has failed before."""
        if self.error is None:
            try:
                return self.file.write(content)
            except OSError as error:
                self.error = error
        return memoryview(content).nbytes

    def flush(self) -> None:
        """Flush, unless a write has failed before."""
        if self.error is None:
            try:
                self.file.flush()
            except OSError as error:
                self.error = error


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Any]:
    """Give a file to write to; it is on the disk and under its name only when the block has ended well.

    Raises:
        UsageError: it could not be written (a full disk, a folder without permission); what was there stays.
    """
    clear_leftovers(path.parent)
    try:
        with whole_or_nothing(path) as temporary:
            with open(temporary, "wb") as plain:
                file = FirstError(plain)
                yield file
                file.flush()
                if file.error is not None:
                    raise file.error
                os.fsync(plain.fileno())
        _sync_folder(path.parent)
    except OSError as error:
        raise UsageError(_not_written(path, error)) from error


def clear_leftovers(folder: Path) -> list[str]:
    """Remove what a kill in the middle of writing left in a folder, once in a process; return the names.

    Only one process of a run writes checkpoints, so nobody else's unfinished file is there.
    """
    if folder in WholeFiles.folders:
        return []
    WholeFiles.folders.add(folder)
    leftovers = sorted([*folder.glob(LEFTOVER), *folder.glob("*.pt.tmp")])
    for path in leftovers:
        with contextlib.suppress(OSError):
            path.unlink()
    return [path.name for path in leftovers]


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _not_written(path: Path, error: OSError) -> str:
    why = (error.strerror or str(error)).lower()
    with contextlib.suppress(OSError):
        why += f"; {shutil.disk_usage(path.parent).free / 2**20:,.0f} MiB are free there"
    return (
        f"{path} could not be written ({why}); the checkpoints before it are whole: make room or give the permission, "
        "and start the same command again, which resumes from checkpoint_last.pt"
    )


# --- 2. The model's bare name --------------------------------------------------------------------


def set_bare_architecture(name: str, function: Callable[[Any], None]) -> None:
    """Let a function see the command line when ``--arch`` is the model's own name, the base model."""
    ARCH_CONFIG_REGISTRY[name] = function


# --- 3. What checkpoints hold beside tensors -----------------------------------------------------

# A type, or a type with the full name under which a file may hold it.
SafeGlobal = Callable[..., Any] | type | tuple[Callable[..., Any] | type, str]

# Where settings of this plugin were before its folders were laid out anew.
FORMER_PLACES = {
    "T2017TransformerConfig": "t2017_plugin.models.config",
    "T2017AdamConfig": "t2017_plugin.optim.adam",
    "T2017NoamConfig": "t2017_plugin.optim.noam",
    "T2017LabelSmoothingConfig": "t2017_plugin.criterions.label_smoothing",
    "T2017TranslationConfig": "t2017_plugin.tasks.translation_2017",
    "T2017ParsingConfig": "t2017_plugin.tasks.parsing_2017",
}


def allow_safe_globals() -> None:
    """Register what fairseq checkpoints hold with torch's weights-only loader; calling it again does no harm.

    Since torch 2.6 ``torch.load`` builds nothing but tensors and plain containers unless a type is registered. fairseq
    stores more: an ``argparse.Namespace`` of all flags, numpy numbers among the logged metrics, meters and OmegaConf
    nodes in files of older versions. All of these only hold data. Registering them lets stock ``fairseq-generate``,
    ``fairseq-interactive`` and a resumed ``fairseq-train`` read such files too.
    """
    torch.serialization.add_safe_globals(safe_globals())


def safe_globals() -> list[SafeGlobal]:
    """Return all that ``allow_safe_globals`` registers."""
    groups = (_namespace_and_containers, _numpy, _fairseq, _omegaconf, _plugin)
    return [entry for group in groups for entry in group()]


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
    """Give the settings of everything this plugin has registered with fairseq, under old names too."""
    registries = [MODEL_DATACLASS_REGISTRY, TASK_DATACLASS_REGISTRY]
    registries += [entry["dataclass_registry"] for entry in REGISTRIES.values()]
    for registry in registries:
        for settings in registry.values():
            if getattr(settings, "__module__", "").startswith("t2017_plugin."):
                yield settings
                yield (settings, f"{FORMER_PLACES[settings.__name__]}.{settings.__name__}")


# --- 4. Batches that nobody waits for ------------------------------------------------------------

SECONDS_TO_STOP = 10.0


def stop_loading_at_exit() -> None:
    """Arrange that threads which load batches end before Python does; calling it again does no harm."""
    atexit.unregister(stop_loading)
    atexit.register(stop_loading)


def stop_loading() -> None:
    """Let each thread that loads batches finish the one it is at, and wait for it, ten seconds at most."""
    deadline = time.monotonic() + SECONDS_TO_STOP
    for thread in threading.enumerate():
        if isinstance(thread, BackgroundConsumer):
            thread._max_len = 0
            while thread.is_alive() and time.monotonic() < deadline:
                # It may wait for room in its queue.
                with contextlib.suppress(queue.Empty):
                    thread._queue.get_nowait()
                thread.join(0.01)
