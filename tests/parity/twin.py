"""A training of the authors' program, replayed update by update by the plugin's registered parts.

    python -m tests.parity.twin --updates 1100 --golden FOLDER --json twin.json --picture twin.png

tests/golden/twin is a run of tensor2tensor 1.0.14 on real text: batches, initial weights, the loss
before each update, learning rates, weights after 20 updates (tests/golden/twin/README.md). Here
fairseq's trainer makes the same updates with the registered model, criterion, optimiser and
schedule. Rounding grows from update to update, so the measure is a control: the same run with the
rows of every batch in the opposite order, which changes nothing but the order of sums.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import options
from fairseq.data import LanguagePairDataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.trainer import Trainer
from torch import Tensor

from t2017_plugin.fairseq_side.dictionary import T2TDictionary
from t2017_plugin.fairseq_side.tasks import T2017TranslationTask
from t2017_plugin.markdown import table
from t2017_plugin.t2t.weights import convert_variables

FOLDER = Path(__file__).parents[1] / "golden" / "twin"
CONFIG = json.loads((FOLDER / "config.json").read_text(encoding="utf-8"))
Weights = dict[str, Tensor]


def flags(**changes: object) -> list[str]:
    """Return the command line of the training: the paper's model, the authors' choices; ``changes`` plant a fault."""
    of_a_head = CONFIG["d"] // CONFIG["h"]
    pairs: dict[str, object] = {
        "task": "t2017_translation", "arch": "t2017_base", "layers": CONFIG["layers"], "d-model": CONFIG["d"],
        "d-ff": CONFIG["ff"], "heads": CONFIG["h"], "d-k": of_a_head, "d-v": of_a_head, "dropout": 0.0,
        "sinusoid": "t2t", "embeddings": "shared", "decoder-start": "zeros",
        "criterion": "t2017_label_smoothing", "label-smoothing": CONFIG["ls"], "smoothing-over": "others",
        "optimizer": "t2017_adam", "adam-epsilon-form": "t2t",
        "lr-scheduler": "t2017_noam", "warmup-updates": CONFIG["warmup"], "max-tokens": 4096, "seed": CONFIG["seed"],
    }  # fmt: skip
    pairs |= {name.replace("_", "-"): value for name, value in changes.items()}
    switches = ["--cpu", "--no-progress-bar"]
    return ["no-data", *(text for name, value in pairs.items() for text in (f"--{name}", str(value))), *switches]


def rows_of(arrays: Mapping[str, np.ndarray], name: str) -> list[Tensor]:
    """Cut sentences, which are stored one after another, apart."""
    ends = np.cumsum(arrays[f"{name}_lengths"].astype(np.int64))
    return [torch.from_numpy(row.astype(np.int64)) for row in np.split(arrays[name], ends[:-1])]


def load(file: str, folder: Path = FOLDER) -> dict[str, np.ndarray]:
    """Read all arrays of a file."""
    with np.load(folder / file) as arrays:
        return {key: arrays[key] for key in arrays.files}


def recorded_weights(prefix: str, file: str, model: Any, folder: Path = FOLDER) -> Weights:
    """Read recorded weights, or how far they moved, as the parameters of our model."""
    variables = {
        name.removeprefix(prefix): array.astype(np.float32)
        for name, array in load(file, folder).items()
        if name.startswith(prefix)
    }
    return convert_variables(variables, model)


@dataclass
class Run:
    """What a replayed training found.

    Attributes:
        losses: T2T's loss before each update, nats per target token.
        rates: the learning rate of each update.
        weights: copies of the weights after the updates asked for.
    """

    losses: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    weights: dict[int, Weights] = field(default_factory=dict)


class Replay:
    """The training, at the recorded initial weights; ``reversed_rows`` is the control."""

    def __init__(self, reversed_rows: bool = False, **changes: object) -> None:
        args = options.parse_args_and_arch(options.get_training_parser(), flags(**changes))
        self.cfg = convert_namespace_to_omegaconf(args)
        symbols = T2TDictionary(f"s{number}" for number in range(2, CONFIG["vin"]))
        self.task = T2017TranslationTask(self.cfg.task, symbols, symbols)
        self.model = self.task.build_model(self.cfg.model)
        self.criterion = self.task.build_criterion(self.cfg.criterion)
        self.initial = recorded_weights("var/", "initial_weights.npz", self.cfg.model)
        self.model.load_state_dict(self.initial, strict=True)
        self.trainer = Trainer(self.cfg, self.task, self.model, self.criterion)
        self.reversed_rows = reversed_rows
        self.run = Run()
        # What the best possible prediction still costs, which T2T's loss leaves out; of the run, also with a fault.
        eps, classes = CONFIG["ls"], CONFIG["vout"]
        self.least_loss = -((1 - eps) * np.log(1 - eps) + eps * np.log(eps / (classes - 1) + 1e-20))
        self.criterion.register_forward_hook(self._note_the_loss)
        tokens = load("tokens.npz")
        source, target = rows_of(tokens, "source"), rows_of(tokens, "target")
        self.pairs = LanguagePairDataset(
            source, [len(row) for row in source], symbols, target, [len(row) for row in target], symbols,
            left_pad_source=self.task.cfg.left_pad_source, left_pad_target=self.task.cfg.left_pad_target,
        )  # fmt: skip
        self.batches = np.split(tokens["batch_rows"].astype(np.int64), np.cumsum(tokens["batch_sizes"])[:-1])

    def _note_the_loss(self, criterion: Any, inputs: Any, output: Any) -> None:
        loss, count, _ = output
        self.run.losses.append(float(loss.detach()) / count - self.least_loss)

    def sample(self, update: int) -> dict[str, Any]:
        """Return the batch of an update, counted from 1, as fairseq's collater makes it."""
        batch = self.pairs.collater([self.pairs[int(row)] for row in self.batches[update - 1]])
        if self.reversed_rows:
            batch["target"] = batch["target"].flip(0)
            batch["net_input"] = {name: tensor.flip(0) for name, tensor in batch["net_input"].items()}
        return batch

    def go_to(self, last: int, keep: Sequence[int] = ()) -> Run:
        """Make the updates up to ``last``; the weights after those in ``keep`` are kept."""
        for update in range(self.trainer.get_num_updates() + 1, last + 1):
            self.run.rates.append(self.trainer.get_lr())
            self.trainer.train_step([self.sample(update)])
            if update in keep:
                self.run.weights[update] = {name: value.clone() for name, value in self.model.state_dict().items()}
        return self.run


def distance(one: Weights, other: Weights) -> float:
    """Return the norm of the difference of two sets of weights over the norm of the second; each table counts once."""
    names = once(one)
    difference = sum(float((one[name] - other[name]).double().square().sum()) for name in names)
    return float((difference / sum(float(other[name].double().square().sum()) for name in names)) ** 0.5)


def median_difference(one: Weights, other: Weights) -> float:
    """Return the median of the absolute differences."""
    return float(torch.cat([(one[name] - other[name]).abs().flatten() for name in once(one)]).median())


def once(weights: Weights) -> list[str]:
    """Return the parameters' names without the second and third name of the shared table."""
    return [name for name in weights if name not in ("decoder.embedding.weight", "decoder.output.weight")]


def moved(start: Weights, movement: Weights) -> Weights:
    """Add a recorded movement to the initial weights."""
    return {name: start[name] + movement[name] for name in start}


def largest(one: Sequence[float], other: Sequence[float], first: int, last: int) -> float:
    """Return the largest absolute difference of two curves over the updates from ``first`` to ``last``."""
    return max(abs(a - b) for a, b in zip(one[first - 1 : last], other[first - 1 : last], strict=True))


def means(losses: Sequence[float]) -> Iterator[tuple[int, float]]:
    """Give the mean loss of each hundred updates, with the number of its last."""
    for end in range(100, len(losses) + 1, 100):
        yield end, float(np.mean(losses[end - 100 : end]))


def report(recorded: Mapping[str, np.ndarray], ours: Run, control: Run, weights: Mapping[int, Weights]) -> str:
    """Return the tables of a run as Markdown."""
    losses = recorded["loss_before_update"].tolist()
    updates = len(ours.losses)
    shown = [n for n in (1, 10, 20, 50, 100, 200, 500, 1000, 1100) if n <= updates]
    rows = [
        (n, f"{losses[n - 1]:.6f}", f"{losses[n - 1] - ours.losses[n - 1]:.1e}",
         f"{control.losses[n - 1] - ours.losses[n - 1]:.1e}")
        for n in shown
    ]  # fmt: skip
    parts = [table(["update", "T2T's loss", "T2T - ours", "rows reversed - ours"], rows, "rrrr")]
    ranges = [(1, end) for end in (10, 20, 50, 100, 200) if end <= updates]
    rows = [
        (f"{first} to {last}", f"{largest(losses, ours.losses, first, last):.1e}",
         f"{largest(control.losses, ours.losses, first, last):.1e}")
        for first, last in ranges
    ]  # fmt: skip
    parts.append(table(["largest difference of losses", "T2T and ours", "rows reversed and ours"], rows, "lrr"))
    rows = []
    for update, theirs in weights.items():
        cells = [
            f"{distance(ours.weights[update], theirs):.1e}",
            f"{median_difference(ours.weights[update], theirs):.1e}",
        ]
        rows.append((f"after {update}", *cells, f"{distance(control.weights[update], ours.weights[update]):.1e}"))
    heading = ["weights", "T2T and ours: norm of the difference / norm", "median", "rows reversed and ours: norm"]
    parts.append(table(heading, rows))
    if updates >= 100:
        curves = zip(means(losses[:updates]), means(ours.losses), means(control.losses), strict=True)
        rows = [
            (f"{end - 99} to {end}", *(f"{value:.4f}" for value in (a, b, c))) for (end, a), (_, b), (_, c) in curves
        ]
        parts.append(table(["mean loss of updates", "T2T", "ours", "rows reversed"], rows, "lrrr"))
    return "\n\n".join(parts)


def draw(file: Path, losses: Sequence[float], ours: Sequence[float], control: Sequence[float]) -> None:
    """Draw both curves, and how far they are apart, beside the control."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    updates = range(1, len(ours) + 1)
    left.plot(updates, losses[: len(ours)], color="C0", linewidth=2.5, alpha=0.5, label="Tensor2Tensor 1.0.14")
    left.plot(updates, ours, color="C1", linewidth=0.8, label="t2017_plugin")
    left.set_title("loss before each update, nats per target token")
    for name, curve, colour in (("Tensor2Tensor - ours", losses, "C0"), ("rows reversed - ours", control, "C2")):
        apart = [max(abs(a - b), 1e-8) for a, b in zip(curve, ours, strict=False)]
        right.plot(updates, np.maximum.accumulate(apart), color=colour, label=name)
    right.set_yscale("log")
    right.set_title("largest difference of the losses so far, nats")
    for panel in (left, right):
        panel.set_xlabel("updates")
        panel.grid(alpha=0.3)
        panel.legend()
    figure.savefig(file, dpi=110)


def main(argv: Sequence[str] | None = None) -> int:
    """Replay the training and its control, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=100, help="default 100; recorded are 1,100")
    parser.add_argument("--golden", type=Path, default=FOLDER, help="a folder that also has movement_200.npz")
    parser.add_argument("--json", type=Path, help="write the losses of all three curves as well")
    parser.add_argument("--picture", type=Path, help="draw the curves")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    logging.disable(logging.INFO)
    recorded = load("losses.npz")
    if not 1 <= args.updates <= len(recorded["learning_rate"]):
        parser.error(f"--updates {args.updates}: recorded are 1 to {len(recorded['learning_rate'])}")
    kept = [n for n in (20, 200) if n <= args.updates and (args.golden / f"movement_{n}.npz").exists()]
    replays = [Replay(), Replay(reversed_rows=True)]
    ours, control = (replay.go_to(args.updates, kept) for replay in replays)
    start, model = replays[0].initial, replays[0].cfg.model
    weights = {n: moved(start, recorded_weights("delta/", f"movement_{n}.npz", model, args.golden)) for n in kept}
    print(report(recorded, ours, control, weights))
    curves = [recorded["loss_before_update"].tolist()[: args.updates], ours.losses, control.losses]
    if args.json:
        args.json.write_text(json.dumps(dict(zip(("t2t", "ours", "rows_reversed"), curves, strict=True))))
    if args.picture:
        draw(args.picture, *curves)
    return 0


if __name__ == "__main__":
    sys.exit(main())
