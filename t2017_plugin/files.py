"""Reading text line by line as users count lines, and writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import select
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from t2017_plugin.errors import UsageError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# What one reader or another takes for the end of a line.
LINE_ENDS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")


def decode_line(line: bytes, where: str, number: int) -> str:
    """Decode one line of UTF-8 and drop the carriage return of a CRLF line end.

    Raises:
        UsageError: the bytes are not UTF-8; ``where`` and ``number`` (from 1) tell the place.
    """
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"{where}, line {number}, byte {error.start + 1} of the line"
        raise UsageError(f"{place}: not UTF-8; convert the text, for instance with iconv") from error
    return text[:-1] if text.endswith("\r") else text


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Read a UTF-8 text file as lines that end at a line feed and nowhere else.

    ``str.splitlines`` would also break at U+2028, U+0085 or a form feed, which occur inside sentences of real
    corpora, and pairs would no longer be aligned. A last line without a line feed counts; a byte order mark is
    dropped.

    Raises:
        UsageError: the file does not exist, is a folder, or is not UTF-8 (the line is named).
    """
    try:
        content = Path(path).read_bytes()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise UsageError(f"{path}: {(error.strerror or 'cannot be read').lower()}; name a text file") from error
    content = content.removeprefix(BYTE_ORDER_MARK)
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [decode_line(line, str(path), number) for number, line in enumerate(lines, start=1)]


def without_line_ends(text: str) -> str:
    """Replace every character that some reader takes for a line end by a space, so that text stays one line."""
    return LINE_ENDS.sub(" ", text)


@contextlib.contextmanager
def whole_or_nothing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the folder of ``path`` to write to, and move it there when the block ends well.

    If the block fails or is interrupted the temporary file is removed and a file that was at ``path`` stays as it was.

    Raises:
        UsageError: the folder of ``path`` does not exist or ``path`` is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{target} is a folder; name a file to write")
    if not target.parent.is_dir():
        raise UsageError(f"{target.parent} is not a folder, so {target.name} cannot be written there; make it first")
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file whole or not at all; its folder is made if need be.

    A file that says the same already is left alone, with its time.
    """
    if path.is_file() and path.read_bytes() == text.encode("utf-8"):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_or_nothing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def file_sha256(path: Path) -> str:
    """Return a file's SHA-256 as hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


# --- Lines from stdin ---------------------------------------------------------------------------
#
# Lines from stdin in portions: large ones of a file, and of a pipe whatever has come.

READ_BYTES = 1 << 16
# Lines that are handed out together: enough to sort by length, few enough to see results come.
PIPE_PORTION = 1000
FILE_PORTION = 20_000


class LineInput:
    """Splits bytes into lines at line feeds and nowhere else.

    Attributes:
        is_file: whether all lines are known at once.
        total: how many lines a file has, once it is read.
        undecodable: numbers (from 1) of the lines that were not UTF-8; their wrong bytes were replaced by U+FFFD.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.undecodable: list[int] = []
        self.lines_read = self.total = 0
        try:
            self.is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
        except (OSError, ValueError):  # not backed by the system, as in tests
            self.is_file = True

    def portions(self) -> Iterator[list[str]]:
        """Many lines of a file at once, or whatever lines of a pipe have come; never an empty list."""
        if self.is_file:
            lines = self.stream.read().split(b"\n")
            if not lines[-1]:
                lines.pop()
            self.total = len(lines)
            for start in range(0, len(lines), FILE_PORTION):
                yield self._decoded(lines[start : start + FILE_PORTION])
            return
        rest = b""
        for chunk in self._chunks():
            *lines, rest = (rest + chunk).split(b"\n")
            for start in range(0, len(lines), PIPE_PORTION):
                yield self._decoded(lines[start : start + PIPE_PORTION])
        if rest:
            yield self._decoded([rest])

    def _chunks(self) -> Iterator[bytes]:
        """Bytes as they come: waits for some, then takes all that are there."""
        descriptor = self.stream.fileno()
        while chunk := os.read(descriptor, READ_BYTES):
            chunks = [chunk]
            while len(chunks) * READ_BYTES < 1 << 22 and select.select([descriptor], [], [], 0)[0]:
                chunk = os.read(descriptor, READ_BYTES)
                if not chunk:
                    break
                chunks.append(chunk)
            yield b"".join(chunks)

    def _decoded(self, lines: list[bytes]) -> list[str]:
        if not self.lines_read:
            lines = [lines[0].removeprefix(BYTE_ORDER_MARK), *lines[1:]]
        texts = []
        for line in lines:
            self.lines_read += 1
            try:
                texts.append(line.decode("utf-8"))
            except UnicodeDecodeError:
                self.undecodable.append(self.lines_read)
                texts.append(line.decode("utf-8", errors="replace"))
        return texts
