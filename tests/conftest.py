"""One thread for all tests, and what pytest says at the end of a run."""

import os
from typing import Any

import torch

from tests.parity import t2t_golden

# Sums are then taken in one order, here and in the programs that tests start: equal means equal to the last bit.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line with the worst error of each kind against the authors' code, if it was compared."""
    if t2t_golden.worst:
        terminalreporter.write_line(t2t_golden.summary())
