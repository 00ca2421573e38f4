"""``t2017 audit``: which parts are really the paper, by measurement."""

import argparse

from t2017_plugin.differences import page

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
    rows = page.audit()
    if args.json:
        print(page.as_json(rows))
    elif args.markdown:
        print(page.as_markdown(rows), end="")
    else:
        print(page.as_text(rows))
    return 0
