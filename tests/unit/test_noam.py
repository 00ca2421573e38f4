"""The learning rate (section 5.3) against the formula and against figures computed apart."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.training import T2017Adam, T2017AdamConfig, T2017Noam
from t2017_plugin.paper.training import learning_rate

pytestmark = pytest.mark.unit


def schedule(**settings: Any) -> tuple[T2017Noam, T2017Adam]:
    config = T2017AdamConfig()
    config.lr = [0.25]
    optimizer = T2017Adam(config, [torch.nn.Parameter(torch.zeros(2))])
    given = {
        "warmup_updates": 4000,
        "noam_scale": 1.0,
        "noam_d_model": None,
        "d_model": 512,
        "max_update": 0,
        **settings,
    }
    return T2017Noam(SimpleNamespace(**given), optimizer), optimizer


@pytest.mark.parametrize(
    "update, rate",
    [
        (1, 1.746928e-07),
        (2, 3.493856e-07),
        (100, 1.746928e-05),
        (3999, 6.985966e-04),
        (4000, 6.987712e-04),
        (4001, 6.986839e-04),
        (8000, 4.941059e-04),
        (100000, 1.397542e-04),
    ],
)
def test_rate_of_an_update(update: int, rate: float) -> None:
    """The rate the optimiser holds when the update is made: fairseq gives the schedule the number of updates before."""
    scheduler, optimizer = schedule()
    scheduler.step_update(update - 1)
    assert optimizer.get_lr() == pytest.approx(rate, rel=1e-6)
    assert learning_rate(update, 512) == optimizer.get_lr()


def test_first_update_moves_and_lr_has_no_say() -> None:
    _, optimizer = schedule()
    assert optimizer.get_lr() == 512**-0.5 * 4000**-1.5


def test_scale_and_own_width() -> None:
    scheduler, optimizer = schedule(noam_scale=2.0, noam_d_model=1024, d_model=None, warmup_updates=10)
    scheduler.step_update(9)
    assert optimizer.get_lr() == pytest.approx(2.0 * (1024 * 10) ** -0.5, rel=1e-12)


def test_no_width_is_refused() -> None:
    with pytest.raises(UsageError, match="--noam-d-model"):
        schedule(d_model=None)
    with pytest.raises(UsageError, match="at least 1"):
        schedule(warmup_updates=0)
