"""Makes fairseq know the plugin: model, architectures, loss, schedule, optimiser and tasks."""

from __future__ import annotations

from typing import Any

from t2017_plugin.fairseq_side.guards import require_fairseq


def register() -> Any:
    """Register everything with fairseq, and return the class of the model. Calling it again does nothing.

    Raises:
        UsageError: torch or fairseq is missing, or cannot be imported by this Python.
    """
    require_fairseq()
    # Importing these registers them.
    from t2017_plugin.fairseq_side import architectures, model, patches, tasks, training

    assert tasks and training
    patches.set_bare_architecture(model.MODEL_NAME, architectures.apply_base)
    patches.allow_safe_globals()
    return model.T2017Transformer
