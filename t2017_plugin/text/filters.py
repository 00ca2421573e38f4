"""``python -m t2017_plugin.text.filters STEP``: each step of the text pipeline as a filter of lines.

Lines end at a line feed and nowhere else, so that a corpus keeps as many lines as it has and pairs stay aligned.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import BinaryIO

from t2017_plugin.errors import UsageError
from t2017_plugin.files import BYTE_ORDER_MARK, decode_line, without_line_ends
from t2017_plugin.text.pipeline import (
    CHOICES,
    SubwordUnits,
    TextSettings,
    moses_detokenize,
    moses_tokenize,
    normalise_punctuation,
    remove_bpe,
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all steps."""
    parser = argparse.ArgumentParser(prog="python -m t2017_plugin.text.filters", description=__doc__)
    steps = parser.add_subparsers(dest="step", required=True, metavar="STEP")

    tokenize = steps.add_parser("tokenize", help="raw text to Moses tokens")
    tokenize.add_argument("--lang", required=True)
    tokenize.add_argument("--normalise-punctuation", action="store_true", help="as normalize-punctuation.perl, first")
    tokenize.add_argument("--aggressive-dash-splits", action="store_true", help="as tokenizer.perl -a")

    steps.add_parser("detokenize", help="Moses tokens to raw text").add_argument("--lang", required=True)

    apply = steps.add_parser("apply-bpe", help="words to BPE units")
    apply.add_argument("--codes", required=True, help="what subword-nmt learned")

    steps.add_parser("remove-bpe", help="BPE units to words")

    describe = steps.add_parser("describe", help="write text_settings.json into a data-bin (reads nothing from stdin)")
    describe.add_argument("--data-bin", required=True, help="the folder, which holds the codes")
    describe.add_argument("--source-lang", required=True)
    describe.add_argument("--target-lang", required=True)
    for name, choices in CHOICES.items():
        describe.add_argument(f"--{name}", choices=choices, default=choices[0])
    describe.add_argument("--bpe-codes", help="name of the codes in that folder")
    describe.add_argument("--normalise-punctuation", action="store_true")
    describe.add_argument("--aggressive-dash-splits", action="store_true")
    return parser


def step_of(args: argparse.Namespace) -> Callable[[str], str]:
    """Return the function of one line that a call asks for."""
    if args.step == "tokenize":
        return lambda line: moses_tokenize(
            normalise_punctuation(line, args.lang) if args.normalise_punctuation else line,
            args.lang,
            args.aggressive_dash_splits,
        )
    if args.step == "detokenize":
        return lambda line: moses_detokenize(line, args.lang)
    if args.step == "apply-bpe":
        return SubwordUnits(args.codes).apply
    return remove_bpe


def filter_lines(step: Callable[[str], str], source: BinaryIO, output: BinaryIO) -> int:
    """Send every line through a step and return how many there were.

    Raises:
        UsageError: a line is not UTF-8.
    """
    number = 0
    for number, line in enumerate(source, start=1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        text = decode_line(line.removesuffix(b"\n"), "stdin", number)
        output.write(without_line_ends(step(text)).encode("utf-8") + b"\n")
    output.flush()
    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run one step; exit status 1 with one line on stderr if it fails."""
    args = build_parser().parse_args(argv)
    try:
        if args.step == "describe":
            names = ("source_lang", "target_lang", "tokenizer", "normalise_punctuation", "aggressive_dash_splits")
            settings = TextSettings(
                **{name: getattr(args, name) for name in (*names, "bpe", "bpe_codes")},
            )
            print(settings.save(args.data_bin))
        else:
            filter_lines(step_of(args), sys.stdin.buffer, sys.stdout.buffer)
    except (UsageError, OSError) as error:
        print(f"text_pipeline {args.step}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
