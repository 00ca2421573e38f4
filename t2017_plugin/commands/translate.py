"""``t2017 translate``: raw text in, raw text out, a line for a line."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from t2017_plugin.commands.arguments import add_search_arguments, at_least_one
from t2017_plugin.errors import UsageError
from t2017_plugin.files import LineInput
from t2017_plugin.paper.config import TRANSLATION_SEARCH
from t2017_plugin.parsing.symbols import form_of
from t2017_plugin.text.translator import Hypothesis, Translator

DESCRIPTION = """\
Translate raw text: every line of stdin gives one line of stdout, in order, whatever it holds (a line without words
gives an empty one). Lines are tokenised, cut into BPE units, translated and joined again with the settings that lie
beside the data in text_settings.json. From a file, lines are sorted into batches, and progress is reported on stderr;
from a pipe, what has come is translated at once.

The search is the paper's (section 6.1): beam 4, length penalty ((5 + length) / 6)^alpha with alpha 0.6.

With --scores a line is SCORE<tab>TEXT; the score is log P / length penalty in nats. With --nbest N above 1 a line
gives up to N lines, each LINE NUMBER<tab>[SCORE<tab>]TEXT, the best first.
"""
EPILOG = """\
examples:
  t2017 translate --checkpoint average.pt --data-bin data-bin < raw.en > raw.de
  echo "Hello ." | t2017 translate --checkpoint average.pt --data-bin data-bin --nbest 4 --scores
"""
UNKNOWN_SHARE = 0.01
PROGRESS_SECONDS = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 translate``."""
    add_search_arguments(parser, TRANSLATION_SEARCH, max_tokens=4000)
    parser.add_argument("--nbest", type=at_least_one, default=1, metavar="N", help="print the best N, at most the beam")
    parser.add_argument("--scores", action="store_true", help="print scores before the text")
    parser.add_argument("--tokenized", action="store_true", help="print Moses tokens rather than joined text")
    parser.add_argument(
        "--long-lines",
        choices=("pieces", "cut"),
        default="pieces",
        help="lines of more than 511 tokens (BPE units): translate them in pieces, or cut them off there "
        "(default: %(default)s); either is reported on stderr",
    )
    parser.set_defaults(wrong_call=parser.error)


def run(args: argparse.Namespace) -> int:
    """Translate stdin to stdout."""
    if args.nbest > args.beam:
        args.wrong_call(f"--nbest {args.nbest} is more than --beam {args.beam}")
    translator = Translator.load(
        args.checkpoint,
        args.data_bin,
        args.beam,
        args.alpha,
        args.max_tokens,
        device="cpu" if args.cpu else None,
        precision=args.precision,
        long_lines=args.long_lines,
    )
    refuse_parser(translator, args)
    source = LineInput(sys.stdin.buffer)
    progress = Progress()
    done = 0
    for lines in source.portions():
        progress.before, progress.total = done, source.total
        hypotheses = translator.hypotheses(lines, args.nbest, progress if source.is_file else None)
        text = "".join(printed(found, number, args) for number, found in enumerate(hypotheses, start=done + 1))
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
        done += len(lines)
    warn(translator, source.undecodable, args)
    return 0


def refuse_parser(translator: Translator, args: argparse.Namespace) -> None:
    """Stop where the model writes trees.

    Raises:
        UsageError: it does.
    """
    if form_of(translator.task.target_dictionary.symbols):
        raise UsageError(f"{args.checkpoint[0]} writes trees: use t2017 parse (with --linearised for its symbols)")


def printed(hypotheses: Sequence[Hypothesis], number: int, args: argparse.Namespace) -> str:
    """Return the output lines of one input line, whose number counts from 1."""
    lines = []
    for hypothesis in hypotheses:
        fields = [str(number)] if args.nbest > 1 else []
        if args.scores:
            fields.append(f"{hypothesis.score:.4f}")
        fields.append(hypothesis.words if args.tokenized else hypothesis.text)
        lines.append("\t".join(fields) + "\n")
    return "".join(lines)


class Progress:
    """Shows on stderr how many of a file's lines are done: a bar on a terminal, else a line now and then.

    Args:
        what: the word for it.
    """

    def __init__(self, what: str = "translated") -> None:
        self.what = what
        self.before = self.total = 0
        self.start = self.last_line = time.monotonic()
        self.bar: Any = None

    def __call__(self, done: int) -> None:
        """Show progress; ``done`` counts from the lines that were translated ``before``."""
        done += self.before
        if sys.stderr.isatty():
            self._draw(done)
            return
        now = time.monotonic()
        if now - self.last_line < PROGRESS_SECONDS and done < self.total:
            return
        self.last_line = now
        speed = done / max(now - self.start, 1e-9)
        print(f"{self.what} {done:,} of {self.total:,} lines ({speed:.1f} per second)", file=sys.stderr)

    def _draw(self, done: int) -> None:
        from tqdm import tqdm

        if self.bar is None:
            self.bar = tqdm(total=self.total, unit=" lines", desc=self.what, file=sys.stderr, smoothing=0)
        self.bar.update(done - self.bar.n)
        if done == self.total:
            self.bar.close()


def warn(translator: Translator, undecodable: Sequence[int], args: argparse.Namespace) -> None:
    """Say on stderr what may have made the translation worse than the model is."""
    share = translator.unknown / max(translator.units, 1)
    if share > UNKNOWN_SHARE:
        language = translator.pipeline.settings.source_lang
        print(
            f"warning: {share:.1%} of {translator.units:,} source tokens (BPE units) are not in the dictionary; "
            f"is the text {language}, and does {args.data_bin} belong to the model?",
            file=sys.stderr,
        )
    if translator.cut_lines:
        what = "cut off there" if args.long_lines == "cut" else "translated in pieces"
        print(
            f"warning: lines with more than {translator.longest} tokens (BPE units) were {what}: "
            f"{translator.cut_lines}",
            file=sys.stderr,
        )
    warn_undecodable(undecodable)


def warn_undecodable(undecodable: Sequence[int]) -> None:
    """Say on stderr which lines were not UTF-8."""
    if undecodable:
        print(
            f"warning: lines that are not UTF-8: {len(undecodable)}, the first is line {undecodable[0]}; "
            "their wrong bytes became U+FFFD",
            file=sys.stderr,
        )
