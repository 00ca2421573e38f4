"""Makes sure that a run which was interrupted can be gone on with: ``checkpoint_last.pt`` is whole.

fairseq writes a checkpoint whole but copies it to ``checkpoint_last.pt``; a kill in the middle of the copy leaves half
a file, on which fairseq then stops for good. The newest whole checkpoint takes its place.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import zipfile
from pathlib import Path

UPDATE_CHECKPOINT = re.compile(r"checkpoint_\d+_(\d+)\.pt")


def is_whole(checkpoint: Path) -> bool:
    """Tell whether a checkpoint is a complete archive whose parts have the checksums they were written with."""
    try:
        with zipfile.ZipFile(checkpoint) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def updates(checkpoint: Path) -> int:
    """Return the number of updates in the name of a checkpoint, -1 for one without."""
    match = UPDATE_CHECKPOINT.fullmatch(checkpoint.name)
    return int(match[1]) if match else -1


def repair(folder: Path) -> str | None:
    """Remove what a kill left half written and return what training will go on from, None for the beginning."""
    last = folder / "checkpoint_last.pt"
    for leftover in folder.glob("*.pt.tmp"):
        leftover.unlink()
    if is_whole(last):
        return last.name
    last.unlink(missing_ok=True)
    for checkpoint in sorted(folder.glob("checkpoint_*_*.pt"), key=updates, reverse=True):
        if is_whole(checkpoint):
            partial = last.with_name(f".{last.name}.partial")
            shutil.copyfile(checkpoint, partial)
            os.replace(partial, last)
            return checkpoint.name
        checkpoint.unlink()
    return None


def main(argv: list[str] | None = None) -> None:
    """Print from which checkpoint the run goes on, or nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="fairseq-train's --save-dir")
    print(repair(parser.parse_args(argv).folder) or "")


if __name__ == "__main__":
    main()
