"""sacrebleu's paired bootstrap between arms, seed by seed, on both BLEUs and chrF.

Koehn 2004 as sacrebleu implements it (``PairedTest``): the test set is drawn again 1,000 times with replacement, and p
is the share of samples whose difference, less the mean difference, is at least as large as the one observed. It tells
how sure a difference is on other sentences of this kind, not how sure it is with another seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from tqdm import tqdm

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.arms import Arm
from t2017_plugin.experiments.runs import Run
from t2017_plugin.scoring.bleu import paper_tokens

SACREBLEU, PAPER, CHRF2 = "sacreBLEU", "paper's BLEU", "chrF2"
# Two versions of sacrebleu may round differently; another translation is further off.
TOLERANCE = 0.01
METRICS = (SACREBLEU, PAPER, CHRF2)


@dataclass(frozen=True)
class Score:
    """A score with the half width of its 95 % interval; against the baseline, the difference and p."""

    score: float
    interval: float
    difference: float | None = None
    p: float | None = None


@dataclass(frozen=True)
class Comparison:
    """One run beside the baseline's of the same place: name, both seeds, a score by metric."""

    arm: str
    seed: int
    baseline_seed: int
    scores: dict[str, Score]


@dataclass(frozen=True)
class Significance:
    """All comparisons, baseline rows first in each round, and sacrebleu's signatures by metric."""

    baseline: str
    comparisons: list[Comparison]
    signatures: dict[str, str]


def compare_arms(arms: Sequence[Arm], references: Sequence[str], samples: int = 1000) -> Significance:
    """Test every arm against the first one.

    An arm's run is paired with the baseline's of the same seed, or, where none is common, of the same place in order.

    Raises:
        UsageError: a translation and the references differ in their number of lines.
    """
    for arm in arms:
        for run in arm.runs:
            if len(run.hypotheses) != len(references):
                raise UsageError(
                    f"{run.folder}: {len(run.hypotheses)} translations for {len(references)} references; score it again"
                )
    comparisons: list[Comparison] = []
    signatures: dict[str, str] = {}
    split = [paper_tokens(line, arms[0].runs[0].language) for line in references]
    for seed, others in tqdm(_rounds(arms).items(), "paired bootstrap", disable=None):
        baseline = arms[0].seeds[seed]
        named = [(arms[0].name, seed, baseline.hypotheses)]
        named += [(name, run.seed, run.hypotheses) for name, run in others]
        found, told = _paired_tests(named, (list(references), split), baseline.language, samples)
        _check_recorded(found[:1], [baseline])
        _check_recorded(found[1:], [run for _, run in others])
        comparisons += found
        signatures |= told
    return Significance(arms[0].name, comparisons, signatures)


def _check_recorded(found: Sequence[Comparison], runs: Sequence[Run]) -> None:
    """Refuse a run whose recorded score is not that of its translation."""
    for comparison, run in zip(found, runs, strict=True):
        recorded, now = run.scores["sacrebleu"]["score"], comparison.scores[SACREBLEU].score
        if abs(recorded - now) > TOLERANCE:
            raise UsageError(
                f"{run.folder}: sacreBLEU {recorded:.2f} is recorded, but the translation has {now:.2f}; score it again"
            )


def _rounds(arms: Sequence[Arm]) -> dict[int, list[tuple[str, Run]]]:
    """For each of the baseline's seeds, the runs that are compared with it, with their arm's name."""
    base = list(arms[0].seeds)
    rounds: dict[int, list[tuple[str, Run]]] = {seed: [] for seed in base}
    for arm in arms[1:]:
        common = [(seed, seed) for seed in base if seed in arm.seeds]
        for seed, other in common or list(zip(base, arm.seeds, strict=False)):
            rounds[seed].append((arm.name, arm.seeds[other]))
    return rounds


def _paired_tests(
    named: list[tuple[str, int, list[str]]], references: tuple[list[str], list[str]], language: str, samples: int
) -> tuple[list[Comparison], dict[str, str]]:
    """One round: the first system is the baseline; references are raw, and as the paper's BLEU counts them."""
    raw, split = ([lines] for lines in references)
    tokens = [[paper_tokens(line, language) for line in hypotheses] for _, _, hypotheses in named]
    names = [str(number) for number in range(len(named))]
    by_metric: dict[str, list[Any]] = {}
    signatures: dict[str, str] = {}
    for metrics, texts, reference in (
        ({SACREBLEU: BLEU(trg_lang=language), CHRF2: CHRF()}, [text for _, _, text in named], raw),
        ({PAPER: BLEU(tokenize="none", smooth_method="none", force=True)}, tokens, split),
    ):
        systems: list[tuple[str, Sequence[str]]] = list(zip(names, texts, strict=True))
        told, results = PairedTest(systems, metrics, reference, test_type="bs", n_samples=samples)()
        # sacrebleu returns them under names of its own, in the order given.
        for ours, theirs in zip(metrics, told, strict=True):
            by_metric[ours] = list(results[theirs])
            signatures[ours] = str(told[theirs])
    comparisons = []
    for place, (name, seed, _) in enumerate(named):
        scores = {}
        for metric in METRICS:
            base, result = by_metric[metric][0], by_metric[metric][place]
            difference = result.score - base.score if place else None
            scores[metric] = Score(result.score, result.ci, difference, result.p_value)
        comparisons.append(Comparison(name, seed, named[0][1], scores))
    return comparisons, signatures
