"""From a raw pair of lines to two lines of Moses tokens, or to the reason why the pair is left out.

Mended are characters that no text should hold: control characters and line ends of other kinds become a space,
invisible format characters (soft hyphens, zero-width spaces, byte order marks) vanish. Left out are pairs with a side
that is empty or not UTF-8, with more than ``max_tokens`` tokens on a side, or with sides whose lengths in tokens differ
by more than ``max_ratio`` times.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from dataclasses import dataclass, field

from recipes.wmt14_common.archives import RawPair
from recipes.wmt14_common.corpora import Limits
from t2017_plugin.text.pipeline import TextPipeline, TextSettings

MENDED = "mended (control characters)"


def _characters(*categories: str) -> str:
    found = (chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in categories)
    return "".join(re.escape(character) for character in found)


# Tabs are spaces. Surrogates cannot be in UTF-8; private use and unassigned characters are left to BPE.
INVISIBLE = re.compile(f"[{_characters('Cf')}]+")
CONTROL = re.compile(f"[{_characters('Cc', 'Zl', 'Zp').replace(re.escape(chr(9)), '')}]+")


@dataclass
class Cleaned:
    """Tokenised lines of both sides, as bytes with line feeds, and how many pairs went where."""

    source: bytes = b""
    target: bytes = b""
    counts: Counter[str] = field(default_factory=Counter)


def mend(line: str) -> str:
    """Take out control and invisible characters; other space, such as a no-break space, is the tokeniser's to judge."""
    return CONTROL.sub(" ", INVISIBLE.sub("", line)).strip()


def reason_to_drop(source: str, target: str, limits: Limits) -> str | None:
    """Name the limit that two tokenised lines break, or None."""
    lengths = len(source.split()), len(target.split())
    if not min(lengths):
        return "empty side"
    if max(lengths) > limits.max_tokens:
        return f"more than {limits.max_tokens} tokens"
    if max(lengths) > limits.max_ratio * min(lengths):
        return f"length ratio above {limits.max_ratio:g}"
    return None


class Cleaner:
    """Cleans portions of pairs of one language pair; made once in each process."""

    def __init__(self, languages: tuple[str, str], limits: Limits | None) -> None:
        self.languages, self.limits = languages, limits
        self.pipeline = TextPipeline(TextSettings(*languages, bpe="none", normalise_punctuation=True), ".")

    def tokenize(self, line: str, language: str) -> str:
        """Punctuation normalised, then Moses tokens: what ``t2017 translate`` does to its input."""
        return self.pipeline.encode(line, language)

    def clean(self, portion: list[RawPair]) -> Cleaned:
        """Clean one portion."""
        result = Cleaned()
        sides: tuple[list[str], list[str]] = ([], [])
        for raw in portion:
            result.counts["read"] += 1
            try:
                texts = [line.decode("utf-8") for line in raw]
            except UnicodeDecodeError:
                result.counts["not UTF-8"] += 1
                continue
            mended = [mend(text) for text in texts]
            if not all(mended):
                result.counts["empty side"] += 1
                continue
            words = [self.tokenize(text, language) for text, language in zip(mended, self.languages, strict=True)]
            reason = reason_to_drop(words[0], words[1], self.limits) if self.limits else None
            if reason is not None:
                result.counts[reason] += 1
                continue
            if any(CONTROL.search(text) or INVISIBLE.search(text) for text in texts):
                result.counts[MENDED] += 1
            for side, line in zip(sides, words, strict=True):
                side.append(line)
        result.counts["kept"] += len(sides[0])
        result.source, result.target = ("".join(f"{line}\n" for line in side).encode("utf-8") for side in sides)
        return result
