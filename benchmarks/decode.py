"""Beam search of this plugin, of stock fairseq and of CTranslate2 with the same weights, in turns in one process.

    python -m benchmarks.decode --checkpoint runs/demo/stock/average.pt --data-bin runs/demo/data-bin
    python -m benchmarks.decode --size base

With a checkpoint of stock's ``transformer`` the weights are copied into ours (same function under the stock switches)
and the test set is translated, in batches by tokens and one by one. Without one, untrained weights of a named size
write exactly 20 tokens for each of 64 sources, so that all do the same work. Beam 4 and alpha 0.6 everywhere: ours by
the paper's rules and, as a second arm, by fairseq's; stock and CTranslate2 by their own. CTranslate2, if it is
installed, computes in float32 too, and on a CPU only. Memory is that of a process in which one arm alone translates
in batches, beyond the loaded model.
"""

import argparse
import importlib.util
import logging
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from benchmarks.engines import ctranslate2_arm
from benchmarks.timing import alternate, ratios, report
from t2017_plugin.checkpoints.loading import PRECISIONS
from t2017_plugin.checkpoints.stock_weights import STOCK_SWITCHES, from_stock
from t2017_plugin.differences.small_models import make_pairs, make_stock, make_task
from t2017_plugin.fairseq_side.architectures import architecture_settings
from t2017_plugin.fairseq_side.generator import PaperGenerator
from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.fairseq_side.stock_search import StockSearch
from t2017_plugin.paper.config import TRANSLATION_SEARCH as SEARCH

WRITTEN = 20
PAPER, STOCKS_RULE, STOCK, OTHER = "t2017_plugin", "t2017_plugin --search stock", "stock fairseq", "CTranslate2"


def twin(stock: Any, task: Any) -> T2017Transformer:
    """Our model with the weights of a stock one."""
    layer, table = stock.encoder.layers[0], stock.encoder.embed_tokens.weight
    heads = layer.self_attn.num_heads
    sizes = {"layers": len(stock.encoder.layers), "d_model": table.size(1), "d_ff": layer.fc1.out_features}
    width = table.size(1) // heads
    config = T2017TransformerConfig(
        **{**STOCK_SWITCHES, **sizes, "heads": heads, "d_k": width, "d_v": width, "attention_bias": True}
    )
    model = T2017Transformer.build_model(config, task)
    model.load_state_dict(from_stock(stock.state_dict()))
    return model.eval()


def collate(sources: list[Tensor], device: str = "cpu") -> dict[str, Any]:
    """Make a batch of sources, padded on the left as stock does (ours takes either side)."""
    tokens = data_utils.collate_tokens(sources, 1, 2, left_pad=True).to(device)
    lengths = torch.tensor([len(source) for source in sources], device=device)
    return {"net_input": {"src_tokens": tokens, "src_lengths": lengths}}


def by_tokens(order: list[int], sources: list[Tensor], limit: int) -> list[list[int]]:
    """Batch sources in this order, at least one and at most ``limit`` padded tokens per batch."""
    batches: list[list[int]] = [[]]
    longest = 0
    for place in order:
        longest = max(longest, len(sources[place]))
        if batches[-1] and (len(batches[-1]) + 1) * longest > limit:
            batches.append([])
            longest = len(sources[place])
        batches[-1].append(place)
    return batches


def sorted_batches(sources: list[Tensor], limit: int, device: str) -> list[dict[str, Any]]:
    """Batch sources of like length together, at most ``limit`` padded tokens per batch."""
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))
    return [collate([sources[place] for place in batch], device) for batch in by_tokens(order, sources, limit)]


def from_checkpoint(checkpoint: Path, data_bin: Path) -> tuple[Any, Any, list[Tensor]]:
    """Load a model, its task and the sources of the test set."""
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data_bin)})
    task.load_dataset("test")
    data = task.dataset("test")
    return models[0].eval(), task, [data[i]["source"] for i in range(len(data))]


def untrained(size: str, vocabulary: int) -> tuple[Any, Any, list[Tensor]]:
    """Make a stock model of a named size with random weights, and 64 sources of 20 tokens."""
    chosen = architecture_settings(f"t2017_{size}")
    sizes = {name: chosen[name] for name in ("layers", "d_model", "d_ff", "heads", "d_k", "d_v")}
    return make_stock(1, vocabulary, **sizes), make_task(vocabulary), list(make_pairs([20] * 64, vocabulary)[0])


def generators(args: argparse.Namespace, arms: list[str]) -> tuple[dict[str, Any], Any, Any, list[Tensor]]:
    """Return the search of each arm, and the stock model, its dictionary and the sources."""
    trained = args.checkpoint is not None
    stock, task, sources = (
        from_checkpoint(args.checkpoint, args.data_bin) if trained else untrained(args.size, args.vocabulary)
    )
    stock = stock.to(args.device, PRECISIONS[args.precision])
    dictionary = task.target_dictionary
    forced = {} if trained else {"max_len_a": 0, "max_len_b": WRITTEN - 1, "min_len": WRITTEN - 1}
    stock_lengths = forced or {"max_len_a": 1, "max_len_b": 50, "min_len": 1}
    searches: dict[str, Any] = {}
    if {PAPER, STOCKS_RULE} & set(arms):
        ours = twin(stock, task).to(args.device, PRECISIONS[args.precision])
        # As fairseq-generate does with every model before it searches.
        ours.make_generation_fast_()
        searches[PAPER] = PaperGenerator(
            [ours],
            dictionary,
            Namespace(beam=SEARCH.beam, lenpen=SEARCH.alpha, nbest=1, **forced),
        )
        flags = Namespace(beam=SEARCH.beam, lenpen=SEARCH.alpha, nbest=1, **stock_lengths)
        searches[STOCKS_RULE] = StockSearch([ours], dictionary, flags, lambda: None)
    if STOCK in arms:
        searches[STOCK] = SequenceGenerator(
            [stock],
            dictionary,
            beam_size=SEARCH.beam,
            len_penalty=SEARCH.alpha,
            **stock_lengths,
        )
        stock.make_generation_fast_()
    return searches, stock, dictionary, sources


def turn(search: Any, batches: list[dict[str, Any]]) -> Callable[[], None]:
    """Translate all batches."""

    def translate() -> None:
        for batch in batches:
            search.generate([], batch)

    return translate


def measure_memory(args: argparse.Namespace) -> int:
    """Print what the process takes at most in MiB, beyond what it has when the model is there."""
    searches, _, _, sources = generators(args, [args.memory_of])
    batches = sorted_batches(sources, args.max_tokens, args.device)
    if args.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        loaded = torch.cuda.memory_allocated()
        turn(searches[args.memory_of], batches)()
        print((torch.cuda.max_memory_allocated() - loaded) / 2**20)
        return 0
    Path("/proc/self/clear_refs").write_text("5")  # forgets the highest memory so far
    before = status("VmRSS")
    turn(searches[args.memory_of], batches)()
    print((status("VmHWM") - before) / 1024)
    return 0


def status(name: str) -> int:
    """Read a figure of this process in KiB, as Linux counts it."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1])


def memory(arm: str) -> float:
    """``measure_memory`` of an arm in a process of its own, in MiB."""
    command = [sys.executable, "-m", "benchmarks.decode", *sys.argv[1:], "--memory-of", arm]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", type=Path, help="a checkpoint of stock's transformer with one shared table")
    parser.add_argument("--data-bin", type=Path)
    parser.add_argument("--size", choices=("tiny", "base", "big"), default="base", help="without a checkpoint")
    parser.add_argument("--vocabulary", type=int, default=37_000, help="without a checkpoint")
    parser.add_argument("--max-tokens", type=int, default=4_000, help="of a batch (default: 4000)")
    parser.add_argument("--one-by-one", type=int, default=50, help="sentences of that measurement (default: 50)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=tuple(PRECISIONS), default="fp32", help="of both arms (default: fp32)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--output", type=Path, help="write the figures as JSON as well")
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if (args.checkpoint is None) != (args.data_bin is None):
        parser.error("--checkpoint and --data-bin go together")
    torch.set_num_threads(args.threads)
    # Untrained weights reach the length limit on purpose; the warnings would be many.
    logging.disable(logging.WARNING)
    if args.memory_of:
        return measure_memory(args)

    searches, stock, dictionary, sources = generators(args, [PAPER, STOCKS_RULE, STOCK])
    few = sources[:: max(1, len(sources) // args.one_by_one)][: args.one_by_one]
    written = None if args.checkpoint else WRITTEN
    rows = []
    for how, batches, chosen, limit in (
        (
            f"batches of {args.max_tokens} tokens",
            sorted_batches(sources, args.max_tokens, args.device),
            sources,
            args.max_tokens,
        ),
        ("one by one", [collate([source], args.device) for source in few], few, 0),
    ):
        arms: dict[str, Callable[[], Any]] = {arm: turn(search, batches) for arm, search in searches.items()}
        with tempfile.TemporaryDirectory() as folder:
            if args.device == "cpu" and args.precision == "fp32" and importlib.util.find_spec("ctranslate2"):
                arms[OTHER] = ctranslate2_arm(stock, dictionary, chosen, Path(folder), limit, written)
            seconds = alternate(arms, args.rounds)
        for arm in arms:
            median, low, high = ratios(seconds[STOCK], seconds[arm])
            speed = sorted(len(chosen) / each for each in seconds[arm])
            rows.append(
                {
                    "how": how,
                    "arm": arm,
                    "sentences/s, median": f"{speed[len(speed) // 2]:.1f}",
                    "of stock (lowest, highest)": f"{median:.2f} ({low:.2f}, {high:.2f})",
                    "memory of the search, MiB": f"{memory(arm):.0f}" if limit and arm in searches else "",
                }
            )
    report(
        f"beam {SEARCH.beam}, {args.precision}, {args.checkpoint or args.size}, {len(sources)} sentences",
        rows,
        args.output,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
