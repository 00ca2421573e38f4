"""The arms of the comparison with stock: each single one is the paper's with one setting changed, and no other."""

from argparse import Namespace

import pytest
from fairseq import options

from recipes.compare_stock import arms
from t2017_plugin.checkpoints.stock_weights import STOCK_SWITCHES
from t2017_plugin.differences.single_arms import (
    SINGLES,
    TOGETHER,
    arm_names,
    built_in,
    in_our_names,
    only_decoding,
)
from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.command_line import command_line
from t2017_plugin.experiments.settings_files import flat_settings

pytestmark = pytest.mark.unit

NONE = object()
# What fairseq's own parser sees changed: one setting each, or all settings of the one thing (a schedule, a search).
PARSED = {
    "positions": {"sinusoid": "stock"},
    "positions_layout": {"sinusoid": "t2t"},
    "attention_bias": {"attention_bias": True},
    "decoder_start": {"decoder_start": "eos"},
    "layer_norm_eps": {"layer_norm_eps": 1e-5},
    "init": {"init": "stock"},
    "smoothing": {"smoothing_over": "others"},
    "adam": {"adam_epsilon_form": "t2t"},
    "schedule": {
        "lr_scheduler": "inverse_sqrt", "warmup_init_lr": 0.0, "lr": [0.003125],
        "noam_scale": NONE, "noam_d_model": NONE,
    },
    "length_penalty": {"length_penalty_form": "power"},
    "search": {"search": "stock", "max_len_a": 1.0, "max_len_b": 50},
}  # fmt: skip


def parsed(arm, command, tmp_path) -> dict[str, object]:
    """What fairseq makes of an arm's settings file."""
    file = tmp_path / f"{arm}.yaml"
    file.write_text(arms.document(arm, 3, 700), encoding="utf-8")
    flags = command_line(file, command, ["task.data=DATA"])
    parser = options.get_training_parser() if command == "train" else options.get_generation_parser()
    args = options.parse_args_and_arch(parser, flags)
    assert isinstance(args, Namespace)
    # An architecture sets what is off to False, a flag that is not given is absent: the same.
    return {name: value for name, value in vars(args).items() if name != "arch" and value is not False}


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    return {command: parsed("t2017", command, folder) for command in ("train", "generate")}


@pytest.mark.parametrize("name", SINGLES)
def test_a_single_arm_differs_from_the_papers_in_one_setting(name, papers, tmp_path):
    found = {}
    for command, paper in papers.items():
        other = parsed(name, command, tmp_path)
        differing = {key for key in {*paper, *other} if paper.get(key, NONE) != other.get(key, NONE)}
        found |= {key: other.get(key, NONE) for key in differing}
        if only_decoding(name) and command == "train":
            assert differing <= {"search", "length_penalty_form"}  # of which training takes no notice
    assert found == PARSED[name]


def test_seed_updates_and_validation_are_the_same_for_all(papers):
    assert (papers["train"]["seed"], papers["train"]["max_update"]) == (3, 700)
    assert "disable_validation" not in papers["train"]
    paper = arms.settings("t2017", 3, 700)
    for name in arm_names(singles=True):
        settings = arms.settings(name, 3, 700)
        assert settings["common"] == paper["common"] and settings["dataset"] == paper["dataset"]
        assert settings["checkpoint"] == paper["checkpoint"]
        assert {**settings["optimization"], "lr": 0} == {**paper["optimization"], "lr": 0}


def test_every_switch_is_among_them_and_together_they_are_stocks():
    assert set(PARSED) == set(SINGLES)
    every = flat_settings(arms.settings("all", 1, 4000))
    for name, value in STOCK_SWITCHES.items():  # under these both models compute the same
        assert every[f"model.{name}"] == value
    assert every["model.attention_bias"] is True and every["model.init"] == "stock"
    stock = flat_settings(arms.settings("stock", 1, 4000))
    as_ours = {**in_our_names(stock), **built_in(stock)}
    # Only the names of the registered parts and what has no say are left.
    left = {key for key in {*every, *as_ours} if every.get(key) != as_ours.get(key)}
    assert left == {
        "model._name", "criterion._name", "optimizer._name", "task._name", "task.extra_length",
        "model.max_learned_positions",
    }  # fmt: skip
    assert built_in(every) == {}
    assert {key for arm in TOGETHER for key in arm.set} <= every.keys()


def test_an_unknown_arm_is_refused():
    with pytest.raises(UsageError, match="there is no arm 'position'; there are t2017, stock, layer_norm_eps"):
        arms.settings("position", 1, 100)


def test_both_main_arms_have_the_same_peak_at_any_rate_and_size() -> None:
    """Section 5.3, equation 3: the peak, at the end of the warm-up, is rate * (d_model * warmup) ** -0.5."""
    for size, d_model in (("demo", 128), ("layers6", 128), ("d256", 256)):
        for rate in (0.7, 1.0):
            paper, stock = (arms.settings(arm, 1, 4000, rate, size) for arm in ("t2017", "stock"))
            assert paper["lr_scheduler"]["noam_scale"] == rate and paper["model"]["d_model"] == d_model
            assert stock["optimization"]["lr"] == [pytest.approx(rate * (d_model * 800) ** -0.5)]
    # The schedule's own arm has stock's schedule, and so stock's way to say it.
    assert arms.settings("schedule", 1, 4000, 0.5)["optimization"]["lr"] == [pytest.approx(0.5 * (128 * 800) ** -0.5)]


def test_stock_s_configured_rate_is_the_paper_s() -> None:
    paper, stock = (arms.settings(arm, 1, 4000) for arm in ("t2017", "stock"))
    scale = paper["lr_scheduler"]["noam_scale"]
    assert stock["optimization"]["lr"] == [pytest.approx(scale * (128 * 800) ** -0.5)]


@pytest.mark.parametrize("size", ["layers6", "d256"])
def test_both_arms_are_made_larger_alike(size: str) -> None:
    paper, stock = (in_our_names(flat_settings(arms.settings(arm, 1, 4000, 1.0, size))) for arm in ("t2017", "stock"))
    for name in ("layers", "d_model", "d_ff", "heads", "d_k", "d_v"):
        assert paper[f"model.{name}"] == stock[f"model.{name}"], name
    changed = {name: paper[f"model.{name}"] for name in arms.SIZES[size]}
    assert changed == arms.SIZES[size]
