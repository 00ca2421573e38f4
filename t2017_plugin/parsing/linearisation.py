"""A tree as the symbols a model writes, and from symbols and words back to a tree.

:func:`rebuild` always gives one whole tree with exactly the words of the sentence. What the model
wrote wrongly is repaired, and every repair is counted:

- a closing symbol without its opening is left out; one that skips inner constituents closes them too;
- what is open at the end is closed; constituents without words are left out;
- tags and words of different number are aligned at the punctuation: surplus tags are left out, words
  without a tag are put beside their left neighbour;
- several trees, or words outside of any constituent, are put under one S.

Punctuation marks get the treebank's tag and other words none of punctuation's: scoring leaves
punctuation out by tag, and cannot compare a sentence where the two sides leave out different words.
This is counted apart.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from nltk.tree import Tree

from t2017_plugin.parsing.symbols import ANY_TAG, Kind, Symbol, align, parse_symbols, treebank_tag
from t2017_plugin.parsing.trees import escape, is_preterminal, without_top

# The constituent that several trees are put under.
JOINING = "S"


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


@dataclass
class Repairs:
    """How often each repair was made; all zero for a well-formed sequence of the right length."""

    closings_left_out: int = 0
    closings_added: int = 0
    empty_constituents: int = 0
    tags_left_out: int = 0
    words_added: int = 0
    joined_under_one: int = 0
    punctuation_tags: int = 0

    @property
    def well_formed(self) -> bool:
        """Whether the symbols were one tree with as many tags as there are words; wrong tags do not matter."""
        counts = dataclasses.asdict(self)
        return not any(count for name, count in counts.items() if name != "punctuation_tags")

    @property
    def balanced(self) -> bool:
        """Whether the symbols were one tree, of whatever number of words."""
        return not (self.closings_left_out or self.closings_added or self.empty_constituents or self.joined_under_one)


def summarise(repaired: Sequence[Repairs]) -> dict[str, int | float]:
    """Count the sentences that were well-formed before repair, in percent too, and each kind of repair."""
    well_formed = sum(repairs.well_formed for repairs in repaired)
    names = [field.name for field in dataclasses.fields(Repairs)]
    return {
        "sentences": len(repaired),
        "well_formed": well_formed,
        "well_formed_percent": 100 * well_formed / len(repaired) if repaired else 0.0,
        "balanced": sum(repairs.balanced for repairs in repaired),
        **{name: sum(getattr(repairs, name) for repairs in repaired) for name in names},
    }


def rebuild(
    symbols: Sequence[str], words: Sequence[str], form: str = "t2t", punctuation: bool = True
) -> tuple[Tree | None, Repairs]:
    """Put words into the tree that symbols describe; None when there are no words.

    Args:
        symbols: what the model wrote.
        words: what it read; round brackets in them are escaped.
        form: that of the symbols, see :mod:`~t2017_plugin.parsing.symbols`.
        punctuation: give punctuation marks the treebank's tags, and no other word one of those.
    """
    repairs = Repairs()
    parsed = parse_symbols(symbols, form)
    if not words:
        repairs.tags_left_out = sum(symbol.kind is Kind.TAG for symbol in parsed)
        return None, repairs
    escaped = [escape(word) for word in words]
    root = _nest(_insert_words(parsed, escaped, repairs, punctuation), repairs)
    if len(root) == 1:
        return root[0], repairs
    repairs.joined_under_one = 1
    root.set_label(JOINING)
    return root, repairs


def _insert_words(
    parsed: Sequence[Symbol], words: Sequence[str], repairs: Repairs, punctuation: bool
) -> list[Symbol | Tree]:
    """Put a tag over its word in place of each tag, as many as there are words; other symbols stay."""
    partner, added = align([symbol.name for symbol in parsed if symbol.kind is Kind.TAG], words)
    repairs.tags_left_out = partner.count(None)
    repairs.words_added = sum(map(len, added.values()))

    def leaf(tag: str, word: str) -> Tree:
        right = treebank_tag(tag, word) if punctuation else tag
        repairs.punctuation_tags += right != tag and tag != ANY_TAG
        return Tree(right, [word])

    sequence: list[Symbol | Tree] = []
    # Words before the first tag stand right in front of it.
    waiting = [leaf(ANY_TAG, words[number]) for number in added.get(-1, ())]
    tag = -1
    for symbol in parsed:
        if symbol.kind is not Kind.TAG:
            sequence.append(symbol)
            continue
        tag += 1
        sequence += waiting
        waiting = []
        if (number := partner[tag]) is not None:
            sequence.append(leaf(symbol.name, words[number]))
        sequence += [leaf(ANY_TAG, words[number]) for number in added.get(tag, ())]
    return [*sequence, *waiting]


def _nest(sequence: Sequence[Symbol | Tree], repairs: Repairs) -> Tree:
    """Build the constituents; the root returned has no label and holds all there is."""
    root = Tree("", [])
    stack = [root]
    for item in sequence:
        if isinstance(item, Tree):
            stack[-1].append(item)
        elif item.kind is Kind.OPEN:
            stack.append(Tree(item.name, []))
        elif any(node.label() == item.name for node in stack[1:]):
            while _close(stack, repairs) != item.name:
                repairs.closings_added += 1
        else:
            repairs.closings_left_out += 1
    while len(stack) > 1:
        _close(stack, repairs)
        repairs.closings_added += 1
    return root


def _close(stack: list[Tree], repairs: Repairs) -> str:
    """Close the innermost constituent, leave it out if it is empty, and return its label."""
    node = stack.pop()
    if node:
        stack[-1].append(node)
    else:
        repairs.empty_constituents += 1
    return str(node.label())
