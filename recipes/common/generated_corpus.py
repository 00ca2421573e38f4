"""Makes a parallel corpus up: for when no registry can be reached. It is no language, and every output says so.

The "source" is drawn from a small grammar of invented words; the "target" is its word-for-word dictionary translation
with the verb moved to the end and adjectives behind their nouns, so there is something to learn but nothing real.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

from recipes.common import parallel_corpus
from recipes.common.parallel_corpus import Filters, Pair

NOTE = (
    "GENERATED CORPUS: the registry could not be reached, so this is made-up text and not a language; its scores say "
    "only that the steps work."
)
SOURCE_SYLLABLES = ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su", "ta", "ve")
TARGET_SYLLABLES = ("kra", "schen", "lich", "bro", "dung", "wer", "gel", "taf", "nis", "zor", "hul", "mit")
KINDS = {"noun": 160, "verb": 60, "adjective": 60, "place": 30}


def dictionary(random_state: random.Random) -> dict[str, list[tuple[str, str]]]:
    """Invent words of each kind with their translations, no source word twice."""
    words: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for kind, size in KINDS.items():
        words[kind] = []
        while len(words[kind]) < size:
            length = random_state.randint(2, 3)
            source = "".join(random_state.choices(SOURCE_SYLLABLES, k=length))
            if source not in seen:
                seen.add(source)
                words[kind].append((source, "".join(random_state.choices(TARGET_SYLLABLES, k=length))))
    return words


def pairs(count: int, seed: int = 1) -> Iterator[Pair]:
    """Yield sentence pairs, a hundred in a group; the same seed gives the same pairs."""
    random_state = random.Random(seed)
    words = dictionary(random_state)
    for number in range(count):
        subject, thing = random_state.sample(words["noun"], 2)
        verb, adjective = random_state.choice(words["verb"]), random_state.choice(words["adjective"])
        source = ["the", adjective[0], subject[0], verb[0], "the", thing[0]]
        target = ["die", subject[1], adjective[1], "die", thing[1]]
        if random_state.random() < 0.5:
            place = random_state.choice(words["place"])
            source += ["in", place[0]]
            target += ["bei", place[1]]
        yield Pair(f"part {number // 100:03d}", " ".join(source) + " .", " ".join([*target, verb[1]]) + " .")


def main(argv: list[str] | None = None) -> None:
    """Write the three splits and ``corpus.json``, which carries the note that every output repeats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--source-lang", default="en")
    parser.add_argument("--target-lang", default="de")
    args = parser.parse_args(argv)
    corpus = parallel_corpus.build(pairs(args.pairs), Filters(), {"test": 0.06, "valid": 0.06})
    origin = {"corpus": "generated, not a language", "note": NOTE, "seed": 1}
    print(NOTE)
    parallel_corpus.write_with_manifest(corpus, args.output, args.source_lang, args.target_lang, origin)


if __name__ == "__main__":
    main()
