"""The audit as a table on the terminal, as JSON, and as docs/differences.md, which is generated from it."""

import json
import logging
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

from t2017_plugin.differences import model, scoring, search, training
from t2017_plugin.differences.difference import Difference

GROUPS = {
    "Model": model.differences,
    "Training": training.differences,
    "Search": search.differences,
    "Averaging and scoring": scoring.differences,
}
FORE = """\
# Paper, authors' code, stock fairseq, and this plugin

Every place where the three differ: what we do, the switch that does otherwise, what running code shows, and the test
that proves our side. The paper is arXiv 1706.03762 v7; "T2T" is tensor2tensor 1.0.14 (July 2017) with its
`transformer_base`, the code of the paper's authors; "stock" is fairseq (`fairseq-fixed` 0.12.3.1) with file and line
below `fairseq/`. Where the paper is silent, the authors' code decides; where the two disagree, the paper does.

This page is written by `t2017 audit --markdown`: the figures were measured by running what can be run here. T2T's
column is proven by arrays recorded from that program (`tests/golden`, `tests/parity`).
"""
AFT = """
## Without a switch

| topic | stock fairseq | here |
|---|---|---|
| `fairseq-generate` without the task | another search, sentences dropped | refused, naming `--task t2017_translation` |
| logged learning rate | that of the next update | beside it `lr_used`, that of the update itself |
| units of logged losses | bits | bits a target token (BPE unit); `loss` is smoothed, `nll_loss` and `ppl` are not |
| padding of the source | left | right, as T2T; results do not depend on it |
| resuming after the first epoch | orders like lengths anew: another run | the same run, bit for bit |
| `checkpoint_last.pt` | copied in place: a kill may leave half of it | appears whole, as every checkpoint |
| `--bf16` | switches TPU mode on | does not, unless torch_xla is there |

## Inside the paper

- Table 2 and the abstract give 41.8 BLEU for English-French big, the text of section 6.1 gives 41.0. Both stand;
  neither is chosen.
- Table 3's sizes come out with a vocabulary of 40,960 rows (what the authors' code fixed), not with the 37,000 of
  section 5.1: base has 65,073,152 parameters with the first and 63,045,632 with the second. Big's 213M fits neither
  (218,226,688 and 214,171,648). Row C with d_ff 1024 is printed as 53M: with the biases of the authors' code it rounds
  so; without them, as the paper describes the model, it has 52,477,952.
- Section 5.4 gives dropout 0.1 for base; section 6.1 gives 0.1 instead of 0.3 for English-French big: hence
  `t2017_big` and `t2017_big_enfr`.
- The authors' public En-Fr setting has d_ff 8192 and three tables; the paper describes one big model, which
  `t2017_big_enfr` follows.
"""


@contextmanager
def _quiet() -> Iterator[None]:
    """Untrained models run into their length limit on purpose; the search's warnings about it would bury the table."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def audit() -> dict[str, list[Difference]]:
    """Measures everything anew; takes about ten seconds."""
    with _quiet():
        return {group: list(rows()) for group, rows in GROUPS.items()}


def as_json(groups: dict[str, list[Difference]]) -> str:
    """One object: group -> rows with all figures."""
    return json.dumps({group: [row.as_dict() for row in rows] for group, rows in groups.items()}, indent=2)


def as_markdown(groups: dict[str, list[Difference]]) -> str:
    """The text of docs/differences.md."""
    parts = [FORE]
    for group, rows in groups.items():
        parts.append(
            f"\n## {group}\n\n| topic | paper | T2T 1.0.14 | stock fairseq | here | switch | measured | test |"
        )
        parts.append("|---|---|---|---|---|---|---|---|")
        for row in rows:
            section = "" if row.section == "-" else f" ({row.section})"
            cells = (row.topic + section, row.paper, row.t2t, row.stock, row.here, row.switch, row.measured, row.test)
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(parts) + "\n" + AFT


def as_text(groups: dict[str, list[Difference]], width: int = 110) -> str:
    """For the terminal: a block a row."""
    lines = []
    for group, rows in groups.items():
        lines += ["", group, "=" * len(group)]
        for row in rows:
            lines += ["", f"{row.topic}" + ("" if row.section == "-" else f" (section {row.section})")]
            for name, text in (
                ("paper", row.paper),
                ("T2T", row.t2t),
                ("stock", row.stock),
                ("here", row.here),
                ("switch", row.switch),
                ("measured", row.measured),
            ):
                block = textwrap.wrap(text.replace("`", ""), width - 12, break_on_hyphens=False, break_long_words=False)
                lines += [f"  {name if i == 0 else '':9} {line}" for i, line in enumerate(block)]
    return "\n".join(lines[1:])
