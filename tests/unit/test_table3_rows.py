"""The rows of Table 3 as recipes/table3 runs them: each differs from base as in the paper, at both sizes."""

from fractions import Fraction
from pathlib import Path

import pytest
import yaml

from recipes.table3 import report, rows
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.architectures import architecture_settings

pytestmark = pytest.mark.unit

# Table 3 by hand: what is printed in a row, where it differs from base, perplexity and BLEU.
TABLE = {
    "base": ({}, 4.92, 25.8),
    "a_h1": ({"heads": 1, "d_k": 512, "d_v": 512}, 5.29, 24.9),
    "a_h4": ({"heads": 4, "d_k": 128, "d_v": 128}, 5.00, 25.5),
    "a_h16": ({"heads": 16, "d_k": 32, "d_v": 32}, 4.91, 25.8),
    "a_h32": ({"heads": 32, "d_k": 16, "d_v": 16}, 5.01, 25.4),
    "b_dk16": ({"d_k": 16}, 5.16, 25.1),
    "b_dk32": ({"d_k": 32}, 5.01, 25.4),
    "c_n2": ({"layers": 2}, 6.11, 23.7),
    "c_n4": ({"layers": 4}, 5.19, 25.3),
    "c_n8": ({"layers": 8}, 4.88, 25.5),
    "c_d256": ({"d_model": 256, "d_k": 32, "d_v": 32}, 5.75, 24.5),
    "c_d1024": ({"d_model": 1024, "d_k": 128, "d_v": 128}, 4.66, 26.0),
    "c_ff1024": ({"d_ff": 1024}, 5.12, 25.4),
    "c_ff4096": ({"d_ff": 4096}, 4.75, 26.2),
    "d_drop0": ({"dropout": 0.0}, 5.77, 24.6),
    "d_drop2": ({"dropout": 0.2}, 4.95, 25.5),
    "d_ls0": ({"label_smoothing": 0.0}, 4.67, 25.3),
    "d_ls2": ({"label_smoothing": 0.2}, 5.47, 25.7),
    "e_learned": ({"positions": "learned"}, 4.92, 25.7),
    "big": ({"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3}, 4.33, 26.4),
}
WIDTHS = ("d_model", "d_ff", "d_k", "d_v")


def flat(row: str, scale: str) -> dict[str, object]:
    """Model and loss of a row in one mapping."""
    content = rows.settings(row, scale, 1, None)
    return {**content["model"], **content["criterion"]}


def test_rows_and_what_the_paper_prints_are_the_table() -> None:
    assert list(rows.ROWS) == list(TABLE)
    assert {name: experiment.printed for name, experiment in rows.ROWS.items()} == {
        name: (perplexity, bleu) for name, (_, perplexity, bleu) in TABLE.items()
    }


@pytest.mark.parametrize("row", TABLE)
def test_a_row_differs_from_base_as_in_the_paper(row: str) -> None:
    base, found = flat("base", "paper"), flat(row, "paper")
    assert {name: value for name, value in found.items() if value != base[name]} == TABLE[row][0]


@pytest.mark.parametrize("row", TABLE)
def test_the_small_size_keeps_every_ratio(row: str) -> None:
    (base, found), (paper_base, paper) = ((flat("base", scale), flat(row, scale)) for scale in ("small", "paper"))
    changed = {name for name, value in found.items() if value != base[name]}
    assert changed == set(TABLE[row][0])
    for name in ("layers", "heads", *WIDTHS):
        # Exactly: no row loses anything in a division that does not come out even.
        assert Fraction(found[name], base[name]) == Fraction(paper[name], paper_base[name])
    for name in ("dropout", "label_smoothing", "positions"):
        assert found[name] == paper[name]


def test_small_base_is_as_wide_as_the_tiny_architecture() -> None:
    small, tiny = flat("base", "small"), architecture_settings("t2017_tiny")
    assert all(small[name] == tiny[name] for name in ("d_model", "d_ff", "dropout"))
    assert small["heads"] * small["d_k"] == tiny["heads"] * tiny["d_k"]
    written = yaml.safe_load((rows.CONFIGS / "table3_small.yaml").read_text(encoding="utf-8"))
    assert rows.settings("base", "small", 1, None) == written


def test_all_rows_of_a_size_share_everything_but_model_and_loss() -> None:
    for row in TABLE:
        base, other = (rows.settings(name, "small", 7, 900) for name in ("base", row))
        assert {**base, "model": 0, "criterion": 0} == {**other, "model": 0, "criterion": 0}
        assert (other["common"]["seed"], other["optimization"]["max_update"]) == (7, 900)


@pytest.mark.parametrize(
    "asked, expected",
    [
        ("all", list(TABLE)),
        ("B", ["b_dk16", "b_dk32"]),
        ("big,base", ["base", "big"]),
        ("e,d_ls0,e", ["d_ls0", "e_learned"]),
    ],
)
def test_choosing_rows(asked: str, expected: list[str]) -> None:
    assert rows.chosen(asked) == expected


@pytest.mark.parametrize("asked", ["F", "h1", "base,", ""])
def test_rows_that_are_not_in_the_table(asked: str) -> None:
    with pytest.raises(UsageError, match=r"Table 3 has no row .*a_h1"):
        rows.chosen(asked)


def made_row(name: str, perplexity: float, **other: object) -> dict[str, object]:
    """A row as collect() gives it, with made-up results."""
    content = rows.settings(name, "small", 1, None)
    return {
        "row": name,
        "scale": "small",
        "seed": 1,
        "model": content["model"],
        "label_smoothing": content["criterion"]["label_smoothing"],
        "conditions": {"seed": 1},
        "updates": 2000,
        "max_update": 2000,
        "parameters": 1_500_000,
        "target_tokens": 914_000,
        "target_tokens_a_second": 5000.0,
        "first_validation": {"updates": 50, "bits": 10.0},
        "last_validation": {"updates": 2000, "bits": 4.5},
        "perplexity": perplexity,
        "sacrebleu": {"score": 12.345, "signature": "s"},
        "paper_bleu": {"score": 11.0, "signature": "p"},
        "finished": True,
        "machine": {},
        **other,
    }


def test_the_table() -> None:
    base, small, learned = made_row("base", 20.0), made_row("c_n2", 25.0), made_row("e_learned", 19.0)
    lines = report.rows_table([base, small, learned], base).splitlines()
    sizes = "N 3, d_model 128, d_ff 512, h 8, d_k 16, d_v 16, P_drop 0.1, eps_ls 0.1"
    assert lines[2].startswith(f"| base | {sizes} | 20.00 |")
    assert lines[3] == "| c_n2 | N 1 | 25.00 | 11.00 | 12.35 | 1.500 | 6.11 | 23.7 | 36 |"
    assert lines[4] == "| e_learned | positions learned | 19.00 | 11.00 | 12.35 | 1.500 | 4.92 | 25.7 | |"
    # Learned positions have base's perplexity in the paper, so they are on no side of it.
    assert "in 1 of 1 rows" in report.agreement([base, small, learned], base)
    assert "in 1 of 2 rows" in report.agreement([base, small, made_row("c_n8", 21.0)], base)
    assert (
        report.learning([base]).splitlines()[2]
        == "| base | 2,000 of 2,000 | 914,000 | 10.000 (50) | 4.500 | 0.45 | 5,000 |"
    )


def test_rows_trained_in_another_way_are_marked_and_not_compared() -> None:
    base, other = made_row("base", 20.0), made_row("c_n2", 25.0, conditions={"seed": 2})
    assert report.rows_table([other], base).splitlines()[2].startswith("| c_n2 * | N 1 |")
    assert "in 0 of 0 rows" in report.agreement([base, other], base)


def test_without_base_its_sizes_are_known_nevertheless() -> None:
    row = made_row("b_dk16", 20.0)
    assert report.rows_table([row], report.base_of([row])).splitlines()[2].startswith("| b_dk16 | d_k 4 |")


def test_overrides_are_part_of_a_rows_settings() -> None:
    changed = rows.settings("c_n2", "small", 1, None, ["model.layers=5", "optimization.update_freq=[2]"])
    assert (changed["model"]["layers"], changed["optimization"]["update_freq"]) == (5, [2])
    with pytest.raises(UsageError, match="write SECTION.NAME=VALUE"):
        rows.settings("base", "small", 1, None, ["layers=5"])


@pytest.mark.parametrize("name", ["A", "all", "nothing"])
def test_one_row_is_one_row(name: str) -> None:
    with pytest.raises(UsageError, match="a_h1"):
        rows.settings(name, "small", 1, None)


def test_a_settings_file_of_another_training_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "row.yaml"
    assert rows.main(["write", "--row", "base", "--seed", "5", "--output", str(file)]) == 0
    written = file.stat().st_mtime_ns
    assert rows.main(["write", "--row", "base", "--seed", "5", "--output", str(file)]) == 0
    assert file.stat().st_mtime_ns == written
    check = ["check", "--row", "base", "--file", str(file)]
    assert rows.main([*check, "--seed", "5", "--set", "generation.beam=8"]) == 0
    capsys.readouterr()
    assert rows.main(check) == 1
    assert "was trained with other settings than this call's" in capsys.readouterr().err
