"""Which tag belongs to which word when a model wrote too many or too few: the two sequences aligned at punctuation."""

from __future__ import annotations

from collections.abc import Sequence

from t2017_plugin.parsing.punctuation import DELETED_TAGS, TAG_OF_MARK

# Cost of a pair of which only one side is punctuation: worse than leaving the tag out and adding the word.
MISMATCH = 3
GAP = 1
# A line of thousands of words is paired in order instead: the table of costs would take minutes and gigabytes.
MOST_CELLS = 1_000_000


def align(tags: Sequence[str], words: Sequence[str]) -> tuple[list[int | None], dict[int, list[int]]]:
    """Pair tags with words in order, with the fewest left over, and punctuation with punctuation.

    Returns:
        for each tag the number of its word or None; and by the number of a tag (-1: before the first) the numbers of
        the words without one that follow it.
    """
    if len(tags) == len(words) or len(tags) * len(words) > MOST_CELLS:
        return _in_order(len(tags), len(words))
    cost = _costs(tags, words)
    partner: list[int | None] = [None] * len(tags)
    added: dict[int, list[int]] = {}
    i, j = len(tags), len(words)
    while i or j:
        # Of equally good alignments the one whose surplus comes late.
        if i and cost[i][j] == cost[i - 1][j] + GAP:
            i -= 1
        elif j and cost[i][j] == cost[i][j - 1] + GAP:
            j -= 1
            added.setdefault(i - 1, []).insert(0, j)
        else:
            i, j = i - 1, j - 1
            partner[i] = j
    return partner, added


def _in_order(tags: int, words: int) -> tuple[list[int | None], dict[int, list[int]]]:
    partner = [number if number < words else None for number in range(tags)]
    return partner, {tags - 1: list(range(tags, words))} if words > tags else {}


def _pair(tag: str, word: str) -> int:
    if word in TAG_OF_MARK:
        return 0 if tag == TAG_OF_MARK[word] else MISMATCH
    return MISMATCH if tag in DELETED_TAGS else 0


def _costs(tags: Sequence[str], words: Sequence[str]) -> list[list[int]]:
    """The least cost of aligning the first i tags with the first j words, for all i and j."""
    rows = [[j * GAP for j in range(len(words) + 1)]]
    for i, tag in enumerate(tags, start=1):
        above, row = rows[-1], [i * GAP]
        for j, word in enumerate(words, start=1):
            row.append(min(above[j - 1] + _pair(tag, word), above[j] + GAP, row[-1] + GAP))
        rows.append(row)
    return rows
