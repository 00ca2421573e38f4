"""CRC-32C against the vectors of RFC 3720, appendix B.4, and against a bit-by-bit division."""

import numpy as np
import pytest

from t2017_plugin.t2t.crc32c import AT_ONCE, PIECE, crc32c, masked

pytestmark = pytest.mark.unit

VECTORS = [
    (b"", 0x00000000),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


@pytest.mark.parametrize(("data", "checksum"), VECTORS)
def test_vectors(data: bytes, checksum: int) -> None:
    assert crc32c(data) == checksum


def bit_by_bit(data: bytes) -> int:
    remainder = 0xFFFFFFFF
    for octet in data:
        remainder ^= octet
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


@pytest.mark.parametrize("length", [1, 2, 3, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 77])
def test_any_length(length: int) -> None:
    data = np.random.default_rng(length).bytes(length)
    assert crc32c(data) == bit_by_bit(data)


def test_more_than_is_worked_on_at_once() -> None:
    """A text and its checksum, the lowest byte first, leave a remainder that does not depend on the text."""
    data = np.random.default_rng(0).bytes(AT_ONCE * PIECE + 3 * PIECE + 5)
    assert crc32c(data + crc32c(data).to_bytes(4, "little")) == 0x48674BC7
    assert crc32c(data[:-1] + bytes([data[-1] ^ 1])) != crc32c(data)


def test_masked() -> None:
    """Rotated right by 15 bits, then the constant: undone it is the checksum again."""
    rotated = (masked(0x12345678) - 0xA282EAD8) & 0xFFFFFFFF
    assert (rotated << 15 | rotated >> 17) & 0xFFFFFFFF == 0x12345678
