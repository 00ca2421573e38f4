"""Table 1 measured: four kinds of layer over the length n and the width d.

    python -m benchmarks.complexity
    python -m benchmarks.complexity --lengths 32 64 128 256 --widths 64 128 256 --plot table1.png --output table1.json

    self-attention             O(n^2 d) operations   O(1) sequential   O(1) longest path
    recurrent                  O(n d^2)              O(n)              O(n)
    convolutional, width k     O(k n d^2)            O(1)              O(log_k n), dilated
    self-attention, window r   O(r n d)              O(1)              O(n / r)

Time is the processor's for one layer, forward, the shortest of several calls, without the projections that the
table leaves out. Sequential steps are counted in the layer's program. The longest path is measured: how many layers it
takes until the last output depends on the first input, seen in its gradient; for the recurrent layer, how many steps.
The exponents of n and d are slopes of the logarithms of the times between the two largest sizes.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.timing import machine
from t2017_plugin.markdown import table as markdown_table

KERNEL, WINDOW = 3, 32


def attention(x: Tensor) -> Tensor:
    """Every position looks at every other: two products of n * n * d. Shape: (B, n, d) -> the same."""
    scores = x @ x.transpose(-2, -1) / math.sqrt(x.size(-1))
    return torch.softmax(scores, dim=-1) @ x


def restricted_attention(x: Tensor, window: int = WINDOW) -> Tensor:
    """Every position looks at ``window`` positions around it: n * r * d. Shape: (B, n, d) -> the same."""
    n = x.size(1)
    padded = F.pad(x, (0, 0, window // 2, window - 1 - window // 2))
    around = padded.unfold(1, window, 1)  # (B, n, d, r), a view
    scores = torch.einsum("bnd,bndr->bnr", x, around) / math.sqrt(x.size(-1))
    place = torch.arange(n, device=x.device).unsqueeze(1) + torch.arange(window, device=x.device) - window // 2
    scores = scores.masked_fill((place < 0) | (place >= n), -math.inf)
    return torch.einsum("bnr,bndr->bnd", torch.softmax(scores, dim=-1), around)


class Recurrent(nn.Module):
    """h_t = tanh(x_t + W h_(t-1)): n steps of d * d, one after the other. Shape: (B, n, d) -> the same."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(d, d) / math.sqrt(d))
        self.steps = 0

    def forward(self, x: Tensor) -> Tensor:
        hidden, states = x.new_zeros(x.size(0), x.size(2)), []
        for position in range(x.size(1)):
            hidden = torch.tanh(x[:, position] + hidden @ self.w)
            states.append(hidden)
        self.steps = len(states)
        return torch.stack(states, dim=1)


class Convolution(nn.Module):
    """A convolution over ``KERNEL`` positions: k * n * d * d. Shape: (B, n, d) -> the same."""

    def __init__(self, d: int, dilation: int = 1) -> None:
        super().__init__()
        self.reach = dilation * (KERNEL - 1)
        self.convolution = nn.Conv1d(d, d, KERNEL, dilation=dilation)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(F.pad(x.transpose(1, 2), (self.reach, 0))).transpose(1, 2)


def layer(kind: str, d: int, number: int = 0) -> Callable[[Tensor], Tensor]:
    """Return a layer of a kind; ``number`` counts it in a stack, which decides a convolution's dilation."""
    if kind == "recurrent":
        return Recurrent(d)
    if kind == "convolutional":
        return Convolution(d, KERNEL**number)
    return attention if kind == "self-attention" else restricted_attention


KINDS = {
    # orders in the paper's words, exponents of n and d, sequential steps and longest path for n
    "self-attention": ("n^2 d", 2, 1, lambda n: 1, lambda n: 1),
    "recurrent": ("n d^2", 1, 2, lambda n: n, lambda n: n),
    "convolutional": ("k n d^2", 1, 2, lambda n: 1, lambda n: math.ceil(math.log(n, KERNEL))),
    "restricted": ("r n d", 1, 1, lambda n: 1, lambda n: math.ceil(n / (WINDOW - WINDOW // 2))),
}


def seconds(kind: str, n: int, d: int, calls: int) -> float:
    """Shortest processor time of a layer on two sequences, which other programs on the machine hardly change."""
    run, x, times = layer(kind, d), torch.randn(2, n, d), []
    with torch.no_grad():
        run(x)
        for _ in range(calls):
            began = time.process_time()
            run(x)
            times.append(time.process_time() - began)
    return min(times)


def longest_path(kind: str, n: int, d: int = 8) -> int:
    """Layers, or steps of the recurrent layer, from the first input to the last output, found by the gradient."""
    torch.manual_seed(0)
    x = torch.randn(1, n, d, dtype=torch.float64, requires_grad=True)
    if kind == "recurrent":
        recurrent = Recurrent(d).double()
        output = recurrent(x)
        (gradient,) = torch.autograd.grad(output[0, -1].sum(), x)
        # Orthogonal or not, W carries the first input through every step.
        return recurrent.steps if bool(gradient[0, 0].abs().sum() > 0) else 0
    y, count = x, 0
    while True:
        run = layer(kind, d, count)
        y = (run.double() if isinstance(run, nn.Module) else run)(y)
        count += 1
        (gradient,) = torch.autograd.grad(y[0, -1].sum(), x, retain_graph=True)
        if bool(gradient[0, 0].abs().sum() > 0):
            return count


def slope(times: dict[int, float]) -> float:
    """Exponent between the two largest sizes."""
    (small, before), (large, after) = sorted(times.items())[-2:]
    return math.log(after / before) / math.log(large / small)


def measure(lengths: list[int], widths: list[int], calls: int) -> list[dict[str, Any]]:
    """Return a row for each kind: times over n at the middle width and over d at the middle length, exponents, path."""
    n_fixed, d_fixed = lengths[len(lengths) // 2], widths[len(widths) // 2]
    rows = []
    for kind, (orders, n_power, d_power, sequential, path) in KINDS.items():
        over_n = {n: seconds(kind, n, d_fixed, calls) for n in lengths}
        over_d = {d: seconds(kind, n_fixed, d, calls) for d in widths}
        shortest = lengths[0]
        rows.append(
            {
                "kind": kind,
                "orders": orders,
                "seconds over n": over_n,
                "seconds over d": over_d,
                "exponent of n": slope(over_n),
                "exponent of d": slope(over_d),
                "paper, n": n_power,
                "paper, d": d_power,
                "sequential steps": sequential(n_fixed),
                "longest path": longest_path(kind, shortest),
                "paper, path": path(shortest),
            }
        )
        print(f"{kind}: done", file=sys.stderr)
    return rows


def table(rows: list[dict[str, Any]], lengths: list[int], widths: list[int]) -> str:
    """Return the rows as Markdown."""
    n_fixed, d_fixed, shortest = lengths[len(lengths) // 2], widths[len(widths) // 2], lengths[0]
    columns = [
        "layer", "operations", f"ms, n = {lengths[0]}", f"ms, n = {lengths[-1]}", "exponent of n", "exponent of d",
        f"steps in a row, n = {n_fixed}", f"longest path, n = {shortest}", "by the paper",
    ]  # fmt: skip
    cells = []
    for row in rows:
        over_n = row["seconds over n"]
        cells.append([
            row["kind"], f"O({row['orders']})", f"{1e3 * over_n[lengths[0]]:.2f}", f"{1e3 * over_n[lengths[-1]]:.2f}",
            f"{row['exponent of n']:.2f} ({row['paper, n']})", f"{row['exponent of d']:.2f} ({row['paper, d']})",
            row["sequential steps"], row["longest path"], row["paper, path"],
        ])  # fmt: skip
    about = f"d = {d_fixed}, window r = {WINDOW}, kernel k = {KERNEL}"
    return f"{about}\n\n{markdown_table(columns, cells, align='ll' + 'r' * (len(columns) - 2))}"


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw times over n and d on logarithmic axes; dotted lines have the paper's slope through the last point."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2)
    for panel, axis in zip(panels, ("n", "d"), strict=True):
        for number, row in enumerate(rows):
            times = row[f"seconds over {axis}"]
            sizes, last = list(times), max(times)
            panel.loglog(sizes, [1e3 * times[s] for s in sizes], "o-", color=f"C{number}", label=row["kind"])
            expected = [1e3 * times[last] * (s / last) ** row[f"paper, {axis}"] for s in sizes]
            panel.loglog(sizes, expected, ":", color=f"C{number}")
        panel.set_xlabel(f"{axis} ({'length' if axis == 'n' else 'width'})")
        panel.set_ylabel("milliseconds; dotted: the paper's order")
    panels[0].legend()
    figure.savefig(path, dpi=120)


def main(argv: list[str] | None = None) -> int:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 128, 256, 512, 1024])
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 128, 256, 512])
    parser.add_argument("--calls", type=int, default=15, help="of each layer and size (default: 15)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plot", type=Path, help="draw a PNG")
    parser.add_argument("--output", type=Path, help="write the figures as JSON as well")
    args = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    lengths, widths = sorted(args.lengths), sorted(args.widths)
    rows = measure(lengths, widths, args.calls)
    about = machine()
    print(f"Table 1 measured: {about['device']}, {about['threads']} threads, torch {about['torch']}, {about['date']}")
    print(table(rows, lengths, widths))
    if args.plot:
        plot(rows, args.plot)
    if args.output:
        args.output.write_text(json.dumps({"machine": about, "rows": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
