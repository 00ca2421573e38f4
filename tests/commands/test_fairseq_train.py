"""fairseq-train with the plugin: its log, its switches, combinations with stock's parts, two runs that are one."""

import re
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.training import T2017LabelSmoothing
from tests.commands.fairseq_runs import (
    PAPER,
    PLUGIN,
    QUIET,
    TINY,
    Corpus,
    Outcome,
    generation,
    run_here,
    text_flags,
    training,
)

pytestmark = pytest.mark.commands

SHORT = ("--max-update", 8, "--disable-validation", "--no-epoch-checkpoints")
# What a clock decides.
TIMES = {"minutes_left", "wps", "ups", "wall", "train_wall", "gb_free", "train_wps", "train_ups", "train_train_wall"}


def train(data: Path, folder: Path, *more: object, **options: Any) -> Outcome:
    outcome = run_here("train", *training(data, folder, *more, **options))
    assert outcome.status == 0, outcome.error
    return outcome


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return dict(torch.load(folder / "checkpoint_last.pt", weights_only=True)["model"])


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def without_times(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in entry.items() if name not in TIMES} for entry in entries]


@pytest.fixture(scope="module")
def short(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """Eight updates, dropout on."""
    folder = tmp_path_factory.mktemp("short")
    return folder, train(corpus.data_bin, folder, *SHORT)


def test_the_log_says_which_rate_was_used(short: tuple[Path, Outcome]) -> None:
    """fairseq's own ``lr`` is that of the next update. Equation (3) with warm-up 30, d_model 32, scale 0.2."""
    entries = short[1].logged("train_inner")
    assert [entry["num_updates"] for entry in entries] == list(range(1, 9))
    for update, entry in enumerate(entries, start=1):
        rate = [0.2 * 32**-0.5 * n * 30**-1.5 for n in (update, update + 1)]
        # The log has six significant digits.
        assert entry["lr_used"] == pytest.approx(rate[0], rel=1e-5)
        assert entry["lr"] == pytest.approx(rate[1], rel=1e-5)


def test_the_log_says_how_long_it_will_take(short: tuple[Path, Outcome]) -> None:
    """From the second update on, when --max-update is known to the task; fairseq logs ups with two decimals."""
    entries = short[1].logged("train_inner")
    for update, entry in enumerate(entries[2:], start=3):
        assert entry["minutes_left"] == pytest.approx((8 - update) / entry["ups"] / 60, abs=0.06)


def test_the_log_has_the_unsmoothed_likelihood_beside_the_loss(short: tuple[Path, Outcome]) -> None:
    for entry in short[1].logged("train_inner"):
        # Both logged with two or three decimals.
        assert entry["ppl"] == pytest.approx(2 ** entry["nll_loss"], rel=2e-3)
    assert entry["loss"] != entry["nll_loss"]


def test_it_says_that_lr_has_no_say(short: tuple[Path, Outcome], corpus: Corpus, tmp_path: Path) -> None:
    assert len(re.findall("--lr has no say", short[1].log)) == 1
    train(corpus.data_bin, tmp_path, *SHORT, "--lr", 0.7)
    assert same(weights(tmp_path), weights(short[0]))


def test_the_same_seed_gives_the_same_weights_and_log(
    short: tuple[Path, Outcome], corpus: Corpus, tmp_path: Path
) -> None:
    again = train(corpus.data_bin, tmp_path / "again", *SHORT)
    assert same(weights(tmp_path / "again"), weights(short[0]))
    assert without_times(again.logged("train_inner")) == without_times(short[1].logged("train_inner"))
    train(corpus.data_bin, tmp_path / "other", *SHORT, "--seed", 4)
    assert not same(weights(tmp_path / "other"), weights(short[0]))


def test_worker_processes_change_nothing(short: tuple[Path, Outcome], corpus: Corpus, tmp_path: Path) -> None:
    train(corpus.data_bin, tmp_path, *SHORT, "--num-workers", 2)
    assert same(weights(tmp_path), weights(short[0]))


def test_bleu_during_training(corpus: Corpus, tmp_path: Path) -> None:
    """``--eval-bleu`` searches as the paper: it is the BLEU of fairseq-generate on the same set."""
    flags = ("--eval-bleu", "--eval-bleu-detok", "moses", "--eval-bleu-remove-bpe", "--eval-bleu-print-samples")
    best = ("--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric")
    more = ("--max-update", 40, "--validate-interval-updates", 40, "--no-epoch-checkpoints")
    outcome = train(corpus.data_bin, tmp_path, *more, *flags, *best, "--validate-interval", 99)
    (line,) = outcome.logged("valid")
    text = ("--gen-subset", "valid", *text_flags(corpus))
    generated = run_here("generate", *generation(corpus.data_bin, tmp_path / "checkpoint_best.pt", *text))
    hypotheses, references = generated.texts("D"), generated.lines("T")
    bleu = sacrebleu.corpus_bleu([hypotheses[i] for i in references], [list(references.values())])
    assert 0 < bleu.score < 100
    # fairseq logs two decimals.
    assert line["valid_bleu"] == pytest.approx(bleu.score, abs=0.006)


def test_our_parts_train_the_stock_model(corpus: Corpus, tmp_path: Path) -> None:
    """Loss, schedule (told d_model), optimiser and task with fairseq's own transformer."""
    small = ("--encoder-layers", 1, "--decoder-layers", 1, "--encoder-embed-dim", 32, "--encoder-ffn-embed-dim", 64)
    outcome = run_here(
        "train", corpus.data_bin, "--user-dir", PLUGIN, "--task", "t2017_translation", "--arch", "transformer", *small,
        "--encoder-attention-heads", 4, "--decoder-attention-heads", 4, "--share-all-embeddings", *PAPER,
        "--noam-d-model", 32, "--max-tokens", 400, "--save-dir", tmp_path, *QUIET, "--max-update", 25,
        "--disable-validation", "--no-epoch-checkpoints",
    )  # fmt: skip
    assert outcome.status == 0, outcome.error
    entries = outcome.logged("train_inner")
    assert entries[0]["lr_used"] == pytest.approx(0.2 * 32**-0.5 * 30**-1.5, rel=1e-5)
    assert entries[-1]["nll_loss"] < entries[0]["nll_loss"] - 0.5


def test_stocks_parts_train_our_model(corpus: Corpus, tmp_path: Path) -> None:
    """fairseq's loss, schedule, optimiser and task with our model."""
    stock = (
        *("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1, "--optimizer", "adam"),
        *("--lr-scheduler", "inverse_sqrt", "--lr", 0.005, "--warmup-updates", 20),
    )
    flags = ("--max-update", 25, "--disable-validation", "--no-epoch-checkpoints", "--task", "translation")
    outcome = train(corpus.data_bin, tmp_path, *flags, paper=stock)
    entries = outcome.logged("train_inner")
    assert entries[-1]["nll_loss"] < entries[0]["nll_loss"] - 0.5
    # What it trained can be searched as the paper.
    generated = run_here("generate", *generation(corpus.data_bin, tmp_path / "checkpoint_last.pt"))
    assert len(generated.texts("H")) == 21


def test_smoothing_over_others_is_stocks_loss_in_the_log(corpus: Corpus, tmp_path: Path) -> None:
    """A whole run with either loss: the same weights to rounding."""
    ours = train(corpus.data_bin, tmp_path / "ours", *SHORT, "--smoothing-over", "others")
    stock = train(
        corpus.data_bin, tmp_path / "stock", *SHORT,
        "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1,
    )  # fmt: skip
    for one, other in zip(ours.logged("train_inner"), stock.logged("train_inner"), strict=True):
        assert one["loss"] == pytest.approx(other["loss"], abs=2e-3)
        assert one["nll_loss"] == pytest.approx(other["nll_loss"], abs=2e-3)


@pytest.mark.parametrize("arch", ["t2017_transformer", "t2017_tiny"])
def test_bfloat16_on_a_cpu(short: tuple[Path, Outcome], corpus: Corpus, tmp_path: Path, arch: str) -> None:
    """It trains as float32 does, as near as eight bits allow; ``--bf16`` does not mean a TPU."""
    outcome = train(corpus.data_bin, tmp_path, *SHORT, "--arch", arch, "--bf16")
    for half, full in zip(outcome.logged("train_inner"), short[1].logged("train_inner"), strict=True):
        assert half["loss"] == pytest.approx(full["loss"], rel=0.03)
    # fairseq writes float32, here of numbers that the half precision holds.
    assert all(torch.equal(weight, weight.bfloat16().float()) for weight in weights(tmp_path).values())


@pytest.mark.parametrize("earlier", [0, 2])
def test_a_run_that_diverges_ends_in_one_line(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: int
) -> None:
    """With the last finite loss and gradient norm, and what to try."""
    forward = T2017LabelSmoothing.forward

    def diverging(self: Any, model: Any, sample: Any, reduce: bool = True) -> Any:
        loss, size, log = forward(self, model, sample, reduce)
        return loss * (float("nan") if model.num_updates >= earlier else 1.0), size, log

    monkeypatch.setattr(T2017LabelSmoothing, "forward", diverging)
    monkeypatch.setattr(T2017Transformer, "set_num_updates", lambda model, count: setattr(model, "num_updates", count))
    outcome = run_here("train", *training(corpus.data_bin, tmp_path, *SHORT))
    assert outcome.status == 1
    line = outcome.error.splitlines()[-1]
    assert f"training diverged at update {earlier + 1}" in line and "--clip-norm" in line and "--bf16" in line
    entries = outcome.logged("train_inner")
    assert len(entries) == earlier
    if earlier:
        loss, norm = (float(number) for number in re.findall(r"(?:loss|gnorm) ([\d.]+)", line))
        assert loss == pytest.approx(entries[-1]["loss"], rel=1e-3)
        assert norm == pytest.approx(entries[-1]["gnorm"], rel=1e-3)
    else:
        assert "no update before it was finite" in line
    assert not (tmp_path / "checkpoint_last.pt").exists()


def test_spaces_in_paths_and_the_bare_architecture_name(corpus: Corpus, tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    train(corpus.data_bin, folder, "--max-update", 1, "--disable-validation", "--arch", "t2017_tiny", *TINY[2:])
    assert (folder / "checkpoint_last.pt").is_file()
