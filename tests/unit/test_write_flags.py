"""The flags that the numbered scripts show are those of configs/: settings are written once."""

import re
from pathlib import Path

import pytest
import yaml

from recipes import write_flags

ROOT = Path(__file__).resolve().parents[2]
JOBS = ("compare_stock", "demo", "table3", "toy_reversal", "wmt14_ende", "wmt14_enfr", "wsj_parsing")
pytestmark = pytest.mark.unit


def test_every_job_shows_its_flags() -> None:
    shown = {str(path.relative_to(ROOT / "recipes")) for path in write_flags.scripts()}
    decoding = {f"{job}/4_decode.sh" for job in JOBS if job != "wsj_parsing"}  # which has a command of its own
    assert shown == {f"{job}/2_train.sh" for job in JOBS} | decoding


@pytest.mark.parametrize("script", write_flags.scripts(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_flags_are_those_of_the_settings(script: Path) -> None:
    assert write_flags.written(script) == script.read_text(encoding="utf-8")


def test_a_script_that_was_changed_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "2_train.sh"
    text = (ROOT / "recipes" / "toy_reversal" / "2_train.sh").read_text(encoding="utf-8")
    changed.write_text(text.replace("--warmup-updates 200", "--warmup-updates 201"), encoding="utf-8")
    monkeypatch.setattr(write_flags, "scripts", lambda: [changed])
    monkeypatch.setattr(write_flags, "ROOT", ROOT)
    assert write_flags.written(changed) == text


@pytest.mark.parametrize(
    ("job", "settings"), [("demo", "demo"), ("toy_reversal", "toy_reversal"), ("wmt14_ende", "base")]
)
def test_as_many_checkpoints_are_kept_as_are_averaged(job: str, settings: str) -> None:
    """Base averages 5 and big 20 (6.1); one more may be kept, which is being written."""
    script = (ROOT / "recipes" / job / "3_average.sh").read_text(encoding="utf-8")
    last = re.findall(r"(?:--last |LAST=)(\d+)", script)
    kept = [yaml.safe_load((ROOT / "configs" / f"{name}.yaml").read_text()) for name in (settings, "big")]
    kept = [content["checkpoint"]["keep_interval_updates"] for content in kept]
    assert int(last[0]) == 5 <= kept[0] <= 6
    assert last[1:] in ([], [str(kept[1])])


def test_the_beam_of_parsing_is_what_the_script_says() -> None:
    script = (ROOT / "recipes" / "wsj_parsing" / "4_decode.sh").read_text(encoding="utf-8")
    generation = yaml.safe_load((ROOT / "configs" / "parsing.yaml").read_text())["generation"]
    assert f"# Beam {generation['beam']} and alpha {generation['lenpen']} (6.3)" in script
