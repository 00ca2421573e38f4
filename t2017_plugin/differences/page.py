"""The audit: every difference measured anew, for the terminal, as JSON, and as docs/differences.md."""

from __future__ import annotations

import json
import logging
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from t2017_plugin.differences import model_probes, search_probes, training_probes
from t2017_plugin.differences.register import Difference, groups, inside_the_paper, without_switch
from t2017_plugin.differences.small_models import Measured
from t2017_plugin.markdown import table

FORE = """\
# Paper, authors' code, stock fairseq, and this plugin

Every place where the three differ: what we do, the switch that does otherwise, what running code
shows, and the test that proves our side.

- The paper is arXiv 1706.03762 v7.
- Tensor2Tensor is version 1.0.14 (July 2017) with its `transformer_base`: the code of the paper's
  authors. What is said of it is proven by arrays recorded from that program (`tests/golden`,
  `tests/parity`).
- Stock is fairseq (`fairseq-fixed` 0.12.3.1), with file and line below `fairseq/`.

Where the paper is silent, the authors' code decides. Where the two disagree, the paper does.

This page is written by `t2017 audit --markdown` from `t2017_plugin/differences/differences.yaml`.
The figures were measured by running what can be run here.
"""
NAMES = (
    ("Paper", "paper"),
    ("Tensor2Tensor", "t2t"),
    ("Stock fairseq", "stock"),
    ("Here", "here"),
    ("Why", "why"),
    ("Switch", "switch"),
    ("Measured", "measured"),
    ("Test", "test"),
)


@dataclass(frozen=True)
class Row:
    """A difference with what was measured just now."""

    difference: Difference
    measured: str
    numbers: dict[str, Any]

    def texts(self) -> dict[str, str]:
        """Return every text of the row by name; empty where there is nothing to say."""
        known = self.difference
        switch = ", ".join(f"`{each}`" for each in known.switch) or "none"
        return {
            "topic": known.topic,
            "section": known.section,
            "paper": known.paper,
            "t2t": known.t2t,
            "stock": known.stock,
            "here": known.here,
            "why": known.why,
            "switch": switch,
            "measured": self.measured,
            "test": ", ".join(known.tests),
        }


def probe(difference: Difference) -> Callable[[], Measured]:
    """Find the function that measures a difference, by its id.

    Raises:
        LookupError: there is none.
    """
    for module in (model_probes, training_probes, search_probes):
        found: Callable[[], Measured] | None = getattr(module, difference.id, None)
        if found is not None:
            return found
    raise LookupError(f"{difference.id} has no probe")


@contextmanager
def _quiet() -> Iterator[None]:
    """Untrained models run into their length limit on purpose; the search's warnings about it would bury the table."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def audit() -> dict[str, list[Row]]:
    """Measure everything anew; it takes about ten seconds."""
    with _quiet():
        return {group: [Row(each, *probe(each)()) for each in members] for group, members in groups().items()}


def as_json(rows: dict[str, list[Row]]) -> str:
    """Write one object: group -> rows with all figures."""
    content = {group: [{**row.texts(), "numbers": row.numbers} for row in members] for group, members in rows.items()}
    return json.dumps(content, indent=2)


def as_markdown(rows: dict[str, list[Row]]) -> str:
    """Write docs/differences.md: a short section for each difference."""
    parts = [FORE]
    for group, members in rows.items():
        parts.append(f"## {group}\n")
        for row in members:
            texts = row.texts()
            section = "" if texts["section"] == "-" else f" (section {texts['section']})"
            parts.append(f"### {texts['topic'][0].upper()}{texts['topic'][1:]}{section}\n")
            parts.append("\n".join(_item(name, texts[key]) for name, key in NAMES if texts[key]) + "\n")
    parts.append("## Without a switch\n")
    unswitched = [(each.topic, each.stock, each.here) for each in without_switch()]
    parts.append(table(["", "stock fairseq", "here"], unswitched, align="lll"))
    parts.append("\n## Inside the paper\n")
    parts.append("\n".join(_wrapped(f"- {note}") for note in inside_the_paper()))
    return "\n".join(parts) + "\n"


def _item(name: str, text: str) -> str:
    return _wrapped(f"- **{name}:** {text}")


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def as_text(rows: dict[str, list[Row]], width: int = 110) -> str:
    """Write for the terminal: a block for each difference."""
    lines = []
    for group, members in rows.items():
        lines += ["", group, "=" * len(group)]
        for row in members:
            texts = row.texts()
            lines += ["", texts["topic"] + ("" if texts["section"] == "-" else f" (section {texts['section']})")]
            for name, key in NAMES[:-1]:
                text = texts[key].replace("`", "")
                block = textwrap.wrap(text, width - 18, break_on_hyphens=False, break_long_words=False)
                lines += [f"  {name if i == 0 else '':14} {line}" for i, line in enumerate(block)]
    return "\n".join(lines[1:])
