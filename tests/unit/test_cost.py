"""Operations by counting against torch's own counter, and by the paper's rule against what Table 2 prints."""

import json
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from t2017_plugin.commands.main import main
from t2017_plugin.experiments.size_and_cost import (
    SUSTAINED,
    TABLE_2,
    Tokens,
    by_the_rule,
    forward_multiply_adds,
    training_operations,
)
from t2017_plugin.fairseq_side.architectures import architecture_settings
from tests.builders import make_batch, make_model

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("changes", [{}, {"d_k": 4, "d_v": 12, "heads": 2}, {"layers": 3, "d_ff": 20}])
def test_counting_is_what_torch_counts(changes: dict[str, int]) -> None:
    """Forward, attention by its formula, which torch's counter sees as matrix products; sentences of equal length."""
    sizes = {"layers": 2, "d_model": 32, "d_ff": 48, "heads": 4, "d_k": 8, "d_v": 8, **changes}
    model = make_model(40, **sizes)
    batch = make_batch([7] * 3, [5] * 3)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(batch["src_tokens"], None, batch["prev_output_tokens"], need_weights=True)
    ours = forward_multiply_adds(sizes, 40, Tokens(21, 15, 7, 5))
    assert counter.get_total_flops() == 2 * sum(ours.values())
    assert training_operations(sizes, 40, Tokens(21, 15, 7, 5)) == 3 * counter.get_total_flops()


@pytest.mark.parametrize("arch", TABLE_2)
def test_the_rule_gives_table_2(arch: str) -> None:
    """12 hours and 3.5 days on eight P100, to the two digits printed."""
    hours, printed = TABLE_2[arch]
    assert by_the_rule(hours * 3600, 8, SUSTAINED["P100"]) == pytest.approx(printed, rel=0.01)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--arch", "t2017_base", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    total = Tokens(2.5e9, 2.5e9, 28, 28)
    assert answer["counted"] == training_operations(architecture_settings("t2017_base"), 37_000, total)
    # Six operations for each parameter and token is the usual estimate; embeddings are looked up, not multiplied.
    assert answer["counted"] == pytest.approx(6 * 2.5e9 * (63e6 - 0.1e6), rel=0.1)
    assert answer["rule"] == pytest.approx(3.28e18, rel=0.01)
    assert main(["cost", "--arch", "t2017_huge"]) == 1
    assert "there are t2017_base" in capsys.readouterr().err


def test_a_run_without_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", str(tmp_path)]) == 1
    assert "holds no training log" in capsys.readouterr().err
