"""Which checkpoints of a run to average: the last N update checkpoints, or those of the clock, or of epochs.

fairseq-train names what it saves every ``--save-interval-updates`` checkpoint_<epoch>_<updates>.pt and what it
saves at the end of an epoch checkpoint<epoch>.pt. An update checkpoint that falls on the end of an epoch exists
only under the epoch's name. With the task's ``--save-interval-minutes`` checkpoints that the clock asked for have names
of the first kind too; what asked for one is recorded inside.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from t2017_plugin.checkpoints.loading import load_checkpoint
from t2017_plugin.errors import UsageError

UPDATE_NAME = re.compile(r"checkpoint_(\d+)_(\d+)\.pt")
EPOCH_NAME = re.compile(r"checkpoint(\d+)\.pt")
BY_UPDATES = "checkpoint_<epoch>_<updates>.pt"
PATTERNS = {
    "any": BY_UPDATES,
    "update": f"{BY_UPDATES} written every --save-interval-updates",
    "minutes": f"{BY_UPDATES} written every --save-interval-minutes",
    "epoch": "checkpoint<epoch>.pt",
}
# The entry of extra_state in which the task records what asked for a checkpoint.
SAVED_BY = "t2017_saved_by"


def update_checkpoints(folder: Path) -> list[Path]:
    """The update checkpoints in a folder, in the order of their update numbers."""
    found = [(int(match.group(2)), path) for path in folder.iterdir() if (match := UPDATE_NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def epoch_checkpoints(folder: Path) -> list[Path]:
    """The epoch checkpoints in a folder, in the order of their epochs."""
    found = [(int(match.group(1)), path) for path in folder.iterdir() if (match := EPOCH_NAME.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def asked_for_by(path: Path, what: str) -> bool:
    """Whether ``what`` ("update" or "minutes") asked for a checkpoint; one without a record is an update's."""
    record = (load_checkpoint(path).get("extra_state") or {}).get(SAVED_BY)
    if record is None:
        return what == "update"
    return {"update": "updates"}.get(what, what) in record


def last_checkpoints(folder: str | os.PathLike[str], last: int, by: str = "any") -> list[Path]:
    """The last ``last`` checkpoints of a folder, oldest first.

    Args:
        by: the kind that is looked for. ``"any"``: update checkpoints, whatever asked for them; ``"update"``: every so
            many updates; ``"minutes"``: every so many minutes of training; ``"epoch"``: the end of epochs.

    Raises:
        UsageError: the folder does not exist or holds fewer; the line says how many of both kinds there are.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder of checkpoints")
    if last < 1:
        raise UsageError(f"--last {last}: at least one checkpoint is needed")
    every, epochs = update_checkpoints(folder), epoch_checkpoints(folder)
    found = every
    if by == "epoch":
        found = epochs
    elif by != "any":
        found = [path for path in every if asked_for_by(path, by)]
    if len(found) < last:
        kind = "update" if by == "any" else by
        advice = ""
        if by in ("update", "minutes") and len(every) > len(found):
            advice = f"; without --by there are {len(every)} ({BY_UPDATES})"
        elif other := epochs if by != "epoch" else every:
            name = "epoch" if by != "epoch" else "update"
            advice = f"; with --by {name} there are {len(other)} ({PATTERNS[name if name == 'epoch' else 'any']})"
        raise UsageError(
            f"{folder} holds {len(found)} {kind} checkpoints ({PATTERNS[by]}), {last} were asked for{advice}"
        )
    return found[-last:]


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
