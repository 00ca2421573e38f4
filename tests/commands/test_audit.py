"""``t2017 audit``: its figures, the page written from it, and the register that both are made from."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fairseq import options

from t2017_plugin.commands.main import COMMANDS
from t2017_plugin.differences import model_probes, page, search_probes, training_probes
from t2017_plugin.differences.page import Row
from t2017_plugin.differences.register import differences

pytestmark = pytest.mark.commands
ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ("--user-dir", str(ROOT / "t2017_plugin"), "--task", "t2017_translation")


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    return page.audit()


@pytest.fixture(scope="module")
def numbers(rows: dict[str, list[Row]]) -> dict[str, dict[str, Any]]:
    return {row.difference.id: row.numbers for members in rows.values() for row in members}


def test_the_page_is_fresh(rows: dict[str, list[Row]]) -> None:
    text = (ROOT / "docs/differences.md").read_text(encoding="utf-8")
    assert text == page.as_markdown(rows), "run: t2017 audit --markdown > docs/differences.md"
    assert all(len(line) <= 100 for line in text.splitlines() if not line.startswith("|"))


def test_every_entry_has_a_probe_and_every_probe_an_entry() -> None:
    ids = [difference.id for difference in differences()]
    assert len(ids) == len(set(ids))
    probes = {
        name
        for module in (model_probes, training_probes, search_probes)
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    assert probes == set(ids)


@pytest.mark.parametrize("difference", differences(), ids=lambda difference: difference.id)
def test_what_an_entry_names_exists(difference: Any) -> None:
    """Its tests are files, and its switches are flags of fairseq's with the plugin, or commands of t2017."""
    assert difference.tests and all((ROOT / "tests" / name).is_file() for name in difference.tests)
    train = options.get_training_parser()
    model = ("--arch", "t2017_base", "--criterion", "t2017_label_smoothing", "--optimizer", "t2017_adam")
    options.parse_args_and_arch(train, ["data", *PLUGIN, *model, "--lr-scheduler", "t2017_noam"])
    generate = options.get_generation_parser()
    options.parse_args_and_arch(generate, ["data", *PLUGIN, "--path", "x"])
    flags = {flag for parser in (train, generate) for action in parser._actions for flag in action.option_strings}
    for switch in difference.switch:
        program, *rest = switch.split()
        assert switch in flags or (program == "t2017" and rest[0] in COMMANDS), switch


def test_an_entry_that_has_no_probe_is_noticed() -> None:
    from dataclasses import replace

    with pytest.raises(LookupError, match="norms has no probe"):
        page.probe(replace(differences()[0], id="norms"))


def test_figures_against_what_is_known(numbers: dict[str, dict[str, Any]]) -> None:
    """Figures that follow from a formula or were published elsewhere, of every probe."""
    assert numbers["norm_order"]["max_difference"] < 1e-5
    # For x of 1e-3 and twice that the variance is 2.5e-6: 2e-3 / sqrt(var + eps).
    apart = 2e-3 / (2.5e-6 + 1e-6) ** 0.5 - 2e-3 / (2.5e-6 + 1e-5) ** 0.5
    assert numbers["norm_epsilon"]["max_difference_small_input"] == pytest.approx(apart, rel=1e-4)
    sites = numbers["dropout_sites"]
    assert sites["here"] == sites["stock"] == {"0.1": 12} and sites["attention"] == {"0.1": 12, "0.2": 6}
    # four biases in each of 18 attentions, 512 wide
    assert numbers["biases"]["base_with"] - numbers["biases"]["base_without"] == 18 * 4 * 512
    # base, less 18 attentions with two matrices that are 8 * 48 columns narrower
    base = numbers["biases"]["base_without"]
    assert numbers["head_sizes"]["row_b_dk16"] == base - 18 * 2 * 512 * 8 * 48
    assert "divisible" in numbers["head_sizes"]["stock"]
    tables = numbers["embeddings"]
    assert tables["decoder"] - tables["shared"] == tables["separate"] - tables["decoder"] == 37_000 * 512
    assert numbers["padding"]["largest_value"] == 0.0 and numbers["padding"]["left_instead_of_right"] < 1e-5
    assert numbers["layout"]["10"] == pytest.approx(0.014, abs=5e-4)
    assert numbers["layout"]["50"] == pytest.approx(0.072, abs=5e-4)
    assert numbers["first_position"]["paper"][0] == 0.0
    assert numbers["first_position"]["stock"][0] == pytest.approx(0.9092974, abs=1e-6)  # sin 2
    assert numbers["longest_sentence"] == {"here": 1_000_000, "stock": 1024}
    assert numbers["decoder_start"]["max_difference"] > 0.1
    assert numbers["target_space"]["parameters"] == 64
    # Glorot: sqrt(2 / (fan in + fan out)) over [W^Q|W^K|W^V], [W^K|W^V], W_1 and W_2.
    # torch's nn.Linear: 1 / sqrt(3 fan in).
    glorot = [(2 / (512 + width)) ** 0.5 for width in (3 * 512, 2 * 512, 2048, 2048)]
    assert numbers["initial_weights"]["here"] == pytest.approx(glorot, rel=0.01)
    stock = [(1 / 1024) ** 0.5, (1 / 1024) ** 0.5, (1 / 3 / 512) ** 0.5, (1 / 3 / 2048) ** 0.5]
    assert numbers["initial_weights"]["stock"] == pytest.approx(stock, rel=0.01)
    rates = numbers["rates"]
    assert rates["1"]["stock"] == 0.0 and rates["1"]["here"] == pytest.approx(1.746928e-07, rel=1e-6)
    assert rates["4000"]["stock"] / rates["4000"]["here"] == pytest.approx(0.99975, rel=1e-6)
    # g / (g + eps) in the paper's form; before the correction eps grows to eps / sqrt(1 - beta_2).
    steps = numbers["optimiser"]["1e-08"]
    assert steps["paper"] == pytest.approx(1 / 1.1, rel=1e-3)
    assert steps["t2t"] == pytest.approx(1 / (1 + 0.1 / 0.02**0.5), rel=1e-3) == steps["stock"]
    assert numbers["smoothing"]["all, K = 8"] == pytest.approx((0.9 + 0.1 / 8, 0.1 / 8), abs=1e-9)
    assert numbers["smoothing"]["others, K = 8"] == pytest.approx((0.9, 0.1 / 7), abs=1e-9)
    assert numbers["last_batch"] == {"multiple_8": 16, "multiple_1": 20}
    assert numbers["penalty"]["gnmt"] == pytest.approx([-4 / (10 / 6) ** 0.6, -5.6 / (15 / 6) ** 0.6])
    assert numbers["penalty"]["power"] == pytest.approx([-4 / 5**0.6, -5.6 / 10**0.6])
    assert numbers["length_limit"]["here"] == (13, 13)
    assert numbers["length_limit"]["stock"][0] < numbers["length_limit"]["stock"][1]
    assert numbers["batch_dependence"]["here"] == 0 < numbers["batch_dependence"]["stock"]
    assert numbers["rules"]["differ"] > 0 and numbers["rules"]["ours_higher"] > numbers["rules"]["stock_higher"]
    # Rounded once from float64: half a unit in the last place of numbers below 2.
    averaging = numbers["averaging"]
    assert averaging["here"] <= 2**-24 and averaging["tied"] == averaging["here"] < averaging["float32"]
    assert numbers["bleu"]["paper"] > numbers["bleu"]["sacrebleu"] > numbers["bleu"]["spaces"]


def test_on_the_terminal_and_as_json() -> None:
    call = [sys.executable, "-m", "t2017_plugin", "audit"]
    as_json = json.loads(subprocess.run([*call, "--json"], capture_output=True, text=True, check=True, cwd=ROOT).stdout)
    assert {"Model", "Training", "Search"} <= as_json.keys()
    for row in as_json["Model"]:
        assert {
            "topic",
            "section",
            "paper",
            "t2t",
            "stock",
            "here",
            "switch",
            "test",
            "measured",
            "numbers",
        } <= row.keys()


def test_terminal_lines_fit(rows: dict[str, list[Row]]) -> None:
    text = page.as_text(rows)
    assert all(len(line) <= 110 for line in text.splitlines())
    assert "first decoder input" in text
