"""``t2017 params``: how many parameters an architecture has, by formula and as built."""

from __future__ import annotations

import argparse
import json
from typing import Any

SUMMARY = "count the parameters of an architecture, by the paper's equations and in the built model"
DESCRIPTION = """\
Count parameters twice: by hand from the equations of sections 3.1 to 3.4, and in a model that is built.

The default vocabulary of 40,960 is the authors'; with it base has 65,073,152 parameters and big 218,226,688. The
paper says "about 37,000", but the sizes it prints in Table 3 fit 40,960 and not 37,000 (big's 213M fits neither).
"""
SIZES = ("layers", "d_model", "d_ff", "heads", "d_k", "d_v")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 params``."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--arch", default="t2017_base", metavar="ARCH", help="a registered architecture (default: %(default)s)"
    )
    which.add_argument("--table3", action="store_true", help="all rows of Table 3 that are registered")
    parser.add_argument(
        "--vocab", type=int, default=40960, metavar="V", help="symbols of the shared dictionary (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the counts of one architecture by part, or a table of many."""
    from t2017_plugin.parameters import table_3

    if args.table3:
        rows = [{**counted(name, args.vocab), "printed_millions": printed} for name, printed in table_3().items()]
        print(json.dumps(rows, indent=2) if args.json else as_table(rows))
        return 0
    row = counted(args.arch, args.vocab)
    print(json.dumps(row, indent=2) if args.json else as_breakdown(row))
    return 0


def counted(arch: str, vocabulary: int) -> dict[str, Any]:
    """Sizes and both counts of an architecture.

    Raises:
        UsageError: there is no such architecture (those there are get named), or the vocabulary is too small.
    """
    from t2017_plugin.errors import UsageError
    from t2017_plugin.models.architectures import ARCHITECTURES, settings
    from t2017_plugin.parameters import count_built, count_by_formula

    if arch not in ARCHITECTURES:
        raise UsageError(f"no architecture {arch!r}; there are {', '.join(ARCHITECTURES)}")
    chosen = settings(arch)
    built, formula = count_built(chosen, vocabulary), count_by_formula(chosen, vocabulary)
    return {
        "arch": arch,
        "vocabulary": vocabulary,
        **{name: chosen[name] for name in SIZES},
        "formula": {"total": sum(formula.values()), **formula},
        "built": {"total": sum(built.values()), **built},
    }


def as_breakdown(row: dict[str, Any]) -> str:
    """One architecture, a line a part."""
    sizes = ", ".join(f"{name} {row[name]}" for name in SIZES)
    lines = [f"{row['arch']} with {row['vocabulary']:,} symbols ({sizes})", f"{'':34}{'formula':>14}{'built':>14}"]
    for part in (*list(row["formula"])[1:], "total"):
        if row["formula"][part] or row["built"][part]:
            lines.append(f"{part:34}{row['formula'][part]:>14,}{row['built'][part]:>14,}")
    return "\n".join(lines)


def as_table(rows: list[dict[str, Any]]) -> str:
    """Many architectures, a line each, with what Table 3 prints."""
    names = {"layers": "N", "heads": "h"}
    heading = "".join(f"{names.get(name, name):>8}" for name in SIZES)
    lines = [f"{'arch':18}{heading}{'formula':>14}{'built':>14}{'Table 3':>9}"]
    for row in rows:
        printed = f"{row['printed_millions']}M" if row["printed_millions"] else "-"
        sizes = "".join(f"{row[name]:>8}" for name in SIZES)
        lines.append(f"{row['arch']:18}{sizes}{row['formula']['total']:>14,}{row['built']['total']:>14,}{printed:>9}")
    lines.append(f"with {rows[0]['vocabulary']:,} symbols in one shared dictionary")
    return "\n".join(lines)
