"""What fairseq's programs say when a call cannot be right: status 1, one line, what to do, no traceback."""

import shutil
from pathlib import Path

import pytest

from tests.commands.fairseq_runs import (
    PAPER,
    PLUGIN,
    QUIET,
    Corpus,
    Outcome,
    generation,
    run,
    run_here,
    training,
)

pytestmark = pytest.mark.commands


def assert_refused(outcome: Outcome, *words: str) -> None:
    """Status 1 and, as the last line of the error output, one that holds these words."""
    assert outcome.status == 1, outcome.output + outcome.error
    line = outcome.error.splitlines()[-1]
    assert all(word in line for word in words), line
    assert "Traceback" not in outcome.error + outcome.output


def refused_training(corpus: Corpus, folder: Path, *flags: object) -> Outcome:
    """Nothing may be left behind either."""
    outcome = run_here("train", *training(corpus.data_bin, folder, "--max-update", 1, "--disable-validation", *flags))
    assert not list(folder.glob("*.pt"))
    return outcome


def test_another_task_would_search_fairseqs_way(corpus: Corpus, trained: Path) -> None:
    """In a process of its own: this is what the user's terminal shows."""
    call = ("--user-dir", PLUGIN, "--path", trained, "--cpu")
    outcome = run("fairseq-generate", corpus.data_bin, *call)
    assert_refused(outcome, "--task t2017_translation")
    assert not outcome.lines("H")
    here = run_here("interactive", corpus.data_bin, *call, stdin="one two .\n")
    assert_refused(here, "--task t2017_translation")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--lenpen", "-0.5"), ("--lenpen", "0 or more", "--search stock")),
        (("--beam", "0"), ("--beam is 0",)),
        (("--nbest", "5"), ("--nbest 5", "--beam 4")),
        (("--sampling", "--nbest", "4"), ("--sampling ", "--search stock")),
        (("--diverse-beam-groups", "2"), ("--diverse-beam-groups", "--search stock")),
        (("--diversity-rate", "0.5"), ("--diversity-rate", "--search stock")),
        (("--match-source-len",), ("--match-source-len", "--search stock")),
        (("--no-repeat-ngram-size", "3"), ("--no-repeat-ngram-size", "--search stock")),
        (("--temperature", "2.0"), ("--temperature", "--search stock")),
        (("--unkpen", "1"), ("--unkpen", "--search stock")),
        (("--extra-length", "-1"), ("--extra-length",)),
    ],
)
def test_flags_the_search_does_not_have(
    corpus: Corpus, trained: Path, flags: tuple[str, ...], words: tuple[str, ...]
) -> None:
    outcome = run_here("generate", *generation(corpus.data_bin, trained, *flags))
    assert_refused(outcome, *words)
    assert not outcome.lines("H")


@pytest.mark.parametrize("flags", ["--lenpen -0.5", "--sampling --nbest 4", "--diverse-beam-groups 2"])
def test_and_fairseqs_search_takes_them(corpus: Corpus, trained: Path, flags: str) -> None:
    more = ("--search", "stock", "--max-len-b", 10, *flags.split())
    outcome = run_here("generate", *generation(corpus.data_bin, trained, *more))
    assert outcome.status == 0, outcome.error
    assert len(outcome.lines("H")) == 21


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--left-pad-target",), ("--left-pad-target",)),
        (("--heads", "0"), ("--heads is 0", "at least 1")),
        (("--d-k", "-8"), ("--d-k is -8",)),
        (("--dropout", "1.0"), ("--dropout is 1.0", "[0, 1)")),
        (("--label-smoothing", "1.0"), ("--label-smoothing is 1.0",)),
        (("--adam-betas", "(0.9,)"), ("--adam-betas", "(0.9, 0.98)")),
        (("--adam-betas", "(0.9, 1.0)"), ("--adam-betas", "[0, 1)")),
        (("--warmup-updates", "0"), ("warmup 0", "at least 1")),
        (("--fp16",), ("--fp16", "--bf16", "CPU")),
        (("--memory-efficient-fp16",), ("--memory-efficient-fp16", "--fp16")),
        (("--memory-efficient-bf16",), ("--memory-efficient-bf16", "--bf16")),
    ],
)
def test_settings_that_cannot_be_trained(
    corpus: Corpus, tmp_path: Path, flags: tuple[str, ...], words: tuple[str, ...]
) -> None:
    assert_refused(refused_training(corpus, tmp_path, *flags), *words)


def test_one_table_needs_one_dictionary(corpus: Corpus, tmp_path: Path) -> None:
    """A data-bin whose target dictionary has one type more, as without ``--joined-dictionary``."""
    data = tmp_path / "data-bin"
    shutil.copytree(corpus.data_bin, data)
    with open(data / "dict.de.txt", "a", encoding="utf-8") as file:
        file.write("zehn 1\n")
    other = Corpus(corpus.raw, corpus.codes, data)
    outcome = refused_training(other, tmp_path / "shared")
    assert_refused(outcome, "--joined-dictionary", "--embeddings decoder")
    # What the line says to do works.
    more = ("--max-update", 1, "--disable-validation", "--embeddings", "decoder")
    assert run_here("train", *training(data, tmp_path / "decoder", *more)).status == 0
    generated = run_here(
        "generate", *generation(data, tmp_path / "decoder" / "checkpoint_last.pt", "--extra-length", 2)
    )
    assert len(generated.lines("H")) == 21


def test_the_schedule_needs_a_width(corpus: Corpus, tmp_path: Path) -> None:
    call = (
        "train", corpus.data_bin, "--user-dir", PLUGIN, "--task", "t2017_translation", "--arch", "transformer_tiny",
        *PAPER, "--max-tokens", 400, "--save-dir", tmp_path, *QUIET, "--max-update", 1,
    )  # fmt: skip
    assert_refused(run_here(*call), "d_model", "--noam-d-model")
    assert not list(tmp_path.glob("*.pt"))


@pytest.mark.parametrize("flags", [("--search", "best"), ("--length-penalty-form", "sum"), ("--beam", "many")])
def test_wrong_words_are_a_wrong_call(corpus: Corpus, trained: Path, flags: tuple[str, ...]) -> None:
    """argparse's own status 2."""
    assert run_here("generate", *generation(corpus.data_bin, trained, *flags)).status == 2
