"""Takes a data-bin for Table 3: its languages, how its text was made, and the validation text to score against.

    python -m recipes.table3.data --data-bin DATA --run runs/table3/mine

Written are RUN/data.json and RUN/corpus/valid.LANGUAGE, a line a sentence of the binarised validation set. Raw text is
taken from DATA/raw or, where a recipe made the data, from the folder corpus beside it; failing that the reference is
joined from the binarised units, which is said wherever a BLEU of it is printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from fairseq.data.data_utils import load_indexed_dataset

from t2017_plugin.errors import UsageError
from t2017_plugin.files import write_text
from t2017_plugin.scoring.run import ParallelText, find_parallel_text
from t2017_plugin.text.pipeline import TextPipeline, TextSettings

SUBSET = "valid"


def files(data_bin: Path, settings: TextSettings) -> list[str]:
    """Return the files of a data-bin that training and validation read, by name.

    Raises:
        UsageError: one of them is missing.
    """
    pair = f"{settings.source_lang}-{settings.target_lang}"
    sides = (settings.source_lang, settings.target_lang)
    names = [f"dict.{side}.txt" for side in sides]
    names += [
        f"{subset}.{pair}.{side}.{kind}" for subset in ("train", SUBSET) for side in sides for kind in ("bin", "idx")
    ]
    names += ["text_settings.json", *([str(settings.bpe_codes)] if settings.bpe_codes else [])]
    for name in names:
        if not (data_bin / name).exists():
            raise UsageError(f"{data_bin / name} is missing; binarise with fairseq-preprocess --trainpref --validpref")
    return names


def validation_text(data_bin: Path, pipeline: TextPipeline) -> ParallelText:
    """Return sources and references of the validation set, as many as are binarised, raw where there is raw text.

    Raises:
        UsageError: the raw text that was found is not that of the binarised sentences, by its number of lines.
    """
    settings = pipeline.settings
    sides = (settings.source_lang, settings.target_lang)
    prefix = data_bin / f"{SUBSET}.{sides[0]}-{sides[1]}"
    for folder in (data_bin / "raw", data_bin.parent / "corpus"):
        if all((folder / f"{SUBSET}.{side}").exists() for side in sides):
            text = find_parallel_text(data_bin, SUBSET, pipeline, *(str(folder / f"{SUBSET}.{side}") for side in sides))
            sentences = len(load_indexed_dataset(f"{prefix}.{sides[1]}", None))
            if len(text.sources) == len(text.references) == sentences:
                return text
            raise UsageError(
                f"{folder} has {len(text.sources):,} and {len(text.references):,} lines of {SUBSET}, {data_bin} has "
                f"{sentences:,} sentences; put the text they were made from there, or move that folder away"
            )
    return find_parallel_text(data_bin, SUBSET, pipeline, None, None)


def text_flags(settings: TextSettings) -> list[str]:
    """Return the flags with which fairseq-generate makes raw text of units; the codes' path is below the data-bin."""
    tokenizer = ["--tokenizer", "moses"] if settings.tokenizer == "moses" else []
    return tokenizer + (["--bpe", "subword_nmt", "--bpe-codes", str(settings.bpe_codes)] if settings.bpe_codes else [])


def take(data_bin: Path, run: Path) -> dict[str, Any]:
    """Write what a run needs to know of its data, and return what is written to data.json.

    Raises:
        UsageError: the data-bin is not complete, or nobody knows how its text was made.
    """
    pipeline = TextPipeline.load(data_bin)
    settings = pipeline.settings
    names = files(data_bin, settings)
    text = validation_text(data_bin, pipeline)
    facts = {
        "data_bin": str(data_bin),
        "source_lang": settings.source_lang,
        "target_lang": settings.target_lang,
        "files": names,
        "text_flags": text_flags(settings),
        "sentences": len(text.references),
        "reference": text.origin,
        "reference_is_raw": not text.encoded,
    }
    for side, lines in ((settings.source_lang, text.sources), (settings.target_lang, text.references)):
        content = "".join(f"{line}\n" for line in lines)
        path = run / "corpus" / f"{SUBSET}.{side}"
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            write_text(path, content)
    write_text(run / "data.json", json.dumps(facts, indent=2) + "\n")
    return facts


def main(argv: list[str] | None = None) -> int:
    """Take the data-bin and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-bin", type=Path, required=True)
    parser.add_argument("--run", type=Path, required=True)
    args = parser.parse_args(argv)
    try:
        facts = take(args.data_bin, args.run)
    except UsageError as error:
        print(f"recipes.table3.data: {error}", file=sys.stderr)
        return 1
    print(f"validation: {facts['sentences']:,} sentences of {facts['reference']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
