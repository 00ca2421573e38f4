"""One thread for all tests, and what pytest says at the end of a run."""

import os
from typing import Any

import pytest
import torch

from t2017_plugin.fairseq_side.registration import register
from tests.parity import t2t_golden

# Sums are then taken in one order, here and in the programs that tests start: equal means equal to the last bit.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)
register()

WORST = "t2017_worst"


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: Any) -> None:
    """Take over what a process of the suite compared, where there are several."""
    for kind, (value, where) in getattr(node, "workeroutput", {}).get(WORST, {}).items():
        t2t_golden.worst[kind] = max(t2t_golden.worst.get(kind, (-1.0, "")), (value, where))


def pytest_sessionfinish(session: Any) -> None:
    """Hands over what this process compared."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[WORST] = t2t_golden.worst


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line with the worst error of each kind against the authors' code, if it was compared."""
    if t2t_golden.worst:
        terminalreporter.write_line(t2t_golden.summary())
