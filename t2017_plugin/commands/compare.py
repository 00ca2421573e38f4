"""``t2017 compare``: trained and scored runs side by side, as one page."""

from __future__ import annotations

import argparse
from pathlib import Path

from t2017_plugin.commands.arguments import at_least_one
from t2017_plugin.experiments.comparison import compare_arms, group
from t2017_plugin.experiments.comparison_page import all_tables, html, markdown
from t2017_plugin.experiments.runs import read_run, references_of
from t2017_plugin.files import whole_or_nothing

DESCRIPTION = """\
RUN is the folder of one trained and scored arm, as the recipes write it (runs/demo/t2017). Runs that differ in nothing
but their seed are one arm, reported as mean and spread; the first RUN's arm is the baseline of the paired bootstrap.

All runs must have been trained on one data-bin and scored on one test set, which is checked by hash. The page holds
its curves and styles in itself: no network, no script.
"""
EPILOG = """\
examples:
  t2017 compare runs/demo/t2017 runs/demo/stock --output report.html --markdown report.md
  t2017 compare runs/compare_stock/home_assistant/arms/*/seed* --output report.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 compare``."""
    parser.add_argument("runs", nargs="+", metavar="RUN", help="the folder of a run")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE", help="the HTML page to write")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables as Markdown")
    parser.add_argument(
        "--reference", type=Path, metavar="FILE", help="the test set's reference, if it is not where it was scored"
    )
    parser.add_argument(
        "--samples", type=at_least_one, default=1000, metavar="N", help="bootstrap samples (default: %(default)s)"
    )


def run(args: argparse.Namespace) -> int:
    """Read, test, write, and print the scores and the files' names."""
    arms = group([read_run(folder) for folder in args.runs])
    references = references_of([run for arm in arms for run in arm.runs], args.reference)
    with whole_or_nothing(args.output) as page:  # a folder that is not there is refused before the work
        tables = all_tables(arms, compare_arms(arms, references, args.samples))
        page.write_text(html(arms, tables), encoding="utf-8", newline="\n")
        if args.markdown:
            with whole_or_nothing(args.markdown) as unfinished:
                unfinished.write_text(markdown(arms, tables), encoding="utf-8", newline="\n")
    print(tables[0].markdown())
    print("\n".join(str(path) for path in (args.output, args.markdown) if path))
    return 0
