"""From a run's checkpoints to its BLEUs: average the last ones, translate a test set, score."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from t2017_plugin.checkpoints.averaging import RECORD, average_checkpoints
from t2017_plugin.checkpoints.loading import load_checkpoint
from t2017_plugin.checkpoints.selection import last_checkpoints
from t2017_plugin.scoring.bleu import check_alignment
from t2017_plugin.scoring.parallel_text import ParallelText
from t2017_plugin.text.translator import Translator


def load_averaged(
    checkpoints: str | os.PathLike[str],
    last: int,
    load: Callable[[Path], Translator],
) -> tuple[Translator, str, int]:
    """Load one checkpoint, or the average of the last ``last`` update checkpoints of a folder, which is not kept.

    Args:
        load: makes a translator of a checkpoint file.

    Returns:
        the translator, a description of what was loaded, and how many checkpoints it is the mean of.

    Raises:
        UsageError: there are too few checkpoints, or they cannot be averaged or loaded.
    """
    path = Path(checkpoints)
    if not path.is_dir():
        return load(path), str(path), averaged_over(path)
    files = last_checkpoints(path, last)
    with tempfile.TemporaryDirectory(prefix="t2017-") as folder:
        average = Path(folder) / "average.pt"
        report = average_checkpoints(files, average)
        translator = load(average)
    updates = ", ".join(f"{number:,}" for number in report.updates)
    return translator, f"mean of {len(files)} checkpoints of {path} (updates {updates})", len(files)


def averaged_over(checkpoint: Path) -> int:
    """How many checkpoints a file is the mean of: 1 for one that training wrote."""
    extra_state = load_checkpoint(checkpoint).get("extra_state") or {}
    return len((extra_state.get(RECORD) or {}).get("files") or [checkpoint])


def translate_test_set(
    translator: Translator, test_set: ParallelText, progress: Callable[[int], None] | None = None
) -> list[str]:
    """Translate the sources, one line for each reference.

    Raises:
        UsageError: sources and references do not have the same number of lines.
    """
    check_alignment(test_set.sources, test_set.references, ("the source", "the reference"))
    found = translator.hypotheses(test_set.sources, progress=progress, encoded=test_set.encoded)
    return [hypotheses[0].text for hypotheses in found]
