"""Each arm's best rate, and the share of stock's lead that single differences explain, from made-up runs."""

import json
from pathlib import Path

import pytest

from recipes.compare_stock import found
from t2017_plugin.errors import UsageError

pytestmark = pytest.mark.unit


def made_run(folder: Path, arm: str, rate: str, seed: int, bits: float, bleu: float | None = None) -> None:
    """A trained run, scored too where a BLEU is given."""
    run = folder / "arms" / f"{arm}_rate{rate}" / f"seed{seed}"
    (run / "logs").mkdir(parents=True)
    inner = "epoch 001: 50 / 69 loss=3.77, nll_loss=3, wps=1.5, wpb=100, num_updates=100, lr=2e-05, train_wall=10"
    valid = [f"| valid | epoch 001 | valid on 'valid' subset | loss 4 | nll_loss {value} | num_updates {updates}"
             for updates, value in ((50, 9.0), (100, bits))]  # fmt: skip
    (run / "logs" / "train.log").write_text(
        "\n".join([f"x | INFO | train_inner | {inner}", *(f"x {v}" for v in valid)])
    )
    if bleu is not None:
        (run / "bleu.json").write_text(json.dumps({"sacrebleu": {"score": bleu}, "paper_bleu": {"score": bleu}}))


def test_the_rate_with_the_lowest_validation_loss_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arm, bits in (("t2017", (3.6, 3.4, 3.5)), ("stock", (3.3, 3.35, 3.6))):
        for rate, value in zip(("0.7", "1.0", "1.4"), bits, strict=True):
            made_run(tmp_path, arm, rate, 1, value)
    assert found.main(["rates", str(tmp_path), "--rates", "0.7", "1.0", "1.4"]) == 0
    printed = capsys.readouterr()
    assert printed.out.split() == ["1.0", "0.7"]
    assert (
        "stock: the best rate, 0.7, is at the end of the grid" in printed.err and "t2017: the best" not in printed.err
    )
    written = json.loads((tmp_path / "rates.json").read_text())
    assert written["stock"] == {"validation_bits": {"0.7": 3.3, "1.0": 3.35, "1.4": 3.6}, "chosen": "0.7"}


def test_an_interval_is_student_s() -> None:
    """Three differences 1, 2, 3: mean 2, deviation 1, and t with two degrees of freedom is 4.3027 at 97.5 %."""
    three = found.effect([1.0, 2.0, 3.0])
    assert (three.mean, three.seeds) == (2.0, 3)
    assert three.interval == pytest.approx(4.302653 / 3**0.5, abs=1e-5)
    assert found.effect([0.5]).text() == "+0.50"


def test_effects_are_paired_by_seed_and_summed(tmp_path: Path) -> None:
    (tmp_path / "rates.json").write_text(json.dumps({arm: {"chosen": "1.0"} for arm in ("t2017", "stock")}))
    with pytest.raises(UsageError, match="has no seed that t2017 has too"):
        made_run(tmp_path, "stock", "1.0", 1, 3.0, 32.0)
        found.explain(tmp_path)
    for seed, base in ((1, 30.0), (2, 28.0)):
        made_run(tmp_path, "t2017", "1.0", seed, 3.5, base)
        made_run(tmp_path, "init", "1.0", seed, 3.2, base + 1.0)
        made_run(tmp_path, "search", "1.0", seed, 3.5, base + 0.5)
        # Contained in search, so it is shown but not summed.
        made_run(tmp_path, "length_penalty", "1.0", seed, 3.5, base + 0.25)
    made_run(tmp_path, "stock", "1.0", 2, 3.0, 30.0)
    rows = {line.split(" | ")[0].strip("| "): line for line in found.explain(tmp_path).splitlines()[2:]}
    assert list(rows) == ["stock", "init", "length_penalty", "search", "sum"]
    # The seeds differ by two points, their pairs do not.
    assert "| 2 | -0.50 ± 0.00 | +2.00 ± 0.00 |" in rows["stock"]
    assert "| 2 | -0.30 ± 0.00 (60%) | +1.00 ± 0.00 (50%) |" in rows["init"]
    assert "of init, search | 2 | -0.30 ± 0.00 (60%) | +1.50 ± 0.00 (75%) |" in rows["sum"]


def test_without_a_grid_nothing_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="run the comparison's grid first"):
        found.explain(tmp_path)
