"""The comparison as one HTML page that needs nothing but itself, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from t2017_plugin.experiments import chart
from t2017_plugin.experiments.arms import Arm
from t2017_plugin.experiments.tables import Table

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1200px; padding: 0 1em; color: #222; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 9px; border-bottom: 1px solid #ddd; text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
.wide { overflow-x: auto; }
.note { color: #555; font-size: 13px; overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; }
"""
CURVES_NOTE = (
    "Unsmoothed losses in bits a target token; training with dropout, validation without. A line is the mean over an "
    "arm's seeds, the band their range. Minutes are minutes of updates, on the machines named below: other programs on "
    "them make a run look slower. The beginning, where losses are highest, is cut off above."
)


def title_of(arms: Sequence[Arm]) -> str:
    """What is compared."""
    names = [arm.name for arm in arms]
    return " and ".join(names) if len(names) < 4 else f"{names[0]} and {len(names) - 1} other arms"


def html(arms: Sequence[Arm], tables: Sequence[Table]) -> str:
    """The page. The first table stands above the curves, the others below; the last is folded."""
    title = escape(title_of(arms))
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"/>',
        # Nothing is fetched and nothing runs, whatever a run's files hold.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>",
        '<meta name="viewport" content="width=device-width"/>',
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        _table(tables[0]),
        "<h2>Curves</h2>",
        f'<p class="note">{escape(CURVES_NOTE)}</p>',
        chart.as_svg(chart.draw(arms)),
    ]
    parts += [_table(table) for table in tables[1:-1]]
    parts.append(f"<details><summary>{escape(tables[-1].title)}</summary>{_table(tables[-1])}</details>")
    return "\n".join([*parts, "</body></html>", ""])


def markdown(arms: Sequence[Arm], tables: Sequence[Table]) -> str:
    """The tables as Markdown, and the losses at ten points instead of the curves."""
    lines = [f"# {title_of(arms)}", "", *tables[0].markdown()]
    for validation in (True, False):
        lines += losses(arms, validation).markdown()
    for table in tables[1:]:
        lines += table.markdown()
    return "\n".join(lines).rstrip() + "\n"


def losses(arms: Sequence[Arm], validation: bool, points: int = 10) -> Table:
    """The mean loss of each arm at about ten numbers of updates which all arms logged."""
    lines = [chart.arm_line(arm, validation, over_time=False) for arm in arms]
    by_updates = [dict(zip(line.x, line.mean, strict=True)) for line in lines]
    common = sorted(set.intersection(*(set(values) for values in by_updates)))
    chosen = (
        sorted({common[round(place * (len(common) - 1) / (points - 1))] for place in range(points)}) if common else []
    )
    rows = [[f"{updates:,.0f}", *(f"{values[updates]:.3f}" for values in by_updates)] for updates in chosen]
    kind = "Validation" if validation else "Training"
    note = (
        "Unsmoothed, bits a target token, mean over seeds." if rows else "Not logged at the same updates by all arms."
    )
    return Table(f"{kind} loss", note, ["updates", *(arm.name for arm in arms)], rows)


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in table.header)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    return (
        f'<h2>{escape(table.title)}</h2>\n<p class="note">{escape(table.note)}</p>\n'
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'
    )
