"""Lines from stdin in portions: large ones of a file, and of a pipe whatever has come."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Iterator
from typing import BinaryIO

from t2017_plugin.files import BYTE_ORDER_MARK

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
