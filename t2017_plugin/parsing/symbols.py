"""What tells a dictionary of linearised trees from one of words."""

from __future__ import annotations

from collections.abc import Iterable


def form_of(symbols: Iterable[str]) -> str | None:
    """The form of linearised tree (see ``linearisation``) that a target dictionary is of; None for one of words.

    It is of trees where a good part of its symbols open a constituent and the symbol that closes it is there too.
    """
    known = set(symbols)
    pairs = {
        "t2t": sum(f"/{symbol}" in known for symbol in known),
        "vinyals": sum(symbol[0] == "(" and f"){symbol[1:]}" in known for symbol in known if len(symbol) > 1),
    }
    form = max(pairs, key=lambda name: pairs[name])
    return form if pairs[form] >= 2 and pairs[form] >= 0.05 * len(known) else None
