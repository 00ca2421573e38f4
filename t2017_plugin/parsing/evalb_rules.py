"""What EVALB's parameter file says: which labels do not count and which labels or words are as good as each other."""

from __future__ import annotations

import os
from dataclasses import dataclass

from t2017_plugin.errors import UsageError
from t2017_plugin.files import read_lines
from t2017_plugin.parsing.cleaning import TRACE
from t2017_plugin.parsing.punctuation import DELETED_TAGS

Pairs = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Rules:
    """The rules of a count; the defaults are those of COLLINS.prm, which everyone reports.

    Attributes:
        deleted: tags whose words are left out, and labels whose brackets are.
        deleted_for_length: tags whose words do not count for a sentence's length.
        equal_labels, equal_words: pairs, in both orders.
        cut_off: words of the longest "short" sentence.
        labelled: whether a bracket's label has to be right.
    """

    deleted: frozenset[str] = DELETED_TAGS | {"TOP", TRACE}
    deleted_for_length: frozenset[str] = frozenset({TRACE})
    equal_labels: Pairs = frozenset({("ADVP", "PRT"), ("PRT", "ADVP")})
    equal_words: Pairs = frozenset()
    cut_off: int = 40
    labelled: bool = True

    def same_label(self, one: str, other: str) -> bool:
        """Whether two labels or tags are as good as each other."""
        return one == other or (one, other) in self.equal_labels

    def same_word(self, one: str, other: str) -> bool:
        """Whether two words are as good as each other."""
        return one == other or (one, other) in self.equal_words

    def deletes_bracket(self, label: str) -> bool:
        """Whether brackets of a label, or of one equal to it, do not count."""
        return any(self.same_label(label, deleted) for deleted in self.deleted)


COLLINS = Rules()


def read_rules(path: str | os.PathLike[str]) -> Rules:
    """Read a parameter file of EVALB.

    Raises:
        UsageError: the file is missing, or a line is not understood or asks for what is not done here (QUOTE_LABEL).
    """
    lists: dict[str, list[list[str]]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        name, *values = line.split() or ["#"]
        if name.startswith("#"):
            continue
        wanted = 2 if name.startswith("EQ_") else 1
        if name not in KNOWN or len(values) != wanted:
            raise UsageError(f"{path}, line {number}: {line.strip()!r} is not done here; known are {', '.join(KNOWN)}")
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


NUMBERS = {"CUTOFF_LEN": 40, "LABELED": 1}
# DEBUG and MAX_ERROR are read and do nothing: all sentences are always compared.
KNOWN = (*NUMBERS, "DELETE_LABEL", "DELETE_LABEL_FOR_LENGTH", "EQ_LABEL", "EQ_WORD", "DEBUG", "MAX_ERROR")


def _both_orders(pairs: list[list[str]]) -> Pairs:
    return frozenset((one, other) for pair in pairs for one, other in (pair, reversed(pair)))
