"""``t2017 parse``: sentences in, constituency trees out, one a line."""

from __future__ import annotations

import argparse
import sys

from t2017_plugin.commands.arguments import add_search_arguments
from t2017_plugin.commands.translate import Progress, warn_undecodable
from t2017_plugin.files import LineInput
from t2017_plugin.paper.config import PARSING_SEARCH
from t2017_plugin.parsing.linearisation import Repairs
from t2017_plugin.parsing.parser import Parser, treebank_tokens
from t2017_plugin.parsing.trees import one_line

DESCRIPTION = f"""\
Parse sentences: every line of stdin gives one line of stdout, in order, whatever it holds: a bracketed tree with
exactly its words; a line without words gives an empty one. Words stand between spaces, tokenised as in the Penn
Treebank ("do n't", "-LRB-"); with --tokenize they are made from raw text. Round brackets in words are written -LRB-
and -RRB-. What the model writes is repaired where it is no tree, and repairs are reported on stderr.

The search is the paper's (section 6.3): beam {PARSING_SEARCH.beam}, length penalty ((5 + length) / 6)^alpha with alpha
{PARSING_SEARCH.alpha}, at most {PARSING_SEARCH.extra} symbols more than the sentence has tokens (BPE units).
"""
EPILOG = """\
examples:
  t2017 parse --checkpoint average.pt --data-bin data-bin < sentences > trees
  echo "The cat sat on the mat ." | t2017 parse --checkpoint average.pt --data-bin data-bin
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 parse``."""
    add_search_arguments(parser, PARSING_SEARCH, max_tokens=1000)
    parser.add_argument(
        "--tokenize", action="store_true", help="the sentences are raw text: make treebank tokens first"
    )
    parser.add_argument("--linearised", action="store_true", help="print the symbols the model writes, not repaired")


def run(args: argparse.Namespace) -> int:
    """Parse stdin to stdout."""
    device = "cpu" if args.cpu else None
    parser = Parser.load(args.checkpoint, args.data_bin, args.beam, args.alpha, args.max_tokens, device, args.precision)
    source = LineInput(sys.stdin.buffer)
    progress = Progress("parsed")
    repaired: list[Repairs] = []
    done = 0
    for lines in source.portions():
        progress.before, progress.total = done, source.total
        report = progress if source.is_file else None
        sentences = [treebank_tokens(line) for line in lines] if args.tokenize else lines
        if args.linearised:
            results = parser.symbols(sentences, report)
        else:
            parsed = parser.parse_with_repairs(sentences, report)
            results = [one_line(tree) if tree is not None else "" for tree, _ in parsed]
            repaired += [repairs for tree, repairs in parsed if tree is not None]
        sys.stdout.buffer.write("".join(f"{line}\n" for line in results).encode("utf-8"))
        sys.stdout.buffer.flush()
        done += len(lines)
    warn(parser, source.undecodable, repaired)
    return 0


def warn(parser: Parser, undecodable: list[int], repaired: list[Repairs]) -> None:
    """Report on stderr what was repaired, cut or not readable."""
    bad = sum(not repairs.well_formed for repairs in repaired)
    if bad:
        print(f"repaired: the symbols of {bad:,} of {len(repaired):,} sentences were no whole tree", file=sys.stderr)
    translator = parser.translator
    if translator.cut_lines:
        print(
            f"warning: sentences with more than {translator.longest} tokens (BPE units) were parsed in pieces, which "
            f"are joined under one S: {translator.cut_lines}",
            file=sys.stderr,
        )
    warn_undecodable(undecodable)
