"""The curves of a training, read from what fairseq-train logged in its formats ``simple`` and ``json``.

Losses are unsmoothed (fairseq's ``nll_loss``), in bits a target token. Time is time in updates: without starting,
validating and saving. Sessions after an interruption count as one training.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t2017_plugin.errors import UsageError
from t2017_plugin.files import read_lines

ENTRY = re.compile(r"\| (train_inner|valid) \| (.*)$")
FIELD = re.compile(r"(\w+)[= ]([-+.\w]+)")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)
PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")
DEVICE_MEMORY = re.compile(r"total memory = ([\d.]+) GB")
STOPPED = re.compile(r"Stopping training due to num_updates: (\d+) >= max_update")


@dataclass(frozen=True)
class Point:
    """A loss after so many updates and seconds."""

    updates: int
    seconds: float
    bits: float


@dataclass(frozen=True)
class Curves:
    """What a log tells: both losses, speed in target tokens (BPE units with EOS), size, memory of the device."""

    training: list[Point]
    validation: list[Point]
    updates: int
    seconds: float
    target_tokens: float
    parameters: int | None
    device_bytes: int | None

    @property
    def tokens_a_second(self) -> float | None:
        """Target tokens a second of updates."""
        return self.target_tokens / self.seconds if self.seconds else None

    @property
    def tokens_an_update(self) -> float:
        """Mean number of target tokens an update, over the logged intervals."""
        return self.target_tokens / self.training[-1].updates

    @property
    def last_training_loss(self) -> float:
        """Mean over the intervals of the last tenth of the updates: one interval alone is noisy."""
        return float(np.mean([point.bits for point in self.training if point.updates > 0.9 * self.updates]))


def read_curves(path: Path) -> Curves:
    """Read a log.

    Raises:
        UsageError: there is no such file, or it tells of no update with an unsmoothed loss.
    """
    intervals: dict[int, dict[str, float]] = {}
    validations: dict[int, float] = {}
    parameters, total_memory, stopped = None, 0.0, 0
    lines = read_lines(path)
    for line in lines:
        if match := PARAMETERS.search(line):
            parameters = int(match[1].replace(",", ""))
        elif match := DEVICE_MEMORY.search(line):
            total_memory = float(match[1])
        elif match := STOPPED.search(line):
            stopped = int(match[1])
    for kind, fields in _entries(lines):
        end = int(fields["num_updates"])
        if kind == "train_inner":
            # Updates after the last checkpoint before an interruption are made, and logged, again.
            intervals = {updates: known for updates, known in intervals.items() if updates < end}
            intervals[end] = fields
        elif "nll_loss" in fields:
            validations = {updates: bits for updates, bits in validations.items() if updates < end}
            validations[end] = fields["nll_loss"]
    training, seconds, tokens, before = [], 0.0, 0.0, 0
    for end, fields in sorted(intervals.items()):
        of_interval = fields.get("wpb", 0.0) * (end - before)
        tokens += of_interval
        # fairseq measures wps without the first update of an interval: one of a single update has none.
        seconds += of_interval / fields["wps"] if fields.get("wps") else fields.get("train_wall", 0.0)
        if "nll_loss" in fields:
            training.append(Point(end, seconds, fields["nll_loss"]))
        before = end
    if not training:
        raise UsageError(
            f"{path} tells of no update with an unsmoothed loss: it is no log of fairseq-train on one of the two "
            "label smoothing criteria, or it was written with a progress bar (train with --log-format simple)"
        )
    times = np.interp(list(validations), [point.updates for point in training], [point.seconds for point in training])
    least_free = min((fields["gb_free"] for fields in intervals.values() if "gb_free" in fields), default=None)
    return Curves(
        training,
        [Point(end, float(at), bits) for at, (end, bits) in zip(times, validations.items(), strict=True)],
        max(training[-1].updates, stopped),
        seconds,
        tokens,
        parameters,
        round((total_memory - least_free) * 2**30) if total_memory and least_free is not None else None,
    )


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the kind and the numbers of each entry that says after how many updates it was made."""
    for line in lines:
        match = ENTRY.search(line)
        if not match:
            continue
        if "{" in match[2]:
            try:
                pairs = json.loads(match[2][match[2].index("{") :])
            except ValueError:
                continue  # the last line of a killed run
            # In this format fairseq writes valid_nll_loss where the other has nll_loss.
            pairs = {name.removeprefix("valid_"): str(value) for name, value in pairs.items()}
        else:
            pairs = dict(FIELD.findall(match[2]))
        fields = {name: float(value) for name, value in pairs.items() if NUMBER.fullmatch(value)}
        if "num_updates" in fields:
            yield match[1], fields
