"""What a data-bin was made of, ``manifest.json``, and the check that it still is that before training reads it.

The manifest holds the archives with their hashes, the counts of cleaning by reason, the settings, the versions of the
programs that can change the text, and the hashes of codes, dictionary and binarised files.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
from pathlib import Path
from typing import Any

from recipes.wmt14_common import corpora
from t2017_plugin.files import file_sha256, write_text

FILE_NAME = "manifest.json"
PROGRAMS = ("sacremoses", "subword-nmt", "fairseq-fixed", "t2017-plugin")
NOT_HASHED = ("preprocess.log", FILE_NAME)


def settings_of(limits: Any, vocabulary: int) -> dict[str, Any]:
    """Return the settings of a preparation as plain data."""
    return {**vars(limits), "vocabulary": vocabulary, "normalise_punctuation": True}


def versions() -> dict[str, str]:
    """Versions of Python and of the programs that can change the text, of those that are installed as packages."""
    found = {"python": platform.python_version()}
    for program in PROGRAMS:
        try:
            found[program] = importlib.metadata.version(program)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write(run: Path, languages: tuple[str, str], target_lang: str, settings: dict[str, Any]) -> None:
    """Write ``text/manifest.json``, and ``corpus/corpus.json`` for the report."""
    found = json.loads((run / "archives.json").read_text(encoding="utf-8"))
    counts = {
        corpus.name: json.loads((run / "words" / f"{corpus.name}.json").read_text(encoding="utf-8"))
        for corpus in corpora.TRAINING[target_lang]
    }
    left_out: dict[str, int] = {}
    for of_corpus in counts.values():
        for reason, count in of_corpus.items():
            if reason not in ("read", "kept"):
                left_out[reason] = left_out.get(reason, 0) + count
    pairs = {
        "train": sum(of_corpus["kept"] for of_corpus in counts.values()),
        "valid": corpora.VALID_LINES,
        "test": corpora.TEST_LINES,
    }
    mended = {reason: left_out.pop(reason) for reason in list(left_out) if reason.startswith("mended")}
    content = {
        "corpus": f"WMT14 {languages[0]}-{languages[1]}",
        "note": found["note"],
        "source_lang": languages[0],
        "target_lang": languages[1],
        "archives": found["archives"],
        "settings": settings,
        "pairs_by_corpus": counts,
        "splits": {split: {"pairs": number} for split, number in pairs.items()},
        "left_out": dict(sorted(left_out.items())),
        "mended": mended,
        "codes_sha256": file_sha256(run / "text" / "codes"),
        "versions": versions(),
    }
    text = json.dumps(content, indent=2) + "\n"
    write_text(run / "text" / FILE_NAME, text)
    write_text(run / "corpus" / "corpus.json", text)


def complete(data_bin: Path) -> None:
    """Add the dictionary's size and the hashes of all files to the manifest of a new data-bin."""
    path = data_bin / FILE_NAME
    content = json.loads(path.read_text(encoding="utf-8"))
    dictionary = data_bin / f"dict.{content['target_lang']}.txt"
    content["dictionary_tokens"] = dictionary.read_bytes().count(b"\n")
    content["files"] = {
        str(file.relative_to(data_bin)): file_sha256(file)
        for file in sorted(data_bin.rglob("*"))
        if file.is_file() and file.name not in NOT_HASHED
    }
    write_text(path, json.dumps(content, indent=2) + "\n")
    print(f"dictionary: {content['dictionary_tokens']:,} tokens, both languages together")


def check(data_bin: Path) -> None:
    """Make sure that a data-bin is what its manifest says.

    Raises SystemExit naming the first file that is missing or another; codes and dictionary are looked at first.
    """
    path = data_bin / FILE_NAME
    if not path.exists():
        raise SystemExit(f"{path} is missing, so nobody knows what this data is; run 1_prepare.sh")
    content = json.loads(path.read_text(encoding="utf-8"))
    codes = data_bin / "codes"
    if not codes.exists() or file_sha256(codes) != content["codes_sha256"]:
        raise SystemExit(f"{codes} are not the codes that {data_bin} was made with; run 1_prepare.sh again")
    files = content.get("files", {})
    for name in sorted(files, key=lambda name: (not name.startswith("dict."), name)):
        file = data_bin / name
        if not file.exists() or file_sha256(file) != files[name]:
            raise SystemExit(f"{file} is not what 1_prepare.sh made; run 1_prepare.sh again")
    print(f"{data_bin}: {len(files)} files are what the manifest says")


def main(argv: list[str] | None = None) -> None:
    """``complete`` or ``check`` the manifest of a data-bin."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["complete", "check"])
    parser.add_argument("data_bin", type=Path)
    args = parser.parse_args(argv)
    {"complete": complete, "check": check}[args.action](args.data_bin)


if __name__ == "__main__":
    main()
