"""The tables of a comparison, once, for the page and for Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from t2017_plugin.experiments.arms import Arm, Spread, differing_settings, spread
from t2017_plugin.experiments.significance import METRICS, Score, Significance

UNKNOWN = "-"


@dataclass(frozen=True)
class Table:
    """A title, a line on how to read it, a header, rows of text; the first column names the row."""

    title: str
    note: str
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def markdown(self, level: int = 2) -> list[str]:
        """The table as lines of Markdown."""
        lines = [f"{'#' * level} {self.title}", "", self.note, ""]
        lines.append("| " + " | ".join(self.header) + " |")
        lines.append("|---|" + "---:|" * (len(self.header) - 1))
        return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in self.rows] + [""]


def all_tables(arms: Sequence[Arm], significance: Significance) -> list[Table]:
    """Every table, in the order of the page."""
    return [scores(arms), training(arms), bootstrap(significance), settings(arms), versions(arms), data(arms)]


def scores(arms: Sequence[Arm]) -> Table:
    """Both BLEUs and chrF of each arm."""
    rows = []
    for arm in arms:
        cells = [arm.name, ", ".join(str(seed) for seed in arm.seeds)]
        for name in ("sacrebleu", "paper_bleu", "chrf2"):
            values = [(run.scores.get(name) or {}).get("score") for run in arm.runs]
            cells.append(_text(spread(values), 2))
        rows.append(cells)
    first = arms[0].runs[0].scores
    labels = {"sacrebleu": "sacreBLEU", "paper_bleu": "the paper's", "chrf2": "chrF2"}
    signatures = [f"{label}: {first[name]['signature']}" for name, label in labels.items() if first.get(name)]
    note = "Mean ± sample standard deviation over seeds, where there are several. " + "; ".join(signatures) + "."
    return Table("Scores", note, ["arm", "seeds", "sacreBLEU", "paper's BLEU", "chrF2"], rows)


def training(arms: Sequence[Arm]) -> Table:
    """Losses, speed, memory and size of each arm."""
    rows = []
    for arm in arms:
        curves = [run.curves for run in arm.runs]
        validation = [curve.validation[-1].bits if curve.validation else None for curve in curves]
        rows.append(
            [
                arm.name,
                _text(spread(curve.updates for curve in curves), 0),
                _text(spread(curve.tokens_an_update for curve in curves), 1),
                _text(spread(curve.last_training_loss for curve in curves), 3),
                _text(spread(validation), 3),
                _text(spread(curve.tokens_a_second for curve in curves), 0),
                _text(spread(curve.seconds for curve in curves), 1, 1 / 60),
                _text(spread(run.memory for run in arm.runs), 0, 2**-20),
                _text(spread(curve.device_bytes for curve in curves), 0, 2**-20),
                _text(spread(curve.parameters for curve in curves), 0),
            ]
        )
    note = (
        "Losses are unsmoothed, in bits a target token (BPE unit with EOS): training over the last tenth of the "
        "updates, with dropout, validation at its last measurement, without. Speed is fairseq's wps, minutes are "
        "minutes of updates: neither counts starting, validating and saving. Memory is the largest of the training "
        "process (resident) and of the GPU, where it was recorded."
    )
    header = [
        "arm", "updates", "target tokens an update", "training loss", "validation loss", "target tokens a second",
        "minutes of updates", "memory, MiB", "GPU memory, MiB", "parameters",
    ]  # fmt: skip
    return Table("Training", note, header, rows)


def bootstrap(significance: Significance) -> Table:
    """Differences from the baseline and their p-values, a row a run."""
    header = ["arm", "seed", "baseline's seed"]
    for metric in METRICS:
        header += [f"{metric}, 95 %", "difference", "p"]
    rows = []
    for comparison in significance.comparisons:
        cells = [comparison.arm, str(comparison.seed), str(comparison.baseline_seed)]
        for metric in METRICS:
            cells += _cells(comparison.scores[metric])
        rows.append(cells)
    note = (
        f"sacrebleu's paired bootstrap (PairedTest) against {significance.baseline}, on the same references; a small p "
        "says that the difference is not by chance of these sentences; seeds are another matter. Signatures: "
        + "; ".join(f"{metric} {signature}" for metric, signature in significance.signatures.items())
        + "."
    )
    return Table("Paired bootstrap", note, header, rows)


def _cells(score: Score) -> list[str]:
    told = [f"{score.score:.2f} ± {score.interval:.2f}"]
    if score.difference is None or score.p is None:
        return [*told, UNKNOWN, UNKNOWN]
    return [*told, f"{score.difference:+.2f}", f"{score.p:.4f}"]


def settings(arms: Sequence[Arm]) -> Table:
    """The settings that are not the same in all arms."""
    rows = [[name, *values] for name, values in differing_settings(arms)]
    note = (
        "Stock fairseq's settings stand under this plugin's names where both have them; (built in) is what stock does "
        "without a setting. Seeds and places of files are left out."
        if rows
        else "None: the arms have the same settings."
    )
    return Table("Settings that differ", note, ["setting", *(arm.name for arm in arms)], rows)


def versions(arms: Sequence[Arm]) -> Table:
    """Packages, Python, processor and revision of each arm; several values where its runs differ."""

    def of_arm(arm: Arm, name: str) -> str:
        values = []
        for run in arm.runs:
            machine = run.machine
            value = machine.get("packages", {}).get(name, machine.get(name))
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value or UNKNOWN)
            values.append(text if text else UNKNOWN)
        return " / ".join(dict.fromkeys(values))

    packages = sorted({name for arm in arms for run in arm.runs for name in run.machine.get("packages", {})})
    names = [*packages, "python", "processor", "cores", "threads", "gpus", "revision"]
    rows = [[name, *(of_arm(arm, name) for arm in arms)] for name in names]
    note = "As each run wrote them down when it trained; revision is the commit of the code, + with changes."
    return Table("Versions and machine", note, ["", *(arm.name for arm in arms)], rows)


def data(arms: Sequence[Arm]) -> Table:
    """SHA-256 of the data-bin's files and of the reference, the same for all runs."""
    run = arms[0].runs[0]
    rows = [[name, sha256] for name, sha256 in sorted(run.data.items())]
    rows.append(["reference of the test set", run.reference_hash])
    note = f"SHA-256, the same for every run; the test set has {len(run.hypotheses):,} sentences."
    return Table("Data", note, ["file", "SHA-256"], rows)


def _text(value: Spread | None, digits: int, factor: float = 1.0) -> str:
    """Text of a figure; counts that are the same in all runs need no deviation."""
    if value is None:
        return UNKNOWN
    same = value.deviation == 0 and digits == 0
    return Spread(value.mean, None).text(digits, factor) if same else value.text(digits, factor)
