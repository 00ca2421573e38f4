"""What running code shows of the differences of training, averaging and scoring (sections 5, 6.1)."""

from types import SimpleNamespace

import numpy as np
import torch
from fairseq.data import data_utils
from fairseq.optim.adam import Adam as StockAdam
from fairseq.optim.lr_scheduler.inverse_square_root_schedule import InverseSquareRootSchedule

from t2017_plugin.differences.small_models import Measured, figure
from t2017_plugin.fairseq_side.training import T2017Adam, T2017AdamConfig
from t2017_plugin.paper.averaging import RunningMean
from t2017_plugin.paper.training import Adam, learning_rate, smoothed_cross_entropy
from t2017_plugin.scoring.bleu import multi_bleu, paper_score, sacrebleu_score

# Two sentences with what moves the scores apart: a compound with a hyphen, quotes, a number with a comma.
REFERENCES = (
    'Die US-Regierung sagte am Montag, der Preis stieg um 3,5 Prozent auf einen neuen "Höchststand".',
    "Ein 30-jähriger Mann wurde in Süd-London von der Polizei gesucht.",
)
HYPOTHESES = (
    'Die US-Behörden sagten am Montag, der Preis stieg um 3,5 Prozent auf einen "Höchststand".',
    "Ein 30-jähriger Mann wurde in Ost-London von der Polizei gesucht.",
)
UPDATES = (1, 2, 100, 4000, 4001, 100000)


def smoothing() -> Measured:
    """Read the target distribution off the gradient: d loss / d logits = p - q'."""
    weights = {}
    for classes in (8, 37000):
        for over in ("all", "others"):
            logits = torch.zeros(1, 1, classes, dtype=torch.double, requires_grad=True)
            smoothed_cross_entropy(torch.log_softmax(logits, -1), torch.tensor([[3]]), 0.1, 1, over)[0].backward()
            assert logits.grad is not None
            target = 1.0 / classes - logits.grad[0, 0]
            weights[f"{over}, K = {classes:,}"] = (float(target[3]), float(target[4]))
    return (
        "weight of the label and of another class: "
        + "; ".join(f"{name}: {label:.6f}, {other:.3g}" for name, (label, other) in weights.items()),
        weights,
    )


def rates() -> Measured:
    """Take the rates both schedules set before an update, called as fairseq's trainer calls them."""
    config = SimpleNamespace(lr=[learning_rate(4000, 512)], warmup_updates=4000, warmup_init_lr=0.0)
    settings = T2017AdamConfig()
    settings.lr = [0.25]
    schedule = InverseSquareRootSchedule(config, T2017Adam(settings, [torch.nn.Parameter(torch.zeros(1))]))
    found = {update: (learning_rate(update, 512), schedule.step_update(update - 1)) for update in UPDATES}
    return (
        "d_model 512, rate here / stock's share of it: "
        + ", ".join(f"update {n}: {ours:.6e} / {stock / ours:.6f}" for n, (ours, stock) in found.items()),
        {str(n): {"here": ours, "stock": stock} for n, (ours, stock) in found.items()},
    )


def optimiser() -> Measured:
    """First steps of all three for one weight, by the size of its gradient; a step of 1 is the learning rate."""
    steps = {}
    for gradient in (1e-3, 1e-8, 1e-10):
        row = {}
        for name in ("paper", "t2t", "stock"):
            weight = torch.nn.Parameter(torch.zeros(1))
            if name == "stock":
                chosen: torch.optim.Optimizer = StockAdam([weight], lr=1.0, betas=(0.9, 0.98), eps=1e-9)
            else:
                chosen = Adam([weight], lr=1.0, epsilon_form=name)
            weight.grad = torch.full((1,), gradient)
            chosen.step()
            row[name] = -float(weight.detach())
        steps[gradient] = row
    return (
        "first step in learning rates, here / t2t form / stock's Adam: "
        + ", ".join(
            f"gradient {gradient:g}: {row['paper']:.3f} / {row['t2t']:.3f} / {row['stock']:.3f}"
            for gradient, row in steps.items()
        ),
        {figure(gradient): row for gradient, row in steps.items()},
    )


def last_batch() -> Measured:
    """How many of 20 sentences fairseq's batching keeps with its default and with ours."""
    lengths = np.array([5] * 20)
    kept = {}
    for multiple in (8, 1):
        batches = data_utils.batch_by_size(
            np.arange(20), lambda i: lengths[i], lengths, max_tokens=10_000, required_batch_size_multiple=multiple
        )
        kept[multiple] = sum(len(batch) for batch in batches)
    return (
        f"of 20 sentences fairseq's default keeps {kept[8]}, the default here {kept[1]}",
        {"multiple_8": kept[8], "multiple_1": kept[1]},
    )


def averaging() -> Measured:
    """Average 20 states of one tied weight in float32, and add the same in float32 as stock's script does."""
    generator = torch.Generator().manual_seed(1)
    states = [torch.randn(10_000, generator=generator) for _ in range(20)]
    exact = torch.stack(states).double().mean(dim=0)
    mean, in_float32 = RunningMean(), torch.zeros(10_000)
    for weight in states:
        mean.add({"embedding": weight, "output": weight})
        in_float32 += weight
    means = mean.mean()
    errors = {
        "here": float((means["embedding"].double() - exact).abs().max()),
        "float32": float((in_float32 / len(states) - exact).abs().max()),
        "tied": float((means["output"].double() - exact).abs().max()),
    }
    return (
        f"20 states of 10,000 numbers with one weight under two names: largest error of the mean {errors['here']:.1e} "
        f"here, {errors['float32']:.1e} when summed in float32; the tied name differs from it by "
        f"{abs(errors['tied'] - errors['here']):.0e}",
        errors,
    )


def bleu() -> Measured:
    """Score the same two sentences in three ways."""
    paper = paper_score(HYPOTHESES, REFERENCES, "de").score
    sacre = sacrebleu_score(HYPOTHESES, REFERENCES, "de").score
    words = multi_bleu(HYPOTHESES, REFERENCES).score
    return (
        f"the same two sentences: the paper's {paper:.2f}, sacreBLEU {sacre:.2f}, split at spaces only {words:.2f}",
        {"paper": paper, "sacrebleu": sacre, "spaces": words},
    )
