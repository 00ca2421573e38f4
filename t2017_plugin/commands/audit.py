"""``t2017 audit``: which parts are really the paper, by measurement."""

import argparse

from t2017_plugin.differences import report

DESCRIPTION = """\
Build the paper's model, its variants and stock fairseq's, run them, and say where they differ and by how much: norm,
positions, biases, initial weights, dropout sites, decoder start, label smoothing, learning rate, Adam, penalty, search,
length limit, BLEU. Nothing is trained; it takes about ten seconds.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 audit``."""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object with all figures")
    form.add_argument("--markdown", action="store_true", help="print the page docs/differences.md")


def run(args: argparse.Namespace) -> int:
    """Measure and print."""
    groups = report.audit()
    if args.json:
        print(report.as_json(groups))
    elif args.markdown:
        print(report.as_markdown(groups), end="")
    else:
        print(report.as_text(groups))
    return 0
