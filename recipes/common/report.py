"""Writes what a run found: ``scores.json`` for each arm, ``report.md`` for all of them side by side.

An arm is a folder of the run that has been trained and scored: ``t2017`` (the plugin) or ``stock`` (fairseq's own), or
``base`` or ``big`` (the plugin's models of WMT14).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from recipes.common import training_log
from recipes.common.files import read_lines, write_whole

ARMS = {"t2017": "t2017_plugin", "stock": "stock fairseq", "base": "base", "big": "big"}
PREPARATION = ("fetch", "corpus", "text", "data-bin")
STEPS = ("train", "average", "generate", "translate", "score")


def load(path: Path) -> Any:
    """Return the content of a JSON file, or None when there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def seconds_of(folder: Path, steps: tuple[str, ...]) -> dict[str, int]:
    """Return the seconds that each finished step took when it was last done."""
    stamps = {step: load(folder / "steps" / f"{step}.json") for step in steps}
    return {step: stamp["seconds"] for step, stamp in stamps.items() if stamp}


def preparation_of(run: Path) -> tuple[str, ...]:
    """Return the steps that prepared the data of a run, the usual ones first."""
    found = {stamp.stem for stamp in (run / "steps").glob("*.json")}
    return (*PREPARATION, *sorted(found - set(PREPARATION)))


def collect(run: Path, arm: str) -> dict[str, Any]:
    """Return all figures of one arm.

    Raises:
        SystemExit: the arm is not trained.
    """
    folder = run / arm
    bleu = load(folder / "bleu.json")
    agreement = load(folder / "decode" / "agreement.json")
    return {
        "arm": ARMS[arm],
        "corpus": (load(run / "corpus" / "corpus.json") or {}).get("corpus"),
        "sacrebleu": bleu["sacrebleu"],
        "paper_bleu": bleu["paper_bleu"],
        "paper_bleu_normalised": bleu.get("paper_bleu_normalised"),
        "chrf2": bleu.get("chrf2"),
        "sentences": bleu["sentences"],
        "training": training_log.summary(read_lines(folder / "logs" / "train.log")),
        "seconds": {**seconds_of(run, preparation_of(run)), **seconds_of(folder, STEPS)},
        "lines_that_translate_and_generate_disagree_on": len(agreement["differing_lines"]) if agreement else None,
        "machine": load(folder / "machine.json"),
    }


def table(arms: list[dict[str, Any]]) -> list[str]:
    """Return the arms side by side as lines of a Markdown table."""
    rows: list[tuple[str, list[str]]] = [
        ("sacreBLEU", [f"{arm['sacrebleu']['score']:.2f}" for arm in arms]),
        ("paper's BLEU (tokens, compounds split)", [f"{arm['paper_bleu']['score']:.2f}" for arm in arms]),
        *_normalised_row(arms),
        ("test sentences", [f"{arm['sentences']:,}" for arm in arms]),
        ("updates", [f"{arm['training']['updates']:,}" for arm in arms]),
        ("target tokens an update", [f"{arm['training']['target_tokens_an_update']:,.1f}" for arm in arms]),
        ("target tokens a second", [f"{arm['training']['target_tokens_a_second'] or 0:,.0f}" for arm in arms]),
        ("parameters", [f"{arm['training']['parameters'] or 0:,}" for arm in arms]),
        ("training loss, last updates, unsmoothed, bits a token", [_loss(arm) for arm in arms]),
        ("minutes: training", [f"{arm['training']['training_seconds'] / 60:.1f}" for arm in arms]),
        ("minutes: all steps", [f"{sum(arm['seconds'].values()) / 60:.1f}" for arm in arms]),
    ]
    lines = ["| | " + " | ".join(arm["arm"] for arm in arms) + " |", "|---|" + "---:|" * len(arms)]
    return lines + [f"| {name} | " + " | ".join(values) + " |" for name, values in rows]


def _normalised_row(arms: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Return the row of the paper's BLEU with normalised punctuation, where an arm has it."""
    scores = [arm.get("paper_bleu_normalised") for arm in arms]
    values = [f"{score['score']:.2f}" if score else "-" for score in scores]
    return [("the same, punctuation of both sides normalised", values)] if any(scores) else []


def _loss(arm: dict[str, Any]) -> str:
    return f"{arm['training']['nll_bits_a_token']:.3f}"


def document(run: Path, arms: list[dict[str, Any]]) -> str:
    """Return the whole report as Markdown."""
    corpus = load(run / "corpus" / "corpus.json") or {}
    lines = [f"# {run.name}: {corpus.get('corpus', 'own corpus')}", ""]
    if corpus.get("note"):
        lines += [f"**{corpus['note']}**", ""]
    for split, facts in corpus.get("splits", {}).items():
        groups = f" from {facts['groups']:,} groups" if facts.get("groups") else ""
        lines.append(f"- {split}: {facts['pairs']:,} pairs{groups}")
    left_out = "; ".join(f"{reason} {count:,}" for reason, count in corpus.get("left_out", {}).items())
    lines += [f"- left out: {left_out}", ""] if left_out else [""]
    lines += table(arms) + [""]
    for arm in arms:
        lines += [f"## {arm['arm']}", "", f"- sacreBLEU's signature: `{arm['sacrebleu']['signature']}`"]
        lines.append(f"- the paper's BLEU: `{arm['paper_bleu']['signature']}`")
        differing = arm["lines_that_translate_and_generate_disagree_on"]
        if differing is not None:
            lines.append(f"- fairseq-generate and t2017 translate differ in {differing} of {arm['sentences']} lines")
        lines.append("- seconds: " + ", ".join(f"{step} {seconds}" for step, seconds in arm["seconds"].items()))
        machine = arm["machine"]
        devices = ", ".join(machine["gpus"]) or f"{machine['threads']} threads of {machine['cores']} cores"
        lines.append(f"- machine: {machine['processor']}, {devices}; {machine['system']}; Python {machine['python']}")
        lines.append("- packages: " + ", ".join(f"{name} {version}" for name, version in machine["packages"].items()))
        lines += [f"- code: revision {machine['revision'] or 'unknown (no git)'}", ""]
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    """Write the reports and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    args = parser.parse_args(argv)
    names = [arm for arm in ARMS if (args.run / arm / "bleu.json").exists()]
    if not names:
        raise SystemExit(f"{args.run} holds no arm that was scored; run the steps 1 to 5 first")
    arms = [collect(args.run, name) for name in names]
    for name, arm in zip(names, arms, strict=True):
        write_whole(args.run / name / "scores.json", json.dumps(arm, indent=2) + "\n")
    write_whole(args.run / "report.md", document(args.run, arms))
    corpus = load(args.run / "corpus" / "corpus.json") or {}
    if corpus.get("note"):
        print(f"\n{corpus['note']}")
    print()
    print("\n".join(table(arms)))
    print(f"\nthe whole report: {args.run / 'report.md'}")


if __name__ == "__main__":
    main()
