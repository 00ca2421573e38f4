"""The vocabulary of a Tensor2Tensor model: padding is 0, EOS is 1, and there is no other special symbol.

fairseq's own dictionary always begins with four: BOS 0, padding 1, EOS 2, unknown 3. Where fairseq asks for BOS or the
unknown symbol, this one answers with padding, which the search never generates and which is never printed. A word
outside the vocabulary has no id, so it is refused, unless the vocabulary has T2T's ``UNK``.
"""

import multiprocessing
import os
from collections.abc import Iterable
from typing import Any

from fairseq.data import Dictionary

from t2017_plugin.errors import UsageError

PAD, EOS = "<pad>", "<EOS>"
UNKNOWN = "UNK"  # later versions of T2T add this line to vocab.bpe.32000 and put it in the place of other words


def placeholder(number: int) -> str:
    """Return the symbol of an id that the vocabulary has none for."""
    return f"<unused_{number}>"


def load_dictionary(path: str | os.PathLike[str]) -> Dictionary:
    """Read a dictionary file of fairseq's or of an imported model, which its first line tells apart."""
    with open(path, encoding="utf-8") as file:
        imported = file.readline().startswith(f"{PAD} ")
    return T2TDictionary.load(str(path)) if imported else Dictionary.load(str(path))


class T2TDictionary(Dictionary):
    """Symbols by T2T's ids.

    A file of it begins with its two special symbols, so that it cannot be mistaken for one of fairseq's: fairseq's
    class refuses such a file, this one refuses a file without them.

    With ``--sinusoid stock`` positions then begin at 1, stock's padding index + 1, instead of 2.

    Args:
        symbols: what follows the two special ones, in the order of their ids
        size: rows of the model's table, where it has more than the vocabulary (40,960 for English-German)

    Raises:
        UsageError: a symbol comes twice, or there are more of them than ``size``.
    """

    def __init__(self, symbols: Iterable[str] = (), size: int | None = None) -> None:
        super().__init__(bos=PAD, pad=PAD, eos=EOS, unk=PAD, add_special_symbols=False)
        self.pad_index = self.add_symbol(PAD)
        self.eos_index = self.add_symbol(EOS)
        self.bos_index = self.unk_index = self.pad_index
        self.nspecial = 2
        for symbol in symbols:
            if symbol in self.indices:
                raise UsageError(f"{symbol!r} is twice in the vocabulary (ids {self.indices[symbol]}, {len(self)})")
            self.add_symbol(symbol)
        if size is not None and len(self) > size:
            raise UsageError(f"{len(self)} symbols, two special ones among them, for a table of {size} rows")
        for number in range(len(self), size or 0):
            self.add_symbol(placeholder(number), n=0)

    def index(self, sym: str) -> int:
        """Return the id of a symbol.

        Raises:
            UsageError: it has none.
        """
        if sym not in self.indices and UNKNOWN in self.indices:
            sym = UNKNOWN
        if sym not in self.indices:
            message = (
                f"{sym!r} is not in the vocabulary, and Tensor2Tensor has no symbol for unknown words: "
                "split the text into the subwords the model was trained on"
            )
            # fairseq-preprocess waits for ever for a worker that ended with a SystemExit, which a UsageError is.
            raise UsageError(message) if multiprocessing.parent_process() is None else ValueError(message)
        return int(self.indices[sym])

    @classmethod
    def load(cls, f: Any, add_special_symbols: bool = True) -> "T2TDictionary":
        """Read a file that ``save`` wrote.

        Raises:
            UsageError: it does not begin with padding and EOS.
        """
        plain = Dictionary(add_special_symbols=False)
        plain.add_from_file(f)
        if plain.symbols[:2] != [PAD, EOS]:
            raise UsageError(f"{f}: not a Tensor2Tensor model's vocabulary, its first lines are not {PAD} and {EOS}")
        dictionary = cls(plain.symbols[2:])
        dictionary.count = plain.count
        return dictionary

    def save(self, f: Any) -> None:
        """Write one symbol a line with its count, the special ones first."""
        self._save(f, zip(self.symbols, self.count, strict=True))
