"""Read what fairseq-train logged, in its formats ``simple`` and ``json``.

Several sessions of one training, after interruptions, count as one. Losses are in bits per target
token. Target tokens are BPE units with EOS; ``wps`` is target tokens per second, ``wpb`` target
tokens per update. Times are times in updates: without starting, validating and saving.
"""

from __future__ import annotations

import json
import os
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from t2017_plugin.errors import UsageError

# How the format "simple" writes the fields of an entry; "json" writes one object.
FIELD = {"train_inner": re.compile(r"(\w+)=([-\w.+]+)"), "valid": re.compile(r"(\w+) ([-+.\w]+)")}
ENTRY = re.compile(r"\| (train_inner|valid) \| (.*)$")
PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")
DEVICES = re.compile(r"training on (\d+) devices")
DEVICE_MEMORY = re.compile(r"total memory = ([\d.]+) GB")
STOPPED = re.compile(r"Stopping training due to num_updates: (\d+) >= max_update")
# Where the recipes, and people, keep a log.
PLACES = ("train.log", "logs/train.log", "*/logs/train.log", "checkpoints/train.log", "*.log")


@dataclass(frozen=True)
class Point:
    """A loss, in bits per target token, after so many updates and seconds."""

    updates: int
    seconds: float
    bits: float


@dataclass(frozen=True)
class TrainingLog:
    """A log of one training.

    ``intervals`` has the fields of each logged interval by the number of updates at its end, and
    ``validations`` the unsmoothed loss of each validation by the updates before it. ``updates`` are
    those that were made; the last ones are not logged when they do not fill an interval.
    """

    path: Path
    name: str
    intervals: dict[int, dict[str, float]]
    validations: dict[int, float]
    updates: int
    parameters: int | None
    devices: int
    device_memory: float | None  # of the whole device, in GiB

    def column(self, field: str) -> tuple[list[int], list[float]]:
        """Return the updates and values of a field, where it was logged."""
        found = [(end, fields[field]) for end, fields in self.intervals.items() if field in fields]
        return [end for end, _ in found], [value for _, value in found]

    def total(self, field: str) -> float:
        """Return the sum over updates of a field that is logged as a mean per update (``wpb``, ``bsz``)."""
        before, total = 0, 0.0
        for end, fields in self.intervals.items():
            total += fields.get(field, 0.0) * (end - before)
            before = end
        return total

    @cached_property
    def training(self) -> list[Point]:
        """Unsmoothed loss on training batches, a point per interval; empty if it was not logged."""
        return [
            Point(end, self._seconds_at[end], fields["nll_loss"])
            for end, fields in self.intervals.items()
            if "nll_loss" in fields
        ]

    @cached_property
    def validation(self) -> list[Point]:
        """Unsmoothed loss on the validation set."""
        return [Point(end, self._time_of(end), bits) for end, bits in self.validations.items()]

    @property
    def seconds(self) -> float:
        """Time in updates, by the logged speeds: more exact than fairseq's own sum."""
        return self._seconds_at[max(self.intervals)]

    @property
    def train_wall(self) -> float:
        """Time in updates in seconds, as fairseq adds it up, rounded for each interval."""
        return sum(fields.get("train_wall", 0.0) for fields in self.intervals.values())

    @property
    def target_tokens(self) -> float:
        """Target tokens of all logged updates."""
        return self.total("wpb")

    @property
    def tokens_per_second(self) -> float | None:
        """Target tokens per second in updates."""
        return self.target_tokens / self.seconds if self.seconds else None

    @property
    def tokens_per_update(self) -> float:
        """Mean number of target tokens per update, over the logged intervals."""
        return self.target_tokens / max(self.intervals)

    @property
    def last_training_loss(self) -> float:
        """Mean over the intervals that end in the last tenth of the updates: one interval alone is noisy.

        Raises:
            IndexError: no unsmoothed loss was logged.
        """
        last = self.training[-1].updates
        return statistics.fmean(point.bits for point in self.training if point.updates > 0.9 * last)

    @property
    def device_bytes(self) -> int | None:
        """The most memory of a GPU that was in use at the end of an interval, if it was logged."""
        least_free = min(self.column("gb_free")[1], default=None)
        if not self.device_memory or least_free is None:
            return None
        return round((self.device_memory - least_free) * 2**30)

    def summary(self) -> dict[str, Any]:
        """Return the facts that a recipe keeps of a training, under the names they have in ``scores.json``."""
        seconds, last = self.train_wall, self.intervals[max(self.intervals)]
        return {
            "updates": self.updates,
            "parameters": self.parameters,
            "target_tokens_an_update": self.tokens_per_update,
            "target_tokens_a_second": self.target_tokens / seconds if seconds else None,
            "training_seconds": seconds,
            "nll_bits_a_token": last.get("nll_loss"),
        }

    @cached_property
    def _seconds_at(self) -> dict[int, float]:
        """Seconds of updates at the end of each interval."""
        before, seconds, times = 0, 0.0, {}
        for end, fields in self.intervals.items():
            # fairseq measures wps without the first update of an interval: one of a single update has none.
            if fields.get("wps"):
                seconds += fields.get("wpb", 0.0) * (end - before) / fields["wps"]
            else:
                seconds += fields.get("train_wall", 0.0)
            times[end] = seconds
            before = end
        return times

    def _time_of(self, updates: int) -> float:
        """Seconds after so many updates, in proportion between the ends of two intervals."""
        before, earlier = 0, 0.0
        for end, seconds in self._seconds_at.items():
            if updates <= end:
                return earlier + (seconds - earlier) * (updates - before) / (end - before)
            before, earlier = end, seconds
        return earlier


def read_log(path: str | os.PathLike[str], name: str = "") -> TrainingLog:
    """Read one log.

    Raises:
        UsageError: there is no such file, or it has no updates in it.
    """
    path = Path(path)
    if not path.is_file():
        raise UsageError(f"{path}: no such training log")
    log = TrainingLog(path, name or path.name, {}, {}, 0, None, 1, None)
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if match := ENTRY.search(line):
                fields = _fields(match[1], match[2])
                if "num_updates" not in fields:
                    continue
                # Updates after the last checkpoint before an interruption are made, and logged, again.
                end = int(fields["num_updates"])
                if match[1] == "train_inner":
                    _forget_from(end, log.intervals)
                    log.intervals[end] = fields
                elif "nll_loss" in fields:
                    _forget_from(end, log.validations)
                    log.validations[end] = fields["nll_loss"]
            elif match := PARAMETERS.search(line):
                log = replace(log, parameters=int(match[1].replace(",", "")))
            elif match := DEVICES.search(line):
                log = replace(log, devices=int(match[1]))
            elif match := DEVICE_MEMORY.search(line):
                log = replace(log, device_memory=float(match[1]))
            elif match := STOPPED.search(line):
                log = replace(log, updates=int(match[1]))
    if not log.intervals:
        raise UsageError(
            f"{path} has no updates in it: it is no log of fairseq-train, or it was written with a progress bar "
            "(train with --log-format simple) or with fewer updates than --log-interval"
        )
    return replace(log, updates=max(log.updates, *log.intervals))


def read_losses(path: str | os.PathLike[str], name: str = "") -> TrainingLog:
    """Read one log that must have unsmoothed losses of training.

    Raises:
        UsageError: there is no such file, or it has no updates or no unsmoothed losses in it.
    """
    log = read_log(path, name)
    if not log.training:
        raise UsageError(
            f"{path} has no unsmoothed loss (nll_loss) in it; train with t2017_label_smoothing or fairseq's own "
            "label_smoothed_cross_entropy"
        )
    return log


def find_logs(run: str | os.PathLike[str]) -> list[TrainingLog]:
    """Read the logs of a run: a file, a recipe's folder with one arm or several, or any folder with ``train.log``.

    Raises:
        UsageError: there is none.
    """
    run = Path(run)
    if run.is_file():
        return [read_log(run, run.parent.name if run.name == "train.log" else run.stem)]
    for place in PLACES:
        found = sorted(run.glob(place))
        if found:
            return [read_log(path, _name_in_legend(path, run)) for path in found]
    raise UsageError(f"{run} holds no training log ({', '.join(PLACES[:3])}); name the file")


def _fields(kind: str, entry: str) -> dict[str, float]:
    """Return the numbers of an entry, under the names that the format ``simple`` gives them."""
    if "{" not in entry:
        return _numbers(dict(FIELD[kind].findall(entry)))
    try:
        content = json.loads(entry[entry.index("{") :])
    except ValueError:
        return {}  # the last line of a killed run
    return _numbers({name.removeprefix("valid_"): value for name, value in content.items()})


def _numbers(fields: Mapping[str, object]) -> dict[str, float]:
    result = {}
    for name, value in fields.items():
        try:
            result[name] = float(str(value))
        except ValueError:
            continue
    return result


def _forget_from(updates: int, entries: dict[int, Any]) -> None:
    for end in [end for end in entries if end >= updates]:
        del entries[end]


def _name_in_legend(path: Path, run: Path) -> str:
    """Return the folder that distinguishes a log from the others of a run."""
    inside = path.relative_to(run).parts
    return f"{run.resolve().name}/{inside[0]}" if len(inside) > 2 else run.resolve().name
