"""Files for the recipes' helpers, which must start at once and so import nothing that imports torch."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_whole(path: Path, text: str) -> None:
    """Write a text file whole or not at all; its folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(text, encoding="utf-8", newline="\n")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_lines(path: Path) -> list[str]:
    """Read a UTF-8 text as lines that end at a line feed and nowhere else, as ``wc -l`` counts them.

    Raises SystemExit with the file and what to do when it is missing or not UTF-8.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise SystemExit(f"{path}: {(error.strerror or str(error)).lower()}; run the step that makes it") from error
    except UnicodeDecodeError as error:
        raise SystemExit(f"{path}: byte {error.start + 1} is not UTF-8; convert it, for instance with iconv") from error
    return text.removesuffix("\n").split("\n") if text else []
