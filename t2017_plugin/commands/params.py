"""``t2017 params``: how many parameters an architecture has, by formula and as built."""

from __future__ import annotations

import argparse
import json
from typing import Any

from t2017_plugin.experiments.size_and_cost import (
    PAPERS_VOCABULARY,
    count_built,
    count_by_formula,
    printed_millions,
)
from t2017_plugin.fairseq_side.architectures import ARCHITECTURES, architecture_settings
from t2017_plugin.paper.table3 import AUTHORS_VOCABULARY

DESCRIPTION = """\
Count parameters twice: by hand from the equations of sections 3.1 to 3.4, and in a model that is built.

The default vocabulary of 40,960 is the authors'; with it base has 65,073,152 parameters and big 218,226,688. The
paper says "about 37,000", but the sizes it prints in Table 3 fit 40,960 and not 37,000 (big's 213M fits neither).
"""
VOCABULARIES = (AUTHORS_VOCABULARY, PAPERS_VOCABULARY)
REMARKS = """\
The printed sizes are those of the authors' graph at 40,960 symbols, which has biases on attention and a target-space
table that the paper does not describe. Without them every row rounds to the printed size at 40,960 but two: C with
d_ff 1024 (printed 53M; with biases and table 52.53M), and big (printed 213M, which neither vocabulary gives)."""
SIZES = ("layers", "d_model", "d_ff", "heads", "d_k", "d_v")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 params``."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--arch",
        choices=ARCHITECTURES,
        default="t2017_base",
        metavar="ARCH",
        help="a registered architecture (default: %(default)s)",
    )
    which.add_argument("--table3", action="store_true", help="all rows of Table 3 that are registered")
    parser.add_argument(
        "--vocab",
        type=int,
        metavar="V",
        help="symbols of the shared dictionary (default: 40960; with --table3 both 40960 and 37000)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the counts of one architecture by part, or a table of many."""
    if args.table3:
        vocabularies = (args.vocab,) if args.vocab else VOCABULARIES
        rows = [
            {**counted(name, vocabulary), "printed_millions": printed}
            for vocabulary in vocabularies
            for name, printed in printed_millions().items()
        ]
        print(json.dumps(rows, indent=2) if args.json else as_table(rows))
        return 0
    row = counted(args.arch, args.vocab or AUTHORS_VOCABULARY)
    print(json.dumps(row, indent=2) if args.json else as_breakdown(row))
    return 0


def counted(arch: str, vocabulary: int) -> dict[str, Any]:
    """Return the sizes and both counts of an architecture.

    Raises:
        UsageError: the vocabulary is too small.
    """
    chosen = architecture_settings(arch)
    built, formula = count_built(chosen, vocabulary), count_by_formula(chosen, vocabulary)
    return {
        "arch": arch,
        "vocabulary": vocabulary,
        **{name: chosen[name] for name in SIZES},
        "formula": {"total": sum(formula.values()), **formula},
        "built": {"total": sum(built.values()), **built},
    }


def as_breakdown(row: dict[str, Any]) -> str:
    """Return one architecture as text, a line for each part."""
    sizes = ", ".join(f"{name} {row[name]}" for name in SIZES)
    lines = [f"{row['arch']} with {row['vocabulary']:,} symbols ({sizes})", f"{'':34}{'formula':>14}{'built':>14}"]
    for part in (*list(row["formula"])[1:], "total"):
        if row["formula"][part] or row["built"][part]:
            lines.append(f"{part:34}{row['formula'][part]:>14,}{row['built'][part]:>14,}")
    return "\n".join(lines)


def as_table(rows: list[dict[str, Any]]) -> str:
    """Return many architectures as text, a line each: sizes, both counts per vocabulary, and what Table 3 prints."""
    names = {"layers": "N", "heads": "h"}
    vocabularies = list(dict.fromkeys(row["vocabulary"] for row in rows))
    counts = {(row["arch"], row["vocabulary"]): row for row in rows}
    heading = "".join(f"{names.get(name, name):>8}" for name in SIZES)
    columns = "".join(f"{f'V = {vocabulary:,}':>14}{'built':>13}" for vocabulary in vocabularies)
    lines = [f"{'arch':16}{heading}{columns}{'Table 3':>9}"]
    for row in rows[: len(rows) // len(vocabularies)]:
        printed = f"{row['printed_millions']}M" if row["printed_millions"] else "-"
        sizes = "".join(f"{row[name]:>8}" for name in SIZES)
        totals = ""
        for vocabulary in vocabularies:
            count = counts[row["arch"], vocabulary]
            totals += f"{count['formula']['total']:>14,}{count['built']['total']:>13,}"
        lines.append(f"{row['arch']:16}{sizes}{totals}{printed:>9}")
    return "\n".join([*lines, "", REMARKS])
