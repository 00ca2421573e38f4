"""The arms of the comparison as settings files, made from configs/demo.yaml and configs/stock/demo.yaml alone.

python -m recipes.compare_stock.arms plan --singles --seeds 3 --updates 4000
python -m recipes.compare_stock.arms write --arm positions --seed 1 --updates 4000 --output arm.yaml
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from t2017_plugin.differences.single_arms import (
    ALL,
    PAPER,
    SINGLES,
    STOCK,
    arm_names,
    arm_settings,
    only_decoding,
)
from t2017_plugin.experiments.command_line import command_line
from t2017_plugin.files import write_text

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
ABOUT = {
    PAPER: "the paper's settings",
    STOCK: "stock fairseq's model, loss, schedule, optimiser and search",
    ALL: "the plugin with every switch as stock has it",
}
# Peaks of the learning rate in units of the paper's formula, from which each arm's own is chosen.
RATES = ("0.7", "1.0", "1.4")
# How the demo's model is made larger, and what stock calls it in each of its two stacks.
SIZES = {"demo": {}, "layers6": {"layers": 6}, "d256": {"d_model": 256, "d_ff": 1024, "d_k": 64, "d_v": 64}}
IN_STOCK = {"layers": "layers", "d_model": "embed_dim", "d_ff": "ffn_embed_dim"}
# Of 4,000 updates of the demo's model with validation: one thread of an AMD EPYC, another at work beside it.
MINUTES_PER_TRAINING = 13


def about(arm: str) -> str:
    """Return what an arm is, in a few words."""
    return ABOUT[arm] if arm in ABOUT else f"the paper's settings but {SINGLES[arm].what}"


def settings(arm: str, seed: int, updates: int, rate: float | None = None, size: str = "demo") -> dict[str, Any]:
    """Return the settings of one run: the arm's, with seed and length, and with validation, whose curve is wanted.

    ``rate`` is the peak of the learning rate in units of the paper's formula (5.3, equation 3): 1 is
    the paper's own, which d_model and the warm-up give. None leaves the rate of the settings files.
    """
    paper, stock = (
        yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in (CONFIGS / "demo.yaml", CONFIGS / "stock" / "demo.yaml")
    )
    paper["model"] |= SIZES[size]
    for name, value in SIZES[size].items():
        for stack in ("encoder", "decoder"):
            if name in IN_STOCK:
                stock["model"][stack][IN_STOCK[name]] = value
    content = arm_settings(arm, paper, stock)
    content["common"]["seed"] = seed
    content["optimization"]["max_update"] = updates
    content["dataset"]["disable_validation"] = False
    if rate is not None:
        if content["lr_scheduler"]["_name"] == "t2017_noam":
            content["lr_scheduler"]["noam_scale"] = rate
        else:
            warmup = content["lr_scheduler"]["warmup_updates"]
            content["optimization"]["lr"] = [rate * (paper["model"]["d_model"] * warmup) ** -0.5]
    return content


def document(arm: str, seed: int, updates: int, rate: float | None = None, size: str = "demo") -> str:
    """Return the settings file of one run."""
    body = yaml.safe_dump(settings(arm, seed, updates, rate, size), sort_keys=False, allow_unicode=True)
    return f"# Arm {arm}, seed {seed}: {about(arm)}.\n# Written by recipes/compare_stock/arms.py.\n{body}"


def shown() -> str:
    """Return the settings whose flags the numbered scripts show: the paper's arm."""
    return document(PAPER, 1, 4000)


def commands(arm: str, seed: int, updates: int, run: Path, overrides: list[str]) -> list[str]:
    """Return the commands that train an arm and translate with it; one of the search alone only translates."""
    place, data = run / "arms" / arm / f"seed{seed}", f"task.data={run / 'data-bin'}"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arm.yaml"
        file.write_text(document(arm, seed, updates), encoding="utf-8")
        training = command_line(file, "train", [data, *overrides, f"checkpoint.save_dir={place / 'checkpoints'}"])
        decoding = [*command_line(file, "generate", [data, *overrides]), "--path", str(place / "average.pt")]
    first = shlex.join(["fairseq-train", *training])
    if only_decoding(arm):
        first = f"# takes over the model of {run / 'arms' / PAPER / f'seed{seed}'}"
    return [first, shlex.join(["fairseq-generate", *decoding])]


def plan(arms: list[str], seeds: int, updates: int, run: Path, overrides: list[str], rates: list[str]) -> list[str]:
    """Return what a comparison would run and about what it costs; nothing is written but to a temporary folder."""
    trained = [arm for arm in arms if not only_decoding(arm)]
    # Seed 1 of the rate that is chosen is among those of the grid.
    trainings = len(trained) * seeds + 2 * max(len(rates) - 1, 0)
    hours = trainings * MINUTES_PER_TRAINING * updates / 4000 / 60
    lines = [
        f"# {len(arms)} arms, {seeds} seed(s): {len(trained) * seeds} trainings of {updates:,} updates, "
        f"{len(arms) * seeds} translations of the test set",
        f"# {PAPER} and {STOCK} first at each rate of {', '.join(rates) or 'configs/'}, seed 1; the rate with the "
        "lowest validation loss is taken. Below, the rate is that of configs/",
        f"# about {hours:.1f} hours of one core",
    ]
    for seed in range(1, seeds + 1):
        for arm in arms:
            lines += [f"# arm {arm}, seed {seed}: {about(arm)}", *commands(arm, seed, updates, run, overrides)]
    return lines


def main(argv: list[str] | None = None) -> int:
    """Print the plan or the arms' names, or write one settings file and print what the arm needs of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    planning, listing, writing = (actions.add_parser(name) for name in ("plan", "names", "write"))
    for action in (planning, listing):
        action.add_argument("--singles", action="store_true")
    planning.add_argument("--seeds", type=int, default=1)
    planning.add_argument("--rates", nargs="*", default=[])
    planning.add_argument("--set", action="append", default=[], metavar="SECTION.NAME=VALUE")
    planning.add_argument("--run", type=Path, default=Path("runs/compare_stock"))
    writing.add_argument("--arm", required=True)
    writing.add_argument("--seed", type=int, default=1)
    writing.add_argument("--output", type=Path, required=True)
    writing.add_argument("--rate", type=float)
    writing.add_argument("--size", choices=SIZES, default="demo")
    for action in (planning, writing):
        action.add_argument("--updates", type=int, default=4000)
    args = parser.parse_args(argv)
    if args.action == "plan":
        print("\n".join(plan(arm_names(args.singles), args.seeds, args.updates, args.run, args.set, args.rates)))
    elif args.action == "names":
        print("\n".join(arm_names(args.singles)))
    else:
        write_text(args.output, document(args.arm, args.seed, args.updates, args.rate, args.size))
        print("decoding" if only_decoding(args.arm) else "training")
    return 0


if __name__ == "__main__":
    sys.exit(main())
