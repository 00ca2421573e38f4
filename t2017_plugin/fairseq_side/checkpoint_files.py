"""Checkpoints on disk: written whole or not at all, and one line when that fails.

What fairseq does is not enough for a run that may be killed, or whose disk may fill up: ``checkpoint_last.pt`` is
copied in place, so that a kill leaves half a file on which the next start stops; and a failed write is tried again into
the same open file, behind what was written before.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import torch
from fairseq import checkpoint_utils
from fairseq.file_io import PathManager

from t2017_plugin.errors import UsageError

LEFTOVER = ".tmp"
# fairseq's own, for what is not a file on this machine.
_save_elsewhere = checkpoint_utils.torch_persistent_save


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to; it is on the disk and under its name only when the block has ended well.

    Raises:
        UsageError: it could not be written (a full disk, a folder without permission); what was there stays.
    """
    temporary = path.with_name(path.name + LEFTOVER)
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except (OSError, RuntimeError) as error:  # torch tells a failed write as a RuntimeError
        _remove(temporary)
        raise UsageError(_not_written(path, error)) from error
    except BaseException:
        _remove(temporary)
        raise


def save_whole(content: Any, filename: str, async_write: bool = False) -> None:
    """In place of fairseq's ``torch_persistent_save``."""
    if async_write or not PathManager.supports_rename(filename):
        _save_elsewhere(content, filename, async_write)
        return
    with written_whole(Path(filename)) as file:
        torch.save(content, file)


class WholeFiles(PathManager):
    """fairseq's file operations with a copy that appears whole."""

    @staticmethod
    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        """Copies a checkpoint to another name, ``checkpoint_last.pt`` for one."""
        if not PathManager.supports_rename(dst_path):
            return bool(PathManager.copy(src_path, dst_path, overwrite))
        with open(src_path, "rb") as source, written_whole(Path(dst_path)) as file:
            shutil.copyfileobj(source, file, 1 << 20)
        return True


def clear_leftovers(folder: str | os.PathLike[str]) -> list[str]:
    """Removes what a kill in the middle of writing left in a run's folder, and returns the names."""
    leftovers = sorted(Path(folder).glob(f"*.pt{LEFTOVER}"))
    for path in leftovers:
        _remove(path)
    return [path.name for path in leftovers]


def refuse_unwritable(folder: str | os.PathLike[str]) -> None:
    """Stops before anything is trained where the run's folder cannot be made or written.

    Raises:
        UsageError: a part of the path is a file, or there is no permission.
    """
    path = Path(folder).absolute()
    existing = next(parent for parent in (path, *path.parents) if parent.exists())
    if not existing.is_dir():
        raise UsageError(f"--save-dir {folder}: {existing} is a file; name a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UsageError(f"--save-dir {folder}: no permission to write in {existing}; name another folder")


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _sync_folder(folder: Path) -> None:
    """Makes the new name last through a power cut, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _not_written(path: Path, error: BaseException) -> str:
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, OSError):
        seen = seen.__cause__ or seen.__context__
    why = " ".join(str(error).split())
    if seen is not None:
        why = (seen.strerror or str(seen)).lower()
    with contextlib.suppress(OSError):
        why += f"; {shutil.disk_usage(path.parent).free / 2**20:,.0f} MiB are free there"
    return (
        f"{path} could not be written ({why}); the checkpoints before it are whole: make room or give the permission, "
        "and start the same command again, which goes on from checkpoint_last.pt"
    )
