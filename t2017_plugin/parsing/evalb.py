"""Labelled brackets counted as EVALB counts them with COLLINS.prm: precision, recall, F1, complete match, tagging.

A bracket is a constituent with its label and the words it covers, words with punctuation's tags left
out. Brackets of label TOP and without words do not count, PRT equals ADVP, and function tags are cut
off. All figures are of a corpus: sums over sentences first, then ratios.

As in EVALB a sentence is left out of all sums when the parse is empty (skipped) or has other words
than the gold tree (failed), which it also has when punctuation is tagged otherwise; both are
reported. EVALB gives up after ten failures, this does not.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from nltk.tree import Tree

from t2017_plugin.errors import UsageError
from t2017_plugin.files import read_lines
from t2017_plugin.parsing.symbols import PUNCTUATION_TAGS
from t2017_plugin.parsing.trees import TRACE, is_preterminal

Pairs = frozenset[tuple[str, str]]
Span = tuple[int, int, str]
# What stands on a line: nothing, a tree, or several, which EVALB takes as well.
Line: TypeAlias = "Tree | Sequence[Tree] | None"
# EVALB's parameters. DEBUG and MAX_ERROR are read and do nothing: all sentences are always compared.
NUMBERS = {"CUTOFF_LEN": 40, "LABELED": 1}
KNOWN = (*NUMBERS, "DELETE_LABEL", "DELETE_LABEL_FOR_LENGTH", "EQ_LABEL", "EQ_WORD", "DEBUG", "MAX_ERROR")
# What the report prints, with its name in ``Scores.as_dict``.
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


@dataclass(frozen=True)
class Rules:
    """What EVALB's parameter file says; the defaults are those of COLLINS.prm, which everyone reports.

    Attributes:
        deleted: tags whose words are left out, and labels whose brackets are.
        deleted_for_length: tags whose words do not count for a sentence's length.
        equal_labels, equal_words: pairs, in both orders.
        cut_off: words of the longest "short" sentence.
        labelled: whether a bracket's label has to be right.
    """

    deleted: frozenset[str] = PUNCTUATION_TAGS | {"TOP", TRACE}
    deleted_for_length: frozenset[str] = frozenset({TRACE})
    equal_labels: Pairs = frozenset({("ADVP", "PRT"), ("PRT", "ADVP")})
    equal_words: Pairs = frozenset()
    cut_off: int = 40
    labelled: bool = True

    def same_label(self, one: str, other: str) -> bool:
        """Return whether two labels or tags are as good as each other."""
        return one == other or (one, other) in self.equal_labels

    def same_word(self, one: str, other: str) -> bool:
        """Return whether two words are as good as each other."""
        return one == other or (one, other) in self.equal_words

    def deletes_bracket(self, label: str) -> bool:
        """Return whether brackets of a label, or of one equal to it, do not count."""
        return any(self.same_label(label, deleted) for deleted in self.deleted)


COLLINS = Rules()


def read_rules(path: str | os.PathLike[str]) -> Rules:
    """Read a parameter file of EVALB.

    Raises:
        UsageError: the file is missing, or a line is not understood or asks for what is not supported (QUOTE_LABEL).
    """
    lists: dict[str, list[list[str]]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        name, *values = line.split() or ["#"]
        if name.startswith("#"):
            continue
        wanted = 2 if name.startswith("EQ_") else 1
        if name not in KNOWN or len(values) != wanted:
            raise UsageError(f"{path}, line {number}: {line.strip()!r} is not supported; known are {', '.join(KNOWN)}")
        lists.setdefault(name, []).append(values)
    try:
        cut_off, labelled = (int(lists.get(name, [[str(default)]])[-1][0]) for name, default in NUMBERS.items())
    except ValueError as error:
        raise UsageError(f"{path}: CUTOFF_LEN and LABELED want whole numbers") from error
    return Rules(
        frozenset(label for (label,) in lists.get("DELETE_LABEL", [])),
        frozenset(label for (label,) in lists.get("DELETE_LABEL_FOR_LENGTH", [])),
        _both_orders(lists.get("EQ_LABEL", [])),
        _both_orders(lists.get("EQ_WORD", [])),
        cut_off,
        bool(labelled),
    )


def _both_orders(pairs: list[list[str]]) -> Pairs:
    return frozenset((one, other) for pair in pairs for one, other in (pair, reversed(pair)))


@dataclass(frozen=True)
class Counts:
    """What one sentence adds to the sums; lengths and words are of the gold tree.

    Attributes:
        length: words, punctuation too.
        error: why the sentence cannot be compared, or empty; then the rest is zero.
        skipped: the parse has no words.
        crossing: brackets of the parse that overlap with one of the gold tree.
    """

    length: int
    error: str = ""
    skipped: bool = False
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    words: int = 0
    right_tags: int = 0


@dataclass
class Scores:
    """Sums over sentences; ``errors`` holds the numbers (from 1) of failed sentences with the reason."""

    sentences: int = 0
    skipped: int = 0
    complete: int = 0
    matched: int = 0
    gold: int = 0
    test: int = 0
    crossing: int = 0
    without_crossing: int = 0
    words: int = 0
    right_tags: int = 0
    errors: dict[int, str] = field(default_factory=dict)

    def add(self, number: int, counts: Counts) -> None:
        """Add a sentence."""
        self.sentences += 1
        if counts.skipped:
            self.skipped += 1
        elif counts.error:
            self.errors[number] = counts.error
        else:
            self.complete += counts.matched == counts.gold == counts.test
            self.without_crossing += not counts.crossing
            for name in ("matched", "gold", "test", "crossing", "words", "right_tags"):
                setattr(self, name, getattr(self, name) + getattr(counts, name))

    @property
    def valid(self) -> int:
        """Sentences that were compared."""
        return self.sentences - self.skipped - len(self.errors)

    @property
    def recall(self) -> float:
        """Share of the gold brackets that were found, in percent."""
        return _percent(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """Share of the brackets found that are gold, in percent."""
        return _percent(self.matched, self.test)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, in percent; 0 where EVALB has no number."""
        return _percent(2 * self.matched, self.gold + self.test)

    @property
    def complete_match(self) -> float:
        """Share of the sentences compared whose brackets are all right, in percent."""
        return _percent(self.complete, self.valid)

    @property
    def tagging(self) -> float:
        """Share of the words, without punctuation, with the right tag, in percent."""
        return _percent(self.right_tags, self.words)

    def as_dict(self) -> dict[str, object]:
        """Return all figures as plain data, for JSON."""
        return {
            "sentences": self.sentences,
            "compared": self.valid,
            "skipped": self.skipped,
            "failed": len(self.errors),
            "failed_sentences": {str(number): reason for number, reason in self.errors.items()},
            "recall": self.recall,
            "precision": self.precision,
            "f1": self.f1,
            "complete_match": self.complete_match,
            "average_crossing": self.crossing / self.valid if self.valid else 0.0,
            "no_crossing": _percent(self.without_crossing, self.valid),
            "tagging": self.tagging,
            "brackets": {"matched": self.matched, "gold": self.gold, "test": self.test},
        }


def evaluate(gold: Sequence[Line], test: Sequence[Line], rules: Rules = COLLINS) -> tuple[Scores, Scores]:
    """Score parses against gold trees: over all sentences, and over those of at most 40 words, punctuation counted.

    Raises:
        UsageError: there are not as many parses as gold trees.
    """
    if len(gold) != len(test):
        raise UsageError(f"there are {len(gold)} gold trees and {len(test)} parses; a line each, blank for none")
    everything, short = Scores(), Scores()
    for number, (one, other) in enumerate(zip(gold, test, strict=True), start=1):
        counts = compare(one, other, rules)
        everything.add(number, counts)
        if counts.length <= rules.cut_off:
            short.add(number, counts)
    return everything, short


def compare(gold: Line, test: Line, rules: Rules = COLLINS) -> Counts:
    """Count one sentence."""
    length, gold_words, gold_brackets = _words_and_brackets(gold, rules)
    _, test_words, test_brackets = _words_and_brackets(test, rules)
    if not test_words:
        return Counts(length, skipped=True)
    if len(gold_words) != len(test_words):
        counted = f"{len(gold_words)} words in the gold tree, {len(test_words)} in the parse"
        return Counts(length, error=f"{counted}, without punctuation")
    pairs = list(zip(gold_words, test_words, strict=True))
    for (_, one), (_, other) in pairs:
        if not rules.same_word(one, other):
            return Counts(length, error=f"the word {one!r} in the gold tree is {other!r} in the parse")
    return Counts(
        length,
        matched=_matched(gold_brackets, test_brackets, rules),
        gold=len(gold_brackets),
        test=len(test_brackets),
        crossing=sum(any(_cross(one, other) for other in gold_brackets) for one in test_brackets),
        words=len(gold_words),
        right_tags=sum(rules.same_label(one, other) for (one, _), (other, _) in pairs),
    )


def _words_and_brackets(line: Line, rules: Rules) -> tuple[int, list[tuple[str, str]], list[Span]]:
    """Return the length with punctuation, (tag, word) without it, and brackets by the numbers of those words.

    Brackets stand in the order in which they open.
    """
    length = 0
    words: list[tuple[str, str]] = []
    brackets: list[Span] = []
    # A constituent's end stands on the stack as the place of its bracket.
    stack: list[Tree | int] = [line] if isinstance(line, Tree) else list(reversed(line or ()))
    while stack:
        node = stack.pop()
        if isinstance(node, int):
            start, _, label = brackets[node]
            brackets[node] = (start, len(words), label)
        elif is_preterminal(node):
            length += node.label() not in rules.deleted_for_length
            if node.label() not in rules.deleted:
                words.append((node.label(), node[0]))
        else:
            stack.append(len(brackets))
            brackets.append((len(words), len(words), _bracket_label(node.label())))
            stack += reversed(node)
    return length, words, [span for span in brackets if span[0] < span[1] and not rules.deletes_bracket(span[2])]


def _bracket_label(label: str) -> str:
    """Cut a label at its first hyphen or equals sign, even when it begins with one, as EVALB does."""
    return label.replace("=", "-").split("-", 1)[0]


def _matched(gold: Sequence[Span], test: Sequence[Span], rules: Rules) -> int:
    """Count the gold brackets that have a partner; each takes the first that is left."""
    left = list(test)
    for start, end, label in gold:
        for place, (other_start, other_end, other_label) in enumerate(left):
            same_place = (start, end) == (other_start, other_end)
            if same_place and (not rules.labelled or rules.same_label(label, other_label)):
                del left[place]
                break
    return len(test) - len(left)


def _cross(one: Span, other: Span) -> bool:
    return other[0] < one[0] < other[1] < one[1] or one[0] < other[0] < one[1] < other[1]


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def score_table(columns: Mapping[str, Scores]) -> list[str]:
    """Lay out the figures side by side, a column for each; percent with two digits as EVALB prints them."""
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
    """Return a line for each sentence that could not be compared, up to ``most``."""
    lines = [f"sentence {number}: {reason}" for number, reason in list(scores.errors.items())[:most]]
    if len(scores.errors) > most:
        lines.append(f"... and {len(scores.errors) - most} more")
    return lines
