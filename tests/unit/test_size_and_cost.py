"""Parameters and operations: equations and counting against built models, torch's counter and the paper's figures."""

import json
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from t2017_plugin.commands.main import main
from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.size_and_cost import (
    SUSTAINED,
    TABLE_2,
    Tokens,
    by_the_rule,
    count_built,
    count_by_formula,
    forward_multiply_adds,
    printed_millions,
    training_operations,
)
from t2017_plugin.fairseq_side.architectures import ARCHITECTURES, architecture_settings
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
    assert main(["cost", "--arch", "t2017_huge"]) == 2
    assert "t2017_base" in capsys.readouterr().err


def test_a_run_without_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", str(tmp_path)]) == 1
    assert "holds no training log" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arch", "vocabulary", "expected"),
    [
        ("t2017_base", 40960, 65_073_152),
        ("t2017_big", 40960, 218_226_688),
        ("t2017_base", 37000, 63_045_632),
        ("t2017_big", 37000, 214_171_648),
    ],
)
def test_totals(arch, vocabulary, expected):
    assert sum(count_by_formula(architecture_settings(arch), vocabulary).values()) == expected
    assert sum(count_built(architecture_settings(arch), vocabulary).values()) == expected


def test_base_written_out():
    """6 * (18 * 512^2 attention weights, two feed-forward networks, five norms) and the table."""
    attention = 6 * 3 * 4 * 512 * 512
    feed_forward = 6 * 2 * (2 * 512 * 2048 + 2048 + 512)
    norms = 6 * 5 * 2 * 512
    assert attention + feed_forward + norms + 40960 * 512 == 65_073_152


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_built_equals_formula_part_by_part(arch):
    assert count_built(architecture_settings(arch), 1000) == count_by_formula(architecture_settings(arch), 1000)


@pytest.mark.parametrize(
    "switches",
    [
        {"attention_bias": True},
        {"embeddings": "decoder"},
        {"embeddings": "separate"},
        {"positions": "learned", "max_learned_positions": 77},
        {"target_space_embedding": True},
        {"d_k": 16},
        {"d_k": 24, "d_v": 40, "heads": 3, "attention_bias": True},
        {"layers": 2, "d_ff": 1024, "d_model": 256},
    ],
)
def test_switches_count_as_built(switches):
    chosen = {**architecture_settings("t2017_base"), **switches}
    formula = count_by_formula(chosen, 500)
    assert formula == count_built(chosen, 500)
    assert formula != count_by_formula(architecture_settings("t2017_base"), 500)


@pytest.mark.parametrize(
    ("row", "sizes"),
    [
        ("t2017_b_dk16", {"d_k": 16}),
        ("t2017_b_dk32", {"d_k": 32}),
        ("t2017_c_n2", {"layers": 2}),
        ("t2017_c_n4", {"layers": 4}),
        ("t2017_c_n8", {"layers": 8}),
        ("t2017_c_d256", {"d_model": 256, "d_k": 32, "d_v": 32}),
        ("t2017_c_d1024", {"d_model": 1024, "d_k": 128, "d_v": 128}),
        ("t2017_c_ff4096", {"d_ff": 4096}),
    ],
)
def test_table_3_sizes_come_out_with_the_authors_vocabulary(row, sizes):
    """In millions as printed; the authors' graph has attention biases, and d_ff 1024 rounds up only with them."""
    formula = count_by_formula({**architecture_settings("t2017_base"), **sizes}, 40960)
    assert round(sum(formula.values()) / 1e6) == printed_millions()[row]


def test_table_lists_what_is_registered_in_the_papers_order():
    rows = printed_millions()
    assert list(rows)[0] == "t2017_base" and list(rows)[-1] == "t2017_big"
    # Label smoothing makes no other model; the rest that is registered is not in Table 3.
    assert len(rows) == 20 - 2
    assert set(ARCHITECTURES) - set(rows) == {"t2017_big_enfr", "t2017_parsing", "t2017_tiny"}
    assert {name: size for name, size in rows.items() if size} == {
        "t2017_base": 65, "t2017_b_dk16": 58, "t2017_b_dk32": 60, "t2017_c_n2": 36, "t2017_c_n4": 50, "t2017_c_n8": 80,
        "t2017_c_d256": 28, "t2017_c_d1024": 168, "t2017_c_ff1024": 53, "t2017_c_ff4096": 90, "t2017_big": 213,
    }  # fmt: skip


def test_too_small_a_vocabulary():
    with pytest.raises(UsageError, match="4 special symbols"):
        count_built(architecture_settings("t2017_tiny"), 3)
