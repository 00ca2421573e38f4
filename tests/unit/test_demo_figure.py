"""The demo's figure is the same wherever it is printed: all of it comes from docs/reports/demo.json."""

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/results.md", "CHANGELOG.md", "configs/demo.yaml")
pytestmark = pytest.mark.unit


def report() -> dict[str, Any]:
    """The demo's runs."""
    content: dict[str, Any] = json.loads((ROOT / "docs" / "reports" / "demo.json").read_text(encoding="utf-8"))
    return content


def scores(kind: str, threads: int = 1) -> list[float]:
    """The demo's scores with so many threads, a seed each."""
    return [run[kind] for run in report()["runs"] if run["threads"] == threads]


def figure(kind: str) -> str:
    """Mean and sample standard deviation over seeds, as the pages print them."""
    return f"{statistics.fmean(scores(kind)):.1f} ± {statistics.stdev(scores(kind)):.1f}"


def test_there_are_five_seeds_and_two_numbers_of_threads() -> None:
    assert [run["seed"] for run in report()["runs"] if run["threads"] == 1] == [1, 2, 3, 4, 5]
    assert {run["threads"] for run in report()["runs"]} >= {1, 2}


@pytest.mark.parametrize("page", PAGES)
def test_pages_print_the_figure(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").replace("#", " ").split())
    assert f"{figure('sacrebleu')} sacreBLEU" in text or f"| {figure('sacrebleu')} |" in text


def test_the_rate_is_the_one_with_the_lowest_validation_loss() -> None:
    rates = report()["validation_bits_by_rate"]
    best = min(rates, key=lambda rate: rates[rate])
    settings = yaml.safe_load((ROOT / "configs" / "demo.yaml").read_text(encoding="utf-8"))
    assert settings["lr_scheduler"]["noam_scale"] == float(best)
