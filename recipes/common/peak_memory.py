"""Runs a command and writes down the most memory that it, or one of its processes, had resident.

    python recipes/common/peak_memory.py --output memory.json -- fairseq-train ...

The command's exit status is passed on, and so is a request to end. A file that is there keeps the larger number, since
a run may take several sessions. Imports nothing but Python's own, so that its own size does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType


def write_down(output: Path, peak: int) -> None:
    """Write the larger of ``peak`` (bytes) and what the file already says."""
    if output.exists():
        peak = max(peak, json.loads(output.read_text(encoding="utf-8"))["peak_resident_bytes"])
    partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
    partial.write_text(json.dumps({"peak_resident_bytes": peak}) + "\n", encoding="utf-8")
    os.replace(partial, output)


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status, 128 + the signal's number where a signal ended it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="JSON file for the number, in bytes")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and the command")
    args = parser.parse_args(argv)
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        parser.error("name a command after --")
    process = subprocess.Popen(command)

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, pass_on)
    status = process.wait()
    write_down(args.output, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)  # Linux counts in KiB
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
