"""A tree as the symbols a model writes, in one of two forms; words become their tags.

    (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .))

    t2t       S NP DT NN /NP VP VBD /VP . /S            the authors' code
    vinyals   (S (NP XX XX )NP (VP XX )VP XX )S         Vinyals et al. (2015), tags made one

The authors' form tells a constituent from a tag only by the closing symbol that follows some day, so both sets of names
have to be disjoint, as they are in the treebank.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from nltk.tree import Tree

from t2017_plugin.parsing.cleaning import without_function_tags, without_top
from t2017_plugin.parsing.treebank import is_preterminal

FORMS = ("t2t", "vinyals")
ANY_TAG = "XX"
# The treebank's phrases, so that a symbol whose closing a model forgot is still known for what it is.
PHRASES = frozenset(
    "ADJP ADVP CONJP FRAG INTJ LST NAC NP NX PP PRN PRT QP RRC S SBAR SBARQ SINV SQ UCP VP".split()
    + "WHADJP WHADVP WHNP WHPP X".split()
)


class Kind(Enum):
    """What a symbol does."""

    OPEN = "open"
    CLOSE = "close"
    TAG = "tag"


class Symbol(NamedTuple):
    """A symbol taken apart: what it does and the label or tag it names."""

    kind: Kind
    name: str


def linearise(tree: Tree, form: str = "t2t") -> list[str]:
    """Write a tree as symbols, its outermost TOP left out. Clean the tree first: function tags and traces stay.

    >>> " ".join(linearise(Tree.fromstring("(TOP (INTJ (UH Yes)))")))
    'INTJ UH /INTJ'
    """
    opening, closing = ("{}", "/{}") if form == "t2t" else ("({}", "){}")
    symbols: list[str] = []
    stack: list[Tree | str] = [without_top(tree)]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            symbols.append(node)
        elif is_preterminal(node):
            symbols.append(node.label() if form == "t2t" else ANY_TAG)
        else:
            symbols.append(opening.format(node.label()))
            stack.append(closing.format(node.label()))
            stack += reversed(node)
    return symbols


def taken_apart(symbols: Sequence[str], form: str = "t2t") -> list[Symbol]:
    """Tell what each symbol does; whatever is neither an opening nor a closing stands for a word."""
    if form == "vinyals":
        return [_of_vinyals(symbol) for symbol in symbols]
    closed = {symbol[1:] for symbol in symbols if symbol[0] == "/" and len(symbol) > 1}
    apart = []
    for symbol in symbols:
        if symbol[0] == "/" and len(symbol) > 1:
            apart.append(Symbol(Kind.CLOSE, symbol[1:]))
        elif symbol in closed or without_function_tags(symbol) in PHRASES:
            apart.append(Symbol(Kind.OPEN, symbol))
        else:
            apart.append(Symbol(Kind.TAG, symbol))
    return apart


def _of_vinyals(symbol: str) -> Symbol:
    kinds = {"(": Kind.OPEN, ")": Kind.CLOSE}
    if symbol[0] in kinds and len(symbol) > 1:
        return Symbol(kinds[symbol[0]], symbol[1:])
    return Symbol(Kind.TAG, symbol)
