"""Filters, splits and writes a parallel corpus whose pairs come in groups.

A group (a component, a chapter) stands wholly in one of train, valid and test, because near-duplicates stand together.
What still looks like a training pair after that is taken out of valid and test, so that a test score measures
translation and not memory. No random state: the same groups always fall into the same splits.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from t2017_plugin.files import file_sha256, write_text

SPLITS = ("train", "valid", "test")

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[\"“„'(\[`*{]*[^\W\d_a-zß-ÿ])")
PLACEHOLDER = re.compile(r"\{[^{}]*\}|%\([^()]*\)[sd]|<[^<>]*>|`[^`]*`|\S+://\S+")
DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
NOT_A_WORD = re.compile(r"[^\w#]+")


class Pair(NamedTuple):
    """A source sentence, its translation and the group that they belong to."""

    group: str
    source: str
    target: str


@dataclass(frozen=True)
class Filters:
    """The limits a pair must keep; lengths are in words, counted between spaces."""

    min_words: int = 3
    max_words: int = 60
    max_ratio: float = 2.2


@dataclass
class SplitCorpus:
    """The pairs of each split and the number of pairs left out, by reason."""

    pairs: dict[str, list[Pair]]
    left_out: Counter[str] = field(default_factory=Counter)


def split_alike(source: str, target: str) -> list[tuple[str, str]]:
    """Cut both sides at line ends, then at sentence ends, as far as both sides have the same number of pieces.

    A side that is cut differently stays whole, since nothing says which piece belongs to which.
    """
    pieces = []
    for source_line, target_line in _cut_alike(source.splitlines(), target.splitlines()) or [(source, target)]:
        pairs = _cut_alike(SENTENCE_END.split(source_line), SENTENCE_END.split(target_line))
        pieces += pairs or [(source_line, target_line)]
    return [(" ".join(s.split()), " ".join(t.split())) for s, t in pieces]


def _cut_alike(source: list[str], target: list[str]) -> list[tuple[str, str]]:
    source = [piece for piece in source if piece.strip()]
    target = [piece for piece in target if piece.strip()]
    return list(zip(source, target, strict=True)) if len(source) == len(target) else []


def reason_to_drop(source: str, target: str, filters: Filters) -> str | None:
    """Name the filter that a pair fails, or None for a pair to keep."""
    lengths = len(source.split()), len(target.split())
    if not min(lengths):
        return "empty side"
    if source == target:
        return "sides are equal"
    if min(lengths) < filters.min_words:
        return f"shorter than {filters.min_words} words"
    if max(lengths) > filters.max_words:
        return f"longer than {filters.max_words} words"
    if max(lengths) > filters.max_ratio * min(lengths):
        return f"length ratio above {filters.max_ratio}"
    return None


def masked(text: str) -> str:
    """Reduce a sentence to what makes it new: case folded, placeholders and numbers masked, punctuation dropped."""
    text = PLACEHOLDER.sub(" # ", text.casefold())
    return NOT_A_WORD.sub(" ", DIGITS.sub(" # ", text)).strip()


def split_of_group(group: str, shares: dict[str, float], seed: str = "") -> str:
    """Choose a group's split by a hash of its name: no order, no random state.

    ``shares`` gives the share of groups (not of pairs) that valid and test get; train has the rest.
    """
    point = int.from_bytes(hashlib.sha256(f"{seed}{group}".encode()).digest()[:8], "big") / 2**64
    for split, share in shares.items():
        if point < share:
            return split
        point -= share
    return "train"


def build(raw: Iterable[Pair], filters: Filters, shares: dict[str, float], seed: str = "") -> SplitCorpus:
    """Filter pairs, keep one of each case-folded source, split by group, take near-duplicates out of valid and test.

    Splits keep the order of groups by name, then of the pairs within a group as given.
    """
    corpus = SplitCorpus({split: [] for split in SPLITS})
    seen: set[str] = set()
    for pair in sorted(raw, key=lambda pair: pair.group):
        for source, target in split_alike(pair.source, pair.target):
            reason = reason_to_drop(source, target, filters)
            if reason is None and source.casefold() in seen:
                reason = "source seen before"
            if reason is not None:
                corpus.left_out[reason] += 1
                continue
            seen.add(source.casefold())
            corpus.pairs[split_of_group(pair.group, shares, seed)].append(Pair(pair.group, source, target))
    _drop_near_duplicates(corpus)
    return corpus


def _drop_near_duplicates(corpus: SplitCorpus) -> None:
    """Drop the pairs of valid and test of which either side, masked, stands in an earlier split."""
    known_sources: set[str] = set()
    known_targets: set[str] = set()
    for split in SPLITS:
        kept = []
        for pair in corpus.pairs[split]:
            if split != "train" and masked(pair.source) in known_sources:
                corpus.left_out[f"{split}: source like an earlier split's"] += 1
            elif split != "train" and masked(pair.target) in known_targets:
                corpus.left_out[f"{split}: target like an earlier split's"] += 1
            else:
                kept.append(pair)
        corpus.pairs[split] = kept
        known_sources.update(masked(pair.source) for pair in kept)
        known_targets.update(masked(pair.target) for pair in kept)


def write_with_manifest(
    corpus: SplitCorpus, folder: Path, source_lang: str, target_lang: str, origin: dict[str, object]
) -> None:
    """Write ``train.en``, ``train.de``, ... (one sentence a line) and, last, ``corpus.json`` with counts and hashes.

    ``origin`` says where the pairs come from and opens the manifest. Prints the counts. Raises SystemExit for an empty
    split.
    """
    folder.mkdir(parents=True, exist_ok=True)
    splits: dict[str, dict[str, object]] = {}
    for split, pairs in corpus.pairs.items():
        if not pairs:
            raise SystemExit(f"no pair is left for {split}; loosen the filters or give more text")
        splits[split] = {"pairs": len(pairs), "groups": len({pair.group for pair in pairs})}
        sides = ((source_lang, [pair.source for pair in pairs]), (target_lang, [pair.target for pair in pairs]))
        for language, lines in sides:
            write_text(folder / f"{split}.{language}", "".join(f"{line}\n" for line in lines))
            splits[split][language] = {
                "words": sum(len(line.split()) for line in lines),
                "sha256": file_sha256(folder / f"{split}.{language}"),
            }
        print(f"{split}: {len(pairs)} pairs in {splits[split]['groups']} groups")
    left_out = dict(sorted(corpus.left_out.items()))
    for reason, count in left_out.items():
        print(f"left out, {reason}: {count}")
    manifest = {
        **origin,
        "source_lang": source_lang,
        "target_lang": target_lang,
        "splits": splits,
        "left_out": left_out,
    }
    write_text(folder / "corpus.json", json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
