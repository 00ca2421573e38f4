"""Labelled brackets counted as EVALB counts them with COLLINS.prm: precision, recall, F1, complete match, tagging.

A bracket is a constituent with its label and the words it covers, words with punctuation's tags left out. Brackets of
label TOP and without words do not count, PRT equals ADVP, and function tags are cut off. All figures are of a corpus:
sums over sentences first, then ratios.

As in EVALB a sentence is left out of all sums when the parse is empty (skipped) or has other words than the gold tree
(failed), which it also has when punctuation is tagged otherwise; both are told. EVALB gives up after ten failures, this
does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from nltk.tree import Tree

from t2017_plugin.errors import UsageError
from t2017_plugin.parsing.evalb_rules import COLLINS, Rules
from t2017_plugin.parsing.treebank import is_preterminal

Span = tuple[int, int, str]
# What stands on a line: nothing, a tree, or several, which EVALB takes as well.
Line: TypeAlias = "Tree | Sequence[Tree] | None"


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
        """All figures as plain data, for JSON."""
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
    length, gold_words, gold_brackets = _taken_apart(gold, rules)
    _, test_words, test_brackets = _taken_apart(test, rules)
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


def _taken_apart(line: Line, rules: Rules) -> tuple[int, list[tuple[str, str]], list[Span]]:
    """Length with punctuation, words without it (tag and word), and brackets by the numbers of those words.

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
    """The label up to its first hyphen or equals sign, even when it begins with one, as EVALB cuts it."""
    return label.replace("=", "-").split("-", 1)[0]


def _matched(gold: Sequence[Span], test: Sequence[Span], rules: Rules) -> int:
    """How many gold brackets have a partner; each takes the first that is left."""
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
