"""The pages: short lines, plain words, and nothing named that is not there."""

import glob
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit
ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "recipes/*/*.md", "tests/assets/**/*.md", "tests/golden/**/*.md")
    for path in ROOT.glob(pattern)
)
# Said otherwise in plain English: per update, per token, resumed, why it is faster, reports.
IDIOMS = (
    "tokens an update|bits a (target )?token|tokens a second|gone on with|goes on (with|in)"
    "|(goes|gone|went) on from|tells of|what brought it"
    "|tokens a side|batches an update|once a sentence|told on"
)
FOLDERS = ("t2017_plugin/", "recipes/", "configs/", "docs/", "tests/", "benchmarks/")


def text_lines(page: Path) -> list[tuple[int, str]]:
    """Lines outside code, with their numbers."""
    lines, code = [], False
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), start=1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            lines.append((number, line))
    return lines


def too_long(lines: list[tuple[int, str]]) -> list[int]:
    """Of text more than 100 characters, of a table more than 160."""
    return [number for number, line in lines if len(line) > (160 if line.startswith("|") else 100)]


def missing_paths(line: str) -> list[str]:
    """What a line names in backticks below the project's folders, and is not there."""
    named = [name.split()[0] for name in re.findall(r"`([^`]+)`", line) if name.startswith(FOLDERS)]
    return [name for name in named if not glob.glob(re.sub(r":[\d,-]+$", "", str(ROOT / name)))]


def test_there_are_pages() -> None:
    assert {Path("README.md"), Path("docs/glossary.md"), Path("CHANGELOG.md")} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_lines_are_short(page: Path) -> None:
    assert too_long(text_lines(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_words_are_plain(page: Path) -> None:
    found = [(number, line) for number, line in text_lines(page) if re.search(IDIOMS, line, re.IGNORECASE)]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    for number, line in text_lines(page):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", line):
            if "://" not in target:
                assert (ROOT / page).parent.joinpath(target).exists(), f"{page}, line {number}: {target}"
        assert missing_paths(line) == [], f"{page}, line {number}"


def test_the_checks_can_fail() -> None:
    assert too_long([(1, "x" * 101), (2, "|" + "x" * 160), (3, "x" * 100)]) == [1, 2]
    assert re.search(IDIOMS, "about 25,000 tokens an update")
    assert missing_paths("see `docs/no_such_page.md` and `configs/base.yaml`, `configs/*.yaml:3`") == [
        "docs/no_such_page.md"
    ]
