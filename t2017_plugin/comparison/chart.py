"""Curves as SVG, drawn here: a page that shows them needs no library, no network and no script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from t2017_plugin.comparison.arms import Arm
from t2017_plugin.comparison.curves import Point

# Okabe and Ito's colours, which the colour-blind tell apart; then the same again, dashed.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
DASHES = ("", "6 3", "2 3")
WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 52, 24, 30, 44


@dataclass(frozen=True)
class Line:
    """An arm's curve: x, mean over its seeds, least and greatest."""

    name: str
    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def style(number: int) -> tuple[str, str]:
    """Colour and dashes of an arm."""
    return COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]


def arm_line(arm: Arm, validation: bool, over_time: bool) -> Line:
    """The mean curve of an arm's seeds, at the updates that all of them logged; time is in minutes, a mean as well."""
    curves = [run.curves.validation if validation else run.curves.training for run in arm.runs]
    by_updates = [{point.updates: point for point in curve} for curve in curves]
    common = sorted(set.intersection(*(set(points) for points in by_updates)))
    columns: list[list[Point]] = [[points[updates] for points in by_updates] for updates in common]
    bits = [[point.bits for point in column] for column in columns]
    x = [
        sum(point.seconds for point in column) / len(column) / 60 if over_time else float(column[0].updates)
        for column in columns
    ]
    means = [sum(values) / len(values) for values in bits]
    return Line(arm.name, x, means, [min(values) for values in bits], [max(values) for values in bits])


def draw(lines: Sequence[Line], title: str, x_label: str) -> str:
    """An SVG with a curve for each line, the range of its seeds as a band; the first tenth of x may lie above."""
    drawn = [(number, line) for number, line in enumerate(lines) if line.x]
    if not drawn:
        return ""
    right = max(line.x[-1] for _, line in drawn)
    bottom = min(min(line.low) for _, line in drawn)
    later = [high for _, line in drawn for x, high in zip(line.x, line.high, strict=True) if x >= right / 10]
    x_ticks, y_ticks = ticks(0.0, right), ticks(bottom, max(later))
    low, high = y_ticks[0], y_ticks[-1]

    def at_x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / x_ticks[-1]

    def at_y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)

    def path(xs: Sequence[float], ys: Sequence[float]) -> str:
        return " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in zip(xs, ys, strict=True))

    identity = "".join(letter for letter in title.lower() if letter.isalnum())
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}">',
        f'<text x="{LEFT}" y="18" class="title">{escape(title)}</text>',
        f'<clipPath id="{identity}"><rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
        f'height="{HEIGHT - TOP - BOTTOM}"/></clipPath>',
    ]
    for value in y_ticks:
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at_y(value):.1f}" y2="{at_y(value):.1f}" class="grid"/>'
        )
        parts.append(f'<text x="{LEFT - 6}" y="{at_y(value) + 4:.1f}" class="y">{value:g}</text>')
    for value in x_ticks:
        parts.append(f'<text x="{at_x(value):.1f}" y="{HEIGHT - BOTTOM + 16}" class="x">{value:,g}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" class="x">{escape(x_label)}</text>')
    parts.append(f'<g clip-path="url(#{identity})">')
    for number, line in drawn:
        colour, dashes = style(number)
        if line.low != line.high:
            band = path([*line.x, *reversed(line.x)], [*line.high, *reversed(line.low)])
            parts.append(f'<polygon points="{band}" fill="{colour}" fill-opacity="0.15"/>')
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        tip = f"{line.name}: {line.mean[-1]:.3f} at {line.x[-1]:,.4g}"
        parts.append(
            f'<polyline points="{path(line.x, line.mean)}" fill="none" stroke="{colour}" stroke-width="1.6"{dashed}>'
            f"<title>{escape(tip)}</title></polyline>"
        )
    return "\n".join([*parts, "</g>", "</svg>"])


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Round numbers, evenly spaced, from at most ``low`` to at least ``high``."""
    span = max(high - low, 1e-9)
    power = 10.0 ** math.floor(math.log10(span / wanted))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= wanted)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, max(last, first + 1) + 1)]
