"""CRC-32C (Castagnoli), the checksum of TensorFlow's files, with numpy alone.

The remainder of a long text is linear in its bytes: pieces of equal length are reduced side by side, two bytes at a
time, and each result is then carried over the pieces that follow.
"""

import functools

import numpy as np

POLYNOMIAL = 0x82F63B78  # its bits reversed
ALL_ONES = 0xFFFFFFFF
PIECE = 512  # bytes
AT_ONCE = 8192  # pieces, so that they stay in a processor's cache


@functools.cache
def _of_a_pair() -> np.ndarray:
    """What each pair of bytes leaves behind. Shape: (65536,)."""
    remainders: np.ndarray = np.arange(65536, dtype=np.uint32)
    for _ in range(16):
        remainders = (remainders >> 1) ^ np.where(remainders & 1, np.uint32(POLYNOMIAL), np.uint32(0))
    return remainders


def _carried(remainders: np.ndarray, pieces: np.ndarray | None = None) -> np.ndarray:
    """Each remainder carried over its own piece, or over zeros. Shape: (n,), (PIECE / 2, n) -> (n,)."""
    table = _of_a_pair()
    for place in range(PIECE // 2):
        pair = remainders.astype(np.uint16)
        remainders = table[pair if pieces is None else pair ^ pieces[place]] ^ (remainders >> 16)
    return remainders


@functools.cache
def _over_a_piece() -> list[list[int]]:
    """What each byte of a remainder, at each of its four places, becomes after a piece of zeros. Shape: (4, 256)."""
    octets = np.arange(256, dtype=np.uint32)
    return [_carried(octets << (8 * place)).tolist() for place in range(4)]


def crc32c(data: bytes) -> int:
    """The checksum of some bytes (RFC 3720, appendix B.4)."""
    remainder, odd = ALL_ONES, len(data) % PIECE
    for octet in data[:odd]:
        low = remainder & 255 ^ octet
        for _ in range(8):
            low = low >> 1 ^ POLYNOMIAL * (low & 1)
        remainder = low ^ remainder >> 8
    for start in range(odd, len(data), AT_ONCE * PIECE):
        pairs = np.frombuffer(data[start : start + AT_ONCE * PIECE], "<u2").reshape(-1, PIECE // 2)
        first, second, third, fourth = _over_a_piece()
        for own in _carried(np.zeros(len(pairs), np.uint32), np.ascontiguousarray(pairs.T)).tolist():
            low = first[remainder & 255] ^ second[remainder >> 8 & 255]
            remainder = own ^ low ^ third[remainder >> 16 & 255] ^ fourth[remainder >> 24]
    return remainder ^ ALL_ONES


def masked(checksum: int) -> int:
    """As TensorFlow stores a checksum, so that one of bytes that hold checksums is not weak."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & ALL_ONES
