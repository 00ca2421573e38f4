"""Writes down what a run was made with: machine, Python, versions of packages, revision of the code."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from t2017_plugin.files import write_text

PACKAGES = (
    "t2017-plugin fairseq-fixed fairseq torch numpy hydra-core omegaconf sacrebleu sacremoses subword-nmt nltk"
).split()


def versions() -> dict[str, str]:
    """Return the versions of the packages a score may depend on, of those that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """Return the name of the processor as Linux tells it, or the architecture's."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def revision(root: Path) -> str | None:
    """Return the commit of the checkout, with "+" when files differ from it, or None outside git."""
    try:
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return None
    return commit + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def describe(root: Path) -> dict[str, Any]:
    """Return all of it; GPUs are named when torch sees any."""
    import torch

    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())],
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": versions(),
        "revision": revision(root),
    }


def main(argv: list[str] | None = None) -> None:
    """Write the description as JSON and print the number of GPUs, for the scripts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--root", type=Path, required=True, help="the checkout")
    args = parser.parse_args(argv)
    described = describe(args.root)
    write_text(args.output, json.dumps(described, indent=2) + "\n")
    print(len(described["gpus"]))


if __name__ == "__main__":
    main()
