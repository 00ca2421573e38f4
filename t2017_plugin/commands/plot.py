"""``t2017 plot``: the curves of one training or several, as a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.logs import TrainingLog, find_logs
from t2017_plugin.files import whole_or_nothing

DESCRIPTION = """\
RUN is a training log (fairseq-train's output with --log-format simple or json), a folder that holds train.log, or the
folder of a recipe's run, whose arms are then drawn together.

Losses are in bits per target token: the smoothed one that is trained (dashed) and the unsmoothed one. The learning rate
is that of the update itself where the plugin's task logged it (lr_used), else fairseq's, which is the next update's.
"""
EPILOG = """\
examples:
  t2017 plot runs/demo
  t2017 plot runs/demo/t2017 old/train.log --output both.png
"""

KINDS = ("png", "svg", "pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 plot``."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a log, or a folder with one")
    parser.add_argument(
        "--output",
        type=picture,
        metavar="FILE",
        help="a .png, .svg or .pdf; default: curves.png beside the first RUN's log",
    )
    parser.add_argument("--from-update", type=int, default=0, metavar="N", help="leave out what was before")


def run(args: argparse.Namespace) -> int:
    """Draw, and print the file's name."""
    first = Path(args.runs[0])
    output = args.output or (first if first.is_dir() else first.parent) / "curves.png"
    kind = kind_of(output)
    logs = [log for name in args.runs for log in find_logs(name)]
    ends = max((update for log in logs for update in log.column("nll_loss")[0]), default=0)
    if ends < args.from_update:
        raise UsageError(f"no update from {args.from_update:,} on: the log ends at {ends:,}")
    figure = draw(logs, args.from_update)
    with whole_or_nothing(output) as unfinished:
        figure.savefig(unfinished, format=kind, dpi=120)
    print(output)
    return 0


def kind_of(picture: Path) -> str:
    """Return the kind of a picture by the end of its name, which is one of ``KINDS``."""
    return picture.suffix.lower().removeprefix(".")


def picture(name: str) -> Path:
    """Read the name of a picture, for argparse."""
    if kind_of(Path(name)) not in KINDS:
        raise argparse.ArgumentTypeError(f"{name}: the name of a picture ends in .{', .'.join(KINDS)}")
    return Path(name)


def draw(logs: list[TrainingLog], first: int = 0) -> Figure:
    """Draw four panels over the number of updates, from update ``first`` on."""
    figure = Figure(figsize=(12, 8), layout="constrained")
    FigureCanvasAgg(figure)  # no display, and nothing global
    panels = figure.subplots(2, 2).flatten()
    for number, log in enumerate(logs):
        colour = f"C{number % 10}"
        rate = "lr_used" if log.column("lr_used")[0] else "lr"
        for panel, field, style in (
            (0, "nll_loss", "-"), (0, "loss", "--"), (1, rate, "-"), (2, "gnorm", "-"), (3, "wps", "-"),
        ):  # fmt: skip
            found = [(update, value) for update, value in zip(*log.column(field), strict=True) if update >= first]
            label = f"{log.name}, smoothed" if style == "--" else log.name
            panels[panel].plot(*zip(*found, strict=True) if found else ((), ()), style, color=colour, label=label)
    titles = ("loss, bits per target token", "learning rate", "gradient norm", "target tokens per second")
    for panel, title in zip(panels, titles, strict=True):
        panel.set_title(title)
        panel.set_xlabel("updates")
        panel.grid(alpha=0.3)
    panels[0].legend()
    panels[3].set_ylim(bottom=0)
    return figure
