"""Reads the user-interface texts of Home Assistant (Apache-2.0) in two languages out of its wheel.

The wheel holds one JSON file per component and language, ``components/<component>/translations/<language>.json``, and
the translations of one text stand under one key. A component is a group: its texts repeat each other.
"""

from __future__ import annotations

import argparse
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recipes.common import parallel_corpus
from recipes.common.parallel_corpus import Filters, Pair
from t2017_plugin.files import file_sha256

TRANSLATION = re.compile(r"homeassistant/components/([^/]+)/translations/([^/]+)\.json")
SHARES = {"test": 0.08, "valid": 0.05}


def read_pairs(wheel: Path, source_lang: str, target_lang: str) -> Iterator[Pair]:
    """Yield every text that the wheel holds in both languages, component by component in order of name.

    Raises SystemExit when the file is no wheel of Home Assistant or one of its JSON files cannot be read.
    """
    try:
        archive = zipfile.ZipFile(wheel)
    except (OSError, zipfile.BadZipFile) as error:
        raise SystemExit(f"{wheel} is not a readable wheel ({error}); delete it and run the step again") from error
    with archive:
        names: dict[str, dict[str, str]] = {}
        for name in archive.namelist():
            if match := TRANSLATION.fullmatch(name):
                names.setdefault(match[1], {})[match[2]] = name
        components = [c for c in sorted(names) if source_lang in names[c] and target_lang in names[c]]
        if not components:
            raise SystemExit(f"{wheel} holds no component with translations in {source_lang} and {target_lang}")
        for component in components:
            source = _load(archive, names[component][source_lang])
            target = _load(archive, names[component][target_lang])
            for source_text, target_text in texts_under_one_key(source, target):
                yield Pair(component, source_text, target_text)


def texts_under_one_key(source: dict[str, Any], target: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of two nested dictionaries that stand under the same keys, in the source's order."""
    for key, value in source.items():
        other = target.get(key)
        if isinstance(value, dict) and isinstance(other, dict):
            yield from texts_under_one_key(value, other)
        elif isinstance(value, str) and isinstance(other, str):
            yield value, other


def _load(archive: zipfile.ZipFile, name: str) -> dict[str, Any]:
    try:
        content = json.loads(archive.read(name))
    except (ValueError, zipfile.BadZipFile) as error:
        raise SystemExit(f"{name} in {archive.filename} is not readable JSON ({error})") from error
    if not isinstance(content, dict):
        raise SystemExit(f"{name} in {archive.filename} holds no JSON object")
    return content


def main(argv: list[str] | None = None) -> None:
    """Write the three splits and ``corpus.json``, which says where they come from and what was left out."""
    parser = argparse.ArgumentParser(description="Home Assistant's texts as train, valid and test, split by component.")
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True, help="folder for the splits and corpus.json")
    parser.add_argument("--source-lang", default="en")
    parser.add_argument("--target-lang", default="de")
    parser.add_argument("--min-words", type=int, default=Filters.min_words)
    parser.add_argument("--max-words", type=int, default=Filters.max_words)
    parser.add_argument("--max-ratio", type=float, default=Filters.max_ratio)
    args = parser.parse_args(argv)

    filters = Filters(args.min_words, args.max_words, args.max_ratio)
    pairs = read_pairs(args.wheel, args.source_lang, args.target_lang)
    corpus = parallel_corpus.build(pairs, filters, SHARES)
    parallel_corpus.write_with_manifest(
        corpus,
        args.output,
        args.source_lang,
        args.target_lang,
        {
            "corpus": "Home Assistant",
            "file": args.wheel.name,
            "sha256": file_sha256(args.wheel),
            "licence": "Apache-2.0",
            "filters": vars(filters),
            "shares_of_groups": SHARES,
        },
    )


if __name__ == "__main__":
    main()
