"""What several commands declare alike."""

from __future__ import annotations

import argparse
import math

from t2017_plugin.paper.config import Search


def at_least_one(text: str) -> int:
    """Read a whole number from 1 on, for argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def positive(text: str) -> float:
    """Read a number above 0, for argparse."""
    number = _number(text)
    if not 0.0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def not_negative(text: str) -> float:
    """Read a number from 0 on, for argparse."""
    number = _number(text)
    if not 0.0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return number


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def add_search_arguments(parser: argparse.ArgumentParser, search: Search, max_tokens: int) -> None:
    """Declare the model, its data and the search, for commands that turn lines of stdin into lines of stdout."""
    parser.add_argument(
        "--checkpoint",
        required=True,
        nargs="+",
        metavar="FILE",
        help="the trained model, for instance an average; several are an ensemble, the mean of their probabilities",
    )
    parser.add_argument("--data-bin", required=True, metavar="DIR", help="the binarised data it was trained on")
    parser.add_argument(
        "--beam", type=at_least_one, default=search.beam, metavar="N", help="width of the search (default: %(default)s)"
    )
    parser.add_argument(
        "--alpha", type=not_negative, default=search.alpha, metavar="A", help="length penalty (default: %(default)s)"
    )
    parser.add_argument(
        "--max-tokens",
        type=at_least_one,
        default=max_tokens,
        metavar="N",
        help="source tokens (BPE units) of a batch, padding included (default: %(default)s)",
    )
    add_device_arguments(parser)


def add_device_arguments(parser: argparse._ActionsContainer) -> None:
    """Declare where and in what precision a model computes, for all commands that search."""
    parser.add_argument("--cpu", action="store_true", help="do not use a GPU")
    parser.add_argument(
        "--precision",
        choices=("fp32", "fp16", "bf16"),
        default="fp32",
        help="of weights and products, whatever the model was trained in; the softmax stays in fp32 (default: fp32)",
    )
