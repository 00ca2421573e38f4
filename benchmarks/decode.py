"""Beam search of this plugin and of stock fairseq with the same weights, in turns in one process: sentences a second.

    python -m benchmarks.decode --checkpoint runs/demo/stock/avg.pt --data-bin runs/demo/data-bin
    python -m benchmarks.decode --size base

With a checkpoint of stock's ``transformer`` the weights are copied into ours (same function under the stock switches)
and the test set is translated, in batches by tokens and one by one. Without one, untrained weights of a named size
write exactly 20 tokens for each of 64 sources, so that both do the same work. Beam 4; ours searches by the paper's
rules, stock by its own, with the nearest limit on length.
"""

import argparse
import logging
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.data import data_utils
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from benchmarks.timing import alternate, ratios, report
from t2017_plugin.audit.instruments import make_pairs, make_stock, make_task
from t2017_plugin.decoding.generator import PaperGenerator
from t2017_plugin.interop.stock import STOCK_SWITCHES, from_stock
from t2017_plugin.models.architectures import settings
from t2017_plugin.models.config import T2017TransformerConfig
from t2017_plugin.models.transformer_2017 import T2017Transformer

WRITTEN = 20


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


def collate(sources: list[Tensor]) -> dict[str, Any]:
    """A batch of sources, padded on the left as stock does (ours takes either side)."""
    tokens = data_utils.collate_tokens(sources, 1, 2, left_pad=True)
    return {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor([len(source) for source in sources])}}


def by_tokens(sources: list[Tensor], limit: int) -> list[dict[str, Any]]:
    """Sources of like length together, at most ``limit`` padded tokens a batch."""
    batches: list[list[Tensor]] = [[]]
    for source in sorted(sources, key=len):
        if batches[-1] and (len(batches[-1]) + 1) * len(source) > limit:
            batches.append([])
        batches[-1].append(source)
    return [collate(batch) for batch in batches]


def from_checkpoint(checkpoint: Path, data_bin: Path) -> tuple[Any, Any, list[Tensor]]:
    """A stock model, its task and the sources of the test set."""
    models, _, task = checkpoint_utils.load_model_ensemble_and_task([str(checkpoint)], {"data": str(data_bin)})
    task.load_dataset("test")
    data = task.dataset("test")
    return models[0].eval(), task, [data[i]["source"] for i in range(len(data))]


def untrained(size: str, vocabulary: int) -> tuple[Any, Any, list[Tensor]]:
    """A stock model of a named size with random weights, and 64 sources of 20 tokens."""
    chosen = settings(f"t2017_{size}")
    sizes = {name: chosen[name] for name in ("layers", "d_model", "d_ff", "heads", "d_k", "d_v")}
    return make_stock(1, vocabulary, **sizes), make_task(vocabulary), list(make_pairs([20] * 64, vocabulary)[0])


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
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--output", type=Path, help="write the figures as JSON as well")
    args = parser.parse_args()
    if (args.checkpoint is None) != (args.data_bin is None):
        parser.error("--checkpoint and --data-bin go together")
    torch.set_num_threads(args.threads)
    # Untrained weights reach the length limit on purpose; the warnings would be many.
    logging.disable(logging.WARNING)

    trained = args.checkpoint is not None
    stock, task, sources = (
        from_checkpoint(args.checkpoint, args.data_bin) if trained else untrained(args.size, args.vocabulary)
    )
    ours = twin(stock, task)
    # As fairseq-generate does with every model before it searches.
    for model in (ours, stock):
        model.make_generation_fast_()
    dictionary = task.target_dictionary
    lengths: dict[str, Any] = {"max_len_a": 1, "max_len_b": 50}
    forced: dict[str, Any] = {}
    if not trained:
        lengths = {"max_len_a": 0, "max_len_b": WRITTEN - 1, "min_len": WRITTEN - 1}
        forced = {"max_len_a": 0, "max_len_b": WRITTEN - 1, "min_len": WRITTEN - 1}
    generators: dict[str, Any] = {
        "t2017_plugin": PaperGenerator(
            [ours], dictionary, Namespace(beam=4, lenpen=0.6, nbest=1, **forced)
        ),
        "stock": SequenceGenerator([stock], dictionary, beam_size=4, len_penalty=0.6, **lengths),
    }

    def run(arm: str, batches: list[dict[str, Any]]) -> Callable[[], None]:
        def turn() -> None:
            for batch in batches:
                generators[arm].generate([], batch)

        return turn

    few = sources[:: max(1, len(sources) // args.one_by_one)][: args.one_by_one]
    rows = []
    for name, batches, count in (
        (f"batches of {args.max_tokens} tokens", by_tokens(sources, args.max_tokens), len(sources)),
        ("one by one", [collate([source]) for source in few], len(few)),
    ):
        seconds = alternate({arm: run(arm, batches) for arm in generators}, args.rounds)
        for arm in generators:
            median, low, high = ratios(seconds["stock"], seconds[arm])
            speed = sorted(count / each for each in seconds[arm])
            rows.append(
                {
                    "how": name,
                    "arm": arm,
                    "sentences/s, median": f"{speed[len(speed) // 2]:.1f}",
                    "of stock (lowest, highest)": f"{median:.2f} ({low:.2f}, {high:.2f})",
                }
            )
    report(f"beam 4, {args.checkpoint or args.size}, {len(sources)} sentences", rows, args.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
