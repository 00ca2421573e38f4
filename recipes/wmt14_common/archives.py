"""Reads aligned lines straight out of archives, both sides in step, without unpacking anything to the disk."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from recipes.wmt14_common.corpora import Corpus

RawPair = tuple[bytes, bytes]


def member_lines(archive: Path, name: str) -> Iterator[bytes]:
    """Yield the lines of one file of a tar archive, ``.gz`` unpacked, line feeds taken off.

    Lines end at a line feed and nowhere else. Raises SystemExit when the archive cannot be read or has no such file.
    """
    try:
        with tarfile.open(archive, "r|*") as tar:
            for member in tar:
                if member.isfile() and member.name.rsplit("/", 1)[-1] == name:
                    stream = tar.extractfile(member)
                    assert stream is not None
                    lines = gzip.open(stream) if name.endswith(".gz") else stream
                    yield from (line.removesuffix(b"\n") for line in lines)
                    return
    except (OSError, EOFError, tarfile.TarError) as error:
        raise SystemExit(f"{archive} cannot be read ({error}); delete it and run the step again") from error
    raise SystemExit(f"{archive} holds no file {name}; is it the right archive?")


def names_in(archive: Path) -> set[str]:
    """Return the names of the files in an archive, without their folders."""
    try:
        with tarfile.open(archive, "r|*") as tar:
            return {member.name.rsplit("/", 1)[-1] for member in tar if member.isfile()}
    except (OSError, EOFError, tarfile.TarError) as error:
        raise SystemExit(f"{archive} cannot be read ({error}); delete it and run the step again") from error


def chosen_files(corpus: Corpus, archive: Path) -> tuple[str, str]:
    """Return the first of a corpus's pairs of files that its archive holds.

    Raises SystemExit when it holds none of them.
    """
    if len(corpus.files) == 1:
        return corpus.files[0]
    present = names_in(archive)
    for pair in corpus.files:
        if present.issuperset(pair):
            return pair
    raise SystemExit(f"{archive} holds none of {', '.join(' + '.join(pair) for pair in corpus.files)}")


def raw_pairs(corpus: Corpus, archive: Path) -> Iterator[RawPair]:
    """Yield the pairs of a training corpus.

    Raises SystemExit, with file and line, where one side ends before the other.
    """
    names = chosen_files(corpus, archive)
    sides = [member_lines(archive, name) for name in names]
    number = 0
    while True:
        lines = [next(side, None) for side in sides]
        if lines[0] is None and lines[1] is None:
            return
        number += 1
        for line, name, other in zip(lines, names, reversed(names), strict=True):
            if line is None:
                raise SystemExit(
                    f"{archive}: {name} ends before line {number}, where {other} goes on; the sides are not aligned"
                )
        assert lines[0] is not None and lines[1] is not None
        yield lines[0], lines[1]


def portions(pairs: Iterator[RawPair], size: int) -> Iterator[list[RawPair]]:
    """Cut a stream into lists of at most ``size``."""
    while portion := list(islice(pairs, size)):
        yield portion


def whole_text(archive: Path, name: str) -> bytes:
    """Return the whole content of a small file of an archive."""
    return b"".join(line + b"\n" for line in member_lines(archive, name))
