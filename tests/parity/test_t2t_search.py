"""What the n-best lists of the authors' code imply beyond their own arrays."""

import numpy as np
import pytest

from tests.parity.t2t_golden import load
from tests.parity.t2t_search import LIST, hypotheses, reproduce

pytestmark = pytest.mark.parity

LISTS = [(file, key) for file in ("beam_trained", "beam_weak") for key in load(file) if LIST.fullmatch(key)]
BATCHES = [(file, key) for file, key in LISTS if "_single" not in key]


@pytest.mark.parametrize("nbest", [None, 1])
@pytest.mark.parametrize(("file", "key"), LISTS)
def test_the_best_hypothesis_as_users_search(file: str, key: str, nbest: int | None) -> None:
    """Padding is never generated, and perhaps only the best is wanted: T2T's best hypotheses stay the best."""
    recorded, scores = load(file)[key], load(file)[key.removesuffix("ids") + "scores"]
    for i, found in enumerate(hypotheses(file, key, nbest, allow_padding=False)):
        assert nbest is None or len(found) == nbest
        assert all(0 not in hypothesis["tokens"].tolist() for hypothesis in found)
        best = recorded[i, 0, 1:].tolist()
        assert found[0]["tokens"].tolist() == best[: best.index(1) + 1]
        assert float(found[0]["score"]) == pytest.approx(scores[i, 0], abs=1e-4)


@pytest.mark.parametrize(("file", "key"), BATCHES)
def test_lower_entries_of_a_batch_can_only_gain_in_t2t(file: str, key: str) -> None:
    """T2T goes on with a sentence while its neighbours do, so its n-th best is ours or better, never worse."""
    scores = key.removesuffix("ids") + "scores"
    ours, recorded = reproduce(file)[scores], load(file)[scores]
    assert ours.shape == recorded.shape
    # Scores are compared to 1e-4.
    assert np.all(ours <= recorded + 1e-4)


def test_a_sentence_alone_is_the_same_sentence_in_a_batch() -> None:
    """Ours does not depend on the neighbours at all: single lists are rows of the batch's lists."""
    for file, key in LISTS:
        if "_single" in key:
            batch = reproduce(file)[key.split("_single")[0] + "/ids"]
            single = reproduce(file)[key]
            row = batch[int(key.split("/")[1])]
            width = min(row.shape[-1], single.shape[-1])
            assert np.array_equal(row[:, :width], single[0, :, :width])
            assert not row[:, width:].any() and not single[0, :, width:].any()


def test_hypotheses_end_once_and_say_so() -> None:
    """Empty ones occur: the minimum length is 0."""
    empty = 0
    for file, key in LISTS:
        for found in hypotheses(file, key):
            for hypothesis in found:
                tokens = hypothesis["tokens"].tolist()
                assert hypothesis["finished"] and tokens.index(1) == len(tokens) - 1
                empty += tokens == [1]
    assert empty > 0


def test_where_nothing_finishes_the_alive_hypotheses_are_returned() -> None:
    key = next(key for key in load("base_nobias") if LIST.fullmatch(key))
    for found in hypotheses("base_nobias", key):
        assert all(not hypothesis["finished"] and len(hypothesis["tokens"]) == 59 for hypothesis in found)
