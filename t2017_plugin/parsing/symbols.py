"""The symbols of linearised trees (section 6.3), and which tag belongs to which word; strings alone, no trees.

    (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))

    t2t       S NP DT NN /NP VP VBD /VP . /S            the authors' code
    vinyals   (S (NP XX XX )NP (VP XX )VP XX )S         Vinyals et al. (2015), all tags made one

In the authors' form only the closing symbol that follows later distinguishes a constituent from a
tag, so both sets of names have to be disjoint, as they are in the Penn Treebank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

FORMS = ("t2t", "vinyals")
# The tag of a word whose tag is not known.
ANY_TAG = "XX"
# The treebank's phrases, so that a constituent whose closing symbol a model forgot is still known as one.
PHRASES = frozenset(
    "ADJP ADVP CONJP FRAG INTJ LST NAC NP NX PP PRN PRT QP RRC S SBAR SBARQ SINV SQ UCP VP".split()
    + "WHADJP WHADVP WHNP WHPP X".split()
)
FUNCTION_TAG = re.compile(r"(?<=.)[-=].*")
# The tags of punctuation, which EVALB's COLLINS.prm leaves out, and the marks that the treebank tags so.
PUNCTUATION_TAGS = frozenset({",", ":", "``", "''", "."})
TAG_OF_MARK = {
    **dict.fromkeys((".", "?", "!"), "."),
    **dict.fromkeys((",",), ","),
    **dict.fromkeys((":", ";", "--", "...", "-", "–", "—", "…"), ":"),
    **dict.fromkeys(("``", "`", "“", "‘"), "``"),
    **dict.fromkeys(("''", '"', "”"), "''"),
}
# Quotation marks or possessives: the sentence decides.
APOSTROPHES = frozenset({"'", "’"})
# Costs of aligning tags with words. A pair of which only one side is punctuation is worse than
# leaving the tag out and adding the word.
MISMATCH = 3
GAP = 1
# Longer lines are paired in order: the table of costs would take minutes and gigabytes.
MOST_CELLS = 1_000_000


class Kind(Enum):
    """What a symbol does."""

    OPEN = "open"
    CLOSE = "close"
    TAG = "tag"


class Symbol(NamedTuple):
    """What a symbol does, and the label or tag it names."""

    kind: Kind
    name: str


def form_of(symbols: Iterable[str]) -> str | None:
    """Return the form of linearised tree that a target dictionary is of, None for a dictionary of words.

    It is of trees where at least two symbols, and 5 % of all, open a constituent and the symbol that
    closes it is there too.
    """
    known = set(symbols)
    pairs = {
        "t2t": sum(f"/{symbol}" in known for symbol in known),
        "vinyals": sum(symbol[0] == "(" and f"){symbol[1:]}" in known for symbol in known if len(symbol) > 1),
    }
    form = max(pairs, key=lambda name: pairs[name])
    return form if pairs[form] >= 2 and pairs[form] >= 0.05 * len(known) else None


def parse_symbols(symbols: Sequence[str], form: str = "t2t") -> list[Symbol]:
    """Find out what each symbol does; whatever is neither an opening nor a closing stands for a word."""
    if form == "vinyals":
        return [_of_vinyals(symbol) for symbol in symbols]
    closed = {symbol[1:] for symbol in symbols if symbol[0] == "/" and len(symbol) > 1}
    parsed = []
    for symbol in symbols:
        if symbol[0] == "/" and len(symbol) > 1:
            parsed.append(Symbol(Kind.CLOSE, symbol[1:]))
        elif symbol in closed or without_function_tags(symbol) in PHRASES:
            parsed.append(Symbol(Kind.OPEN, symbol))
        else:
            parsed.append(Symbol(Kind.TAG, symbol))
    return parsed


def _of_vinyals(symbol: str) -> Symbol:
    kinds = {"(": Kind.OPEN, ")": Kind.CLOSE}
    if symbol[0] in kinds and len(symbol) > 1:
        return Symbol(kinds[symbol[0]], symbol[1:])
    return Symbol(Kind.TAG, symbol)


def without_function_tags(label: str) -> str:
    """Return the plain label: ``NP`` for ``NP-SBJ-1``; one that begins with a hyphen, such as ``-LRB-``, stays."""
    return label if label.startswith("-") else FUNCTION_TAG.sub("", label)


def treebank_tag(tag: str, word: str) -> str:
    """Return the treebank's tag of a punctuation mark; other words keep their tag, unless it is punctuation's."""
    if word in TAG_OF_MARK:
        return TAG_OF_MARK[word]
    if tag in PUNCTUATION_TAGS and word not in APOSTROPHES:
        return ANY_TAG
    return tag


def align(tags: Sequence[str], words: Sequence[str]) -> tuple[list[int | None], dict[int, list[int]]]:
    """Pair tags with words in order, with the fewest left over, and punctuation with punctuation.

    Returns:
        for each tag the number of its word or None; and by the number of a tag (-1: before the
        first) the numbers of the words without a tag that follow it.
    """
    if len(tags) == len(words) or len(tags) * len(words) > MOST_CELLS:
        in_order = [number if number < len(words) else None for number in range(len(tags))]
        surplus = list(range(len(tags), len(words)))
        return in_order, {len(tags) - 1: surplus} if surplus else {}
    cost = _least_costs(tags, words)
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


def _pair_cost(tag: str, word: str) -> int:
    if word in TAG_OF_MARK:
        return 0 if tag == TAG_OF_MARK[word] else MISMATCH
    return MISMATCH if tag in PUNCTUATION_TAGS else 0


def _least_costs(tags: Sequence[str], words: Sequence[str]) -> list[list[int]]:
    """Compute the least cost of aligning the first i tags with the first j words, for all i and j."""
    rows = [[j * GAP for j in range(len(words) + 1)]]
    for i, tag in enumerate(tags, start=1):
        above, row = rows[-1], [i * GAP]
        for j, word in enumerate(words, start=1):
            row.append(min(above[j - 1] + _pair_cost(tag, word), above[j] + GAP, row[-1] + GAP))
        rows.append(row)
    return rows
