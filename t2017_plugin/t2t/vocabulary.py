"""Tensor2Tensor's vocabulary files as dictionaries.

A file has one symbol a line. It may begin with padding and EOS, as T2T writes it, or hold the symbols alone, as the
ready-made ``vocab.bpe.32000`` does, to which T2T adds the two in front. Files of T2T's own subwords have quotes around
every symbol.
"""

import os
import re

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.dictionary import EOS, PAD, T2TDictionary, placeholder
from t2017_plugin.files import read_lines

# In files of T2T's own subwords the special symbols may end in _, as words do there.
SPECIAL = {PAD: PAD, f"{PAD}_": PAD, EOS: EOS, f"{EOS}_": EOS}
VISIBLE_SPACE = "\u2423"


def read_vocabulary(path: str | os.PathLike[str], rows: int) -> tuple[T2TDictionary, int]:
    """The symbols of a file with T2T's ids, and how many of the model's rows have none.

    White space within a symbol becomes U+2423, since tokens of text stand between spaces. Of a symbol that comes twice
    the last counts, as in T2T; the other row, like rows beyond the file, gets a placeholder.

    Raises:
        UsageError: there is no such file, it is not UTF-8, it has more symbols than ``rows``, or only one of the
            special symbols is where it should be.
    """
    symbols = read_lines(path)
    if symbols and symbols[0] in (f"'{special}'" for special in SPECIAL):
        symbols = [_unquoted(symbol) for symbol in symbols]
    first = [SPECIAL.get(symbol) for symbol in symbols[:2]]
    if first == [PAD, EOS]:
        symbols = symbols[2:]
    elif any(first):
        raise UsageError(f"{path}: the first lines are {symbols[:2]}; they should be {PAD} and {EOS}, or neither")
    if len(symbols) + 2 > rows:
        raise UsageError(
            f"{path} has {len(symbols)} symbols beside {PAD} and {EOS}, and the model's table {rows} rows: "
            "it is another model's vocabulary"
        )
    symbols = [re.sub(r"\s", VISIBLE_SPACE, symbol) for symbol in symbols] + [""] * (rows - 2 - len(symbols))
    last = {symbol: number for number, symbol in enumerate(symbols) if symbol and symbol not in SPECIAL}
    kept = [symbol if last.get(symbol) == number else "" for number, symbol in enumerate(symbols)]
    return T2TDictionary(symbol or placeholder(number + 2) for number, symbol in enumerate(kept)), kept.count("")


def numbered(rows: int) -> T2TDictionary:
    """A dictionary whose symbols are their ids, for a model without a vocabulary file: its text is lines of ids."""
    return T2TDictionary(map(str, range(2, rows)))


def _unquoted(symbol: str) -> str:
    """Without quotes, where both are there. (T2T's files may lack them on some lines.)"""
    quoted = len(symbol) > 1 and symbol[0] == symbol[-1] and symbol[0] in "'\""
    return symbol[1:-1] if quoted else symbol
