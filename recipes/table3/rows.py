"""The rows of Table 3 as settings files: the paper's size from configs/table3/, the small size by one rule.

    python -m recipes.table3.rows names --rows all
    python -m recipes.table3.rows write --row a_h1 --scale small --seed 1 --output row.yaml
    python -m recipes.table3.rows plan --rows all --scale small --run runs/table3/demo

At the small size the widths d_model, d_ff, d_k and d_v are a quarter of the paper's and N is half; heads and rates
stay, so that each row stands to base as it does in the paper. Schedule, batch and length are those of
configs/table3_small.yaml.
"""

from __future__ import annotations

import argparse
import copy
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.command_line import command_line
from t2017_plugin.experiments.paper_configs import EXPERIMENTS
from t2017_plugin.files import write_text

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
ROWS = {
    name.removeprefix("table3/"): experiment for name, experiment in EXPERIMENTS.items() if name.startswith("table3/")
}
BASE = "base"
SCALES = ("small", "paper")
DIVISORS = {"d_model": 4, "d_ff": 4, "d_k": 4, "d_v": 4, "layers": 2}
# What a row changes: its sizes and rates. How long the paper trained it, and on which devices, belongs to its size.
OF_A_ROW = ("model", "criterion")
# In sections that training reads too, what it makes no other model with.
DECODED = dict.fromkeys(("max_tokens_valid", "gen_subset"))


def chosen(rows: str) -> list[str]:
    """Return the rows that ``all``, a group's letter (A to E) or names between commas stand for, in the table's order.

    Raises:
        UsageError: there is no such row.
    """
    asked: set[str] = set()
    for name in rows.split(","):
        group = [row for row in ROWS if row.startswith(f"{name.lower()}_")] if len(name) == 1 else []
        if name != "all" and name not in ROWS and not group:
            raise UsageError(f"Table 3 has no row {name!r}; there are all, A to E, {', '.join(ROWS)}")
        asked |= {*ROWS} if name == "all" else {*group} if group else {name}
    return [row for row in ROWS if row in asked]


def read(name: str) -> dict[str, Any]:
    """Return the settings file of that name below configs/."""
    content: dict[str, Any] = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))
    return content


def made_small(model: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a model with the paper's sizes, made small by the one rule."""
    return {name: value // DIVISORS.get(name, 1) if name in DIVISORS else value for name, value in model.items()}


def settings(row: str, scale: str, seed: int, updates: int | None, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the settings of one row; ``updates`` None is as many as the settings file of the size says.

    ``overrides`` (SECTION.NAME=VALUE) come last and win.

    Raises:
        UsageError: there is no such row, or an override is not of that form.
    """
    if row not in ROWS:
        chosen(row)  # which tells what there is, or finds a group
        raise UsageError(f"{row!r} is more than one row; name one of {', '.join(ROWS)}")
    paper = read(f"table3/{row}")
    content = paper
    if scale == "small":
        content = read("table3_small")
        for section in OF_A_ROW:
            content[section] = copy.deepcopy(paper[section])
        content["model"] = made_small(content["model"])
    content["common"]["seed"] = seed
    if updates is not None:
        content["optimization"]["max_update"] = updates
    for override in overrides:
        place, equals, value = override.partition("=")
        section, dot, name = place.partition(".")
        if not (equals and dot and section and name):
            raise UsageError(f"--set {override}: write SECTION.NAME=VALUE")
        content.setdefault(section, {})[name] = yaml.safe_load(value)
    return content


def document(row: str, scale: str, seed: int, updates: int | None, overrides: Sequence[str] = ()) -> str:
    """Return the settings file of one row."""
    body = yaml.safe_dump(settings(row, scale, seed, updates, overrides), sort_keys=False, allow_unicode=True)
    return f"# {ROWS[row].title}, size {scale}, seed {seed}.\n# Written by recipes/table3/rows.py.\n{body}"


def shown() -> str:
    """Return the settings whose flags the numbered scripts show: base, small."""
    return document(BASE, SCALES[0], 1, None)


def plan(rows: list[str], scale: str, seed: int, updates: int | None, run: Path, overrides: list[str]) -> list[str]:
    """Return what would be run, a line a command; nothing is written but to a temporary folder."""
    lines = [f"# {len(rows)} rows of Table 3, size {scale}: each trained, and scored on validation without averaging"]
    if scale == "paper":
        lines.append("# --max-tokens is chosen when it runs, for 25,000 tokens a side and update of the data")
    with tempfile.TemporaryDirectory() as folder:
        for row in rows:
            file, place = Path(folder) / "row.yaml", run / "rows" / row
            file.write_text(document(row, scale, seed, updates, overrides), encoding="utf-8")
            data = [f"task.data={run / 'data-bin'}"]
            training = command_line(file, "train", [*data, f"checkpoint.save_dir={place / 'checkpoints'}"])
            decoding = command_line(file, "generate", data)
            lines += [
                f"# {ROWS[row].title}",
                shlex.join(["fairseq-train", *training]),
                shlex.join(
                    ["fairseq-generate", *decoding, "--path", str(place / "average.pt"), "--gen-subset", "valid"]
                ),
            ]
    return lines


def same_training(file: Path, asked: dict[str, Any]) -> bool:
    """Whether a row's settings file trains what was asked for; how it is decoded may differ."""
    whole = yaml.safe_load(file.read_text(encoding="utf-8"))
    return all(
        {**whole.get(section, {}), **DECODED} == {**asked.get(section, {}), **DECODED}
        for section in {*whole, *asked} - {"generation", "common_eval", "task"}
    )


def main(argv: list[str] | None = None) -> int:
    """Print the rows' names or the plan, write one settings file, or check that one is what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    listing, planning, writing, checking = (actions.add_parser(name) for name in ("names", "plan", "write", "check"))
    for action in (listing, planning):
        action.add_argument("--rows", default="all")
    for action in (planning, writing, checking):
        action.add_argument("--scale", choices=SCALES, default=SCALES[0])
        action.add_argument("--seed", type=int, default=1)
        action.add_argument("--updates", type=int)
        action.add_argument("--set", action="append", default=[], metavar="SECTION.NAME=VALUE")
    planning.add_argument("--run", type=Path, required=True)
    for action in (writing, checking):
        action.add_argument("--row", required=True)
    writing.add_argument("--output", type=Path, required=True)
    checking.add_argument("--file", type=Path, required=True)
    args = parser.parse_args(argv)
    try:
        if args.action == "names":
            print("\n".join(chosen(args.rows)))
            return 0
        how = (args.scale, args.seed, args.updates)
        if args.action == "plan":
            print("\n".join(plan(chosen(args.rows), *how, args.run, args.set)))
        elif args.action == "write":
            write_text(args.output, document(args.row, *how, args.set))
        elif not same_training(args.file, settings(args.row, *how, args.set)):
            print(
                f"{args.file.parent} was trained with other settings than this call's; give the options that "
                "2_train.sh had, or run it with these first",
                file=sys.stderr,
            )
            return 1
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
