"""The table of all rows of Table 3 that were run, beside the paper's: ``report.md`` and ``report.json`` of a run.

    python -m recipes.table3.report runs/table3/demo

Perplexity is 2 to the unsmoothed validation loss in bits per token (BPE units with EOS, the paper's "per-wordpiece") of
the last checkpoint; both BLEUs are of its translation of the validation set; nothing is averaged.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from recipes.common.report import machine_lines
from recipes.table3.results import SIZES, collect
from recipes.table3.rows import BASE, ROWS, settings
from t2017_plugin.experiments.runs import Run
from t2017_plugin.files import write_text
from t2017_plugin.markdown import table
from t2017_plugin.paper.table3 import BY_NAME

Row = dict[str, Any]


def base_of(rows: list[Row]) -> Row:
    """Return the base row, or its sizes alone when it was not run."""
    for row in rows:
        if row["row"] == BASE:
            return row
    content = settings(BASE, rows[0]["scale"] or "small", 1, None)
    return {"row": None, "model": content["model"], "label_smoothing": content["criterion"]["label_smoothing"]}


def what(row: Row, base: Row) -> str:
    """How a row differs from base, in the paper's letters."""
    ours, theirs = ({**each["model"], "label_smoothing": each["label_smoothing"]} for each in (row, base))
    names = {**SIZES, "dropout": "P_drop", "label_smoothing": "eps_ls", "positions": "positions"}
    if row["row"] == BASE:
        return ", ".join(f"{name} {ours[key]}" for key, name in names.items() if key != "positions")
    return ", ".join(f"{name} {ours[key]}" for key, name in names.items() if ours[key] != theirs[key])


def rows_table(rows: list[Row], base: Row) -> str:
    """Return the rows that are finished as a Markdown table, ours and the paper's side by side."""
    heading = ["row", "differs from base", "PPL per token", "paper's BLEU", "sacreBLEU", "parameters, M"]
    cells = []
    for row in rows:
        printed = ROWS[row["row"]].printed
        assert printed is not None
        ours = [row["perplexity"], row["paper_bleu"]["score"], row["sacrebleu"]["score"]]
        cells.append(
            [
                row["row"] if comparable(row, base) else f"{row['row']} *",
                what(row, base),
                *(f"{value:.2f}" for value in ours),
                f"{row['parameters'] / 1e6:.3f}",
                f"{printed[0]:.2f}",
                f"{printed[1]:.1f}",
                BY_NAME[row["row"]].millions or "",
            ]
        )
    return table([*heading, "paper: PPL", "BLEU", "M"], cells, "ll" + "r" * 7)


def comparable(row: Row, base: Row) -> bool:
    """Whether a row was trained as base was, its own change aside."""
    return "conditions" not in base or row["conditions"] == base["conditions"]


def learning(rows: list[Row]) -> str:
    """Return how far each row learned: updates, tokens, first and last validation loss, speed."""
    heading = ["row", "updates", "target tokens", "first validation (update)", "last", "last / first"]
    cells = []
    for row in rows:
        first, last, seen = row["first_validation"], row["last_validation"], f"{row['target_tokens']:,}"
        losses = ["-", "-", "-"]
        if first:
            bits = first["bits"], last["bits"]
            losses = [f"{bits[0]:.3f} ({first['updates']:,})", f"{bits[1]:.3f}", f"{bits[1] / bits[0]:.2f}"]
        updates, speed = f"{row['updates']:,} of {row['max_update']:,}", f"{row['target_tokens_a_second'] or 0:,.0f}"
        cells.append([row["row"], updates, seen, *losses, speed])
    return table([*heading, "tokens per second"], cells)


def agreement(rows: list[Row], base: Row) -> str:
    """In how many rows perplexity lies on the same side of base as in the paper, those that print base's left out."""
    same, counted = 0, 0
    reference = ROWS[BASE].printed
    assert reference is not None
    for row in rows:
        printed = ROWS[row["row"]].printed
        if row["row"] != BASE and comparable(row, base) and printed is not None and printed[0] != reference[0]:
            counted += 1
            same += (row["perplexity"] > base["perplexity"]) == (printed[0] > reference[0])
    return f"Perplexity lies on the same side of base as in the paper in {same} of {counted} rows."


def document(run: Path, rows: list[Row]) -> str:
    """Return the whole report as Markdown."""
    data, corpus = (Run(run).content(name) or {} for name in ("data.json", "corpus/corpus.json"))
    done, base = [row for row in rows if row["finished"]], base_of(rows)
    lines = [f"# Table 3 on {corpus.get('corpus', data.get('data_bin', 'own data'))}", ""]
    lines += [f"**{corpus['note']}**", ""] if corpus.get("note") else []
    scales = ", ".join(sorted({row["scale"] or "sizes of its own" for row in rows}))
    lines += [f"- size: {scales}; seed: {', '.join(sorted({str(row['seed']) for row in rows}))}"]
    lines += [f"- validation: {data['sentences']:,} sentences; the reference is {data['reference']}"] if data else []
    lines += [
        "- perplexity per token (BPE units with EOS) of the last checkpoint, unsmoothed; nothing averaged",
        "- the paper's columns are newstest2013, after 100,000 updates (big 300,000) at its own sizes",
        "",
        rows_table(done, base),
        "",
    ]
    if not all(comparable(row, base) for row in done):
        lines += ["\\* not trained as base was (size, seed, length, batch, schedule or data): not to be compared.", ""]
    if base in done and len(done) > 1:
        lines += [agreement(done, base), ""]
    lines += ["## How far each row learned", "", "Losses are unsmoothed, in bits per token.", "", learning(rows), ""]
    missing = [name for name in ROWS if name not in {row["row"] for row in done}]
    lines += [f"Not finished: {', '.join(missing)}.", ""] if missing else []
    if done:
        lines += [
            f"- sacreBLEU's signature: `{done[0]['sacrebleu']['signature']}`",
            f"- the paper's BLEU: `{done[0]['paper_bleu']['signature']}`",
        ]
    machines = {json.dumps(row["machine"], sort_keys=True): row["machine"] for row in rows if row["machine"]}
    for machine in machines.values():
        lines += machine_lines(machine)
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Write both reports and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    run: Path = parser.parse_args(argv).run
    rows = [row for name in ROWS if (row := collect(run, name))]
    if not rows:
        sys.exit(f"{run} holds no row that was trained; run the steps 1 to 5 first")
    write_text(run / "report.json", json.dumps(rows, indent=2) + "\n")
    write_text(run / "report.md", document(run, rows))
    print("\n" + rows_table([row for row in rows if row["finished"]], base_of(rows)))
    print(f"\nthe whole report: {run / 'report.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
