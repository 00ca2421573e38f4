"""Scores of trees as lines of text."""

from __future__ import annotations

from collections.abc import Mapping

from t2017_plugin.parsing.evalb import Scores

ROWS = {
    "F1": "f1",
    "recall": "recall",
    "precision": "precision",
    "complete match": "complete_match",
    "tagging accuracy": "tagging",
    "average crossing": "average_crossing",
    "no crossing": "no_crossing",
}
COUNTS = {"sentences": "sentences", "compared": "compared", "skipped (no parse)": "skipped", "failed": "failed"}


def table(columns: Mapping[str, Scores]) -> list[str]:
    """The figures side by side, a column for each; percent with two digits as EVALB prints them."""
    figures = {name: scores.as_dict() for name, scores in columns.items()}
    widths = [max(len(name), 9) for name in columns]
    heads = "  ".join(f"{name:>{width}}" for name, width in zip(columns, widths, strict=True))
    lines = [f"{'':20}{heads}"]
    for rows, form in ((ROWS, ".2f"), (COUNTS, ",")):
        for name, key in rows.items():
            cells = (f"{found[key]:>{width}{form}}" for found, width in zip(figures.values(), widths, strict=True))
            lines.append(f"{name:20}" + "  ".join(cells))
    return lines


def failures(scores: Scores, most: int = 10) -> list[str]:
    """A line for each sentence that could not be compared, up to ``most``."""
    lines = [f"sentence {number}: {reason}" for number, reason in list(scores.errors.items())[:most]]
    if len(scores.errors) > most:
        lines.append(f"... and {len(scores.errors) - most} more")
    return lines
