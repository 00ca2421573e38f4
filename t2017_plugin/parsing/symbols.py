"""What tells a dictionary of linearised trees from one of words."""

from __future__ import annotations

from collections.abc import Iterable


def are_trees(symbols: Iterable[str]) -> bool:
    """Whether these target symbols are those of linearised trees, in either form (see ``linearisation``).

    They are where a good part of them are opening symbols whose closing symbol is there too.
    """
    known = set(symbols)
    pairs = sum(f"/{symbol}" in known or f"){symbol[1:]}" in known for symbol in known if symbol[0] not in "/)")
    return pairs >= 2 and pairs >= 0.05 * len(known)
