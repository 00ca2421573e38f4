"""Reads what fairseq-train logged, in its formats ``simple`` and ``json``, sessions after an interruption included.

Losses are in bits a target token, ``wps`` is target tokens a second, ``wpb`` target tokens an update.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from t2017_plugin.errors import UsageError

FIELD = re.compile(r"(\w+)=([-\w.+]+)")
JSON_ENTRY = re.compile(r"\| train_inner \| (\{.*\})\s*$")
PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")
DEVICES = re.compile(r"training on (\d+) devices")
# Where the recipes, and people, keep a log.
PLACES = ("train.log", "logs/train.log", "*/logs/train.log", "checkpoints/train.log", "*.log")


@dataclass(frozen=True)
class TrainingLog:
    """A log: its intervals by the number of updates at their end, the model's parameters and the processes."""

    path: Path
    name: str
    intervals: dict[int, dict[str, float]]
    parameters: int | None
    devices: int

    def column(self, field: str) -> tuple[list[int], list[float]]:
        """Updates and values of a field, where it was logged."""
        found = [(update, entry[field]) for update, entry in self.intervals.items() if field in entry]
        return [update for update, _ in found], [value for _, value in found]

    @property
    def updates(self) -> int:
        """Updates at the end of the last logged interval."""
        return max(self.intervals)

    def total(self, field: str) -> float:
        """Sum over updates of a field that is logged as a mean an update (``wpb``, ``bsz``)."""
        before, total = 0, 0.0
        for update, entry in self.intervals.items():
            total += entry[field] * (update - before)
            before = update
        return total

    @property
    def seconds(self) -> float:
        """Time in updates, without starting and saving (fairseq's train_wall)."""
        return sum(entry.get("train_wall", 0.0) for entry in self.intervals.values())


def numbers(pairs: dict[str, object]) -> dict[str, float]:
    """The fields that are numbers."""
    result = {}
    for name, value in pairs.items():
        try:
            result[name] = float(str(value))
        except ValueError:
            continue
    return result


def read_log(path: str | os.PathLike[str], name: str = "") -> TrainingLog:
    """One log.

    Raises:
        UsageError: there is no such file, or it tells of no update.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"{path}: no such training log")
    intervals: dict[int, dict[str, float]] = {}
    parameters, devices = None, 1
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := PARAMETERS.search(line):
                parameters = int(match[1].replace(",", ""))
            elif match := DEVICES.search(line):
                devices = int(match[1])
            elif "| train_inner |" in line:
                entry = JSON_ENTRY.search(line)
                pairs = json.loads(entry[1]) if entry else dict(FIELD.findall(line.split("| train_inner |", 1)[1]))
                fields = numbers(pairs)
                if "num_updates" not in fields:
                    continue
                # Updates after the last checkpoint before an interruption are made, and logged, again.
                end = int(fields["num_updates"])
                intervals = {update: known for update, known in intervals.items() if update < end}
                intervals[end] = fields
    if not intervals:
        raise UsageError(
            f"{path} tells of no update: it is no log of fairseq-train, or it was written with a progress bar "
            "(train with --log-format simple) or with fewer updates than --log-interval"
        )
    return TrainingLog(path, name or path.name, intervals, parameters, devices)


def find_logs(run: str | os.PathLike[str]) -> list[TrainingLog]:
    """The logs of a run: a file, a recipe's folder with an arm or several, or any folder with ``train.log``.

    Raises:
        UsageError: there is none.
    """
    run = Path(run)
    if run.is_file():
        return [read_log(run, run.parent.name if run.name == "train.log" else run.stem)]
    for place in PLACES:
        found = sorted(run.glob(place))
        if found:
            return [read_log(path, label(path, run)) for path in found]
    raise UsageError(f"{run} holds no training log ({', '.join(PLACES[:3])}); name the file")


def label(path: Path, run: Path) -> str:
    """What to call a log in a legend: the folder that tells it from others."""
    inside = path.relative_to(run).parts
    return f"{run.resolve().name}/{inside[0]}" if len(inside) > 2 else run.resolve().name
