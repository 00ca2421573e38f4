"""Stamps of finished steps: a step need not be done again while its inputs, settings and outputs are what they were.

A stamp is a JSON file with the SHA-256 of every input and output, the settings and the seconds that the step took.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from recipes.common.files import file_sha256, write_whole

# A longer run is the same run gone on with; decoding reads these sections and training does not.
LENGTH_OF_RUN = ("optimization", "max_update")
OF_DECODING = ("generation", "common_eval")
READ_BY_DECODING = (*OF_DECODING, "task", "common", "dataset")


def hashes(paths: list[str], base: Path) -> dict[str, str]:
    """Return the hash of each file, keyed by its path relative to ``base`` where it lies below, so that runs can move.

    Raises FileNotFoundError for a file that is not there.
    """
    result = {}
    for path in map(Path, paths):
        inside = path.is_relative_to(base)
        result[str(path.relative_to(base) if inside else path)] = file_sha256(path)
    return result


def settings_of(file: Path, command: str, whole: bool = True) -> dict[str, Any]:
    """Return what a settings file says to "train" or "generate", comments and layout aside.

    ``whole=False`` leaves out how long the run is.
    """
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    if command == "generate":
        return {section: content[section] for section in READ_BY_DECODING if section in content}
    content = {name: value for name, value in content.items() if name not in (*OF_DECODING, "hydra")}
    section, name = LENGTH_OF_RUN
    if not whole and isinstance(content.get(section), dict):
        content[section] = {key: value for key, value in content[section].items() if key != name}
    return content


def facts(args: argparse.Namespace, base: Path, whole: bool = True) -> dict[str, Any]:
    """Return what decides a step's outputs: the hashes of its inputs and its settings."""
    length = ".".join(LENGTH_OF_RUN) + "="
    return {
        "inputs": hashes(args.input, base),
        "settings": sorted(text for text in args.setting if whole or not text.startswith(length)),
        "settings_file": {command: settings_of(Path(file), command, whole) for file, command in args.settings_file},
    }


def check(stamp: Path, args: argparse.Namespace) -> str | None:
    """Return why a step must be done, or None when it is done. Raises FileNotFoundError for a missing input."""
    base = args.base or stamp.parent.parent
    current = facts(args, base)
    if not stamp.exists():
        return "to be done"
    stored = json.loads(stamp.read_text(encoding="utf-8"))
    for kind, now in current.items():
        if stored.get(kind) != now:
            return f"{kind.replace('_', ' ')} changed, to be done again"
    try:
        if hashes(args.output, base) != stored["outputs"]:
            return "outputs are not as the step left them, to be done again"
    except FileNotFoundError as error:
        return f"{error.filename} is gone, to be done again"
    return None


def finish(stamp: Path, args: argparse.Namespace) -> None:
    """Write the stamp of a step that has just been done."""
    base = args.base or stamp.parent.parent
    content = {**facts(args, base), "outputs": hashes(args.output, base), "seconds": args.seconds}
    write_whole(stamp, json.dumps(content, indent=2) + "\n")


def same_start(record: Path, args: argparse.Namespace) -> str:
    """Say whether an unfinished run may be gone on with: "same" start as recorded, "other", or "new" and now recorded.

    The length of the run and the number of processes do not matter.
    """
    now = facts(args, args.base or record.parent, whole=False)
    if record.exists():
        return "same" if json.loads(record.read_text(encoding="utf-8")) == now else "other"
    write_whole(record, json.dumps(now, indent=2) + "\n")
    return "new"


def main(argv: list[str] | None = None) -> int:
    """Carry out one action.

    ``check`` prints why the step must be done and exits with 3, or with 0 when it is done; ``finish`` writes the stamp;
    ``start`` prints whether an unfinished run may be gone on with. A missing input ends either with 1.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["check", "finish", "start"])
    parser.add_argument("stamp", type=Path)
    parser.add_argument("--base", type=Path, help="folder that paths are told from; default: the one above the stamp's")
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--output", action="append", default=[])
    parser.add_argument("--setting", action="append", default=[])
    parser.add_argument("--settings-file", action="append", default=[], nargs=2, metavar=("FILE", "COMMAND"))
    parser.add_argument("--seconds", type=int, default=0)
    args = parser.parse_args(argv)
    try:
        if args.action == "check":
            if reason := check(args.stamp, args):
                print(reason)
                return 3
        elif args.action == "finish":
            finish(args.stamp, args)
        else:
            print(same_start(args.stamp, args))
    except FileNotFoundError as error:
        sys.exit(f"{error.filename} is not there, though an earlier step should have made it; run the steps in order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
