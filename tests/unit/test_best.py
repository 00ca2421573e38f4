"""The best few of very many, against a full sort."""

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from t2017_plugin.fast.decoding import best_of_many

pytestmark = pytest.mark.unit


@hypothesis_settings(max_examples=60, deadline=None)
@given(width=st.sampled_from([3, 64, 700, 2048, 2049, 5003]), count=st.integers(1, 12), seed=st.integers(0, 99))
def test_values_and_places(width: int, count: int, seed: int) -> None:
    scores = torch.randn(2, 3, width, generator=torch.Generator().manual_seed(seed))
    scores[0, 0, : width // 2] = -torch.inf
    values, places = best_of_many(scores, count)
    expected = scores.sort(descending=True).values[..., :count]
    assert torch.equal(values, expected)
    assert torch.equal(scores.gather(-1, places), values)
    assert all(len(set(row.tolist())) == len(row) for row in places.flatten(0, 1))
