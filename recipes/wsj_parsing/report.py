"""Writes what a parsing run found: ``scores.json`` and ``report.md``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from recipes.common import training_log
from recipes.common.files import read_lines, write_whole
from recipes.common.report import load, seconds_of

STEPS = ("train", "average", "decode", "rebuild", "score")


def collect(run: Path) -> dict[str, Any]:
    """Return all figures of the run.

    Raises:
        SystemExit: it is not scored.
    """
    folder = run / "t2017"
    evalb = load(folder / "evalb.json")
    if evalb is None:
        raise SystemExit(f"{run} is not scored; run the steps 1 to 5 first")
    return {
        "corpus": load(run / "corpus" / "corpus.json"),
        "evalb": evalb,
        "repairs": load(folder / "decode" / "repairs.json"),
        "training": training_log.summary(read_lines(folder / "logs" / "train.log")),
        "seconds": {**seconds_of(run, ("corpus", "text", "data-bin")), **seconds_of(folder, STEPS)},
        "machine": load(folder / "machine.json"),
    }


def table(facts: dict[str, Any]) -> list[str]:
    """Return the scores as lines of a Markdown table."""
    columns = [("all", "all"), ("short", "at most 40 words"), ("right_branching", "right-branching, all")]
    rows = [
        ("F1", "f1"),
        ("recall", "recall"),
        ("precision", "precision"),
        ("complete match", "complete_match"),
        ("tagging accuracy", "tagging"),
    ]
    lines = ["| | " + " | ".join(name for _, name in columns) + " |", "|---|" + "---:|" * len(columns)]
    for name, key in rows:
        lines.append(f"| {name} | " + " | ".join(f"{facts['evalb'][column][key]:.2f}" for column, _ in columns) + " |")
    for name in ("sentences", "compared"):
        lines.append(f"| {name} | " + " | ".join(f"{facts['evalb'][column][name]:,}" for column, _ in columns) + " |")
    return lines


def document(run: Path, facts: dict[str, Any]) -> str:
    """Return the whole report as Markdown."""
    corpus, repairs, training, machine = (facts[name] for name in ("corpus", "repairs", "training", "machine"))
    lines = [f"# {run.name}: {corpus['corpus']}", ""]
    if corpus.get("note"):
        lines += [f"**{corpus['note']}**", ""]
    for split, found in corpus["splits"].items():
        files = corpus.get(f"{split}_files")
        lines.append(f"- {split}: {found['pairs']:,} trees" + (f" (files: {files})" if files else ""))
    lines += ["", *table(facts), ""]
    lines += [
        f"- well-formed before repair: {repairs['well_formed']:,} of {repairs['sentences']:,} sentences "
        f"({repairs['well_formed_percent']:.1f} %); one tree of any number of words: {repairs['balanced']:,}",
        "- repairs: " + ", ".join(f"{name.replace('_', ' ')} {repairs[name]}" for name in list(repairs)[4:]),
        "- failed sentences are counted as EVALB does: they are told above and left out of the sums",
        f"- {training['updates']:,} updates of {training['target_tokens_an_update']:,.0f} tree symbols, "
        f"{training['parameters'] or 0:,} parameters, {training['training_seconds'] / 60:.1f} minutes of training, "
        f"{training['target_tokens_a_second'] or 0:,.0f} symbols a second",
        "- seconds: " + ", ".join(f"{step} {seconds}" for step, seconds in facts["seconds"].items()),
    ]
    if machine:
        devices = ", ".join(machine["gpus"]) or f"{machine['threads']} threads of {machine['cores']} cores"
        lines.append(f"- machine: {machine['processor']}, {devices}; {machine['system']}; Python {machine['python']}")
        lines.append("- packages: " + ", ".join(f"{name} {version}" for name, version in machine["packages"].items()))
        lines.append(f"- code: revision {machine['revision'] or 'unknown (no git)'}")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> None:
    """Write the report and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    run = parser.parse_args(argv).run
    facts = collect(run)
    write_whole(run / "t2017" / "scores.json", json.dumps(facts, indent=2) + "\n")
    write_whole(run / "report.md", document(run, facts))
    if facts["corpus"].get("note"):
        print(f"\n{facts['corpus']['note']}")
    repairs = facts["repairs"]
    print("\n" + "\n".join(table(facts)))
    print(f"\nwell-formed before repair: {repairs['well_formed_percent']:.1f} % of {repairs['sentences']:,} sentences")
    print(f"the whole report: {run / 'report.md'}")


if __name__ == "__main__":
    main()
