"""What several commands declare alike."""

from __future__ import annotations

import argparse
import math


def at_least_one(text: str) -> int:
    """A whole number from 1 on, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def positive(text: str) -> float:
    """A number above 0, for argparse."""
    number = _number(text)
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def not_negative(text: str) -> float:
    """A number from 0 on, for argparse."""
    number = _number(text)
    if not 0.0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def add_device_arguments(parser: argparse._ActionsContainer) -> None:
    """Where and in what precision a model computes, for all commands that search."""
    parser.add_argument("--cpu", action="store_true", help="do not use a GPU")
    parser.add_argument(
        "--precision",
        choices=("fp32", "fp16", "bf16"),
        default="fp32",
        help="of weights and products, whatever the model was trained in; the softmax stays in fp32 (default: fp32)",
    )
