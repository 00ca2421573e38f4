"""Writes what a run found: ``scores.json`` for each arm, ``report.md`` for all of them side by side.

An arm is a folder of the run that has been trained and scored: ``t2017`` (the plugin) or ``stock``
(fairseq's own), or ``base`` or ``big`` (the plugin's models of WMT14).
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from recipes.wmt14_common.published import verdicts
from t2017_plugin.experiments.logs import read_losses
from t2017_plugin.experiments.runs import Run
from t2017_plugin.files import read_lines, write_text
from t2017_plugin.markdown import table

ARMS = {"t2017": "t2017_plugin", "stock": "stock fairseq", "base": "base", "big": "big"}
PREPARATION = ("fetch", "corpus", "text", "data-bin")
STEPS = ("train", "average", "generate", "translate", "score")
# The sentences that a report shows, counted from 1: chosen before any was seen.
SAMPLES = (100, 500, 900)


def seconds_of(job: Run, arm: Run, steps: tuple[str, ...]) -> dict[str, int]:
    """Return the seconds of each finished step: those that prepared the data, the usual ones first, and the arm's."""
    prepared = (*PREPARATION, *sorted(set(job.steps) - set(PREPARATION)))
    return {**job.seconds(prepared), **arm.seconds(steps)}


def collect(job: Run, name: str) -> dict[str, Any]:
    """Return all figures of one arm.

    Raises:
        UsageError: the arm is not trained.
    """
    arm = Run(job.folder / name)
    bleu = arm.content("bleu.json") or {}
    return {
        "arm": ARMS[name],
        "corpus": (job.content("corpus/corpus.json") or {}).get("corpus"),
        "sacrebleu": bleu["sacrebleu"],
        "paper_bleu": bleu["paper_bleu"],
        "paper_bleu_normalised": bleu.get("paper_bleu_normalised"),
        "paper_bleu_authors_reference": bleu.get("paper_bleu_authors_reference"),
        "target_lang": bleu.get("target_lang"),
        "chrf2": bleu.get("chrf2"),
        "sentences": bleu["sentences"],
        "training": read_losses(arm.folder / "logs" / "train.log").summary(),
        "seconds": seconds_of(job, arm, STEPS),
        "lines_that_translate_and_generate_disagree_on": arm.differing_lines,
        "machine": arm.machine,
    }


def arms_table(arms: list[dict[str, Any]]) -> str:
    """Return the arms side by side as a Markdown table."""

    def score(kind: str) -> list[str]:
        return [f"{arm[kind]['score']:.2f}" if arm.get(kind) else "-" for arm in arms]

    def training(name: str, form: str) -> list[str]:
        return [format(arm["training"][name] or 0, form) for arm in arms]

    rows: list[tuple[str, list[str]]] = [
        ("sacreBLEU", score("sacrebleu")),
        ("paper's BLEU (tokens, compounds split)", score("paper_bleu")),
        ("the same, punctuation of both sides normalised", score("paper_bleu_normalised")),
        ("the same, against the authors' reference", score("paper_bleu_authors_reference")),
        ("test sentences", [f"{arm['sentences']:,}" for arm in arms]),
        ("updates", training("updates", ",")),
        ("target tokens per update", training("target_tokens_an_update", ",.1f")),
        ("target tokens per second", training("target_tokens_a_second", ",.0f")),
        ("parameters", training("parameters", ",")),
        ("training loss, last updates, unsmoothed, bits per token", training("nll_bits_a_token", ".3f")),
        ("minutes: training", [f"{arm['training']['training_seconds'] / 60:.1f}" for arm in arms]),
        ("minutes: all steps", [f"{sum(arm['seconds'].values()) / 60:.1f}" for arm in arms]),
    ]
    shown = [(name, *values) for name, values in rows if set(values) != {"-"}]
    return table(["", *(arm["arm"] for arm in arms)], shown)


def machine_lines(machine: dict[str, Any]) -> list[str]:
    """Return what an arm was made with, as items of a list in Markdown."""
    devices = ", ".join(machine["gpus"]) or f"{machine['threads']} threads of {machine['cores']} cores"
    return [
        f"- machine: {machine['processor']}, {devices}; {machine['system']}; Python {machine['python']}",
        "- packages: " + ", ".join(f"{name} {version}" for name, version in machine["packages"].items()),
        f"- code: revision {machine['revision'] or 'unknown (no git)'}",
    ]


def corpus_lines(job: Run) -> list[str]:
    """Return what the corpus is and how large, as the beginning of a report in Markdown."""
    corpus = job.content("corpus/corpus.json") or {}
    lines = [f"# {job.folder.name}: {corpus.get('corpus', 'own corpus')}", ""]
    if corpus.get("note"):
        lines += [f"**{corpus['note']}**", ""]
    for split, facts in corpus.get("splits", {}).items():
        groups = f" from {facts['groups']:,} groups" if facts.get("groups") else ""
        lines.append(f"- {split}: {facts['pairs']:,} pairs{groups}")
    left_out = "; ".join(f"{reason} {count:,}" for reason, count in corpus.get("left_out", {}).items())
    return lines + ([f"- left out: {left_out}", ""] if left_out else [""])


def document(job: Run, arms: list[dict[str, Any]]) -> str:
    """Return the whole report as Markdown."""
    lines = [*corpus_lines(job), arms_table(arms), ""]
    for arm in arms:
        lines += [f"## {arm['arm']}", "", f"- sacreBLEU's signature: `{arm['sacrebleu']['signature']}`"]
        lines.append(f"- the paper's BLEU: `{arm['paper_bleu']['signature']}`")
        differing = arm["lines_that_translate_and_generate_disagree_on"]
        if differing is not None:
            lines.append(f"- fairseq-generate and t2017 translate differ in {differing} of {arm['sentences']} lines")
        lines.append("- seconds: " + ", ".join(f"{step} {seconds}" for step, seconds in arm["seconds"].items()))
        lines += [*machine_lines(arm["machine"]), ""]
    return "\n".join([*lines, *ending(job, arms)])


def samples(job: Run, arms: list[dict[str, Any]]) -> list[str]:
    """Return some sentences with their references and translations, as lines of Markdown; [] where texts are gone."""
    source, target = sides(job)
    texts = {"source": job.folder / "corpus" / f"test.{source}", "reference": job.folder / "corpus" / f"test.{target}"}
    for name, arm in zip(names_of(job), arms, strict=True):
        texts[arm["arm"]] = job.folder / name / "decode" / f"generate.{target}"
    if not all(path.is_file() for path in texts.values()):
        return []
    sentences = {name: read_lines(path) for name, path in texts.items()}
    lines = ["## Some translations", ""]
    for number in SAMPLES:
        if number <= len(sentences["source"]):
            shown = [(name, text[number - 1] or "(nothing)") for name, text in sentences.items()]
            lines += [table([f"line {number} of test", ""], shown, "ll"), ""]
    return lines


def ending(job: Run, arms: list[dict[str, Any]]) -> list[str]:
    """Return the end of a report: translations, curves, published figures, and what one may do next."""
    lines = samples(job, arms)
    if (job.folder / "curves.png").is_file():
        lines += ["## Curves", "", "![loss, learning rate, gradient norm, speed](curves.png)", ""]
    for arm in arms:
        lines += [f"- {arm['arm']}: {verdict}" for verdict in verdicts(arm)]
    name, (source, target) = names_of(job)[0], sides(job)
    checkpoint, data = job.folder / name / "average.pt", job.folder / "data-bin"
    # As found, so that the commands can be copied where .venv/bin is not on PATH.
    t2017 = shutil.which("t2017") or "t2017"
    return [
        *lines,
        "## What next",
        "",
        "Translate a text of your own, look at the curves, or score another translation:",
        "",
        "```",
        f"{t2017} translate --checkpoint {checkpoint} --data-bin {data} <text.{source} >text.{target}",
        f"{t2017} plot {job.folder}",
        f"{t2017} score --target-lang {target} --hyp text.{target} --ref reference.{target}",
        "```",
        "",
    ]


def names_of(job: Run) -> list[str]:
    """Return the folders of the arms that were scored."""
    return [name for name in ARMS if (job.folder / name / "bleu.json").exists()]


def sides(job: Run) -> tuple[str, str]:
    """Return source and target language of a job."""
    settings = job.content("data-bin/text_settings.json") or {}
    return settings.get("source_lang", "source"), settings.get("target_lang", "target")


def main(argv: list[str] | None = None) -> None:
    """Write the reports and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    job = Run(parser.parse_args(argv).run)
    names = names_of(job)
    if not names:
        raise SystemExit(f"{job.folder} holds no arm that was scored; run the steps 1 to 5 first")
    arms = [collect(job, name) for name in names]
    for name, arm in zip(names, arms, strict=True):
        write_text(job.folder / name / "scores.json", json.dumps(arm, indent=2) + "\n")
    write_text(job.folder / "report.md", document(job, arms))
    if note := (job.content("corpus/corpus.json") or {}).get("note"):
        print(f"\n{note}")
    print("\n".join(["", arms_table(arms), "", *ending(job, arms)]))
    print(f"the whole report: {job.folder / 'report.md'}")


if __name__ == "__main__":
    main()
