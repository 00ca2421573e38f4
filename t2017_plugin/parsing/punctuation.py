"""Which words are punctuation in the Penn Treebank, and with which tag: those that EVALB leaves out (COLLINS.prm)."""

from __future__ import annotations

DELETED_TAGS = frozenset({",", ":", "``", "''", "."})
TAG_OF_MARK = {
    **dict.fromkeys((".", "?", "!"), "."),
    **dict.fromkeys((",",), ","),
    **dict.fromkeys((":", ";", "--", "...", "-", "–", "—", "…"), ":"),
    **dict.fromkeys(("``", "`", "“", "‘"), "``"),
    **dict.fromkeys(("''", '"', "”"), "''"),
}
# What "'" and "’" are (a quotation mark or a possessive) and how a list's "*" is tagged depends on the sentence.
EITHER = frozenset({"'", "’"})
NO_TAG = "XX"


def corrected(tag: str, word: str) -> str:
    """The tag of a mark by the treebank's table; for another word the tag given, unless it is one of punctuation's."""
    if word in TAG_OF_MARK:
        return TAG_OF_MARK[word]
    if tag in DELETED_TAGS and word not in EITHER:
        return NO_TAG
    return tag
