"""The curves of a training, read from what fairseq-train logged in its formats ``simple`` and ``json``.

Losses are unsmoothed (fairseq's ``nll_loss``), in bits a target token. Time is time in updates: without starting,
validating and saving. Sessions after an interruption count as one training.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.log import numbers, read_log
from t2017_plugin.files import read_lines

VALIDATION = re.compile(r"\| valid \| (.*)$")
FIELD = re.compile(r"(\w+) ([-+.\w]+)")
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
        """Mean over the intervals that end in the last tenth of the updates: one interval alone is noisy."""
        last = self.training[-1].updates
        return float(np.mean([point.bits for point in self.training if point.updates > 0.9 * last]))


def read_curves(path: Path) -> Curves:
    """Read a log.

    Raises:
        UsageError: there is no such file, or it tells of no update or no unsmoothed loss.
    """
    log = read_log(path)
    validations: dict[int, float] = {}
    total_memory, stopped = 0.0, 0
    for line in read_lines(path):
        if match := DEVICE_MEMORY.search(line):
            total_memory = float(match[1])
        elif match := STOPPED.search(line):
            stopped = int(match[1])
        elif (match := VALIDATION.search(line)) and {"num_updates", "nll_loss"} <= (
            fields := _numbers(match[1])
        ).keys():
            end = int(fields["num_updates"])
            # What was measured after the last checkpoint before an interruption is measured again.
            validations = {updates: bits for updates, bits in validations.items() if updates < end}
            validations[end] = fields["nll_loss"]
    training, seconds, tokens, before = [], 0.0, 0.0, 0
    for end, fields in sorted(log.intervals.items()):
        of_interval = fields.get("wpb", 0.0) * (end - before)
        tokens += of_interval
        # fairseq measures wps without the first update of an interval: one of a single update has none.
        seconds += of_interval / fields["wps"] if fields.get("wps") else fields.get("train_wall", 0.0)
        if "nll_loss" in fields:
            training.append(Point(end, seconds, fields["nll_loss"]))
        before = end
    if not training:
        raise UsageError(
            f"{path} tells of no unsmoothed loss (nll_loss); train with t2017_label_smoothing or fairseq's own "
            "label_smoothed_cross_entropy"
        )
    known = [Point(0, 0.0, 0.0), *training]
    times = np.interp(list(validations), [point.updates for point in known], [point.seconds for point in known])
    least_free = min((fields["gb_free"] for fields in log.intervals.values() if "gb_free" in fields), default=None)
    return Curves(
        training,
        [Point(end, float(at), bits) for at, (end, bits) in zip(times, validations.items(), strict=True)],
        max(training[-1].updates, stopped),
        seconds,
        tokens,
        log.parameters,
        round((total_memory - least_free) * 2**30) if total_memory and least_free is not None else None,
    )


def _numbers(entry: str) -> dict[str, float]:
    """The numbers of an entry about validation, under the names that the format ``simple`` gives them."""
    if "{" not in entry:
        return numbers(dict(FIELD.findall(entry)))
    try:
        told = json.loads(entry[entry.index("{") :])
    except ValueError:
        return {}  # the last line of a killed run
    return numbers({name.removeprefix("valid_"): value for name, value in told.items()})
