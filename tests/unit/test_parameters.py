"""Parameter counts: the equations, the built model, and the figures of the paper and its authors' code."""

import pytest

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.size_and_cost import count_built, count_by_formula, printed_millions
from t2017_plugin.fairseq_side.architectures import ARCHITECTURES, architecture_settings


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
