"""Whether a translation depends on the other sentences of its batch: one test set in batches of several sizes.

    python -m benchmarks.batches --checkpoint runs/demo/t2017/average.pt --data-bin runs/demo/data-bin

The test set is searched in batches of 1, 7 and 64 sentences and of 50 tokens (padding included), in float32, and every
list of hypotheses is compared with that of the sentence alone. Sums of float32 come out differently in matrices of
another height, so that scores may differ in their last digits. Exit status 1 if a hypothesis or a score is another.
"""

import argparse
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.decode import by_tokens, collate, from_checkpoint
from benchmarks.timing import report
from t2017_plugin.paper.config import TRANSLATION_SEARCH as SEARCH

ROUNDING = 1e-4  # nats


def search(generator: Any, batches: list[list[int]], sources: list[Tensor]) -> list[list[dict[str, Any]]]:
    """Return the hypotheses of every source, in the order of the sources."""
    found: list[list[dict[str, Any]]] = [[] for _ in sources]
    for number, batch in enumerate(batches):
        for place, hypotheses in zip(batch, generator.generate([], collate([sources[i] for i in batch])), strict=True):
            found[place] = hypotheses
        if number % 50 == 0:
            print(f"batch {number} of {len(batches)}", end="\r", file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Search, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--data-bin", type=Path, required=True)
    parser.add_argument("--nbest", type=int, default=4, help="hypotheses compared of each sentence (default: 4)")
    parser.add_argument("--output", type=Path, help="write the figures as JSON as well")
    args = parser.parse_args()

    model, task, sources = from_checkpoint(args.checkpoint, args.data_bin)
    model.make_generation_fast_()
    generator = task.build_generator([model], Namespace(beam=SEARCH.beam, lenpen=SEARCH.alpha, nbest=args.nbest))
    order = list(range(len(sources)))
    by_length = sorted(order, key=lambda place: len(sources[place]))
    alone = search(generator, [[place] for place in order], sources)

    rows = []
    for name, batches in {
        "7 sentences": [order[start : start + 7] for start in range(0, len(order), 7)],
        "64 sentences": [order[start : start + 64] for start in range(0, len(order), 64)],
        "50 tokens": by_tokens(by_length, sources, 50),
    }.items():
        other = search(generator, batches, sources)
        different, worst = 0, 0.0
        for one, two in zip(alone, other, strict=True):
            if [h["tokens"].tolist() for h in one] != [h["tokens"].tolist() for h in two]:
                different += 1
                continue
            scores = [torch.stack([hypothesis["score"] for hypothesis in each]) for each in (one, two)]
            worst = max(worst, float((scores[0] - scores[1]).abs().max()))
        rows.append({"batches of": name, "sentences with other hypotheses": different, "largest difference": worst})
    report(f"{args.nbest} hypotheses of {len(sources)} sentences, against one sentence at a time", rows, args.output)
    return int(any(row["sentences with other hypotheses"] or row["largest difference"] > ROUNDING for row in rows))


if __name__ == "__main__":
    sys.exit(main())
