"""The SGM files of WMT's test sets, read as sacreBLEU reads them.

    <refset ...><doc ...><p><seg id="1">First sentence.</seg> ...

The format looks like XML and is none: ampersands stand bare, so nothing is unescaped. White space is reduced to single
spaces.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from t2017_plugin.errors import UsageError

TAG = re.compile(r"<(/?)seg\b[^>]*>", re.IGNORECASE)
TRANSLATOR = re.compile(r"<doc\b[^>]*\bsysid=\"([^\"]*)\"", re.IGNORECASE)
SUFFIXES = (".sgm", ".sgml")


def read_sgm(lines: Sequence[str], name: str) -> list[str]:
    """Take the segments out of the lines of an SGM file, in their order.

    Raises:
        UsageError: there are none, one does not end (its line is named), or there are several translations of one text.
    """
    text = "\n".join(lines)
    translators = sorted(set(TRANSLATOR.findall(text)))
    if len(translators) > 1:
        raise UsageError(f"{name} holds translations by {', '.join(translators)}; scores here are of one reference")
    segments: list[str] = []
    opened: re.Match[str] | None = None
    wrong: re.Match[str] | None = None
    for tag in TAG.finditer(text):
        ends = bool(tag[1])
        if ends != (opened is not None):
            wrong = opened or tag
            break
        if opened is not None:
            segments.append(" ".join(text[opened.end() : tag.start()].split()))
        opened = None if ends else tag
    wrong = wrong or opened
    if wrong is not None:
        line = text.count("\n", 0, wrong.start()) + 1
        raise UsageError(f"{name}, line {line}: a <seg> without its </seg>, or the reverse; was the file cut off?")
    if not segments:
        raise UsageError(f"{name} has no <seg> ... </seg>, so it is not an SGM test set; give plain text or SGM")
    return segments
