"""``t2017 user-dir``: where the plugin lies, for fairseq's ``--user-dir``."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``user-dir`` takes no arguments."""


def run(args: argparse.Namespace) -> int:
    """Print the absolute path of the package."""
    print(Path(__file__).resolve().parent.parent)
    return 0
