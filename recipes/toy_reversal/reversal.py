"""Makes the toy corpus: sequences of digits, and the same sequences reversed. No sequence stands in two splits."""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from recipes.common import parallel_corpus
from recipes.common.parallel_corpus import Pair, SplitCorpus


def sequences(count: int, shortest: int, longest: int, seed: int = 1) -> list[list[str]]:
    """Draw different sequences of digits, lengths uniform from ``shortest`` to ``longest``, in the order drawn."""
    random_state = random.Random(seed)
    drawn: dict[tuple[str, ...], None] = {}
    while len(drawn) < count:
        length = random_state.randint(shortest, longest)
        drawn[tuple(random_state.choices("0123456789", k=length))] = None
    return [list(sequence) for sequence in drawn]


def build(sizes: dict[str, int], shortest: int, longest: int) -> SplitCorpus:
    """Return splits of the sizes given, in pairs."""
    drawn = sequences(sum(sizes.values()), shortest, longest)
    corpus = SplitCorpus({})
    for split, size in sizes.items():
        part, drawn = drawn[:size], drawn[size:]
        corpus.pairs[split] = [Pair("digits", " ".join(one), " ".join(reversed(one))) for one in part]
    return corpus


def main(argv: list[str] | None = None) -> None:
    """Write the splits and ``corpus.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--train", type=int, default=8000, help="pairs")
    parser.add_argument("--valid", type=int, default=100, help="pairs")
    parser.add_argument("--test", type=int, default=200, help="pairs")
    parser.add_argument("--shortest", type=int, default=5, help="digits in a sequence, at least")
    parser.add_argument("--longest", type=int, default=10, help="digits in a sequence, at most")
    parser.add_argument("--source-lang", default="en")
    parser.add_argument("--target-lang", default="de")
    args = parser.parse_args(argv)
    corpus = build({"train": args.train, "valid": args.valid, "test": args.test}, args.shortest, args.longest)
    origin = {"corpus": "sequences of digits, reversed", "seed": 1}
    parallel_corpus.write_with_manifest(corpus, args.output, args.source_lang, args.target_lang, origin)


if __name__ == "__main__":
    main()
