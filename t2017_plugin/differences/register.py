"""The register of differences: ``differences.yaml``, read and typed.

The page docs/differences.md, ``t2017 audit`` and the arms of the comparison with stock are all made
from it, so that no fact about a difference stands twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("differences.yaml")


@dataclass(frozen=True)
class Arm:
    """A run of the comparison that changes one thing from the paper to stock.

    ``set`` holds settings by dotted name. ``copied`` names sections or single settings that are taken from the
    settings of the stock run. ``part_of`` names the arm that contains this one.
    """

    name: str
    what: str
    set: dict[str, Any] = field(default_factory=dict)
    copied: tuple[str, ...] = ()
    only_decoding: bool = False
    part_of: str = ""


@dataclass(frozen=True)
class Difference:
    """A place where paper, authors' code (T2T 1.0.14), stock fairseq and this plugin may differ."""

    id: str
    group: str
    topic: str
    paper: str
    t2t: str
    stock: str
    here: str
    tests: tuple[str, ...]
    section: str = "-"
    why: str = ""
    switch: tuple[str, ...] = ()
    arms: tuple[Arm, ...] = ()


@dataclass(frozen=True)
class Behaviour:
    """Something that stock does otherwise and that nobody would want to switch back."""

    topic: str
    stock: str
    here: str


def content() -> dict[str, Any]:
    """Read the file as it is."""
    result: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return result


def without_switch() -> list[Behaviour]:
    """Return what has no switch."""
    return [Behaviour(**entry) for entry in content()["without_switch"]]


def inside_the_paper() -> list[str]:
    """Return the notes on what does not fit together in the paper itself."""
    return list(content()["inside_the_paper"])


@cache
def differences() -> tuple[Difference, ...]:
    """Read the register, in the order of the file."""
    return tuple(_difference(entry) for entry in content()["differences"])


def _difference(entry: dict[str, Any]) -> Difference:
    values = dict(entry)
    for name in ("paper", "t2t", "stock", "here"):
        values[name] = str(values[name])
    for name in ("tests", "switch"):
        values[name] = tuple(values.get(name, ()))
    arms = values.get("arms", ())
    values["arms"] = tuple(Arm(**{**arm, "copied": tuple(arm.get("copied", ()))}) for arm in arms)
    return Difference(**values)


def groups() -> dict[str, list[Difference]]:
    """Return the differences by group, in the order of the file."""
    result: dict[str, list[Difference]] = {}
    for difference in differences():
        result.setdefault(difference.group, []).append(difference)
    return result
