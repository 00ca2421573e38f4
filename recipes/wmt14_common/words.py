"""The training corpora, cleaned and tokenised, and the two newstests, from the archives to files of lines."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from pathlib import Path

from recipes.wmt14_common.archives import RawPair, chosen_files, portions, raw_pairs, whole_text
from recipes.wmt14_common.cleaning import Cleaned, Cleaner
from recipes.wmt14_common.corpora import Corpus, Limits
from recipes.wmt14_common.parallel import PORTION, Progress, in_order
from t2017_plugin.files import decode_line, whole_or_nothing, write_text
from t2017_plugin.scoring.texts import SUFFIXES, read_sgm


class _Worker:
    cleaner: Cleaner

    @classmethod
    def prepare(cls, languages: tuple[str, str], limits: Limits) -> None:
        cls.cleaner = Cleaner(languages, limits)

    @classmethod
    def clean(cls, portion: list[RawPair]) -> Cleaned:
        return cls.cleaner.clean(portion)


def training_corpus(
    corpus: Corpus, archive: Path, folder: Path, languages: tuple[str, str], limits: Limits, workers: int
) -> None:
    """Write ``NAME.en``, ``NAME.de``, tokenised and aligned, and last ``NAME.json`` with the counts by reason.

    Raises SystemExit when nothing is left.
    """
    outputs = [folder / f"{corpus.name}.{language}" for language in languages]
    counts: Counter[str] = Counter()
    progress = Progress(f"cleaning and tokenising {corpus.name}", "pairs")
    with contextlib.ExitStack() as stack:
        # The first is moved to its place last; without the counts that come after, both are made again.
        partial = [stack.enter_context(whole_or_nothing(output)) for output in outputs]
        streams = [stack.enter_context(path.open("wb")) for path in partial]
        read = portions(raw_pairs(corpus, archive), PORTION)
        for cleaned in in_order(_Worker.clean, read, workers, _Worker.prepare, (languages, limits)):
            streams[0].write(cleaned.source)
            streams[1].write(cleaned.target)
            counts.update(cleaned.counts)
            progress.add(cleaned.counts["read"])
    progress.end()
    if not counts["kept"]:
        raise SystemExit(f"{corpus.name}: no pair is left of {counts['read']}; loosen MAX_TOKENS or MAX_RATIO")
    ordered = {"read": counts.pop("read"), "kept": counts.pop("kept"), **dict(sorted(counts.items()))}
    print(f"{corpus.name}: " + ", ".join(f"{reason} {count:,}" for reason, count in ordered.items()), flush=True)
    write_text(folder / f"{corpus.name}.json", json.dumps(ordered, indent=2) + "\n")


def newstest(corpus: Corpus, archive: Path, raw: Path, words: Path, split: str, languages: tuple[str, str]) -> None:
    """Write a newstest as raw text (``raw/SPLIT.en``) and as tokens (``words/SPLIT.en``), every line of it.

    Raises SystemExit when it has another number of lines than expected, or a line is not UTF-8.
    """
    cleaner = Cleaner(languages, None)
    for name, language in zip(chosen_files(corpus, archive), languages, strict=True):
        content = whole_text(archive, name).removeprefix(b"\xef\xbb\xbf")
        lines = [decode_line(line, name, number) for number, line in enumerate(content.split(b"\n")[:-1], start=1)]
        if name.endswith(SUFFIXES):
            lines = read_sgm(lines, f"{archive}: {name}")
        if corpus.lines is not None and len(lines) != corpus.lines:
            hint = "; 2,737 lines are the filtered set, the full one is in test-full.tgz" if len(lines) == 2737 else ""
            raise SystemExit(f"{archive}: {name} has {len(lines):,} lines, {corpus.lines:,} are expected{hint}")
        write_text(raw / f"{split}.{language}", "".join(f"{line}\n" for line in lines))
        tokens = "".join(f"{cleaner.tokenize(line, language)}\n" for line in lines)
        write_text(words / f"{split}.{language}", tokens)
    print(f"{corpus.name}: {corpus.lines:,} lines a side, as {split}", flush=True)


def check_aligned(files: list[Path]) -> int:
    """Return the number of lines that all files have.

    Raises SystemExit with the file that ends first and its last line.
    """
    lines = {file: _count_lines(file) for file in files}
    fewest, most = min(lines, key=lines.__getitem__), max(lines, key=lines.__getitem__)
    if lines[fewest] != lines[most]:
        raise SystemExit(
            f"{fewest} ends after line {lines[fewest]:,}, where {os.path.basename(most)} goes on to line "
            f"{lines[most]:,}; the sides are no longer aligned: delete both and run the step again"
        )
    return lines[fewest]


def _count_lines(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
