"""Whether a score lies inside, below or above what others published for the paper's models (published.yaml)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).with_name("published.yaml")
NAMES = {"paper_bleu": "the paper's BLEU", "sacrebleu": "sacreBLEU"}


def published() -> dict[str, Any]:
    """Return the bands and the figures that make them."""
    content: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return content


def place(score: float, band: tuple[float, float]) -> str:
    """Say where a score lies: inside a band, below or above it; both ends belong to it, to one digit as printed."""
    low, high = band
    if round(score, 1) < low:
        return "below"
    return "above" if round(score, 1) > high else "inside"


def verdicts(arm: dict[str, Any]) -> list[str]:
    """Return a line for each score of an arm of WMT14 English-German that there is a band for."""
    bands = published()["bands"].get(arm["arm"], {})
    if arm.get("target_lang") != "de":
        return []
    return [
        f"{NAMES[kind]} {arm[kind]['score']:.2f} is {place(arm[kind]['score'], band)} the published band "
        f"{band[0]} to {band[1]}"
        for kind, band in bands.items()
    ]
