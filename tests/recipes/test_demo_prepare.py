"""The demo's first step where no registry can be reached, and where what comes from it is not what it should be."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHEEL = "homeassistant-2026.11.0-py3-none-any.whl"
INFO = "homeassistant-2026.11.0.dist-info"
pytestmark = [pytest.mark.recipes, pytest.mark.slow]


def prepare(run: Path, cache: Path, links: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Call 1_prepare.sh with pip cut off from every index; ``links`` is a folder where it may look for packages."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "T2017_CACHE": str(cache)}
    environment |= {"T2017_ENVIRONMENT": sys.prefix, "OMP_NUM_THREADS": "1"}
    if links:
        environment["PIP_FIND_LINKS"] = str(links)
    command = ["bash", str(ROOT / "recipes" / "demo" / "1_prepare.sh"), "--run", str(run)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)


def test_without_a_registry_made_up_text_takes_its_place_and_says_so(tmp_path: Path) -> None:
    outcome = prepare(tmp_path / "run", tmp_path / "cache")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "the registry cannot be reached" in outcome.stdout
    assert "GENERATED CORPUS" in outcome.stdout
    manifest = json.loads((tmp_path / "run" / "corpus" / "corpus.json").read_text(encoding="utf-8"))
    assert "GENERATED CORPUS" in manifest["note"]
    assert (tmp_path / "run" / "data-bin" / "text_settings.json").exists()
    assert not list((tmp_path / "cache").iterdir())  # nothing half downloaded is kept


def test_a_wheel_with_another_hash_is_refused_and_not_kept(tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    with zipfile.ZipFile(links / WHEEL, "w") as archive:  # installable, of the right name, and something else
        archive.writestr(f"{INFO}/METADATA", "Metadata-Version: 2.1\nName: homeassistant\nVersion: 2026.11.0\n")
        archive.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{INFO}/RECORD", "")
    outcome = prepare(tmp_path / "run", tmp_path / "cache", links)
    assert outcome.returncode == 1
    assert "came with another hash than expected" in outcome.stderr
    assert not list((tmp_path / "cache").iterdir())
    assert not (tmp_path / "run" / "corpus").exists()
