"""A test set to score a run on: raw text if there is some, else what was binarised.

Raw text is looked for in the data-bin as ``raw/<subset>.<language>``. Only raw references give a sacreBLEU that may
be compared with other work; a reference that is put together from units has lost what tokenisation and the
dictionary lose.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2017_plugin.errors import UsageError
from t2017_plugin.scoring.texts import read_text
from t2017_plugin.text.pipeline import TextPipeline, moses_detokenize


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
    """The raw texts that were named, or lie in the data-bin, or what was binarised.

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
    """The lines of one side of a binarised subset, as units between spaces."""
    from fairseq.data import Dictionary
    from fairseq.data.data_utils import load_indexed_dataset

    dictionary = Dictionary.load(str(data_bin / f"dict.{language}.txt"))
    dataset: Any = load_indexed_dataset(f"{prefix}.{language}", dictionary)
    if dataset is None:
        raise UsageError(f"{prefix}.{language}.idx is missing; name another --subset, or --source and --ref")
    return [dictionary.string(dataset[number]) for number in range(len(dataset))]
