"""Tables in Markdown, for every report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

RULES = {"l": "---", "r": "---:", "c": ":---:"}


def table(heading: Sequence[object], rows: Iterable[Sequence[object]], align: str | None = None) -> str:
    """Return a Markdown table, without a line feed at its end.

    Args:
        heading: the names of the columns; an empty one stands over the names of the rows.
        rows: as many cells each; a bar in a cell is escaped, a line feed becomes a space.
        align: ``l``, ``r`` or ``c`` for each column; without it the first is left, the others right.

    Raises:
        ValueError: a row or ``align`` has another number of columns than the heading.
    """
    columns = len(heading)
    align = "l" + "r" * (columns - 1) if align is None else align
    lines = [_line(map(_cell, heading))]
    if len(align) != columns:
        raise ValueError(f"align {align!r} is for {len(align)} columns, the heading has {columns}")
    lines.append("|" + "|".join(RULES[letter] for letter in align) + "|")
    for row in rows:
        if len(row) != columns:
            raise ValueError(f"a row has {len(row)} cells, the heading {columns}: {list(row)}")
        lines.append(_line(map(_cell, row)))
    return "\n".join(lines)


def _cell(content: object) -> str:
    return " ".join(str(content).split()).replace("|", "\\|")


def _line(cells: Iterable[str]) -> str:
    # An empty cell is one space, so that a table without names of rows begins with "| |".
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
