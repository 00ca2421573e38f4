"""Which checkpoints of a run to average: the last N by update number, or by epoch.

fairseq-train names what it saves every ``--save-interval-updates`` checkpoint_<epoch>_<updates>.pt and what it
saves at the end of an epoch checkpoint<epoch>.pt. An update checkpoint that falls on the end of an epoch exists
only under the epoch's name.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from t2017_plugin.errors import UsageError

UPDATE_NAME = re.compile(r"checkpoint_(\d+)_(\d+)\.pt")
EPOCH_NAME = re.compile(r"checkpoint(\d+)\.pt")
PATTERNS = {"update": "checkpoint_<epoch>_<updates>.pt", "epoch": "checkpoint<epoch>.pt"}


def update_checkpoints(folder: Path) -> list[Path]:
    """The update checkpoints in a folder, in the order of their update numbers."""
    found = [(int(match.group(2)), path) for path in folder.iterdir() if (match := UPDATE_NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def epoch_checkpoints(folder: Path) -> list[Path]:
    """The epoch checkpoints in a folder, in the order of their epochs."""
    found = [(int(match.group(1)), path) for path in folder.iterdir() if (match := EPOCH_NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def last_checkpoints(folder: str | os.PathLike[str], last: int, by: str = "update") -> list[Path]:
    """The last ``last`` checkpoints of a folder, oldest first.

    Args:
        by: ``"update"`` or ``"epoch"``, the kind of file that is looked for.

    Raises:
        UsageError: the folder does not exist or holds fewer; the line says how many of both kinds there are.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder of checkpoints")
    if last < 1:
        raise UsageError(f"--last {last}: at least one checkpoint is needed")
    found = {"update": update_checkpoints(folder), "epoch": epoch_checkpoints(folder)}
    if len(found[by]) < last:
        other = "epoch" if by == "update" else "update"
        advice = f"; with --by {other} there are {len(found[other])} ({PATTERNS[other]})" if found[other] else ""
        raise UsageError(
            f"{folder} holds {len(found[by])} {by} checkpoints ({PATTERNS[by]}), {last} were asked for{advice}"
        )
    return found[by][-last:]


def refuse_duplicates(paths: list[Path]) -> None:
    """Refuse a list that names one file twice, also through links.

    Raises:
        UsageError: naming both entries.
    """
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError as error:
            raise UsageError(f"{path}: no such checkpoint file") from error
        first = seen.setdefault((status.st_dev, status.st_ino), path)
        if first is not path:
            raise UsageError(f"{path} is the same file as {first}; an average takes each checkpoint once")
