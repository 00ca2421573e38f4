"""A run that goes on in another precision than it was begun in.

fairseq wraps the optimiser under ``--fp16`` and ``--bf16``, writes the wrapper's name into the checkpoint, and refuses
to go on when the name is another. The state inside is the same float32 state; ``T2017Adam`` takes it in either layout.
"""

from __future__ import annotations

import functools
import logging
from typing import Any

from fairseq import checkpoint_utils

from t2017_plugin.checkpoints.loading import settings

logger = logging.getLogger(__name__)
NAMES = {"T2017Adam", "FP16Optimizer"}


def rename_optimizer(state: dict[str, Any], half: bool) -> None:
    """Puts the name that fairseq expects into a loaded checkpoint of ``t2017_adam``."""
    history = state.get("optimizer_history") or []
    wanted = "FP16Optimizer" if half else "T2017Adam"
    if not history or settings(state, "optimizer").get("_name") != "t2017_adam":
        return
    name = history[-1].get("optimizer_name")
    if name != wanted and name in NAMES:
        logger.info(f"going on in {'half precision' if half else 'float32'}; the optimiser's state is kept")
        history[-1]["optimizer_name"] = wanted


def in_any_precision(load_checkpoint: Any) -> Any:
    """fairseq's ``Trainer.load_checkpoint`` with the check of the name satisfied."""

    @functools.wraps(load_checkpoint)
    def load(trainer: Any, *arguments: Any, **options: Any) -> Any:
        read = checkpoint_utils.load_checkpoint_to_cpu
        half = bool(trainer.cfg.common.fp16 or trainer.cfg.common.bf16)

        def read_and_rename(*where: Any, **how: Any) -> dict[str, Any]:
            state: dict[str, Any] = read(*where, **how)
            rename_optimizer(state, half)
            return state

        checkpoint_utils.load_checkpoint_to_cpu = read_and_rename
        try:
            return load_checkpoint(trainer, *arguments, **options)
        finally:
            checkpoint_utils.load_checkpoint_to_cpu = read

    return load
