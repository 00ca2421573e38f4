"""The curves of a comparison as one SVG, which an HTML page holds in itself."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from t2017_plugin.experiments.arms import Arm
from t2017_plugin.experiments.curves import Point

COLOURS, DASHES = 10, ("-", "--", ":")
PANELS = (
    ("Validation loss over updates", True, False),
    ("Validation loss over time", True, True),
    ("Training loss over updates", False, False),
    ("Training loss over time", False, True),
)


@dataclass(frozen=True)
class Line:
    """An arm's curve: x, mean over its seeds, least and greatest."""

    name: str
    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def arm_line(arm: Arm, validation: bool, over_time: bool) -> Line:
    """The mean curve of an arm's seeds, at the updates that all of them logged; time is in minutes, a mean as well."""
    curves = [run.curves.validation if validation else run.curves.training for run in arm.runs]
    by_updates = [{point.updates: point for point in curve} for curve in curves]
    shared = sorted(set.intersection(*(set(points) for points in by_updates)))
    # A run that diverged logs losses that are no numbers.
    common = [updates for updates in shared if all(math.isfinite(points[updates].bits) for points in by_updates)]
    columns: list[list[Point]] = [[points[updates] for points in by_updates] for updates in common]
    bits = [[point.bits for point in column] for column in columns]
    x = [
        sum(point.seconds for point in column) / len(column) / 60 if over_time else float(column[0].updates)
        for column in columns
    ]
    means = [sum(values) / len(values) for values in bits]
    return Line(arm.name, x, means, [min(values) for values in bits], [max(values) for values in bits])


def draw(arms: Sequence[Arm]) -> Any:
    """A figure with a panel for each loss over updates and over time; the range of an arm's seeds is a band."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.5), layout="constrained")
    panels = figure.subplots(2, 2).flatten()
    for panel, (title, validation, over_time) in zip(panels, PANELS, strict=True):
        lines = [arm_line(arm, validation, over_time) for arm in arms]
        for number, line in enumerate(lines):
            colour, dash = f"C{number % COLOURS}", DASHES[number // COLOURS % len(DASHES)]
            panel.plot(line.x, line.mean, dash, color=colour, linewidth=1.4, label=line.name)
            if line.low != line.high:
                panel.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
        panel.set_title(f"{title}, bits a token" if any(line.x for line in lines) else f"{title}: not logged")
        panel.set_xlabel("minutes" if over_time else "updates")
        panel.grid(alpha=0.3)
        _leave_out_the_beginning(panel, [line for line in lines if line.x])
    figure.legend(handles=panels[2].get_lines(), loc="outside lower center", ncols=5)
    return figure


def _leave_out_the_beginning(panel: Any, lines: Sequence[Line]) -> None:
    """Let the first tenth, where losses are several times as high, leave the panel at its top."""
    if lines:
        right = max(line.x[-1] for line in lines)
        later = [high for line in lines for x, high in zip(line.x, line.high, strict=True) if x >= right / 10]
        bottom = min(min(line.low) for line in lines)
        margin = 0.04 * (max(later) - bottom) or 0.1
        panel.set_ylim(bottom - margin, max(later) + margin)


def as_svg(figure: Any) -> str:
    """The figure as an ``svg`` element with text as text, the same for the same curves."""
    import matplotlib

    written = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "t2017"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    text = written.getvalue()
    return text[text.index("<svg") :]
