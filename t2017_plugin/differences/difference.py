"""One row of the audit."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Difference:
    """A place where paper, authors' code (T2T 1.0.14), stock fairseq and this plugin may differ.

    ``measured`` tells in one sentence what was measured just now, ``numbers`` holds the figures behind it. ``stock``
    names file and line of fairseq-fixed 0.12.3.1; ``test`` the file under tests/ that proves our side.
    """

    topic: str
    section: str
    paper: str
    t2t: str
    stock: str
    here: str
    switch: str
    test: str
    measured: str
    numbers: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def figure(value: float) -> str:
    """Four significant digits, short."""
    return f"{value:.4g}"
