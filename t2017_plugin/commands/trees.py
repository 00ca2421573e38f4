"""``t2017 trees``: trees to symbols and back, scored, and drawn."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from t2017_plugin.commands.arguments import at_least_one
from t2017_plugin.errors import UsageError
from t2017_plugin.files import decode_line, read_lines, whole_or_nothing
from t2017_plugin.parsing.evalb import COLLINS, evaluate, failures, read_rules, score_table
from t2017_plugin.parsing.linearisation import linearise, rebuild, summarise
from t2017_plugin.parsing.symbols import FORMS
from t2017_plugin.parsing.trees import (
    as_svg,
    as_text,
    clean,
    one_line,
    read_tree_lines,
    read_trees,
    right_branching,
    treebank_files,
    trees_of,
    without_top,
    words,
    write_png,
)

DESCRIPTION = """\
Work with bracketed trees (section 6.3). Files are those of the Penn Treebank or hold one tree a line.

  linearise  trees to the symbols that a model is trained to write, one line a tree
  rebuild    symbols and words back to trees, repaired where they are none
  score      labelled precision, recall and F1 as EVALB counts them with COLLINS.prm
  show       a tree drawn as text, SVG or PNG
"""
EPILOG = """\
examples:
  t2017 trees linearise wsj_0001.mrg --words words.txt > symbols.txt
  t2017 trees rebuild --words words.txt < symbols.txt > trees.txt
  t2017 trees score --gold gold.txt --test trees.txt
  t2017 trees show trees.txt --number 3 --svg tree.svg
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of ``t2017 trees``."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    linearise = actions.add_parser("linearise", help="trees to symbols")
    linearise.add_argument("trees", nargs="+", metavar="FILE", help="a file of trees, or a folder of .mrg files")
    linearise.add_argument("--words", metavar="FILE", help="write the words of each tree there, a line each")
    linearise.add_argument("--gold", metavar="FILE", help="write the clean trees there, a line each")
    linearise.add_argument("--as-is", action="store_true", help="keep function tags and traces")
    linearise.set_defaults(act=run_linearise)

    rebuild = actions.add_parser("rebuild", help="symbols and words to trees")
    rebuild.add_argument("symbols", nargs="?", default="-", metavar="FILE", help="symbols (default: stdin)")
    rebuild.add_argument("--words", required=True, metavar="FILE", help="the words, a line for each line of symbols")
    rebuild.add_argument("--json", metavar="FILE", help="write there what was repaired, and how often")
    rebuild.add_argument("--keep-tags", action="store_true", help="do not give punctuation the treebank's tags")
    rebuild.set_defaults(act=run_rebuild)
    for action in (linearise, rebuild):
        action.add_argument("--form", choices=FORMS, default=FORMS[0], help="the symbols' form (default: %(default)s)")

    score = actions.add_parser("score", help="labelled brackets as EVALB counts them")
    score.add_argument("--gold", required=True, metavar="FILE", help="the right trees, a line each")
    score.add_argument("--test", required=True, metavar="FILE", help="the parses, a line each")
    score.add_argument("--param", metavar="FILE", help="an EVALB parameter file (default: what COLLINS.prm says)")
    score.add_argument("--baseline", action="store_true", help="also score right-branching trees over the gold words")
    score.add_argument("--json", action="store_true", help="print one JSON object")
    score.set_defaults(act=run_score)

    show = actions.add_parser("show", help="draw a tree")
    show.add_argument("trees", nargs="?", default="-", metavar="FILE", help="a file of trees (default: stdin)")
    show.add_argument(
        "--number", type=at_least_one, default=1, metavar="N", help="which tree, from 1 (default: %(default)s)"
    )
    picture = show.add_mutually_exclusive_group()
    picture.add_argument("--svg", metavar="FILE", help="write an SVG picture there instead of text on stdout")
    picture.add_argument("--png", metavar="FILE", help="write a PNG picture there")
    show.set_defaults(act=run_show)


def run(args: argparse.Namespace) -> int:
    """Do what the action says."""
    return int(args.act(args))


def run_linearise(args: argparse.Namespace) -> int:
    """Print the symbols of each tree, and write words and clean trees where asked to."""
    files = [file for path in args.trees for file in (treebank_files(path) if Path(path).is_dir() else [Path(path)])]
    read = [tree for file in files for tree in read_trees(file)]
    if not read:
        raise UsageError(f"{', '.join(args.trees)}: there is no tree in it")
    trees = [tree for tree in (without_top(tree) if args.as_is else clean(tree) for tree in read) if tree is not None]
    for path, written in ((args.words, lambda tree: " ".join(words(tree))), (args.gold, one_line)):
        if path:
            write_lines(path, map(written, trees))
    write_lines("-", (" ".join(linearise(tree, args.form)) for tree in trees))
    if len(read) != len(trees):
        print(f"left out, no word but traces: {len(read) - len(trees)}", file=sys.stderr)
    return 0


def run_rebuild(args: argparse.Namespace) -> int:
    """Print one tree for each line of words, and report what was repaired."""
    sentences, symbols = read_lines(args.words), input_lines(args.symbols)
    if len(sentences) != len(symbols):
        where = "stdin" if args.symbols == "-" else args.symbols
        raise UsageError(f"{args.words} has {len(sentences)} lines and {where} has {len(symbols)}; a line each")
    rebuilt = [
        rebuild(line.split(), sentence.split(), args.form, not args.keep_tags)
        for line, sentence in zip(symbols, sentences, strict=True)
    ]
    write_lines("-", ("" if tree is None else one_line(tree) for tree, _ in rebuilt))
    facts = summarise([repairs for tree, repairs in rebuilt if tree is not None])
    print(
        f"well-formed before repair: {facts['well_formed']:,} of {facts['sentences']:,} "
        f"({facts['well_formed_percent']:.1f} %); one tree of any number of words: {facts['balanced']:,}",
        file=sys.stderr,
    )
    if args.json:
        with whole_or_nothing(args.json) as unfinished:
            unfinished.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    return 0


def run_score(args: argparse.Namespace) -> int:
    """Print the figures over all sentences and over the short ones."""
    rules = read_rules(args.param) if args.param else COLLINS
    gold, test = read_tree_lines(args.gold), read_tree_lines(args.test)
    columns = dict(zip(("all", f"at most {rules.cut_off} words"), evaluate(gold, test, rules), strict=True))
    if args.baseline:
        branching = evaluate(gold, [[right_branching(tree) for tree in line] for line in gold], rules)[0]
        columns["right-branching, all"] = branching
    if args.json:
        keys = ("all", "short", "right_branching")
        print(json.dumps(dict(zip(keys, (scores.as_dict() for scores in columns.values()), strict=False)), indent=2))
        return 0
    print("\n".join(score_table(columns)))
    print("".join(f"{line}\n" for line in failures(columns["all"])), end="", file=sys.stderr)
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Draw one tree."""
    where = "stdin" if args.trees == "-" else args.trees
    trees = trees_of(input_lines(args.trees), where)
    if not 1 <= args.number <= len(trees):
        raise UsageError(f"{where} has {len(trees)} trees, and --number is {args.number}")
    tree = trees[args.number - 1]
    if args.svg:
        with whole_or_nothing(args.svg) as unfinished:
            unfinished.write_text(as_svg(tree), encoding="utf-8")
    elif args.png:
        with whole_or_nothing(args.png) as unfinished:
            write_png(tree, unfinished)
    else:
        print(as_text(tree))
    return 0


def input_lines(path: str) -> list[str]:
    """Read the lines of a file, or of stdin for ``-``."""
    if path != "-":
        return read_lines(path)
    lines = sys.stdin.buffer.read().split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, "stdin", number) for number, line in enumerate(lines, start=1)]


def write_lines(path: str, lines: Iterable[str]) -> None:
    """Write lines to a file, whole or not at all, or to stdout for ``-``."""
    text = "".join(f"{line}\n" for line in lines)
    if path == "-":
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
        return
    with whole_or_nothing(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8", newline="\n")
