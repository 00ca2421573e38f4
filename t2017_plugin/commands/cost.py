"""``t2017 cost``: floating-point operations of a training, by the paper's rule and by counting."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2017_plugin.checkpoints.loading import load_checkpoint, stored_settings
from t2017_plugin.commands.arguments import at_least_one, positive
from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.batches import read_lengths
from t2017_plugin.experiments.logs import find_logs
from t2017_plugin.experiments.paper_configs import EXPERIMENTS
from t2017_plugin.experiments.runs import Run
from t2017_plugin.experiments.size_and_cost import (
    OPERATIONS,
    PAPERS_VOCABULARY,
    SUSTAINED,
    TABLE_2,
    Tokens,
    by_the_rule,
    forward_multiply_adds,
)
from t2017_plugin.fairseq_side.architectures import ARCHITECTURES, architecture_settings
from t2017_plugin.paper.config import Training

DESCRIPTION = """\
Without RUN: an architecture trained as in the paper, 25,000 source and 25,000 target tokens per update.
With RUN (the folder of a recipe's arm, or any folder with a training log and checkpoints): sizes from its checkpoint,
tokens, time and processes from its log. The log counts target tokens; source tokens are taken to be as many, or are
counted in --data-bin.

The rule is time * GPUs * sustained rate. The rate is the paper's 9.5e12 per second for a P100; another device needs
--rate, and a run has a figure by the rule only with it.
"""
EPILOG = """\
examples:
  t2017 cost --arch t2017_big
  t2017 cost runs/demo/t2017 --data-bin runs/demo/data-bin --rate 5e10
"""
PAPER = Training()


@dataclass(frozen=True)
class Trained:
    """What a training was, and its cost by the rule, with how that was reckoned; None where it has no time or rate."""

    what: str
    sizes: Mapping[str, Any]
    vocabulary: int
    updates: int
    tokens: Tokens
    rule: float | None
    rule_from: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 cost``."""
    parser.add_argument("trained", nargs="?", metavar="RUN", help="a trained run")
    parser.add_argument(
        "--arch",
        choices=ARCHITECTURES,
        default="t2017_base",
        metavar="ARCH",
        help="without RUN (default: %(default)s)",
    )
    parser.add_argument(
        "--vocab",
        type=at_least_one,
        default=PAPERS_VOCABULARY,
        metavar="V",
        help="without RUN (default: %(default)s)",
    )
    parser.add_argument("--updates", type=at_least_one, metavar="N", help="without RUN (default: the paper's)")
    parser.add_argument(
        "--tokens",
        type=at_least_one,
        default=PAPER.tokens,
        metavar="N",
        help="per side and update (default: %(default)s)",
    )
    parser.add_argument("--length", type=positive, default=28.0, help="mean tokens of a sentence (default: 28)")
    parser.add_argument("--hours", type=positive, help="training time for the rule (default: the paper's 12 and 84)")
    parser.add_argument("--gpus", type=at_least_one, help="for the rule (default: 8, or the run's processes)")
    parser.add_argument("--rate", type=positive, help="operations per second of one device (default: 9.5e12, a P100)")
    parser.add_argument("--data-bin", type=Path, metavar="D", help="with RUN: count source tokens in it")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print both figures and the parts of the counted one."""
    trained = of_run(args) if args.trained else of_architecture(args)
    tokens, rule = trained.tokens, trained.rule
    forward = forward_multiply_adds(trained.sizes, trained.vocabulary, tokens)
    parts = {part: OPERATIONS * each for part, each in forward.items()}
    counted = sum(parts.values())
    if args.json:
        answer = {name: getattr(trained, name) for name in ("what", "vocabulary", "updates", "rule", "rule_from")}
        answer |= {"counted": counted, "parts": parts}
        answer |= {"source_tokens": tokens.source, "target_tokens": tokens.target}
        print(json.dumps(answer, indent=2))
        return 0
    print(f"{trained.what}: {trained.updates:,} updates, V = {trained.vocabulary:,}, {tokens.target:.3g} target tokens")
    print(f"by the rule  {f'{rule:.2e}' if rule else '-'}  ({trained.rule_from})")
    print(f"by counting  {counted:.2e}  (2 * multiply-adds, backward twice forward), of it")
    for part, each in parts.items():
        print(f"  {part:24}{each:10.2e}  {each / counted:6.1%}")
    if rule:
        print(f"the rule's figure is {rule / counted:.2f} times the counted one")
    return 0


def of_architecture(args: argparse.Namespace) -> Trained:
    """Return the figures of an architecture under the paper's training."""
    steps = {experiment.architecture: experiment.training.train_steps for experiment in EXPERIMENTS.values()}
    updates = args.updates or steps.get(args.arch, PAPER.train_steps)
    hours, printed = TABLE_2.get(args.arch, (None, None))
    hours, gpus, rate = args.hours or hours, args.gpus or PAPER.gpus, args.rate or SUSTAINED["P100"]
    origin = f"{hours:g} h * {gpus} GPUs * {rate:.2g}" if hours else "needs --hours for this architecture"
    if printed and not (args.hours or args.gpus or args.rate):
        origin += f"; the paper prints {printed:.1e}"
    total = float(updates * args.tokens)
    return Trained(
        what=args.arch,
        sizes=architecture_settings(args.arch),
        vocabulary=args.vocab,
        updates=updates,
        tokens=Tokens(total, total, args.length, args.length),
        rule=by_the_rule(hours * 3600, gpus, rate) if hours else None,
        rule_from=origin,
    )


def of_run(args: argparse.Namespace) -> Trained:
    """Return the figures of a run, from its log and a checkpoint.

    Raises:
        UsageError: it has not one log and a checkpoint, or its model is not this plugin's.
    """
    logs = find_logs(args.trained)
    if len(logs) != 1:
        names = ", ".join(str(log.path) for log in logs)
        raise UsageError(f"{args.trained} holds {len(logs)} logs: name one of {names}")
    log, folder = logs[0], Path(args.trained)
    folder = folder if folder.is_dir() else folder.parent
    found = Run(folder).checkpoints
    if not found:
        raise UsageError(f"{folder} holds no checkpoint to read the model's sizes from")
    state = load_checkpoint(found[0])
    sizes = stored_settings(state, "model")
    table = state["model"].get("decoder.output.weight")
    if table is None or "d_k" not in sizes:
        raise UsageError(f"{found[0]} is not a model of this plugin, whose products are counted here")
    target, sentences = log.total("wpb"), log.total("bsz")
    source, length = target, target / sentences
    if args.data_bin:
        lengths = read_lengths(args.data_bin)
        source, length = target * lengths.source.sum() / lengths.target.sum(), float(lengths.source.mean())
    gpus = args.gpus or log.devices
    seconds = args.hours * 3600 if args.hours else log.train_wall
    return Trained(
        what=log.name,
        sizes=sizes,
        vocabulary=len(table),
        updates=log.updates,
        tokens=Tokens(float(source), target, length, target / sentences),
        rule=by_the_rule(seconds, gpus, args.rate) if args.rate else None,
        rule_from=f"{seconds:,.0f} s * {gpus} devices * {args.rate:.2g}" if args.rate else "needs --rate",
    )
