"""Runs grouped into arms: the seeds of one setting, with the checks that make a comparison fair."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2017_plugin.differences.single_arms import built_in, in_our_names
from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.runs import Run


@dataclass
class Arm:
    """Runs that differ in nothing but their seed."""

    name: str
    runs: list[Run]

    @property
    def seeds(self) -> dict[int, Run]:
        """The runs by seed, in order."""
        return {run.seed: run for run in sorted(self.runs, key=lambda run: run.seed)}


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (None for a single value) of a figure over seeds."""

    mean: float
    deviation: float | None

    def text(self, digits: int = 2, factor: float = 1.0) -> str:
        """Such as ``26.56 ± 0.21``."""
        mean = f"{self.mean * factor:,.{digits}f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation * factor:,.{digits}f}"


def spread(values: Iterable[float | None]) -> Spread | None:
    """Mean and deviation, or None when a value is missing."""
    found = list(values)
    known = [value for value in found if value is not None]
    if not known or len(known) < len(found):
        return None
    return Spread(statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else None)


def group(runs: Sequence[Run]) -> list[Arm]:
    """Arms in the order of their first run; runs of one setting and one seed stay apart, as do differently named ones.

    Raises:
        UsageError: a run is named twice, or two runs differ in their data or test set.
    """
    check_same_task(runs)
    arms: list[Arm] = []
    for run in runs:
        for arm in arms:
            first = arm.runs[0]
            if (first.name, first.settings) == (run.name, run.settings) and run.seed not in arm.seeds:
                arm.runs.append(run)
                break
        else:
            arms.append(Arm(run.name, [run]))
    _tell_apart(arms)
    return arms


def check_same_task(runs: Sequence[Run]) -> None:
    """Refuses what cannot be compared.

    Raises:
        UsageError: a run is named twice, or two runs differ in their data-bin, test set or its language.
    """
    first = runs[0]
    seen: set[Path] = set()
    for run in runs:
        if (place := run.folder.resolve()) in seen:
            raise UsageError(f"{run.folder} is named twice")
        seen.add(place)
        differing = sorted(name for name in {*first.data, *run.data} if first.data.get(name) != run.data.get(name))
        if differing:
            raise UsageError(
                f"{first.folder} and {run.folder} were trained on different data ({differing[0]} is not the same); "
                "compare runs of one data-bin"
            )
        if run.reference_hash != first.reference_hash or run.language != first.language:
            raise UsageError(f"{first.folder} and {run.folder} were scored on different test sets; score them on one")


def _tell_apart(arms: list[Arm]) -> None:
    """Give arms of one name the names of the folders above as well, then numbers."""
    for levels in range(2, 6):
        names = [arm.name for arm in arms]
        for arm in arms:
            if names.count(arm.name) > 1:
                parts = arm.runs[0].folder.resolve().parts
                end = len(parts) - (arm.runs[0].name != parts[-1])
                arm.name = "/".join(parts[max(1, end - levels) : end])
    names = [arm.name for arm in arms]
    for number, arm in enumerate(arms, start=1):
        if names.count(arm.name) > 1:
            arm.name = f"{arm.name} ({number})"


def comparable_settings(run: Run) -> dict[str, str]:
    """A run's settings as text, stock's under this plugin's names, with what stock has built in marked so."""
    told = {key: _text(value) for key, value in in_our_names(run.settings).items()}
    if told.get("model.positions") == "sinusoid":
        told.pop("model.max_learned_positions", None)  # has no say
    return told | {key: f"{_text(value)} (built in)" for key, value in built_in(run.settings).items()}


def differing_settings(arms: Sequence[Arm]) -> list[tuple[str, list[str]]]:
    """Dotted names of the settings that are not the same in all arms, with the value of each arm, ``-`` for none."""
    told = [comparable_settings(arm.runs[0]) for arm in arms]
    names = sorted({name for settings in told for name in settings})
    rows = [(name, [settings.get(name, "-") for settings in told]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)
