"""Makes the parallel corpus of parsing: words on one side, linearised trees on the other, and the trees for scoring.

``train.words`` and ``train.tree`` hold a sentence a line, ``valid.gold`` and ``test.gold`` the clean trees that scoring
compares with. Silver trees (a parser's, of other text) become a second training set, ``train1``.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from nltk.tree import Tree

from recipes.common import parallel_corpus
from recipes.common.parallel_corpus import SPLITS, Pair, SplitCorpus
from recipes.wsj_parsing import grammar
from recipes.wsj_parsing.splits import SILVER, split_files
from t2017_plugin.files import write_text
from t2017_plugin.parsing.linearisation import linearise
from t2017_plugin.parsing.symbols import FORMS
from t2017_plugin.parsing.trees import clean, one_line, read_trees, treebank_files, words


def add(
    corpus: SplitCorpus, gold: dict[str, list[Tree]], split: str, group: str, trees: Iterable[Tree], form: str
) -> None:
    """Clean trees and put them into a split; those without a word are counted and left out."""
    for tree in trees:
        cleaned = clean(tree)
        if cleaned is None:
            corpus.left_out["no word but traces"] += 1
            continue
        corpus.pairs.setdefault(split, []).append(
            Pair(group, " ".join(words(cleaned)), " ".join(linearise(cleaned, form)))
        )
        gold.setdefault(split, []).append(cleaned)


def build(args: argparse.Namespace) -> tuple[SplitCorpus, dict[str, list[Tree]], dict[str, object]]:
    """Read or make up all trees; return the corpus, the clean trees of each split and where they come from."""
    corpus, gold = SplitCorpus({split: [] for split in SPLITS}, Counter()), {}
    if args.treebank:
        files = split_files(treebank_files(args.treebank), {split: getattr(args, f"{split}_files") for split in SPLITS})
        origin: dict[str, object] = {"corpus": "Penn Treebank, Wall Street Journal"}
        for split, (chosen, found) in files.items():
            origin[f"{split}_files"] = f"{len(found)} of {chosen}"
            for file in found:
                add(corpus, gold, split, file.stem, read_trees(file), args.form)
    else:
        origin = {"corpus": "generated trees, no English", "note": grammar.NOTE}
        drawn = grammar.trees(args.generated_trees)
        held_out = max(1, len(drawn) // 20)
        add(corpus, gold, "test", "grammar", drawn[:held_out], args.form)
        add(corpus, gold, "valid", "grammar", drawn[held_out : 2 * held_out], args.form)
        add(corpus, gold, "train", "grammar", drawn[2 * held_out :], args.form)
    if args.silver:
        origin["silver"] = args.silver.name
        add(corpus, gold, SILVER, args.silver.name, read_trees(args.silver), args.form)
    return corpus, gold, {**origin, "form": args.form}


def main(argv: list[str] | None = None) -> None:
    """Write the splits, the trees to score against, and ``corpus.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--treebank", type=Path, help="folder of wsj_NNNN.mrg files; without it trees are made up")
    parser.add_argument("--generated-trees", type=int, default=4000, help="how many are made up")
    parser.add_argument("--silver", type=Path, help="file of trees a parser made, for training alone")
    parser.add_argument("--form", choices=FORMS, default=FORMS[0])
    for split in SPLITS:
        parser.add_argument(f"--{split}-files", metavar="FIRST-LAST", help="for instance 0001-0159")
    args = parser.parse_args(argv)
    corpus, gold, origin = build(args)
    if "note" in origin:
        print(origin["note"])
    for split in ("valid", "test"):
        write_text(args.output / f"{split}.gold", "".join(f"{one_line(tree)}\n" for tree in gold.get(split, [])))
    parallel_corpus.write_with_manifest(corpus, args.output, "words", "tree", origin)


if __name__ == "__main__":
    main()
