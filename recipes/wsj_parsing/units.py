"""Cuts the words of a parsing corpus into BPE units, learned from the training words; trees keep their symbols whole.

The authors gave each side a vocabulary of its own, of about 2^14 and 2^9 units; all symbols of a tree, about a hundred,
are whole units of the second.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from recipes.common.prepare_text import learn_joint_codes
from recipes.wsj_parsing.splits import SILVER
from t2017_plugin.files import read_lines, write_text
from t2017_plugin.text.pipeline import SubwordUnits


def prepare(corpus: Path, output: Path, merges: int) -> None:
    """Write ``*.bpe.words``, ``*.bpe.tree`` and ``codes`` for every split there is, and print their sizes.

    Silver trees are written a second time, below the gold ones, as ``both.bpe.*``.
    """
    splits = sorted(path.stem for path in corpus.glob("*.words"))
    text = {split: read_lines(corpus / f"{split}.words") for split in splits}
    training = [line for split in splits if split.startswith("train") for line in text[split]]
    write_text(output / "codes", learn_joint_codes(training, merges))
    units = SubwordUnits(output / "codes")
    for split, lines in text.items():
        cut = [units.apply(line) for line in lines]
        symbols = read_lines(corpus / f"{split}.tree")
        write_text(output / f"{split}.bpe.words", "".join(f"{line}\n" for line in cut))
        write_text(output / f"{split}.bpe.tree", "".join(f"{line}\n" for line in symbols))
        counts = (sum(len(line.split()) for line in side) for side in (lines, cut, symbols))
        if split == SILVER:
            for side in ("words", "tree"):  # for dictionaries of gold and silver trees together
                both = ((output / f"{name}.bpe.{side}").read_text(encoding="utf-8") for name in ("train", SILVER))
                write_text(output / f"both.bpe.{side}", "".join(both))
        print(f"{split}: {len(lines)} lines, " + "{} words, {} BPE units, {} tree symbols".format(*counts))


def main(argv: list[str] | None = None) -> None:
    """Read the command line and prepare the text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--merges", type=int, required=True, help="BPE merges, learned from the training words")
    args = parser.parse_args(argv)
    prepare(args.corpus, args.output, args.merges)


if __name__ == "__main__":
    main()
