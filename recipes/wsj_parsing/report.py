"""Writes what a parsing run found: ``scores.json`` and ``report.md``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from recipes.common.report import corpus_lines, machine_lines, seconds_of
from t2017_plugin.experiments.logs import read_losses
from t2017_plugin.experiments.runs import Run
from t2017_plugin.files import write_text
from t2017_plugin.markdown import table

STEPS = ("train", "average", "decode", "rebuild", "score")


def collect(job: Run) -> dict[str, Any]:
    """Return all figures of the run.

    Raises:
        SystemExit: it is not scored.
    """
    arm = Run(job.folder / "t2017")
    evalb = arm.content("evalb.json")
    if evalb is None:
        raise SystemExit(f"{job.folder} is not scored; run the steps 1 to 5 first")
    return {
        "corpus": job.content("corpus/corpus.json"),
        "evalb": evalb,
        "repairs": arm.content("decode/repairs.json"),
        "training": read_losses(arm.folder / "logs" / "train.log").summary(),
        "seconds": seconds_of(job, arm, STEPS),
        "machine": arm.machine,
    }


def scores_table(evalb: dict[str, Any]) -> str:
    """Return the scores as a Markdown table."""
    columns = {"all": "all", "short": "at most 40 words", "right_branching": "right-branching, all"}
    scores = ("f1", "recall", "precision", "complete_match", "tagging")
    names = ("F1", "recall", "precision", "complete match", "tagging accuracy")
    rows = [(name, *(f"{evalb[each][key]:.2f}" for each in columns)) for name, key in zip(names, scores, strict=True)]
    rows += [(name, *(f"{evalb[each][name]:,}" for each in columns)) for name in ("sentences", "compared")]
    return table(["", *columns.values()], rows)


def document(job: Run, facts: dict[str, Any]) -> str:
    """Return the whole report as Markdown."""
    corpus, repairs, training = (facts[name] for name in ("corpus", "repairs", "training"))
    lines = corpus_lines(job)
    lines += [f"- {key.replace('_', ' ')}: {value}" for key, value in corpus.items() if key.endswith("_files")]
    lines += ["", scores_table(facts["evalb"]), ""]
    lines += [
        f"- well-formed before repair: {repairs['well_formed']:,} of {repairs['sentences']:,} sentences "
        f"({repairs['well_formed_percent']:.1f} %); one tree of any number of words: {repairs['balanced']:,}",
        "- repairs: " + ", ".join(f"{name.replace('_', ' ')} {repairs[name]}" for name in list(repairs)[4:]),
        "- failed sentences are counted as EVALB does: they are told above and left out of the sums",
        f"- {training['updates']:,} updates of {training['target_tokens_an_update']:,.0f} tree symbols, "
        f"{training['parameters'] or 0:,} parameters, {training['training_seconds'] / 60:.1f} minutes of training, "
        f"{training['target_tokens_a_second'] or 0:,.0f} symbols per second",
        "- seconds: " + ", ".join(f"{step} {seconds}" for step, seconds in facts["seconds"].items()),
    ]
    return "\n".join([*lines, *machine_lines(facts["machine"])]) + "\n"


def main(argv: list[str] | None = None) -> None:
    """Write the report and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    job = Run(parser.parse_args(argv).run)
    facts = collect(job)
    write_text(job.folder / "t2017" / "scores.json", json.dumps(facts, indent=2) + "\n")
    write_text(job.folder / "report.md", document(job, facts))
    if facts["corpus"].get("note"):
        print(f"\n{facts['corpus']['note']}")
    repairs = facts["repairs"]
    print(f"\n{scores_table(facts['evalb'])}\n")
    print(f"well-formed before repair: {repairs['well_formed_percent']:.1f} % of {repairs['sentences']:,} sentences")
    print(f"the whole report: {job.folder / 'report.md'}")


if __name__ == "__main__":
    main()
