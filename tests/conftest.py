"""What pytest says at the end of a run."""

from typing import Any

from tests.parity import t2t_golden


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line with the worst error of each kind against the authors' code, if it was compared."""
    if t2t_golden.worst:
        terminalreporter.write_line(t2t_golden.summary())
