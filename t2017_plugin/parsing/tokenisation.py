"""Raw text as the Penn Treebank's tokens, by nltk's tokeniser."""

from __future__ import annotations

import functools
from typing import Any


@functools.lru_cache(maxsize=1)
def _tokenizer() -> Any:
    from nltk.tokenize.treebank import TreebankWordTokenizer

    return TreebankWordTokenizer()


def treebank_tokens(sentence: str) -> str:
    """``He didn't (say).`` becomes ``He did n't -LRB- say -RRB- .``; only the last full stop is cut off."""
    return " ".join(_tokenizer().tokenize(sentence, convert_parentheses=True))
