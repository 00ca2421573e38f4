"""When checkpoints are written: every so many minutes of training as well as every so many updates (section 6.1).

The paper averages checkpoints "written at 10-minute intervals". fairseq counts updates and epochs only;
``--save-interval-minutes`` of the task adds the clock. Minutes are those of training, earlier sessions of the run
included, as fairseq counts them for ``--stop-time-hours``: the mean over processes, so that all of them agree.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairseq import checkpoint_utils
from fairseq.trainer import Trainer
from omegaconf import open_dict

from t2017_plugin.fairseq_side.checkpoint_files import WholeFiles, clear_leftovers, save_whole
from t2017_plugin.fairseq_side.other_precision import in_any_precision

logger = logging.getLogger(__name__)


class CheckpointClock:
    """Says when the next interval of training time has passed.

    Args:
        minutes: the interval; 0 is never
        seconds: training time at the start of this session
    """

    def __init__(self, minutes: float, seconds: float) -> None:
        self.interval = 60.0 * minutes
        self.passed = self._intervals(seconds)

    def _intervals(self, seconds: float) -> int:
        return int(seconds // self.interval) if self.interval else 0

    def due(self, seconds: float) -> bool:
        """Whether an interval has ended since the last checkpoint by the clock."""
        return self._intervals(seconds) > self.passed

    def saved(self, seconds: float) -> None:
        """A checkpoint was written."""
        self.passed = self._intervals(seconds)


def prepare_training() -> None:
    """Puts these rules around fairseq's training loop, once in a process; called when a run's parts are built."""
    checkpoint_utils.torch_persistent_save = save_whole
    checkpoint_utils.PathManager = WholeFiles
    if not hasattr(Trainer.load_checkpoint, "__wrapped__"):
        Trainer.load_checkpoint = in_any_precision(Trainer.load_checkpoint)
    for name in ("fairseq_cli.train", "__main__"):
        module = sys.modules.get(name)
        loop = getattr(module, "validate_and_save", None)
        if loop is not None and not hasattr(loop, "without_clock"):
            vars(module)["validate_and_save"] = with_clock(loop)


def with_clock(validate_and_save: Any) -> Any:
    """fairseq's function of that name, called after each update, with checkpoints by the clock as well."""

    def validate_and_save_by_clock(
        cfg: Any, trainer: Any, task: Any, epoch_itr: Any, valid_subsets: list[str], end_of_epoch: bool
    ) -> Any:
        if getattr(task, "checkpoint_clock", None) is None:
            begin(cfg, trainer, task)
        seconds, every = trainer.cumulative_training_time(), cfg.checkpoint.save_interval_updates
        # The checkpoint of an epoch's end has a name of its own; the clock's comes with the next update.
        due = task.checkpoint_clock.due(seconds) and not end_of_epoch
        task.saved_by = ["updates"] if every > 0 and trainer.get_num_updates() % every == 0 else []
        if not due:
            return validate_and_save(cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch)
        task.saved_by.append("minutes")
        task.checkpoint_clock.saved(seconds)
        with saving_now(cfg):
            return validate_and_save(cfg, trainer, task, epoch_itr, valid_subsets, end_of_epoch)

    vars(validate_and_save_by_clock)["without_clock"] = validate_and_save
    return validate_and_save_by_clock


def begin(cfg: Any, trainer: Any, task: Any) -> None:
    """The first update of a session: sets the clock, and removes what an earlier kill left half written."""
    minutes = getattr(task.cfg, "save_interval_minutes", 0.0)
    # What the checkpoint says that the run goes on from; fairseq has no public name for it.
    task.checkpoint_clock = CheckpointClock(minutes, getattr(trainer, "_previous_training_time", 0.0))
    task.updates_in_all = int(cfg.optimization.max_update or 0)
    if cfg.distributed_training.distributed_rank == 0:
        for name in clear_leftovers(cfg.checkpoint.save_dir):
            logger.info(f"removed {name}, which an interrupted run had not finished")


@contextmanager
def saving_now(cfg: Any) -> Iterator[None]:
    """Lets fairseq write an update checkpoint after this update."""
    before = cfg.checkpoint.save_interval_updates
    with open_dict(cfg):
        cfg.checkpoint.save_interval_updates = 1
    try:
        yield
    finally:
        with open_dict(cfg):
            cfg.checkpoint.save_interval_updates = before
