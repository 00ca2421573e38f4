"""Runs side by side: the seeds of one setting as one arm, and how sure the differences of arms are.

An arm is all runs that differ in nothing but their seed; the first arm is the baseline. The test is
sacrebleu's paired bootstrap (Koehn 2004; ``PairedTest``), seed by seed, on both BLEUs and chrF: the
test set is drawn again 1,000 times with replacement, and p is the share of samples whose
difference, less the mean difference, is at least as large as the one observed. It says how sure a
difference is on other sentences of this kind, not how sure it is with another seed.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from tqdm import tqdm

from t2017_plugin.differences.single_arms import built_in, in_our_names
from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.runs import Run
from t2017_plugin.scoring.bleu import paper_tokens

SACREBLEU, PAPER, CHRF2 = "sacreBLEU", "paper's BLEU", "chrF2"
METRICS = (SACREBLEU, PAPER, CHRF2)
# Two versions of sacrebleu may round differently; another translation is further off.
TOLERANCE = 0.01


@dataclass
class Arm:
    """Runs that differ in nothing but their seed."""

    name: str
    runs: list[Run]

    @property
    def seeds(self) -> dict[int, Run]:
        """The runs by seed, in order."""
        return {run.seed: run for run in sorted(self.runs, key=lambda run: run.seed)}


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (None for a single value) of a figure over seeds."""

    mean: float
    deviation: float | None

    def text(self, digits: int = 2, factor: float = 1.0) -> str:
        """Return it as text, such as ``26.56 ± 0.21``."""
        mean = f"{self.mean * factor:,.{digits}f}"
        return mean if self.deviation is None else f"{mean} ± {self.deviation * factor:,.{digits}f}"


def spread(values: Iterable[float | None]) -> Spread | None:
    """Return mean and deviation, or None when a value is missing."""
    found = list(values)
    known = [value for value in found if value is not None]
    if not known or len(known) < len(found):
        return None
    return Spread(statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else None)


def group(runs: Sequence[Run]) -> list[Arm]:
    """Group runs into arms, in the order of their first runs.

    Runs of one setting and one seed stay apart, as do runs of different names.

    Raises:
        UsageError: a run is named twice, or two runs differ in their data or test set.
    """
    check_same_task(runs)
    arms: list[Arm] = []
    for run in runs:
        for arm in arms:
            first = arm.runs[0]
            if (first.name, first.settings) == (run.name, run.settings) and run.seed not in arm.seeds:
                arm.runs.append(run)
                break
        else:
            arms.append(Arm(run.name, [run]))
    _rename_apart(arms)
    return arms


def check_same_task(runs: Sequence[Run]) -> None:
    """Refuse what cannot be compared.

    Raises:
        UsageError: a run is named twice, or two runs differ in their data-bin, test set or its language.
    """
    first = runs[0]
    seen: set[Path] = set()
    for run in runs:
        if (place := run.folder.resolve()) in seen:
            raise UsageError(f"{run.folder} is named twice")
        seen.add(place)
        differing = sorted(name for name in {*first.data, *run.data} if first.data.get(name) != run.data.get(name))
        if differing:
            raise UsageError(
                f"{first.folder} and {run.folder} were trained on different data ({differing[0]} is not the same); "
                "compare runs of one data-bin"
            )
        if run.reference_hash != first.reference_hash or run.language != first.language:
            raise UsageError(f"{first.folder} and {run.folder} were scored on different test sets; score them on one")


def _rename_apart(arms: list[Arm]) -> None:
    """Give arms of one name the names of the folders above as well, then numbers."""
    for levels in range(2, 6):
        names = [arm.name for arm in arms]
        for arm in arms:
            if names.count(arm.name) > 1:
                parts = arm.runs[0].folder.resolve().parts
                end = len(parts) - (arm.runs[0].name != parts[-1])
                arm.name = "/".join(parts[max(1, end - levels) : end])
    names = [arm.name for arm in arms]
    for number, arm in enumerate(arms, start=1):
        if names.count(arm.name) > 1:
            arm.name = f"{arm.name} ({number})"


def comparable_settings(run: Run) -> dict[str, str]:
    """Return a run's settings as text, stock's under this plugin's names, what stock has built in marked so."""
    settings = {key: _text(value) for key, value in in_our_names(run.settings).items()}
    if settings.get("model.positions") == "sinusoid":
        settings.pop("model.max_learned_positions", None)  # is not used then
    return settings | {key: f"{_text(value)} (built in)" for key, value in built_in(run.settings).items()}


def differing_settings(arms: Sequence[Arm]) -> list[tuple[str, list[str]]]:
    """Return the settings that are not the same in all arms: dotted name, and each arm's value, ``-`` for none."""
    by_arm = [comparable_settings(arm.runs[0]) for arm in arms]
    names = sorted({name for settings in by_arm for name in settings})
    rows = [(name, [settings.get(name, "-") for settings in by_arm]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "none"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


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

    An arm's run is paired with the baseline's of the same seed, or, where none is common, of the
    same place in order.

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
        found, of_round = _paired_tests(named, (list(references), split), baseline.language, samples)
        _check_recorded(found[:1], [baseline])
        _check_recorded(found[1:], [run for _, run in others])
        comparisons += found
        signatures |= of_round
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
    """Return for each of the baseline's seeds the runs that are compared with it, with their arm's name."""
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
    """Test one round: the first system is the baseline; references are raw, and as the paper's BLEU counts them."""
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
        used, results = PairedTest(systems, metrics, reference, test_type="bs", n_samples=samples)()
        # sacrebleu returns them under names of its own, in the order given.
        for ours, theirs in zip(metrics, used, strict=True):
            by_metric[ours] = list(results[theirs])
            signatures[ours] = str(used[theirs])
    comparisons = []
    for place, (name, seed, _) in enumerate(named):
        scores = {}
        for metric in METRICS:
            base, result = by_metric[metric][0], by_metric[metric][place]
            difference = result.score - base.score if place else None
            scores[metric] = Score(result.score, result.ci, difference, result.p_value)
        comparisons.append(Comparison(name, seed, named[0][1], scores))
    return comparisons, signatures
