"""A run that was stopped and resumed is the run that was not: bit for bit on a CPU."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.commands.fairseq_runs import Corpus, Outcome, finish_all, run_here, start, training

pytestmark = pytest.mark.commands

# An epoch has eight batches: the run stops in the middle of the second and goes on into the third.
STOP, END = 11, 18


def flags(folder: Path, updates: int, form: str) -> tuple[object, ...]:
    return (
        *("--save-dir", folder, "--max-update", updates, "--save-interval-updates", STOP),
        *("--adam-epsilon-form", form, "--adam-eps", 1e-4, "--no-epoch-checkpoints"),
    )


def state(folder: Path) -> dict[str, Any]:
    return dict(torch.load(folder / "checkpoint_last.pt", weights_only=True))


def assert_same(one: Any, other: Any, where: str = "") -> None:
    """Bit for bit, however deep."""
    assert type(one) is type(other), where
    if isinstance(one, dict):
        assert one.keys() == other.keys(), where
        for name in one:
            assert_same(one[name], other[name], f"{where}.{name}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for place, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{where}[{place}]")
    elif isinstance(one, torch.Tensor):
        assert torch.equal(one, other), where
    else:
        assert one == other, where


@pytest.mark.slow
def test_a_resumed_run_is_a_straight_run(corpus: Corpus, tmp_path: Path) -> None:
    """Both epsilon forms, dropout on, each part in a process of its own."""
    cases = [(form, tmp_path / f"{form} straight", tmp_path / f"{form} resumed") for form in ("paper", "t2t")]

    def begin(folder: Path, updates: int, form: str) -> Any:
        return start(["fairseq-train", *training(corpus.data_bin, folder, *flags(folder, updates, form))])

    def end(processes: list[Any]) -> list[Outcome]:
        outcomes = finish_all(processes)
        assert [outcome.status for outcome in outcomes] == [0] * len(outcomes), outcomes[0].error[-2000:]
        return outcomes

    first = end([begin(resumed, STOP, form) for form, _, resumed in cases])
    assert all(len(outcome.logged("train_inner")) == STOP for outcome in first)
    second = end([begin(resumed, END, form) for form, _, resumed in cases])
    for (form, straight, resumed), outcome in zip(cases, second, strict=True):
        # It went on, from the middle of an epoch.
        entries = outcome.logged("train_inner")
        assert [entry["num_updates"] for entry in entries] == list(range(STOP + 1, END + 1))
        assert entries[0]["epoch"] == 2 and entries[-1]["epoch"] == 3
        # The straight run, here, in one go.
        whole = run_here("train", *training(corpus.data_bin, straight, *flags(straight, END, form)))
        assert whole.status == 0, whole.error
        one, other = state(straight), state(resumed)
        assert one["optimizer_history"][-1]["num_updates"] == END
        assert_same(one["model"], other["model"])
        assert_same(one["last_optimizer_state"], other["last_optimizer_state"])
        assert one["last_optimizer_state"]["state"], "the optimiser has moments"
        assert one["extra_state"]["train_iterator"] == other["extra_state"]["train_iterator"]
        for a, b in zip(whole.logged("train_inner")[STOP:], entries, strict=True):
            assert {name: a[name] for name in ("loss", "nll_loss", "gnorm", "lr_used")} == {
                name: b[name] for name in ("loss", "nll_loss", "gnorm", "lr_used")
            }
    # The two forms are two runs: epsilon is large enough to show.
    weights = [state(straight)["model"]["decoder.layers.0.feed_forward.w_1.weight"] for _, straight, _ in cases]
    assert not torch.equal(*weights)


def test_a_stock_optimiser_state_is_not_taken_for_ours(corpus: Corpus, tmp_path: Path) -> None:
    """fairseq's own check: another optimiser needs --reset-optimizer, which counts updates anew."""
    more = ("--max-update", 1, "--disable-validation", "--no-epoch-checkpoints")
    outcome = run_here("train", *training(corpus.data_bin, tmp_path, *more, "--optimizer", "adam"))
    assert outcome.status == 0, outcome.error
    again = ("--max-update", 2, "--disable-validation", "--no-epoch-checkpoints")
    with pytest.raises(AssertionError, match="[Oo]ptimizer does not match"):
        run_here("train", *training(corpus.data_bin, tmp_path, *again))
    outcome = run_here("train", *training(corpus.data_bin, tmp_path, *again, "--reset-optimizer"))
    assert outcome.status == 0, outcome.error
    assert [entry["num_updates"] for entry in outcome.logged("train_inner")] == [1.0, 2.0]
