"""Joint BPE: learned by subword-nmt from counted words, applied by the plugin's own pipeline, both on all cores.

What subword-nmt learns depends on its input only through the words, their counts and, among equal counts, the order in
which words are first seen; so words are counted portion by portion, in order, and the codes are those that
``subword-nmt learn-bpe`` would learn from the files one after the other.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from subword_nmt.learn_bpe import learn_bpe

from recipes.wmt14_common.parallel import PORTION, Progress, in_order
from t2017_plugin.files import whole_or_nothing
from t2017_plugin.text.pipeline import SubwordUnits

CACHED_WORDS = 500_000  # a process forgets how it cut words beyond that, to bound its memory


def line_portions(files: Iterable[Path], size: int = PORTION) -> Iterator[list[bytes]]:
    """Yield the lines of files, one file after the other, in lists of at most ``size``."""
    for file in files:
        with file.open("rb") as stream:
            while portion := list(islice(stream, size)):
                yield portion


def _count(portion: list[bytes]) -> Counter[str]:
    return Counter(word for line in portion for word in line.decode("utf-8").split())


def count_words(files: Iterable[Path], workers: int) -> Counter[str]:
    """Count the words of tokenised files; words of equal count stay in the order in which they were first seen."""
    words: Counter[str] = Counter()
    progress = Progress("counting words")
    for portion in in_order(_count, line_portions(files, 10 * PORTION), workers):
        words.update(portion)
        progress.add(10 * PORTION)
    return words


def learn(words: Counter[str], vocabulary: int) -> str:
    """Return the codes of a BPE whose units and characters are about ``vocabulary`` in number.

    subword-nmt subtracts the characters from the merges ("total symbols").

    Raises SystemExit when the text is so small that its characters alone are more.
    """
    characters = len({c for word in words for c in word[:-1]}) + len({word[-1] for word in words})
    if characters >= vocabulary:
        raise SystemExit(f"the text has {characters} characters, too many for a vocabulary of {vocabulary} tokens")
    counted = io.StringIO("".join(f"{word} {count}\n" for word, count in words.items()))
    codes = io.StringIO()
    learn_bpe(counted, codes, vocabulary, is_dict=True, total_symbols=True)
    return codes.getvalue()


class _Worker:
    units: SubwordUnits

    @classmethod
    def prepare(cls, codes: Path) -> None:
        cls.units = SubwordUnits(codes)

    @classmethod
    def cut(cls, portion: list[bytes]) -> tuple[bytes, int]:
        """Return the portion cut into units, and the number of its lines."""
        cut = [cls.units.apply(line.decode("utf-8")) for line in portion]
        if len(cls.units.bpe.cache) > CACHED_WORDS:
            cls.units.bpe.cache.clear()
        return "".join(f"{line}\n" for line in cut).encode("utf-8"), len(portion)


def apply(codes: Path, files: list[Path], output: Path, workers: int) -> int:
    """Cut tokenised files, one after the other, into one file of units; return its number of lines."""
    progress = Progress(f"BPE of {output.name}")
    with whole_or_nothing(output) as partial, partial.open("wb") as stream:
        for cut, lines in in_order(_Worker.cut, line_portions(files), workers, _Worker.prepare, (codes,)):
            stream.write(cut)
            progress.add(lines)
    progress.end()
    return progress.done
