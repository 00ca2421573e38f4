"""One tiny corpus and one tiny trained model for all tests of the command lines."""

from pathlib import Path

import pytest

from tests.commands.fairseq_runs import Corpus, make_corpus, run_here, training


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Reversed digits: 300 pairs to train on, 19 to validate, 21 to test."""
    return make_corpus(tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="session")
def trained(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Train to a checkpoint after 100 updates; ``checkpoint_*_66.pt`` of the same run lies beside it."""
    folder = tmp_path_factory.mktemp("trained")
    more = ("--max-update", 100, "--save-interval-updates", 33, "--no-epoch-checkpoints", "--disable-validation")
    outcome = run_here("train", *training(corpus.data_bin, folder, *more))
    assert outcome.status == 0, outcome.error
    return folder / "checkpoint_last.pt"
