"""Differences of the training (section 5)."""

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import torch
from fairseq.data import data_utils
from fairseq.optim.adam import Adam as StockAdam
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import InverseSquareRootSchedule

from t2017_plugin.differences.difference import Difference, figure
from t2017_plugin.fairseq_side.training import Adam, T2017Adam, T2017AdamConfig, noam, smoothed_cross_entropy

UPDATES = (1, 2, 100, 4000, 4001, 100000)


def differences() -> Iterator[Difference]:
    """All rows of the training, in the paper's order."""
    yield optimiser()
    yield learning_rate()
    yield smoothing()
    yield last_batch()


def smoothing() -> Difference:
    """The target distribution itself, read off the gradient: d loss / d logits = p - q'."""
    weights = {}
    for classes in (8, 37000):
        for over in ("all", "others"):
            logits = torch.zeros(1, 1, classes, dtype=torch.double, requires_grad=True)
            smoothed_cross_entropy(torch.log_softmax(logits, -1), torch.tensor([[3]]), 0.1, over, 1)[0].backward()
            assert logits.grad is not None
            target = 1.0 / classes - logits.grad[0, 0]
            weights[f"{over}, K = {classes:,}"] = (float(target[3]), float(target[4]))
    return Difference(
        "label smoothing",
        "5.4",
        "`(1 - eps) onehot + eps / K` over all classes (cites Szegedy)",
        "1 - eps on the label, eps / (K - 1) on the others; a constant subtracted from the logged loss",
        "as T2T without the constant, `criterions/label_smoothed_cross_entropy.py:49-50`",
        "as the paper; K counts all rows of the output matrix",
        "`--smoothing-over others`",
        "unit/test_label_smoothing.py, parity/test_stock_loss.py",
        "weight of the label and of another class: "
        + "; ".join(f"{name}: {label:.6f}, {other:.3g}" for name, (label, other) in weights.items()),
        weights,
    )


def learning_rate() -> Difference:
    """The rates both schedules set before an update, called as fairseq's trainer calls them."""
    config = SimpleNamespace(lr=[noam(4000, 512)], warmup_updates=4000, warmup_init_lr=0.0)
    settings = T2017AdamConfig()
    settings.lr = [0.25]
    schedule = InverseSquareRootSchedule(config, T2017Adam(settings, [torch.nn.Parameter(torch.zeros(1))]))
    rates = {update: (noam(update, 512), schedule.step_update(update - 1)) for update in UPDATES}
    return Difference(
        "learning rate",
        "5.3",
        "`d^-0.5 min(n^-0.5, n w^-1.5)`, n from 1",
        "the same: 0.1 * 5000 / 500 = 1; factor 2 and warmup 8000 since v1.2.5",
        "one update late while it warms up, `trainer.py:382`, `optim/lr_scheduler/inverse_square_root_schedule.py:80`",
        "as the paper",
        "`--noam-scale` `--warmup-updates`",
        "unit/test_noam.py, parity/test_t2t_arrays.py",
        "d_model 512, rate here / stock's share of it: "
        + ", ".join(f"update {n}: {ours:.6e} / {stock / ours:.6f}" for n, (ours, stock) in rates.items()),
        {str(n): {"here": ours, "stock": stock} for n, (ours, stock) in rates.items()},
    )


def optimiser() -> Difference:
    """First steps of all three for one weight, by the size of its gradient; a step of 1 is the learning rate."""
    steps = {}
    for gradient in (1e-3, 1e-8, 1e-10):
        row = {}
        for name in ("paper", "t2t", "stock"):
            weight = torch.nn.Parameter(torch.zeros(1))
            if name == "stock":
                chosen: torch.optim.Optimizer = StockAdam([weight], lr=1.0, betas=(0.9, 0.98), eps=1e-9)
            else:
                chosen = Adam([weight], 1e-9, name, lr=1.0, betas=(0.9, 0.98))
            weight.grad = torch.full((1,), gradient)
            chosen.step()
            row[name] = -float(weight.detach())
        steps[gradient] = row
    return Difference(
        "Adam",
        "5.3",
        "betas 0.9, 0.98, epsilon 1e-9 after the bias correction (Kingma, algorithm 1)",
        "epsilon before the bias correction",
        "as T2T, `optim/adam.py:223-227`; default betas 0.9, 0.999 and epsilon 1e-8",
        "as the paper",
        "`--adam-epsilon-form t2t`",
        "parity/test_t2t_arrays.py, parity/test_stock_adam.py",
        "first step in learning rates, here / t2t form / stock's Adam: "
        + ", ".join(
            f"gradient {gradient:g}: {row['paper']:.3f} / {row['t2t']:.3f} / {row['stock']:.3f}"
            for gradient, row in steps.items()
        ),
        {figure(gradient): row for gradient, row in steps.items()},
    )


def last_batch() -> Difference:
    """How many of 20 sentences fairseq's batching keeps with its default and with ours."""
    lengths = np.array([5] * 20)
    kept = {}
    for multiple in (8, 1):
        batches = data_utils.batch_by_size(
            np.arange(20), lambda i: lengths[i], lengths, max_tokens=10_000, required_batch_size_multiple=multiple
        )
        kept[multiple] = sum(len(batch) for batch in batches)
    return Difference(
        "last batch",
        "-",
        "every sentence",
        "every sentence",
        "cut to a multiple of 8, in training and in testing, `data/data_utils.py:357`",
        "every sentence",
        "`--required-batch-size-multiple`",
        "commands/test_fairseq_generate.py",
        f"of 20 sentences fairseq's default keeps {kept[8]}, the default here {kept[1]}",
        {"multiple_8": kept[8], "multiple_1": kept[1]},
    )
