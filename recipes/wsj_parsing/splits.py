"""Which files of a treebank are for what: the sections that everyone uses, NLTK's sample, or ranges that are named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from recipes.common.parallel_corpus import SPLITS

# What fairseq calls a second training set.
SILVER = "train1"

NAME = re.compile(r"wsj_(\d{4})\.mrg")
RANGE = re.compile(r"(\d{4})-(\d{4})")


class Range(NamedTuple):
    """Numbers of files, both ends included: wsj_0200.mrg to wsj_2199.mrg are sections 2 to 21."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first:04d}-{self.last:04d}"


# Sections 2-21, 22 and 23 of the whole corpus; of its sample, sections 0 and 1, the last tenth each.
WHOLE = {"train": Range(200, 2199), "valid": Range(2200, 2299), "test": Range(2300, 2399)}
SAMPLE = {"train": Range(1, 159), "valid": Range(160, 179), "test": Range(180, 199)}


def range_of(text: str) -> Range:
    """Read a range as one types it, ``0001-0159``.

    Raises:
        SystemExit: it is none.
    """
    if not (match := RANGE.fullmatch(text)) or match[1] > match[2]:
        raise SystemExit(f"{text!r} is no range of files; write two numbers of four digits, such as 0001-0159")
    return Range(int(match[1]), int(match[2]))


def split_files(files: list[Path], named: dict[str, str]) -> dict[str, tuple[Range, list[Path]]]:
    """Give each split its range and its files; ``named`` ranges win over those of the layout that is found.

    Raises:
        SystemExit: there is no file for a split, or the training files overlap with the others.
    """
    numbered = {int(match[1]): file for file in files if (match := NAME.fullmatch(file.name))}
    layout = WHOLE if any(number >= WHOLE["train"].first for number in numbered) else SAMPLE
    splits = {}
    for split in SPLITS:
        chosen = range_of(named[split]) if named.get(split) else layout[split]
        found = [numbered[number] for number in sorted(numbered) if chosen.first <= number <= chosen.last]
        if not found:
            there = f"{min(numbered):04d}-{max(numbered):04d}" if numbered else "no wsj_NNNN.mrg"
            raise SystemExit(f"{split}: no file in {chosen}, there is {there}; name others with --{split}-files")
        splits[split] = (chosen, found)
    for split in ("valid", "test"):
        if shared := set(splits["train"][1]) & set(splits[split][1]):
            raise SystemExit(f"{min(shared).name} is for training and for {split}; name other files")
    return splits
