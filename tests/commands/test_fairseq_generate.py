"""fairseq-generate, -interactive, -score and -validate with a model of the plugin."""

import argparse
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch
from fairseq import checkpoint_utils
from sacremoses import MosesDetokenizer

from tests.commands.fairseq_runs import (
    PLUGIN,
    SENTENCES,
    Corpus,
    Outcome,
    generation,
    run,
    run_here,
    sentences,
    text_flags,
    training,
)

pytestmark = pytest.mark.commands

# Printed scores, in bits; a batch of another shape rounds float32 another way.
CLOSE = 2e-4


@pytest.fixture(scope="module")
def plain(corpus: Corpus, trained: Path) -> Outcome:
    """fairseq-generate with no flag about the search or the batches."""
    outcome = run_here("generate", *generation(corpus.data_bin, trained))
    assert outcome.status == 0, outcome.error
    return outcome


def test_every_sentence_of_the_test_set(plain: Outcome) -> None:
    assert SENTENCES["test"] % 8 != 0
    assert sorted(plain.texts("H")) == list(range(SENTENCES["test"]))
    assert f"Translated {SENTENCES['test']} sentences" in plain.log
    assert "with beam=4" in plain.output
    assert len(set(plain.texts("H").values())) > 10


def test_stock_task_and_model_would_drop_sentences(corpus: Corpus, stock_checkpoint: Path) -> None:
    """Else the test above could not fail: fairseq keeps only a multiple of 8."""
    outcome = run_here(
        "generate", corpus.data_bin, "--path", stock_checkpoint, "--user-dir", PLUGIN, "--cpu", "--max-len-b", 20
    )
    assert outcome.status == 0, outcome.error
    assert len(outcome.lines("H")) == SENTENCES["test"] // 8 * 8


@pytest.mark.parametrize("size", [1, 7, 21])
def test_the_same_output_for_any_batch_size(corpus: Corpus, trained: Path, plain: Outcome, size: int) -> None:
    outcome = run_here("generate", *generation(corpus.data_bin, trained, "--batch-size", size))
    assert outcome.texts("H") == plain.texts("H")
    assert outcome.scores() == pytest.approx(plain.scores(), abs=CLOSE)


def test_a_score_is_log_p_by_the_penalty_of_the_paper(plain: Outcome) -> None:
    """H lines in bits, from the P lines: sum / ((5 + tokens) / 6) ^ 0.6, tokens with EOS."""
    for number, score in plain.scores().items():
        bits = [float(value) for value in plain.lines("P")[number].split()]
        assert len(bits) == len(plain.texts("H")[number].split()) + 1
        # P lines have four decimals.
        assert score == pytest.approx(sum(bits) / ((5 + len(bits)) / 6) ** 0.6, abs=1e-4 * len(bits))


def test_explicit_flags_win(corpus: Corpus, trained: Path, plain: Outcome) -> None:
    outcome = run_here("generate", *generation(corpus.data_bin, trained, "--beam", 5, "--lenpen", 0, "--nbest", 5))
    assert "with beam=5" in outcome.output
    # As in the authors' code there may be fewer than five, since the search stops when no other can win.
    counts = Counter(re.findall(r"^H-(\d+)", outcome.output, flags=re.MULTILINE))
    assert len(counts) == SENTENCES["test"] and 1 < max(counts.values()) <= 5
    # The last line of each sentence: alpha 0 leaves log P as it is.
    for number, score in outcome.scores().items():
        bits = [float(value) for value in outcome.lines("P")[number].split()]
        assert score == pytest.approx(sum(bits), abs=1e-4 * len(bits))
    assert outcome.texts("H") != plain.texts("H")


def test_output_as_text_scored_by_sacrebleu(corpus: Corpus, trained: Path, plain: Outcome) -> None:
    flags = ("--scoring", "sacrebleu", *text_flags(corpus))
    outcome = run_here("generate", *generation(corpus.data_bin, trained, *flags))
    assert outcome.status == 0, outcome.error
    # Here T and D are text, and H is still BPE units.
    assert [outcome.lines("T")[i] for i in range(SENTENCES["test"])] == [target for _, target in sentences("test")]
    assert outcome.texts("H") == plain.texts("H")
    moses = MosesDetokenizer(lang="de")
    for number, units in outcome.texts("H").items():
        assert outcome.texts("D")[number] == moses.detokenize(units.replace("@@ ", "").split())
    hypotheses, references = (
        [x[i] for i in range(SENTENCES["test"])] for x in (outcome.texts("D"), outcome.lines("T"))
    )
    expected = sacrebleu.corpus_bleu(hypotheses, [references])
    assert f"BLEU = {expected.score:.2f}" in outcome.output


def test_interactive_gives_what_generate_gives(corpus: Corpus, trained: Path, plain: Outcome) -> None:
    flags = (*text_flags(corpus), "--buffer-size", 9, "--batch-size", 5)
    raw = corpus.raw / "test.en"
    outcome = run_here("interactive", *generation(corpus.data_bin, trained, "--input", raw, *flags))
    assert outcome.status == 0, outcome.error
    assert outcome.texts("H") == plain.texts("H")
    assert outcome.scores() == pytest.approx(plain.scores(), abs=CLOSE)
    assert outcome.texts("D")[0].endswith(".") and "@@" not in outcome.texts("D")[0]


def test_score_reads_its_output(plain: Outcome, tmp_path: Path) -> None:
    """fairseq-score on the H and T lines is fairseq-generate's own BLEU line."""
    for name, lines in (("hyp", plain.texts("H")), ("ref", plain.lines("T"))):
        (tmp_path / name).write_text("".join(f"{lines[number]}\n" for number in sorted(lines)))
    outcome = run_here("score", "--sys", tmp_path / "hyp", "--ref", tmp_path / "ref")
    assert outcome.status == 0, outcome.error
    (own,) = re.findall(r"BLEU4 = [\d.]+, [\d./]+", plain.output)
    assert own in outcome.output


def test_an_ensemble(corpus: Corpus, trained: Path, plain: Outcome) -> None:
    (earlier,) = trained.parent.glob("checkpoint_*_66.pt")
    outcome = run_here("generate", *generation(corpus.data_bin, f"{trained}:{earlier}"))
    assert sorted(outcome.texts("H")) == sorted(plain.texts("H"))
    assert outcome.scores() != pytest.approx(plain.scores(), abs=0.01)
    twice = run_here("generate", *generation(corpus.data_bin, f"{trained}:{trained}"))
    assert twice.texts("H") == plain.texts("H")
    assert twice.scores() == pytest.approx(plain.scores(), abs=CLOSE)


def test_references_can_be_scored_and_alignments_printed(corpus: Corpus, trained: Path) -> None:
    outcome = run_here("generate", *generation(corpus.data_bin, trained, "--score-reference"))
    assert outcome.texts("H") == outcome.lines("T")
    for number, score in outcome.scores().items():
        bits = [float(value) for value in outcome.lines("P")[number].split()]
        assert score == pytest.approx(sum(bits) / len(bits), abs=2e-4)
    outcome = run_here("generate", *generation(corpus.data_bin, trained, "--print-alignment"))
    for number, pairs in outcome.lines("A").items():
        # One pair for each token but EOS, and source positions that exist.
        assert len(pairs.split()) == len(outcome.texts("H")[number].split())
        assert all(int(pair.split("-")[0]) <= len(outcome.lines("S")[number].split()) for pair in pairs.split())
    assert len(outcome.lines("A")) == SENTENCES["test"]
    scored = run_here("generate", *generation(corpus.data_bin, trained, "--score-reference", "--print-alignment"))
    assert scored.status == 0, scored.error
    assert len(scored.lines("A")) == SENTENCES["test"]
    for number, pairs in scored.lines("A").items():
        assert len(pairs.split()) == len(scored.lines("T")[number].split())
    # The alignment of a reference is that of the same words when they were found by the search.
    found = [number for number, text in outcome.texts("H").items() if text == scored.lines("T")[number]]
    assert found and all(scored.lines("A")[number] == outcome.lines("A")[number] for number in found)


def test_learned_positions_bound_the_output(corpus: Corpus, tmp_path: Path) -> None:
    """A hypothesis that would run past the table ends there, and the other sentences are translated."""
    more = ("--max-update", 1, "--disable-validation", "--positions", "learned", "--max-learned-positions", 20)
    assert run_here("train", *training(corpus.data_bin, tmp_path, *more)).status == 0
    outcome = run_here("generate", *generation(corpus.data_bin, tmp_path / "checkpoint_last.pt", "--min-len", 25))
    assert outcome.status == 0, outcome.error
    # No EOS before the 25th token, so all end at the table's 20.
    assert [len(text.split()) for text in outcome.texts("H").values()] == [20] * SENTENCES["test"]


def test_validate_prints_the_loss_of_the_formula(corpus: Corpus, trained: Path) -> None:
    flags = ("--valid-subset", "valid", "--batch-size", 5, "--log-format", "json")
    outcome = run_here("validate", *generation(corpus.data_bin, trained, *flags))
    assert outcome.status == 0, outcome.error
    (line,) = outcome.logged("valid")
    (model,), _, task = checkpoint_utils.load_model_ensemble_and_task([str(trained)])
    task.load_dataset("valid")
    smoothed = plain = tokens = 0.0
    for pair in (task.dataset("valid")[i] for i in range(SENTENCES["valid"])):
        source, target = pair["source"], pair["target"]
        log_p = model.eval()(source[None], torch.tensor([len(source)]), target.roll(1)[None])[0].log_softmax(-1)[0]
        likelihood = log_p.gather(-1, target[:, None]).sum().item()
        plain -= likelihood
        smoothed -= 0.9 * likelihood + 0.1 * log_p.mean(dim=-1).sum().item()
        tokens += len(target)
    # Logged in bits with three decimals.
    assert line["valid_loss"] == pytest.approx(smoothed / tokens / math.log(2), abs=6e-4)
    assert line["valid_nll_loss"] == pytest.approx(plain / tokens / math.log(2), abs=6e-4)
    assert line["valid_ppl"] == pytest.approx(math.exp(plain / tokens), abs=0.02)


# fairseq's own models beside the plugin


@pytest.fixture(scope="module")
def stock_checkpoint(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stock transformer, stock loss, schedule, optimiser and task."""
    folder = tmp_path_factory.mktemp("stock")
    outcome = run_here(
        "train", corpus.data_bin, "--arch", "transformer_tiny", "--share-all-embeddings",
        "--criterion", "label_smoothed_cross_entropy", "--optimizer", "adam", "--lr", 0.003, "--max-tokens", 1000,
        "--max-update", 40, "--save-dir", folder, "--cpu", "--disable-validation", "--no-progress-bar",
    )  # fmt: skip
    assert outcome.status == 0, outcome.error
    return folder / "checkpoint_last.pt"


def test_our_search_on_a_stock_model(corpus: Corpus, stock_checkpoint: Path) -> None:
    short = ("--extra-length", 8, "--batch-size")
    outcome = run_here("generate", *generation(corpus.data_bin, stock_checkpoint, *short, 8))
    assert sorted(outcome.lines("H")) == list(range(SENTENCES["test"]))
    alone = run_here("generate", *generation(corpus.data_bin, stock_checkpoint, *short, 1))
    assert alone.texts("H") == outcome.texts("H")


def test_a_stock_checkpoint_with_a_namespace_loads(corpus: Corpus, stock_checkpoint: Path, tmp_path: Path) -> None:
    """As older fairseq wrote them: all flags in an ``argparse.Namespace``, numpy numbers beside them.

    In a process of its own with weights-only loading, which torch turns on from 2.6.
    """
    state = torch.load(stock_checkpoint, weights_only=True)
    flags: dict[str, Any] = {}
    for section in state["cfg"].values():
        flags.update(section if isinstance(section, dict) else vars(section) if section else {})
    flags.update(
        task="translation", arch="transformer_tiny", criterion="label_smoothed_cross_entropy", optimizer="adam"
    )
    flags.update(lr_scheduler="fixed")
    flags.pop("_name", None)
    old = {
        "args": argparse.Namespace(**flags),
        "model": state["model"],
        "optimizer_history": state["optimizer_history"],
        "extra_state": {"train_iterator": {"epoch": 1}, "val_loss": np.float64(3.0), "best": np.float32(3.0)},
        "last_optimizer_state": state["last_optimizer_state"],
    }
    path = tmp_path / "old.pt"
    torch.save(old, path)
    variables = {"TORCH_FORCE_WEIGHTS_ONLY_LOAD": "1"}
    flags = ("--user-dir", PLUGIN, "--cpu", "--batch-size", 8, "--max-len-b", 20)
    outcome = run("fairseq-generate", corpus.data_bin, "--path", path, *flags, variables=variables, cwd=tmp_path)
    assert outcome.status == 0, outcome.error
    new = run_here("generate", corpus.data_bin, "--path", stock_checkpoint, *flags)
    assert outcome.texts("H") == new.texts("H") and outcome.texts("H")
