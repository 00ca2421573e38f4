"""``t2017 batch`` against what fairseq-train logs, and against counting by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from t2017_plugin.commands.main import main
from t2017_plugin.experiments.batches import (
    T2T_BOUNDS,
    Lengths,
    fairseq_update,
    fit_max_tokens,
    read_lengths,
    t2t_update,
)
from tests.commands.fairseq_runs import Corpus, run_here, training

pytestmark = pytest.mark.commands


def called(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["batch", *map(str, arguments)]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("flags", [(400, 1), (150, 3)])
def test_wpb_of_the_training_log(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[int, int]
) -> None:
    """One whole epoch: the same batches, so the same figure to the log's rounding."""
    size = ("--max-tokens", flags[0], "--update-freq", flags[1])
    printed = json.loads(called(capsys, *size, "--data-bin", corpus.data_bin, "--json"))["tokens_an_update"]
    more = ("--max-epoch", 1, "--disable-validation", "--no-save", *size)
    outcome = run_here("train", *training(corpus.data_bin, tmp_path, *more))
    assert outcome.status == 0, outcome.error
    (epoch,) = outcome.logged("train")
    assert epoch["train_wpb"] == pytest.approx(printed["target"], abs=0.06)
    assert epoch["train_bsz"] == pytest.approx(printed["sentences"], abs=0.06)
    assert epoch["train_num_updates"] == printed["updates_an_epoch"]


@pytest.mark.parametrize("devices", [1, 2, 3, 8, 16])
def test_without_data_the_tokens_are_divided(capsys: pytest.CaptureFixture[str], devices: int) -> None:
    answer = json.loads(called(capsys, "--gpus", devices, "--json"))
    assert answer["max_tokens"] * answer["update_freq"] * devices == pytest.approx(25_000, rel=0.01)
    # The paper had eight GPUs; with eight or more a batch each makes the update.
    assert answer["update_freq"] == {1: 8, 2: 4, 3: 3, 8: 1, 16: 1}[devices]


def test_flags_can_stand_in_a_command_line(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    call = ("--gpus", 2, "--tokens", 600, "--data-bin", corpus.data_bin)
    flags = called(capsys, *call, "--flags").split()
    assert flags[::2] == ["--max-tokens", "--update-freq"]
    assert called(capsys, *call).startswith(" ".join(flags))


def random_lengths(pairs: int = 4000) -> Lengths:
    """Lengths as of real text, and fairseq's batching over them."""
    from fairseq.data import FairseqDataset

    chooser = np.random.default_rng(0)
    source = chooser.integers(2, 60, pairs)
    target = np.clip(source + chooser.integers(-4, 9, pairs), 2, None)

    class Sizes(FairseqDataset):
        def num_tokens_vec(self, indices: np.ndarray) -> np.ndarray:
            return np.maximum(source, target)[indices]

        def num_tokens(self, index: int) -> int:
            return int(max(source[index], target[index]))

    return Lengths(Sizes(), source, target, np.argsort(source, kind="stable"))


def test_chosen_batches_hold_the_tokens_asked_for() -> None:
    lengths = random_lengths()
    limit = fit_max_tokens(lengths, 5000, update_freq=2, devices=2)
    content = fairseq_update(lengths, limit, update_freq=2, devices=2)
    # Half a percent is aimed at; a few tokens more or less in the limit may move a batch.
    assert (content.source + content.target) / 2 == pytest.approx(5000, rel=0.02)
    assert content.source_padded >= content.source and content.target_padded >= content.target
    assert content.target_padded <= 4 * limit
    assert content.source * content.updates_per_epoch == pytest.approx(lengths.source.sum())


def test_tensor2tensors_buckets() -> None:
    """By hand: 2 pairs of the bucket up to 8 (512 a batch and device), 1 of the next (341); one pair too long."""
    source, target = np.array([3, 8, 9, 400]), np.array([8, 4, 5, 3])
    content = t2t_update(Lengths(None, source, target, None), devices=2)
    updates = 2 / 1024 + 1 / 682
    assert content.updates_per_epoch == pytest.approx(updates)
    assert content.source * updates == pytest.approx(20) and content.target * updates == pytest.approx(17)
    assert content.source_padded * updates == pytest.approx(2 * 8 + 12)
    assert content.left_out == 1 and T2T_BOUNDS[:2] == (8, 12)


def test_lengths_are_the_data_bins(corpus: Corpus) -> None:
    """EOS counted: a word and a full stop, at least, and EOS."""
    lengths = read_lengths(corpus.data_bin)
    assert len(lengths.source) == len(lengths.target) == len(set(lengths.order.tolist())) == 300
    assert lengths.source.min() >= 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("--gpus", 0), ("--gpus", "'0' is not a whole number from 1 on")),
        (("--tokens", -1), ("--tokens", "'-1' is not")),
    ],
)
def test_wrong_calls(capsys: pytest.CaptureFixture[str], call: tuple[object, ...], words: tuple[str, ...]) -> None:
    assert main(["batch", *map(str, call)]) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in words)


def test_no_data_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "--data-bin", "/nowhere"]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "/nowhere" in error and "fairseq-preprocess" in error
