"""From a run's checkpoints to its BLEUs: average the last ones, translate a test set, score."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary
from fairseq.data.data_utils import load_indexed_dataset

from t2017_plugin.checkpoints.averaging import RECORD, average_checkpoints, last_checkpoints
from t2017_plugin.checkpoints.loading import load_checkpoint
from t2017_plugin.errors import UsageError
from t2017_plugin.scoring.bleu import check_alignment
from t2017_plugin.scoring.texts import read_text
from t2017_plugin.text.pipeline import TextPipeline, moses_detokenize
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


# --- The test set -------------------------------------------------------------------------------
#
# A test set to score a run on: raw text if there is some, else what was binarised.
#
# Raw text is looked for in the data-bin as ``raw/<subset>.<language>``. Only raw references give a
# sacreBLEU that may be compared with other work; a reference that is put together from units has
# lost what tokenisation and the dictionary lose.


@dataclass(frozen=True)
class ParallelText:
    """Sources and references, line by line.

    Attributes:
        encoded: the sources are units of the dictionary rather than raw text.
        origin: where the texts come from, to be printed with the scores.
    """

    sources: list[str]
    references: list[str]
    encoded: bool
    origin: str


def find_parallel_text(
    data_bin: str | os.PathLike[str], subset: str, pipeline: TextPipeline, source: str | None, reference: str | None
) -> ParallelText:
    """Return the raw texts that were named, or lie in the data-bin, or what was binarised.

    Raises:
        UsageError: one of source and reference is named without the other, or there is nothing of that subset.
    """
    settings = pipeline.settings
    if (source is None) != (reference is None):
        raise UsageError("--source and --ref go together: the raw text of both sides")
    if source is not None and reference is not None:
        return ParallelText(read_text(source), read_text(reference), False, f"raw text: {source} and {reference}")
    raw = [Path(data_bin) / "raw" / f"{subset}.{language}" for language in (settings.source_lang, settings.target_lang)]
    if all(path.exists() for path in raw):
        return ParallelText(read_text(raw[0]), read_text(raw[1]), False, f"raw text: {raw[0]} and {raw[1]}")
    return _binarised(Path(data_bin), subset, pipeline)


def _binarised(data_bin: Path, subset: str, pipeline: TextPipeline) -> ParallelText:
    settings = pipeline.settings
    prefix = data_bin / f"{subset}.{settings.source_lang}-{settings.target_lang}"
    sources, targets = (_units(data_bin, prefix, lang) for lang in (settings.source_lang, settings.target_lang))
    references = [pipeline.words(line) for line in targets]
    if settings.tokenizer == "moses":
        references = [moses_detokenize(line, settings.target_lang) for line in references]
    return ParallelText(
        sources, references, True, f"{prefix}, binarised; its references were joined, they are not the raw text"
    )


def _units(data_bin: Path, prefix: Path, language: str) -> list[str]:
    """Return the lines of one side of a binarised subset, as units between spaces."""
    dictionary = Dictionary.load(str(data_bin / f"dict.{language}.txt"))
    dataset: Any = load_indexed_dataset(f"{prefix}.{language}", dictionary)
    if dataset is None:
        raise UsageError(f"{prefix}.{language}.idx is missing; name another --subset, or --source and --ref")
    return [dictionary.string(dataset[number]) for number in range(len(dataset))]
