"""The page of a comparison: tables and curves, as HTML that needs nothing else, and as Markdown."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from t2017_plugin.experiments.comparison import METRICS, Arm, Score, Significance, Spread, differing_settings, spread
from t2017_plugin.experiments.logs import Point
from t2017_plugin.markdown import table as markdown_table

UNKNOWN = "-"
COLOURS, DASHES = 10, ("-", "--", ":")
PANELS = (
    ("Validation loss over updates", True, False),
    ("Validation loss over time", True, True),
    ("Training loss over updates", False, False),
    ("Training loss over time", False, True),
)
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
    "Unsmoothed losses in bits per target token; training with dropout, validation without. A line is the mean over an "
    "arm's seeds, the band their range. Minutes are minutes of updates, on the machines named below: other programs on "
    "them make a run look slower. The beginning, where losses are highest, is cut off above."
)


@dataclass(frozen=True)
class Table:
    """A title, a line on how to read it, a header, rows of text; the first column names the row."""

    title: str
    note: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def markdown(self) -> str:
        """Return header and rows as Markdown."""
        return markdown_table(self.header, self.rows)

    def section(self) -> str:
        """Return the table under its title and note, as Markdown."""
        return f"## {self.title}\n\n{self.note}\n\n{self.markdown()}\n"

    def html(self) -> str:
        """Return the table under its title and note, as HTML."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.header)
        body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows)
        return (
            f'<h2>{escape(self.title)}</h2>\n<p class="note">{escape(self.note)}</p>\n'
            f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'
        )


def all_tables(arms: Sequence[Arm], significance: Significance) -> list[Table]:
    """Return every table, in the order of the page."""
    return [
        score_table(arms),
        training_table(arms),
        bootstrap_table(significance),
        settings_table(arms),
        version_table(arms),
        data_table(arms),
    ]


def score_table(arms: Sequence[Arm]) -> Table:
    """Return both BLEUs and chrF of each arm."""
    rows = []
    for arm in arms:
        cells = [arm.name, ", ".join(str(seed) for seed in arm.seeds)]
        for name in ("sacrebleu", "paper_bleu", "chrf2"):
            values = [(run.scores.get(name) or {}).get("score") for run in arm.runs]
            cells.append(_text(spread(values), 2))
        rows.append(cells)
    first = arms[0].runs[0].scores
    labels = {"sacrebleu": "sacreBLEU", "paper_bleu": "the paper's", "chrf2": "chrF2"}
    signatures = [f"{label}: {first[name]['signature']}" for name, label in labels.items() if first.get(name)]
    note = "Mean ± sample standard deviation over seeds, where there are several. " + "; ".join(signatures) + "."
    return Table("Scores", note, ["arm", "seeds", "sacreBLEU", "paper's BLEU", "chrF2"], rows)


def training_table(arms: Sequence[Arm]) -> Table:
    """Return losses, speed, memory and size of each arm."""
    rows = []
    for arm in arms:
        logs = [run.log for run in arm.runs]
        validation = [log.validation[-1].bits if log.validation else None for log in logs]
        rows.append(
            [
                arm.name,
                _text(spread(log.updates for log in logs), 0),
                _text(spread(log.tokens_per_update for log in logs), 1),
                _text(spread(log.last_training_loss for log in logs), 3),
                _text(spread(validation), 3),
                _text(spread(log.tokens_per_second for log in logs), 0),
                _text(spread(log.seconds for log in logs), 1, 1 / 60),
                _text(spread(run.memory for run in arm.runs), 0, 2**-20),
                _text(spread(log.device_bytes for log in logs), 0, 2**-20),
                _text(spread(log.parameters for log in logs), 0),
            ]
        )
    note = (
        "Losses are unsmoothed, in bits per target token (BPE unit with EOS): training over the last tenth of the "
        "updates, with dropout, validation at its last measurement, without. Speed is fairseq's wps, minutes are "
        "minutes of updates: neither counts starting, validating and saving. Memory is the largest of the training "
        "process (resident) and of the GPU, where it was recorded."
    )
    header = [
        "arm", "updates", "target tokens per update", "training loss", "validation loss", "target tokens per second",
        "minutes of updates", "memory, MiB", "GPU memory, MiB", "parameters",
    ]  # fmt: skip
    return Table("Training", note, header, rows)


def bootstrap_table(significance: Significance) -> Table:
    """Return the differences from the baseline and their p-values, a row for each run."""
    header = ["arm", "seed", "baseline's seed"]
    for metric in METRICS:
        header += [f"{metric}, 95 %", "difference", "p"]
    rows = []
    for comparison in significance.comparisons:
        cells = [comparison.arm, str(comparison.seed), str(comparison.baseline_seed)]
        for metric in METRICS:
            cells += _cells(comparison.scores[metric])
        rows.append(cells)
    note = (
        f"sacrebleu's paired bootstrap (PairedTest) against {significance.baseline}, on the same references; a small p "
        "says that the difference is not by chance of these sentences; seeds are another matter. Signatures: "
        + "; ".join(f"{metric} {signature}" for metric, signature in significance.signatures.items())
        + "."
    )
    return Table("Paired bootstrap", note, header, rows)


def _cells(score: Score) -> list[str]:
    text = f"{score.score:.2f} ± {score.interval:.2f}"
    if score.difference is None or score.p is None:
        return [text, UNKNOWN, UNKNOWN]
    return [text, f"{score.difference:+.2f}", f"{score.p:.4f}"]


def settings_table(arms: Sequence[Arm]) -> Table:
    """Return the settings that are not the same in all arms."""
    rows = [[name, *values] for name, values in differing_settings(arms)]
    note = (
        "Stock fairseq's settings stand under this plugin's names where both have them; (built in) is what stock does "
        "without a setting. Seeds and places of files are left out."
        if rows
        else "None: the arms have the same settings."
    )
    return Table("Settings that differ", note, ["setting", *(arm.name for arm in arms)], rows)


def version_table(arms: Sequence[Arm]) -> Table:
    """Return packages, Python, processor and revision of each arm; several values where its runs differ."""

    def of_arm(arm: Arm, name: str) -> str:
        values = []
        for run in arm.runs:
            machine = run.machine
            value = machine.get("packages", {}).get(name, machine.get(name))
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value or UNKNOWN)
            values.append(text if text else UNKNOWN)
        return " / ".join(dict.fromkeys(values))

    packages = sorted({name for arm in arms for run in arm.runs for name in run.machine.get("packages", {})})
    names = [*packages, "python", "processor", "cores", "threads", "gpus", "revision"]
    rows = [[name, *(of_arm(arm, name) for arm in arms)] for name in names]
    note = "As each run wrote them down when it trained; revision is the commit of the code, + with changes."
    return Table("Versions and machine", note, ["", *(arm.name for arm in arms)], rows)


def data_table(arms: Sequence[Arm]) -> Table:
    """Return the SHA-256 of the data-bin's files and of the reference, the same for all runs."""
    run = arms[0].runs[0]
    rows = [[name, sha256] for name, sha256 in sorted(run.data.items())]
    rows.append(["reference of the test set", run.reference_hash])
    note = f"SHA-256, the same for every run; the test set has {len(run.hypotheses):,} sentences."
    return Table("Data", note, ["file", "SHA-256"], rows)


def _text(value: Spread | None, digits: int, factor: float = 1.0) -> str:
    """Return a figure as text; counts that are the same in all runs need no deviation."""
    if value is None:
        return UNKNOWN
    same = value.deviation == 0 and digits == 0
    return Spread(value.mean, None).text(digits, factor) if same else value.text(digits, factor)


@dataclass(frozen=True)
class Line:
    """An arm's curve: x, mean over its seeds, least and greatest."""

    name: str
    x: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]


def arm_line(arm: Arm, validation: bool, over_time: bool) -> Line:
    """Return the mean curve of an arm's seeds, at the updates that all of them logged; times are means in minutes."""
    curves = [run.log.validation if validation else run.log.training for run in arm.runs]
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


def draw(arms: Sequence[Arm]) -> Figure:
    """Draw a panel for each loss over updates and over time; the range of an arm's seeds is a band."""
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    panels = figure.subplots(2, 2).flatten()
    for panel, (title, validation, over_time) in zip(panels, PANELS, strict=True):
        lines = [arm_line(arm, validation, over_time) for arm in arms]
        for number, line in enumerate(lines):
            colour, dash = f"C{number % COLOURS}", DASHES[number // COLOURS % len(DASHES)]
            panel.plot(line.x, line.mean, dash, color=colour, linewidth=1.4, label=line.name)
            if line.low != line.high:
                panel.fill_between(line.x, line.low, line.high, color=colour, alpha=0.15, linewidth=0)
        panel.set_title(f"{title}, bits per token" if any(line.x for line in lines) else f"{title}: not logged")
        panel.set_xlabel("minutes" if over_time else "updates")
        panel.grid(alpha=0.3)
        _leave_out_the_beginning(panel, [line for line in lines if line.x])
    figure.legend(handles=panels[2].get_lines(), loc="outside lower center", ncols=5)
    return figure


def _leave_out_the_beginning(panel: Axes, lines: Sequence[Line]) -> None:
    """Let the first tenth, where losses are several times as high, leave the panel at its top."""
    if lines:
        right = max(line.x[-1] for line in lines)
        later = [high for line in lines for x, high in zip(line.x, line.high, strict=True) if x >= right / 10]
        bottom = min(min(line.low) for line in lines)
        margin = 0.04 * (max(later) - bottom) or 0.1
        panel.set_ylim(bottom - margin, max(later) + margin)


def as_svg(figure: Figure) -> str:
    """Return the figure as an ``svg`` element with text as text, the same for the same curves."""
    written = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "t2017"}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    text = written.getvalue()
    return text[text.index("<svg") :]


def title_of(arms: Sequence[Arm]) -> str:
    """Return what is compared, in a few words."""
    names = [arm.name for arm in arms]
    return " and ".join(names) if len(names) < 4 else f"{names[0]} and {len(names) - 1} other arms"


def html(arms: Sequence[Arm], tables: Sequence[Table]) -> str:
    """Return the page. The first table stands above the curves, the others below; the last is folded."""
    title = escape(title_of(arms))
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8"/>',
        # Nothing is fetched and nothing runs, whatever a run's files hold.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>",
        '<meta name="viewport" content="width=device-width"/>',
        f"<title>{title}</title><style>{STYLE}</style></head><body>",
        f"<h1>{title}</h1>",
        tables[0].html(),
        "<h2>Curves</h2>",
        f'<p class="note">{escape(CURVES_NOTE)}</p>',
        as_svg(draw(arms)),
    ]
    parts += [table.html() for table in tables[1:-1]]
    parts.append(f"<details><summary>{escape(tables[-1].title)}</summary>{tables[-1].html()}</details>")
    return "\n".join([*parts, "</body></html>", ""])


def markdown(arms: Sequence[Arm], tables: Sequence[Table]) -> str:
    """Return the tables as Markdown, with the losses at ten points instead of the curves."""
    losses = [loss_table(arms, validation) for validation in (True, False)]
    sections = [table.section() for table in (tables[0], *losses, *tables[1:])]
    return "\n".join([f"# {title_of(arms)}\n", *sections])


def loss_table(arms: Sequence[Arm], validation: bool, points: int = 10) -> Table:
    """Return the mean loss of each arm at about ten numbers of updates which all arms logged."""
    lines = [arm_line(arm, validation, over_time=False) for arm in arms]
    by_updates = [dict(zip(line.x, line.mean, strict=True)) for line in lines]
    common = sorted(set.intersection(*(set(values) for values in by_updates)))
    chosen = (
        sorted({common[round(place * (len(common) - 1) / (points - 1))] for place in range(points)}) if common else []
    )
    rows = [[f"{updates:,.0f}", *(f"{values[updates]:.3f}" for values in by_updates)] for updates in chosen]
    kind = "Validation" if validation else "Training"
    note = (
        "Unsmoothed, bits per target token, mean over seeds." if rows else "Not logged at the same updates by all arms."
    )
    return Table(f"{kind} loss", note, ["updates", *(arm.name for arm in arms)], rows)
