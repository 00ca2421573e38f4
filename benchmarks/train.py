"""Training updates of this plugin and of stock fairseq, taking turns in one process: tokens a second and peak memory.

    python -m benchmarks.train --size base
    python -m benchmarks.train --size tiny --rounds 20 --output train.json

Both arms have the same sizes, vocabulary, batches and dropout, float32, each with its own loss and Adam (stock: its
defaults). Memory is measured in a process of its own for each arm: the largest resident set of two updates, less what
is resident before the model is built.
"""

import argparse
import multiprocessing
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig

from benchmarks.timing import alternate, ratios, report
from t2017_plugin.audit.instruments import make_ours, make_stock, make_task
from t2017_plugin.criterions.label_smoothing import T2017LabelSmoothing
from t2017_plugin.models.architectures import settings
from t2017_plugin.optim.adam import T2017Adam, T2017AdamConfig

# vocabulary, sentences and tokens a side of a batch (real text fills about seven eighths of it)
SIZES = {"tiny": (4_096, 105, 17), "base": (37_000, 158, 26), "big": (37_000, 158, 26)}


def batches(size: str, count: int) -> list[dict[str, Any]]:
    """Random tokens in sentences of nearly equal length, as batching by length gives them."""
    vocabulary, sentences, longest = SIZES[size]
    generator = torch.Generator().manual_seed(1)
    result = []
    for _ in range(count):
        lengths = torch.randint(longest - 6, longest + 1, (sentences,), generator=generator)
        place = torch.arange(longest)
        source, target = (
            torch.randint(4, vocabulary, (sentences, longest), generator=generator).masked_fill(
                place >= lengths.unsqueeze(1), 1
            )
            for _ in range(2)
        )
        shifted = torch.cat([torch.full((sentences, 1), 2), target[:, :-1]], dim=1)
        net_input = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": shifted}
        result.append({"net_input": net_input, "target": target, "ntokens": int(lengths.sum())})
    return result


def updater(arm: str, size: str) -> Callable[[dict[str, Any]], None]:
    """A function that makes one update of an arm's model on a batch."""
    vocabulary = SIZES[size][0]
    task, sizes = make_task(vocabulary), settings(f"t2017_{size}")
    kept = {name: sizes[name] for name in ("layers", "d_model", "d_ff", "heads", "d_k", "d_v", "dropout")}
    if arm == "stock":
        model, criterion = make_stock(1, vocabulary, **kept), LabelSmoothedCrossEntropyCriterion(task, False, 0.1)
        config = FairseqAdamConfig(adam_betas="(0.9, 0.98)", adam_eps=1e-9, lr=[1e-4])
        optimizer: Any = FairseqAdam(config, list(model.parameters()))
    else:
        model, criterion = make_ours(1, vocabulary, **kept), T2017LabelSmoothing(task, 0.1, "all", False)
        optimizer = T2017Adam(T2017AdamConfig(lr=[1e-4]), list(model.parameters()))
    model.train()

    def update(batch: dict[str, Any]) -> None:
        loss, _, _ = criterion(model, batch)
        optimizer.backward(loss / batch["ntokens"])
        optimizer.step()
        optimizer.zero_grad()

    return update


def peak_memory(arm: str, size: str, threads: int, answer: Any) -> None:
    """Puts the bytes that two updates need beyond the imports into ``answer``; runs in a process of its own."""
    torch.set_num_threads(threads)
    sample = batches(size, 1)[0]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    update = updater(arm, size)
    for _ in range(2):
        update(sample)
    answer.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--rounds", type=int, default=5, help="updates of each arm that are timed (default: 5)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--output", type=Path, help="write the figures as JSON as well")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    context = multiprocessing.get_context("spawn")
    memory = {}
    for arm in ("t2017_plugin", "stock"):
        answer = context.Queue()
        process = context.Process(target=peak_memory, args=(arm, args.size, args.threads, answer))
        process.start()
        memory[arm] = answer.get()
        process.join()

    samples = batches(args.size, 1 + args.rounds)
    tokens = sum(sample["ntokens"] for sample in samples[1:]) / args.rounds
    queues = {arm: iter(samples) for arm in memory}
    updates = {arm: updater(arm, args.size) for arm in memory}

    def turn(arm: str) -> Callable[[], None]:
        return lambda: updates[arm](next(queues[arm]))

    seconds = alternate({arm: turn(arm) for arm in memory}, args.rounds)
    rows = []
    for arm in memory:
        speed = [tokens / each for each in seconds[arm]]
        median, low, high = ratios(seconds["stock"], seconds[arm])
        rows.append(
            {
                "arm": arm,
                "target tokens/s, median": f"{sorted(speed)[len(speed) // 2]:,.0f}",
                "of stock (lowest, highest)": f"{median:.2f} ({low:.2f}, {high:.2f})",
                "peak memory": f"{memory[arm] / 2**30:.2f} GiB",
                "memory of stock": f"{memory[arm] / memory['stock']:.2f}",
            }
        )
    vocabulary, sentences, longest = SIZES[args.size]
    title = f"{args.size}, V = {vocabulary:,}, {sentences} x {longest} tokens, {tokens:,.0f} target tokens an update"
    report(title, rows, args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
