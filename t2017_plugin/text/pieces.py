"""Very long lines in pieces that a model can take.

Attention needs memory with the square of a line's length, and a model has learned nothing about lines much longer than
those it was trained on (training pairs end at about 250 tokens). A line of more units than ``LONGEST_PIECE`` is cut at
sentence ends if there are any, else between words.
"""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_PIECE = 512  # units, EOS included
SENTENCE_ENDS = (".", "!", "?", "...", ";", ":", "。", "！", "？")
SEPARATOR = "@@"


def cut_into_pieces(units: Sequence[str], longest: int) -> list[Sequence[str]]:
    """Cut units into pieces of at most ``longest``; joined they are the same units. No units give no piece."""
    pieces = []
    start = 0
    while len(units) - start > longest:
        end = _cut(units, start, longest)
        pieces.append(units[start:end])
        start = end
    if start < len(units):
        pieces.append(units[start:])
    return pieces


def _cut(units: Sequence[str], start: int, longest: int) -> int:
    """Where the piece from ``start`` ends: after the last sentence end of its second half, else after the last word."""
    limit, half = start + longest, start + longest // 2
    for end in range(limit, half, -1):
        if units[end - 1] in SENTENCE_ENDS:
            return end
    for end in range(limit, half, -1):
        if not units[end - 1].endswith(SEPARATOR):
            return end
    return limit
