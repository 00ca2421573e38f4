"""A device against the CPU: logits, loss, gradients, three updates, beam search, in float32 and in half precision.

    python -m benchmarks.gpu_parity --device cuda

Prints the largest relative error of each and ends with status 1 when one is above its bound. Bounds are a few roundings
of sums of some hundred products: 2^-23 each in float32, 2^-10 in float16, 2^-7 in bfloat16.
"""

import argparse
import copy
import sys
from argparse import Namespace
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.differences.small_models import make_ours, make_pairs, make_task
from t2017_plugin.fairseq_side.generator import PaperGenerator
from t2017_plugin.fairseq_side.training import T2017Adam, T2017AdamConfig, T2017LabelSmoothing, smoothed_cross_entropy
from t2017_plugin.paper.config import TRANSLATION_SEARCH as SEARCH

VOCABULARY = 5_000
SIZES = {"layers": 2, "d_model": 128, "d_ff": 256, "heads": 4, "d_k": 32, "d_v": 32, "dropout": 0.0}
BOUNDS = {torch.float32: 2e-5, torch.float16: 1e-2, torch.bfloat16: 6e-2}


def sample(device: str) -> dict[str, Any]:
    """Make a batch with padding on both sides of very different lengths."""
    source, lengths, shifted = make_pairs([20, 13, 5, 2, 17, 9, 20, 3], VOCABULARY)
    target = shifted.roll(-1, dims=1)
    target[:, -1] = 2
    for row, length in zip(target, (6, 3, 1, 4, 6, 5, 2, 6), strict=True):
        row[length:] = 1
    net_input = {"src_tokens": source, "src_lengths": lengths, "prev_output_tokens": shifted}
    net_input = {name: tensor.to(device) for name, tensor in net_input.items()}
    return {"net_input": net_input, "target": target.to(device), "ntokens": int(target.ne(1).sum())}


def error(one: Tensor, other: Tensor) -> float:
    """Largest difference relative to the largest value."""
    one, other = one.detach().double().cpu(), other.detach().double().cpu()
    return float((one - other).abs().max() / other.abs().max())


def error_of_norm(ones: list[Tensor], others: list[Tensor]) -> float:
    """Length of the difference relative to the length, all tensors as one vector."""
    one, other = (torch.cat([each.detach().double().cpu().flatten() for each in all_]) for all_ in (ones, others))
    return float((one - other).norm() / other.norm())


def gradients(model: Any, criterion: Any, batch: dict[str, Any]) -> tuple[Tensor, list[Tensor]]:
    """Loss and gradients through the loss in slices."""
    model.zero_grad()
    loss, _, _ = criterion(model, batch)
    loss.backward()
    return loss, [parameter.grad for parameter in model.parameters()]


def plain_gradients(model: Any, batch: dict[str, Any]) -> tuple[Tensor, list[Tensor]]:
    """Compute the same through all log-probabilities at once."""
    model.zero_grad()
    logits, _ = model(**batch["net_input"])
    loss, _ = smoothed_cross_entropy(torch.log_softmax(logits.float(), -1), batch["target"], 0.1, "all", 1)
    loss.backward()
    return loss, [parameter.grad for parameter in model.parameters()]


def compare(device: str) -> list[tuple[str, float, float]]:
    """Names, errors and bounds."""
    task, found = make_task(VOCABULARY), []
    criterion = T2017LabelSmoothing(task, 0.1, "all", False)
    here = make_ours(1, VOCABULARY, **SIZES).train()
    expected_loss, expected = gradients(here, criterion, sample("cpu"))
    expected_logits = here(**sample("cpu")["net_input"])[0]
    for dtype, bound in BOUNDS.items():
        model = copy.deepcopy(here).to(device, dtype)
        name = str(dtype).removeprefix("torch.")
        found.append((f"logits, {name}", error(model(**sample(device)["net_input"])[0], expected_logits), bound))
        loss, grads = gradients(model, criterion, sample(device))
        plain_loss, plain = plain_gradients(model, sample(device))
        found.append((f"loss, {name}", error(loss, expected_loss), bound))
        found.append((f"loss in slices and plain, {name}", error(loss, plain_loss), bound))
        worst = max(error(one, other) for one, other in zip(grads, plain, strict=True))
        found.append((f"gradients in slices and plain, {name}", worst, bound))
        # Together, since a small gradient that is a sum of large terms keeps few digits.
        found.append((f"gradients, {name}", error_of_norm(grads, expected), 2 * bound))
    explicit = here.eval()(**sample("cpu")["net_input"], need_weights=True)[0]
    on_device = copy.deepcopy(here).to(device)
    found.append(("fused attention and formula", error(on_device(**sample(device)["net_input"])[0], explicit), 2e-5))
    found += [("three updates", updates_differ(here, criterion, device), 1e-4)]
    found += [("hypotheses that differ", hypotheses_differ(here, task, device), 0.0)]
    return found


def updates_differ(here: Any, criterion: Any, device: str) -> float:
    """Largest error of the weights after three updates with Adam."""
    results = []
    for where in ("cpu", device):
        model = copy.deepcopy(here).to(where).train()
        optimizer = T2017Adam(T2017AdamConfig(lr=[1e-4], adam_eps=1e-5), list(model.parameters()))
        for _ in range(3):
            gradients(model, criterion, sample(where))
            optimizer.step()
        results.append(list(model.parameters()))
    return max(error(one, other) for one, other in zip(results[1], results[0], strict=True))


def hypotheses_differ(here: Any, task: Any, device: str) -> float:
    """Best hypotheses of a batch that are not the same."""
    found = []
    for where in ("cpu", device):
        generator = PaperGenerator(
            [copy.deepcopy(here).to(where).eval()],
            task.target_dictionary,
            Namespace(beam=SEARCH.beam, lenpen=SEARCH.alpha, nbest=1),
            5,
        )
        found.append([best[0]["tokens"].tolist() for best in generator.generate([], sample(where))])
    return float(sum(one != other for one, other in zip(*found, strict=True)))


def main() -> int:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    status = 0
    for name, worst, bound in compare(args.device):
        good = worst <= bound
        status |= not good
        print(f"{'ok ' if good else 'BAD'}  {name:45} {worst:.1e}  (at most {bound:.0e})")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
