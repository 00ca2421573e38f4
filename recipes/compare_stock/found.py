"""What a comparison found: each arm's best rate, and how much of stock's lead each single difference explains.

    python -m recipes.compare_stock.found rates runs/compare_stock/home_assistant --rates 0.7 1.0 1.4
    python -m recipes.compare_stock.found differences runs/compare_stock/home_assistant

Rates are compared by the unsmoothed validation loss at the end of training, seed 1, in bits per
target token. Differences are compared seed by seed: an arm's effect is its figure less that of the
paper's arm of the same seed, the interval is Student's 95 % over seeds. The sum of the effects says
whether anything is left unexplained, or whether the differences act on each other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import t as student

from recipes.compare_stock.arms import about
from t2017_plugin.differences.single_arms import ALL, PAPER, SINGLES, STOCK
from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.runs import Run
from t2017_plugin.files import write_text
from t2017_plugin.markdown import table

RATES_FILE = "rates.json"
# Parts of another arm, which a sum may not count twice: fairseq's search has its penalty built in.
PARTS = {"length_penalty", *(name for name, arm in SINGLES.items() if arm.part_of)}
CONFIDENCE = 0.95


def last_validation(run: Run) -> float:
    """Return the unsmoothed validation loss at the end of training, in bits per target token.

    Raises:
        UsageError: the run was not trained, or never validated.
    """
    if not run.log.validation:
        raise UsageError(f"{run.folder} was trained without validation; set dataset.disable_validation=false")
    return run.log.validation[-1].bits


def choose_rates(folder: Path, rates: Sequence[str]) -> dict[str, str]:
    """Choose the rate of both main arms, write what was found to ``rates.json``, and print it.

    Raises:
        UsageError: one of the trainings is not finished.
    """
    chosen, found = {}, {}
    for arm in (PAPER, STOCK):
        bits = {rate: last_validation(Run(folder / "arms" / f"{arm}_rate{rate}" / "seed1")) for rate in rates}
        chosen[arm] = min(rates, key=lambda rate: bits[rate])
        found[arm] = {"validation_bits": bits, "chosen": chosen[arm]}
        print(f"{arm}: " + ", ".join(f"rate {rate} {value:.3f}" for rate, value in bits.items()), file=sys.stderr)
        ends = sorted(rates, key=float)
        if len(rates) > 1 and chosen[arm] in (ends[0], ends[-1]):
            print(
                f"{arm}: the best rate, {chosen[arm]}, is at the end of the grid; a wider one (--rates) may have a "
                "better one",
                file=sys.stderr,
            )
    write_text(folder / RATES_FILE, json.dumps(found, indent=2) + "\n")
    return chosen


@dataclass(frozen=True)
class Effect:
    """Mean over seeds and half the width of its 95 % interval; no interval for a single seed."""

    mean: float
    interval: float | None
    seeds: int

    def text(self) -> str:
        """Return it as text, such as ``+0.30 ± 0.12``."""
        return f"{self.mean:+.2f}" + (f" ± {self.interval:.2f}" if self.interval is not None else "")


def effect(differences: Sequence[float]) -> Effect:
    """Return the mean of paired differences with Student's interval."""
    count = len(differences)
    if count < 2:
        return Effect(differences[0], None, count)
    width = student.ppf((1 + CONFIDENCE) / 2, count - 1) * statistics.stdev(differences) / count**0.5
    return Effect(statistics.fmean(differences), float(width), count)


FIGURES: dict[str, Callable[[Run], float]] = {
    "validation, bits": last_validation,
    "sacreBLEU": lambda run: float(run.scores["sacrebleu"]["score"]),
}


def seeds_of(folder: Path, arm: str, rate: str) -> dict[int, Run]:
    """Return an arm's scored runs by seed; an arm of the paper's kind is trained at the paper's rate."""
    places = sorted((folder / "arms").glob(f"{arm}_rate{rate}/seed*"))
    return {int(place.name.removeprefix("seed")): Run(place) for place in places if (place / "bleu.json").exists()}


def explain(folder: Path) -> str:
    """Return the effect of each single difference, their sum and stock's lead, as a Markdown table.

    Raises:
        UsageError: no rates were chosen yet, or an arm has no seed in common with the paper's.
    """
    rates = Run(folder).content(RATES_FILE)
    if rates is None:
        raise UsageError(f"{folder / RATES_FILE} is not there; run the comparison's grid first")
    paper = seeds_of(folder, PAPER, rates[PAPER]["chosen"])
    arms = {STOCK: seeds_of(folder, STOCK, rates[STOCK]["chosen"])}
    arms |= {name: seeds_of(folder, name, rates[PAPER]["chosen"]) for name in (*SINGLES, ALL)}
    arms = {name: runs for name, runs in arms.items() if runs}
    paired = {name: sorted(set(runs) & set(paper)) for name, runs in arms.items()}
    for name, seeds in paired.items():
        if not seeds:
            raise UsageError(f"arm {name} has no seed that {PAPER} has too; train one with the same seed")
    differences = {
        figure: {
            name: {seed: read(runs[seed]) - read(paper[seed]) for seed in paired[name]} for name, runs in arms.items()
        }
        for figure, read in FIGURES.items()
    }
    effects = {
        figure: {name: effect(list(by_seed.values())) for name, by_seed in found.items()}
        for figure, found in differences.items()
    }
    summed = [name for name in arms if name in SINGLES and name not in PARTS]
    seeds = sorted(set.intersection(*(set(paired[name]) for name in summed))) if summed else []
    rows = []
    for name in arms:
        cells = [name, about(name), str(len(paired[name]))]
        for figure in FIGURES:
            lead = effects[figure].get(STOCK)
            share = f" ({effects[figure][name].mean / lead.mean:.0%})" if lead and lead.mean and name != STOCK else ""
            cells.append(effects[figure][name].text() + share)
        rows.append(cells)
    if seeds:
        cells = ["sum", f"of {', '.join(summed)}", str(len(seeds))]
        for figure in FIGURES:
            total = effect([sum(differences[figure][name][seed] for name in summed) for seed in seeds])
            lead = effects[figure].get(STOCK)
            cells.append(total.text() + (f" ({total.mean / lead.mean:.0%})" if lead and lead.mean else ""))
        rows.append(cells)
    heading = ["arm", "what", "seeds", *(f"{figure}, less {PAPER}'s (of stock's lead)" for figure in FIGURES)]
    return table(heading, rows, "ll" + "r" * (1 + len(FIGURES)))


def main(argv: list[str] | None = None) -> int:
    """Choose rates and print them, an arm a line, or write and print ``differences.md``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["rates", "differences"])
    parser.add_argument("run", type=Path)
    parser.add_argument("--rates", nargs="+", default=[])
    args = parser.parse_args(argv)
    if args.action == "rates":
        print(*choose_rates(args.run, args.rates).values(), sep="\n")
    else:
        text = explain(args.run)
        write_text(args.run / "differences.md", text + "\n")
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
