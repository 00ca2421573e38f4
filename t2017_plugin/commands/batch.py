"""``t2017 batch``: the flags that make the paper's batch on any number of GPUs."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from t2017_plugin.commands.arguments import at_least_one
from t2017_plugin.experiments.batches import (
    default_update_freq,
    fairseq_update,
    fit_max_tokens,
    read_lengths,
    side_by_side,
    t2t_update,
)
from t2017_plugin.paper.config import Training

DESCRIPTION = """\
Print --max-tokens and --update-freq for fairseq-train that give the paper's batch on G GPUs.

With --data-bin the batches are made as fairseq makes them, from the lengths in it, and counted: --max-tokens is
chosen so that an update holds 25,000 real tokens (the mean of source and target; with EOS, padding left out). The
target tokens are what the training log calls wpb. Without a data-bin the tokens are divided, and what fairseq fills up
with padding is missing from the update.

--max-tokens given: nothing is chosen, only counted.
"""
EPILOG = """\
examples:
  t2017 batch --gpus 8
  t2017 batch --gpus 2 --data-bin DATA
  fairseq-train DATA $(t2017 batch --gpus 2 --data-bin DATA --flags) ...
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 batch``."""
    parser.add_argument(
        "--gpus", type=at_least_one, default=1, metavar="G", help="processes that train together (default: 1)"
    )
    parser.add_argument(
        "--tokens",
        type=at_least_one,
        default=Training().tokens,
        metavar="N",
        help="tokens per side and update (default: %(default)s)",
    )
    parser.add_argument("--data-bin", type=Path, metavar="D", help="data to count, from fairseq-preprocess")
    parser.add_argument(
        "--update-freq", type=at_least_one, metavar="U", help="batches per GPU and update (default: 8 / G)"
    )
    parser.add_argument("--max-tokens", type=at_least_one, metavar="M", help="count these batches, choose nothing")
    parser.add_argument(
        "--required-batch-size-multiple",
        type=at_least_one,
        default=1,
        metavar="N",
        help="as given to fairseq-train (ours: 1)",
    )
    parser.add_argument("-s", "--source-lang", metavar="L")
    parser.add_argument("-t", "--target-lang", metavar="L")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--flags", action="store_true", help="print the two flags and nothing else")
    shape.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the flags, and what they give on the data."""
    update_freq = args.update_freq or default_update_freq(args.gpus)
    lengths = args.data_bin and read_lengths(args.data_bin, "train", args.source_lang, args.target_lang)
    if args.max_tokens:
        max_tokens = args.max_tokens
    elif lengths:
        max_tokens = fit_max_tokens(lengths, args.tokens, update_freq, args.gpus)
    else:
        max_tokens = max(1, round(args.tokens / (args.gpus * update_freq)))
    flags = f"--max-tokens {max_tokens} --update-freq {update_freq}"
    answer = {"gpus": args.gpus, "max_tokens": max_tokens, "update_freq": update_freq}
    if args.flags:
        print(flags)
        return 0
    if not lengths:
        if args.json:
            print(json.dumps(answer, indent=2))
        else:
            held = args.gpus * max_tokens * update_freq
            print(f"{flags}   ({args.gpus} GPUs; at most {held:,} tokens per side, padding included;")
            print("with --data-bin D the real tokens are counted and these two chosen by them)")
        return 0
    content = fairseq_update(lengths, max_tokens, update_freq, args.gpus, args.required_batch_size_multiple)
    if args.json:
        print(json.dumps({**answer, "tokens_an_update": content.as_dict()}, indent=2))
        return 0
    print(f"{flags}   ({args.gpus} GPUs)")
    print(f"wpb {content.target:.1f}: target tokens per update with EOS, as the training log counts them")
    print()
    rows = [("fairseq with these flags", content), ("Tensor2Tensor's buckets, 8 GPUs", t2t_update(lengths))]
    print(side_by_side(rows))
    return 0
