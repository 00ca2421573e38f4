"""Writes the flags of fairseq-train and fairseq-generate into the numbered scripts, from the settings in configs/.

    python -m recipes.write_flags            # after a change in configs/
    python -m recipes.write_flags --check    # only says which scripts are not as they would be written

A script that shows flags has a line WRITTEN_FROM=..., which names a settings file or a module that
makes one, and FLAGS=( ... ), which is written here. Settings are still written once: a test, and
the step itself before it runs, compare the two.
"""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from t2017_plugin.experiments.command_line import grouped_flags, in_lines
from t2017_plugin.files import write_text

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^FLAGS=\(\n(.*?)^\)\n", re.MULTILINE | re.DOTALL)
SOURCE = re.compile(r"^WRITTEN_FROM=(\S+)(?: WRITTEN_WITH=(\S+))?$", re.MULTILINE)
COMMAND = re.compile(r"^flags_step (train|generate) ", re.MULTILINE)
WIDTH = 100
# What a group is about, with the paper's section.
ABOUT = {
    "task": "data, and how it is decoded",
    "model": "model (3, 5.4: dropout)",
    "criterion": "loss (5.4: label smoothing)",
    "optimizer": "optimiser (5.3)",
    "lr_scheduler": "learning rate (5.3, equation 3)",
    "optimization": "length of training",
    "dataset": "batches (5.1)",
    "checkpoint": "checkpoints",
    "distributed_training": "devices (5.2)",
    "common": "plugin, seed, log",
    "generation": "search (6.1)",
}
# Stand-ins for what only a run knows, and how a script says it.
PLACES = {
    "/RUN/data-bin": '"$RUN/data-bin"',
    "/RUN/ARM/checkpoints": '"$ARM_RUN/checkpoints"',
    shlex.quote(str(ROOT / "t2017_plugin")): '"$(t2017 user-dir)"',
}


def scripts() -> list[Path]:
    """Return the scripts that show flags."""
    found = sorted((ROOT / "recipes").glob("*/[1-5]_*.sh"))
    return [path for path in found if BLOCK.search(path.read_text(encoding="utf-8"))]


def block(settings: Path, command: str, overrides: Sequence[str]) -> str:
    """Return the flags of a settings file as the lines between the brackets, each group under a comment."""
    places = ["task.data=/RUN/data-bin"]
    if command == "train":
        places.append("checkpoint.save_dir=/RUN/ARM/checkpoints")
    lines = []
    for section, flags in grouped_flags(settings, command, [*places, *overrides]):
        lines.append(f"    # {ABOUT.get(section, section)}")
        line = "   "
        for text in in_lines(flags):
            for place, written in PLACES.items():
                text = re.sub(rf"(^| ){re.escape(place)}$", lambda match, by=written: match[1] + by, text)
            if len(line) + 1 + len(text) > WIDTH:
                lines.append(line)
                line = "   "
            line += f" {text}"
        lines.append(line)
    return "".join(f"{line}\n" for line in lines)


def written(script: Path) -> str:
    """Return a script with its flags as its settings have them.

    Raises:
        ValueError: the script does not say where its flags come from, or which command they are for.
    """
    text = script.read_text(encoding="utf-8")
    source, command = SOURCE.search(text), COMMAND.search(text)
    if not source or not command:
        raise ValueError(f"{script} has FLAGS, but no line WRITTEN_FROM=... or no flags_step train or generate")
    overrides = [source[2]] if source[2] else []
    if source[1].endswith(".yaml"):
        lines = block(ROOT / source[1], command[1], overrides)
    else:
        with tempfile.TemporaryDirectory() as folder:
            settings = Path(folder) / "settings.yaml"
            settings.write_text(importlib.import_module(source[1]).shown(), encoding="utf-8")
            lines = block(settings, command[1], overrides)
    return BLOCK.sub(lambda match: f"FLAGS=(\n{lines})\n", text)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the scripts, or with --check say which differ and return 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args(argv)
    status = 0
    for script in scripts():
        text = written(script)
        if text == script.read_text(encoding="utf-8"):
            continue
        print(f"{script.relative_to(ROOT)}: {'is not as its settings say' if args.check else 'written'}")
        if args.check:
            status = 1
        else:
            mode = script.stat().st_mode
            write_text(script, text)
            script.chmod(mode)
    return status


if __name__ == "__main__":
    sys.exit(main())
