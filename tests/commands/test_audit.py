"""``t2017 audit``: its figures, and the page written from it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from t2017_plugin.differences import report
from t2017_plugin.differences.difference import Difference

pytestmark = pytest.mark.commands
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def groups() -> dict[str, list[Difference]]:
    return report.audit()


@pytest.fixture(scope="module")
def numbers(groups: dict[str, list[Difference]]) -> dict[str, dict[str, Any]]:
    return {row.topic: row.numbers for rows in groups.values() for row in rows}


def test_the_page_is_fresh(groups: dict[str, list[Difference]]) -> None:
    page = (ROOT / "docs/differences.md").read_text(encoding="utf-8")
    assert page == report.as_markdown(groups), "run: t2017 audit --markdown > docs/differences.md"


def test_every_row_names_a_test_that_exists(groups: dict[str, list[Difference]]) -> None:
    for rows in groups.values():
        for row in rows:
            for name in row.test.split(", "):
                assert (ROOT / "tests" / name).is_file(), f"{row.topic}: {name}"


def test_figures_against_what_is_known(numbers: dict[str, dict[str, Any]]) -> None:
    """Figures that follow from a formula or were published elsewhere."""
    assert numbers["norm and residual"]["max_difference"] < 1e-5
    assert numbers["dropout"]["here"] == {"0.1": 12} and numbers["dropout"]["attention"] == {"0.1": 12, "0.2": 6}
    # four biases in each of 18 attentions, 512 wide
    assert numbers["biases of attention"]["base_with"] - numbers["biases of attention"]["base_without"] == 18 * 4 * 512
    assert numbers["sinusoid"]["10"] == pytest.approx(0.014, abs=5e-4)
    assert numbers["sinusoid"]["50"] == pytest.approx(0.072, abs=5e-4)
    rates = numbers["learning rate"]
    assert rates["1"]["stock"] == 0.0 and rates["1"]["here"] == pytest.approx(1.746928e-07, rel=1e-6)
    assert rates["4000"]["stock"] / rates["4000"]["here"] == pytest.approx(0.99975, rel=1e-6)
    assert numbers["last batch"] == {"multiple_8": 16, "multiple_1": 20}
    assert numbers["company of a sentence"]["here"] == 0 < numbers["company of a sentence"]["stock"]
    assert numbers["longest output"]["here"] == (13, 13)


def test_on_the_terminal_and_as_json() -> None:
    call = [sys.executable, "-m", "t2017_plugin", "audit"]
    as_json = json.loads(subprocess.run([*call, "--json"], capture_output=True, text=True, check=True, cwd=ROOT).stdout)
    assert {"Model", "Training", "Search"} <= as_json.keys()
    assert all({"topic", "paper", "t2t", "stock", "here", "measured"} <= row.keys() for row in as_json["Model"])


def test_terminal_lines_fit(groups: dict[str, list[Difference]]) -> None:
    text = report.as_text(groups)
    assert all(len(line) <= 110 for line in text.splitlines())
    assert "first decoder input" in text
