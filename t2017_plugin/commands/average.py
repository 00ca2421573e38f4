"""``t2017 average``: the mean of the last checkpoints of a run (section 6.1)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from t2017_plugin.checkpoints.averaging import average_checkpoints, last_checkpoints, uneven_updates
from t2017_plugin.checkpoints.loading import load_checkpoint, num_updates
from t2017_plugin.commands.arguments import at_least_one

DESCRIPTION = """\
Average checkpoints of one run (paper, section 6.1: the last 5 for base, the last 20 for big).

With --last N, CKPT is the folder of a run, and its last N update checkpoints (checkpoint_<epoch>_<updates>.pt,
by update number) are averaged; without --last, CKPT... are the files themselves.

The output keeps the settings of the newest file and leaves out the optimiser's state: it is for decoding, and
three times smaller. float16 and bfloat16 weights come out as float32. What was averaged is recorded in the file,
under extra_state["t2017_average"].
"""
EPILOG = """\
examples:
  t2017 average --last 5 --output average.pt checkpoints/
  t2017 average --last 3 --by epoch --output average.pt checkpoints/
  t2017 average --output average.pt checkpoints/checkpoint_9_900.pt checkpoints/checkpoint_10_1000.pt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 average``."""
    parser.add_argument("checkpoints", nargs="+", metavar="CKPT", help="a run's folder (with --last) or files")
    parser.add_argument("--output", required=True, metavar="FILE", help="the checkpoint to write")
    parser.add_argument(
        "--last", type=at_least_one, metavar="N", help="average the last N checkpoints of the folder CKPT"
    )
    parser.add_argument(
        "--by",
        choices=("update", "epoch"),
        default=None,
        help="with --last: checkpoints saved every N updates, the default, or at the end of epochs",
    )
    parser.add_argument(
        "--several-runs", action="store_true", help="also average checkpoints of trainings that began apart"
    )
    parser.set_defaults(wrong_call=parser.error)


def run(args: argparse.Namespace) -> int:
    """Average, and print which files were taken with their update numbers."""
    files = _chosen(args)
    report = average_checkpoints(files, args.output, several_runs=args.several_runs)
    for path, updates in zip(report.files, report.updates, strict=True):
        print(f"{path}  update {updates:,}")
    kind = f" {args.by or 'update'}" if args.last is not None else ""
    print(f"{args.output}: mean of {len(files)}{kind} checkpoints, without the optimiser's state")
    if not args.several_runs and (uneven := uneven_updates(report.updates)):
        print(f"warning: {uneven}; the paper's are equally far apart", file=sys.stderr)
    if args.last is not None:
        _note_newer(Path(args.checkpoints[0]), max(report.updates))
    return 0


def _note_newer(folder: Path, taken: int) -> None:
    """Say so when the run went on after the last checkpoint taken: its last update may be an epoch's last."""
    newest = folder / "checkpoint_last.pt"
    if newest.exists() and (updates := num_updates(load_checkpoint(newest))) > taken:
        print(
            f"note: {newest} is of update {updates:,}, after the last one taken ({taken:,}); "
            "name the files to take it as well",
            file=sys.stderr,
        )


def _chosen(args: argparse.Namespace) -> list[Path]:
    """Return the files that a call means, oldest first when they come from a folder."""
    paths = [Path(path) for path in args.checkpoints]
    if args.last is None:
        folders = [path for path in paths if path.is_dir()]
        if folders:
            args.wrong_call(f"{folders[0]} is a folder; say how many of its checkpoints to average with --last N")
        if args.by:
            args.wrong_call("--by goes with --last N; named files are averaged as they are")
        return paths
    if len(paths) > 1:
        args.wrong_call(f"--last takes one folder, {len(paths)} paths were named")
    return last_checkpoints(paths[0], args.last, args.by or "update")
