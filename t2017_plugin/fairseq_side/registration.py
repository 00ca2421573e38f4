"""Makes fairseq know the plugin: model, architectures, loss, schedule, optimiser and tasks."""

from __future__ import annotations

from typing import Any

from t2017_plugin.fairseq_side.requirements import require_fairseq


def register() -> Any:
    """Register everything with fairseq, and return the class of the model. Calling it again does nothing.

    Raises:
        UsageError: torch or fairseq is missing, or cannot be imported by this Python.
    """
    require_fairseq()
    # Each of these registers something when it is imported.
    from t2017_plugin.fairseq_side import adam, architectures, criterion, model, noam, parsing, safe_globals

    safe_globals.allow_safe_globals()
    assert adam and architectures and criterion and noam and parsing
    return model.T2017Transformer
