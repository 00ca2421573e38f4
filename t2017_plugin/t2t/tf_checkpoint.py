"""The variables of a TensorFlow checkpoint (format V2, TensorFlow 0.12 and later), read without TensorFlow.

    PREFIX.index                  a table: each variable's name -> its type, shape and place; "" -> how many data files
    PREFIX.data-00000-of-00001    the variables' bytes, one after another

The table has the format of LevelDB: blocks of entries with shared beginnings of keys, one more block that says where
they are, and a footer. The values are protocol buffers, BundleEntryProto and BundleHeaderProto. Both files hold
CRC-32C checksums, and all that is read is checked against them.
"""

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import google_crc32c
import numpy as np

from t2017_plugin.errors import UsageError

FOOTER = 48  # bytes; the last 8 are:
MAGIC = (0xDB4775248B80FB57).to_bytes(8, "little")
TRAILER = 5  # bytes after a block: how it is compressed, and its checksum
TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8", 19: "<f2"}  # TensorFlow's DataType -> numpy's
# Fields of BundleEntryProto; 2 is a TensorShapeProto, whose fields 2 have the axes' lengths as field 1.
TYPE, SHAPE, SHARD, OFFSET, SIZE, CHECKSUM, SLICES = range(1, 8)
NUMBER_OF_SHARDS, ENDIANNESS = 1, 2  # fields of BundleHeaderProto


class TensorFlowCheckpoint(Mapping[str, np.ndarray]):
    """Arrays by the names of variables; each is read from the disk when it is asked for.

    Args:
        prefix: what the checkpoint's files begin with, such as ``model.ckpt-250000``

    Raises:
        UsageError: a file is missing, cut off or damaged, or of a kind that is not read here.
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        self.prefix = str(prefix)
        self.index = Path(f"{self.prefix}.index")
        try:
            entries = dict(_entries_of_table(self.index.read_bytes()))
            header, _ = _fields(entries.pop(b""))
            self.entries = {key.decode("utf-8"): value for key, value in entries.items()}
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UsageError(f"{self.index}: no such file; name a checkpoint such as model.ckpt-250000") from error
        except (IndexError, KeyError, UnicodeDecodeError) as error:
            raise UsageError(f"{self.index} is damaged or was cut off: copy it again") from error
        except ValueError as error:
            raise UsageError(f"{self.index} {error}") from error
        self.shards = _number(header, NUMBER_OF_SHARDS)
        if _number(header, ENDIANNESS):
            raise UsageError(f"{self.index} was written on a big-endian machine, which is not read here")

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, name: str) -> np.ndarray:
        entry, messages = _fields(self.entries[name])
        kind, size, offset = (_number(entry, field) for field in (TYPE, SIZE, OFFSET))
        if kind not in TYPES or SLICES in messages:
            what = "in slices" if SLICES in messages else f"of TensorFlow's type number {kind}"
            raise UsageError(f"{self.index}: the variable {name} is {what}, which is not read here")
        lengths = [length for shape in messages.get(SHAPE, []) for length in _fields(shape)[1].get(2, [])]
        axes = [_number(_fields(length)[0], 1) for length in lengths]
        path = Path(f"{self.prefix}.data-{_number(entry, SHARD):05d}-of-{self.shards:05d}")
        try:
            with open(path, "rb") as file:
                file.seek(offset)
                data = file.read(size)
        except FileNotFoundError as error:
            raise UsageError(f"{path} is missing: copy all files that begin with {self.prefix}") from error
        kind_of_array = np.dtype(TYPES[kind])
        whole = len(data) == size == math.prod(axes) * kind_of_array.itemsize
        if not whole or masked_checksum(data) != _number(entry, CHECKSUM):
            raise UsageError(f"{path} is damaged or was cut off, found at the variable {name}: copy it again")
        return np.frombuffer(data, kind_of_array).reshape(axes)


def masked_checksum(data: bytes) -> int:
    """Return the CRC-32C of some bytes as TensorFlow stores it.

    It is rotated by 15 bits and a constant is added, so that the checksum of bytes that hold a checksum
    is not weak.
    """
    checksum = google_crc32c.value(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def checkpoint_prefix(path: str | os.PathLike[str]) -> str | None:
    """Find the prefix that a user means by a prefix, by one of the checkpoint's files or by its folder; None for none.

    In a folder it is the newest checkpoint, which TensorFlow names in the file ``checkpoint``; without that file, the
    only one.

    Raises:
        UsageError: a folder holds none, or several and nothing that says which is meant.
    """
    name = str(path)
    if not os.path.isdir(name):
        prefix = name.removesuffix(".index").removesuffix(".meta").partition(".data-")[0]
        return prefix if os.path.exists(f"{prefix}.index") else None
    found = sorted(file.name.removesuffix(".index") for file in Path(name).glob("*.index"))
    newest = _named_newest(Path(name) / "checkpoint")
    # The file may hold the path on the machine that trained.
    chosen = [prefix for prefix in found if newest is None or prefix == os.path.basename(newest)]
    if len(chosen) != 1:
        there = f"it holds {', '.join(found)}" if found else "it holds no file that ends in .index"
        asked = f"the newest checkpoint is {newest}, but " if newest else ""
        raise UsageError(f"{name}: {asked}{there}; name one checkpoint, such as {name}/model.ckpt-250000")
    return str(Path(name) / chosen[0])


def _named_newest(path: Path) -> str | None:
    if not path.is_file():
        return None
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        field, _, value = line.partition(":")
        if field.strip() == "model_checkpoint_path":
            return value.strip().strip('"')
    return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number in groups of 7 bits, the lowest first, and where it ends."""
    number = shift = 0
    while data[at] & 128:
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return number | data[at] << shift, at + 1


def _fields(message: bytes) -> tuple[dict[int, list[int]], dict[int, list[bytes]]]:
    """Read a protocol buffer: by field number its numbers, and its strings and inner messages."""
    numbers: dict[int, list[int]] = {}
    messages: dict[int, list[bytes]] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        field, kind = key >> 3, key & 7
        if kind == 0:
            number, at = _varint(message, at)
            numbers.setdefault(field, []).append(number)
            continue
        size, at = _varint(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
        value, at = message[at : at + size], at + size
        if kind == 2:
            messages.setdefault(field, []).append(value)
        else:
            numbers.setdefault(field, []).append(int.from_bytes(value, "little"))
    return numbers, messages


def _number(numbers: dict[int, list[int]], field: int) -> int:
    """Return a number, 0 where it is not written."""
    return numbers.get(field, [0])[-1]


def _entries_of_table(table: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield all keys and values of a table, in the order of the keys."""
    if table[-8:] != MAGIC:
        raise ValueError("is no index of TensorFlow's (format V2), or was cut off: copy it again")
    at = len(table) - FOOTER
    for _ in range(2):  # the place of a block that is always empty
        _, at = _varint(table, at)
    for _, handle in _entries_of_block(_block(table, table[at:])):
        yield from _entries_of_block(_block(table, handle))


def _block(table: bytes, handle: bytes) -> bytes:
    offset, at = _varint(handle, 0)
    size, _ = _varint(handle, at)
    block, trailer = table[offset : offset + size], table[offset + size : offset + size + TRAILER]
    if masked_checksum(block + trailer[:1]) != int.from_bytes(trailer[1:], "little"):
        raise IndexError("checksum")
    if trailer[0]:
        raise ValueError("is compressed, which TensorFlow itself never does: save the variables as .npz with it")
    return block


def _entries_of_block(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values; a key is what it shares with the one before, and the rest.

    A list of whole keys stands at the end of the block.
    """
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
    key, at = b"", 0
    while at < end:
        shared, at = _varint(block, at)
        rest, at = _varint(block, at)
        size, at = _varint(block, at)
        key = key[:shared] + block[at : at + rest]
        at += rest + size
        yield key, block[at - size : at]
