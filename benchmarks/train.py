"""Training updates of this plugin and of stock fairseq, taking turns in one process: tokens per second and peak memory.

    python -m benchmarks.train --size base
    python -m benchmarks.train --size tiny base --rounds 20 --threads 1 --output train.json --markdown train.md
    python -m benchmarks.train --size base big --device cuda --precision bf16 --compile

Both arms have the same sizes, vocabulary, batches and dropout, each with its own loss and Adam (stock: its defaults);
half precision is fairseq's own, with its float32 copy of the weights. A batch has 4,096 target tokens (tiny: 1,785) in
sentences of nearly equal length. Memory is measured in a process of its own for each arm: the largest resident set of
two updates less what is resident before the model is built; on a GPU, torch's largest allocation.
"""

import argparse
import multiprocessing
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq import optim
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.optim.adam import FairseqAdam, FairseqAdamConfig
from omegaconf import OmegaConf

from benchmarks.timing import alternate, markdown, ratios, report
from t2017_plugin.differences.small_models import make_ours, make_stock, make_task
from t2017_plugin.fairseq_side.architectures import architecture_settings
from t2017_plugin.fairseq_side.training import T2017Adam, T2017AdamConfig, T2017LabelSmoothing

ARMS = ("t2017_plugin", "stock")
# vocabulary, sentences and longest sentence a side of a batch; lengths are even between longest - 6 and longest
SIZES = {"tiny": (4_096, 105, 20), "base": (37_000, 178, 26), "big": (37_000, 178, 26)}
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
# What fairseq's half-precision optimiser reads of a configuration.
HALF = {
    "common": {"fp16_init_scale": 128, "fp16_scale_tolerance": 0.0, "min_loss_scale": 1e-4, "model_parallel_size": 1},
    "optimization": {"update_freq": [1]},
    "distributed_training": {"distributed_world_size": 1},
    "optimizer": {},
}
HALF["common"] |= {"fp16_scale_window": None, "threshold_loss_scale": None, "fp16_no_flatten_grads": True}


def batches(size: str, count: int, device: str = "cpu") -> list[dict[str, Any]]:
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
        net_input = {name: tensor.to(device) for name, tensor in net_input.items()}
        result.append({"net_input": net_input, "target": target.to(device), "ntokens": int(lengths.sum())})
    return result


def half_precision(optimizer: Any, parameters: list[Any], precision: str) -> Any:
    """fairseq's wrapper with a float32 copy of the weights, over the optimiser of an arm."""
    config = OmegaConf.create(HALF)
    config.common[precision] = True
    masters = optim.FP16Optimizer.build_fp32_params(config.optimizer, parameters, flatten=False)
    return optim.FP16Optimizer(config, parameters, optimizer(masters), masters)


def updater(arm: str, size: str, args: argparse.Namespace) -> Callable[[dict[str, Any]], None]:
    """Make a function that makes one update of an arm's model on a batch."""
    vocabulary = SIZES[size][0]
    task, sizes = make_task(vocabulary), architecture_settings(f"t2017_{size}")
    kept = {name: sizes[name] for name in ("layers", "d_model", "d_ff", "heads", "d_k", "d_v", "dropout")}
    if arm == "stock":
        model, criterion = make_stock(1, vocabulary, **kept), LabelSmoothedCrossEntropyCriterion(task, False, 0.1)
        config = FairseqAdamConfig(adam_betas="(0.9, 0.98)", adam_eps=1e-9, lr=[1e-4])

        def build(parameters: list[Any]) -> Any:
            return FairseqAdam(config, parameters)
    else:
        model, criterion = make_ours(1, vocabulary, **kept), T2017LabelSmoothing(task, 0.1, "all", False)

        def build(parameters: list[Any]) -> Any:
            return T2017Adam(T2017AdamConfig(lr=[1e-4]), parameters)

        if args.compile:
            for layer in (*model.encoder.layers, *model.decoder.layers):
                layer.compile(dynamic=True)
    model.to(args.device, PRECISIONS[args.precision]).train()
    parameters = list(model.parameters())
    half = args.precision != "fp32"
    optimizer = half_precision(build, parameters, args.precision) if half else build(parameters)

    def update(batch: dict[str, Any]) -> None:
        loss, _, _ = criterion(model, batch)
        optimizer.backward(loss)
        optimizer.multiply_grads(1.0 / batch["ntokens"])
        optimizer.clip_grad_norm(0.0)
        optimizer.step()
        optimizer.zero_grad()

    return update


def peak_memory(arm: str, size: str, args: argparse.Namespace, answer: Any) -> None:
    """Put the bytes that two updates need beyond the imports into ``answer``, in a process of its own."""
    torch.set_num_threads(args.threads)
    sample = batches(size, 1, args.device)[0]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    update = updater(arm, size, args)
    for _ in range(2):
        update(sample)
    if args.device == "cpu":
        answer.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
    else:
        answer.put(torch.cuda.max_memory_allocated())


def measured_memory(size: str, args: argparse.Namespace) -> dict[str, int]:
    """Peak memory of each arm in bytes."""
    context = multiprocessing.get_context("spawn")
    memory = {}
    for arm in ARMS:
        answer = context.Queue()
        process = context.Process(target=peak_memory, args=(arm, size, args, answer))
        process.start()
        memory[arm] = answer.get()
        process.join()
    return memory


def measure(size: str, args: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """Return a title and a row for each arm."""
    memory = measured_memory(size, args)
    samples = batches(size, args.warmup + args.rounds, args.device)
    tokens = sum(sample["ntokens"] for sample in samples[args.warmup :]) / args.rounds
    queues = {arm: iter(samples) for arm in ARMS}
    updates = {arm: updater(arm, size, args) for arm in ARMS}

    def turn(arm: str) -> Callable[[], None]:
        return lambda: updates[arm](next(queues[arm]))

    seconds = alternate({arm: turn(arm) for arm in ARMS}, args.rounds, args.warmup)
    rows = []
    for arm in ARMS:
        speed = sorted(tokens / each for each in seconds[arm])
        median, low, high = ratios(seconds["stock"], seconds[arm])
        rows.append(
            {
                "arm": arm,
                "target tokens/s, median (lowest, highest)": f"{speed[len(speed) // 2]:,.0f} "
                f"({speed[0]:,.0f}, {speed[-1]:,.0f})",
                "of stock (lowest, highest)": f"{median:.2f} ({low:.2f}, {high:.2f})",
                "peak memory": f"{memory[arm] / 2**30:.2f} GiB",
                "memory of stock": f"{memory[arm] / memory['stock']:.2f}",
            }
        )
    vocabulary, sentences, longest = SIZES[size]
    how = f"{args.precision}{', our layers compiled' if args.compile else ''}, {args.rounds} rounds"
    shape = f"{sentences} x {longest} positions, {tokens:,.0f} target tokens per update"
    return f"{size}, V = {vocabulary:,}, {shape}, {how}", rows


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, nargs="+", default=["base"])
    parser.add_argument("--rounds", type=int, default=5, help="updates of each arm that are timed (default: 5)")
    parser.add_argument("--warmup", type=int, default=1, help="updates before them (default: 1)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32", help="fp16 needs a GPU")
    parser.add_argument("--compile", action="store_true", help="torch.compile for our layers")
    parser.add_argument("--output", type=Path, help="write the figures as JSON as well")
    parser.add_argument("--markdown", type=Path, help="write the tables as Markdown as well")
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    tables = []
    for size in args.size:
        title, rows = measure(size, args)
        output = args.output and (
            args.output if len(args.size) == 1 else args.output.with_stem(f"{args.output.stem}_{size}")
        )
        report(title, rows, output)
        print()
        tables.append(markdown(title, rows))
    if args.markdown:
        args.markdown.write_text("\n\n".join(tables) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
