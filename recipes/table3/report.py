"""The table of all rows of Table 3 that were run, beside the paper's: ``report.md`` and ``report.json`` of a run.

    python -m recipes.table3.report runs/table3/demo

Perplexity is 2 to the unsmoothed validation loss in bits a token (BPE units with EOS, the paper's "per-wordpiece") of
the last checkpoint; both BLEUs are of its translation of the validation set; nothing is averaged.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from recipes.common.files import read_lines, write_whole
from recipes.common.report import load
from recipes.table3.rows import BASE, ROWS
from t2017_plugin.comparison.curves import read_curves
from t2017_plugin.errors import UsageError
from t2017_plugin.parameters import TABLE_3

SIZES = {"layers": "N", "d_model": "d_model", "d_ff": "d_ff", "heads": "h", "d_k": "d_k", "d_v": "d_v"}


def collect(run: Path, row: str) -> dict[str, Any] | None:
    """What one row's training and scoring found, or None when it has not been begun."""
    folder = run / "rows" / row
    if not (folder / "row.yaml").exists():
        return None
    settings = yaml.safe_load((folder / "row.yaml").read_text(encoding="utf-8"))
    try:
        curves = read_curves(folder / "logs" / "train.log")
    except UsageError:
        return None
    bleu, machine = load(folder / "bleu.json"), load(folder / "machine.json") or {}
    first, last = (curves.validation[place] if curves.validation else None for place in (0, -1))
    return {
        "row": row,
        "model": {name: settings["model"][name] for name in (*SIZES, "dropout", "positions")},
        "label_smoothing": settings["criterion"]["label_smoothing"],
        "seed": settings["common"]["seed"],
        "updates": curves.updates,
        "max_update": _asked_for(folder / "settings" / "train.flags"),
        "parameters": curves.parameters,
        "target_tokens": round(curves.tokens_an_update * curves.training[-1].updates),
        "target_tokens_a_second": curves.tokens_a_second,
        "first_validation": {"updates": first.updates, "bits": first.bits} if first else None,
        "last_validation": {"updates": last.updates, "bits": last.bits} if last else None,
        "perplexity": 2**last.bits if last else None,
        "sacrebleu": bleu["sacrebleu"] if bleu else None,
        "paper_bleu": bleu["paper_bleu"] if bleu else None,
        "trained": (folder / "steps" / "train.json").exists(),
        "machine": machine,
    }


def _asked_for(flags: Path) -> int:
    """How many updates a training was started for, what --set changed included."""
    lines = read_lines(flags)
    return int(lines[lines.index("--max-update") + 1])


def finished(row: dict[str, Any]) -> bool:
    """Whether a row was trained to its end and scored."""
    return bool(row["trained"] and row["sacrebleu"])


def what(row: dict[str, Any], base: dict[str, Any]) -> str:
    """How a row differs from base, in the paper's letters."""
    ours, theirs = ({**each["model"], "label_smoothing": each["label_smoothing"]} for each in (row, base))
    names = {**SIZES, "dropout": "P_drop", "label_smoothing": "eps_ls", "positions": "positions"}
    if row["row"] == BASE:
        return ", ".join(f"{name} {ours[key]}" for key, name in names.items() if key != "positions")
    return ", ".join(f"{name} {ours[key]}" for key, name in names.items() if ours[key] != theirs[key])


def table(rows: list[dict[str, Any]], base: dict[str, Any]) -> list[str]:
    """Rows that are finished, ours and the paper's side by side."""
    lines = [
        "| row | differs from base | PPL a token | paper's BLEU | sacreBLEU | parameters, M | paper: PPL | BLEU | M |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        experiment = ROWS[row["row"]]
        assert experiment.printed is not None
        size = TABLE_3.get(experiment.architecture) if not experiment.changes else None
        lines.append(
            f"| {row['row']} | {what(row, base)} | {row['perplexity']:.2f} | {row['paper_bleu']['score']:.2f} "
            f"| {row['sacrebleu']['score']:.2f} | {row['parameters'] / 1e6:.3f} | {experiment.printed[0]:.2f} "
            f"| {experiment.printed[1]:.1f} | {size or ''} |"
        )
    return lines


def learning(rows: list[dict[str, Any]]) -> list[str]:
    """How far each row learned: updates, tokens, first and last validation loss, speed."""
    lines = [
        "| row | updates | target tokens | first validation (update) | last | last / first | tokens a second |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        first, last = row["first_validation"], row["last_validation"]
        if not first:
            lines.append(f"| {row['row']} | {row['updates']:,} | {row['target_tokens']:,} | - | - | - | - |")
            continue
        lines.append(
            f"| {row['row']} | {row['updates']:,} of {row['max_update']:,} | {row['target_tokens']:,} "
            f"| {first['bits']:.3f} ({first['updates']:,}) | {last['bits']:.3f} | {last['bits'] / first['bits']:.2f} "
            f"| {row['target_tokens_a_second'] or 0:,.0f} |"
        )
    return lines


def agreement(rows: list[dict[str, Any]], base: dict[str, Any]) -> str:
    """In how many rows perplexity lies on the same side of base as in the paper, those that print base's left out."""
    same, counted = 0, 0
    reference = ROWS[BASE].printed
    assert reference is not None
    for row in rows:
        printed = ROWS[row["row"]].printed
        if row["row"] != BASE and printed is not None and printed[0] != reference[0]:
            counted += 1
            same += (row["perplexity"] > base["perplexity"]) == (printed[0] > reference[0])
    return f"Perplexity lies on the same side of base as in the paper in {same} of {counted} rows."


def document(run: Path, rows: list[dict[str, Any]]) -> str:
    """The whole report as Markdown."""
    data, corpus = load(run / "data.json") or {}, load(run / "corpus" / "corpus.json") or {}
    done = [row for row in rows if finished(row)]
    lines = [f"# Table 3 on {corpus.get('corpus', data.get('data_bin', 'own data'))}", ""]
    lines += [f"**{corpus['note']}**", ""] if corpus.get("note") else []
    lines += [f"- validation: {data['sentences']:,} sentences; the reference is {data['reference']}"] if data else []
    lines += [
        "- perplexity a token (BPE units with EOS) of the last checkpoint, unsmoothed; nothing averaged",
        "- the paper's columns are newstest2013, after 100,000 updates (big 300,000) at its own sizes",
        "",
    ]
    base = next((row for row in rows if row["row"] == BASE), None)
    if done:
        lines += [*table(done, base or done[0]), ""]
        if base and finished(base) and len(done) > 1:
            lines += [agreement(done, base), ""]
    lines += ["## How far each row learned", "", "Losses are unsmoothed, in bits a token.", "", *learning(rows), ""]
    missing = [name for name in ROWS if name not in {row["row"] for row in done}]
    lines += [f"Not finished: {', '.join(missing)}.", ""] if missing else []
    if done:
        lines += [
            f"- sacreBLEU's signature: `{done[0]['sacrebleu']['signature']}`",
            f"- the paper's BLEU: `{done[0]['paper_bleu']['signature']}`",
        ]
    for machine in {
        json.dumps(row["machine"], sort_keys=True): row["machine"] for row in rows if row["machine"]
    }.values():
        devices = ", ".join(machine["gpus"]) or f"{machine['threads']} threads of {machine['cores']} cores"
        packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
        lines.append(
            f"- machine: {machine['processor']}, {devices}; {machine['system']}; Python {machine['python']}; "
            f"{packages}; revision {machine['revision'] or 'unknown (no git)'}"
        )
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Write both reports and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    run: Path = parser.parse_args(argv).run
    rows = [row for name in ROWS if (row := collect(run, name))]
    if not rows:
        sys.exit(f"{run} holds no row that was trained; run the steps 1 to 5 first")
    write_whole(run / "report.json", json.dumps(rows, indent=2) + "\n")
    write_whole(run / "report.md", document(run, rows))
    base = next((row for row in rows if row["row"] == BASE), rows[0])
    print("\n" + "\n".join(table([row for row in rows if finished(row)], base)))
    print(f"\nthe whole report: {run / 'report.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
