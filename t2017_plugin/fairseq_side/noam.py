"""The learning rate (section 5.3).

    lrate = d_model^-0.5 * min(step_num^-0.5, step_num * warmup_steps^-1.5)               (3)

``step_num`` counts updates from 1: the first update already moves. fairseq calls the schedule with the number of
updates done so far, so the rate of the next update is computed with that number plus 1.
"""

import logging
from dataclasses import dataclass, field
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler

from t2017_plugin.errors import UsageError

logger = logging.getLogger(__name__)


@dataclass
class T2017NoamConfig(FairseqDataclass):
    """Settings of the schedule; the paper's are the defaults."""

    warmup_updates: int = field(default=4000, metadata={"help": "warmup_steps of equation (3), in updates"})
    noam_scale: float = field(default=1.0, metadata={"help": "factor on equation (3); 1 is the paper"})
    noam_d_model: Optional[int] = field(  # noqa: UP045  (fairseq reads no newer form)
        default=None, metadata={"help": "d_model of equation (3) for a model that has no d_model of its own"}
    )
    # Same name as the model's field, so that both read one flag; null for a model without it.
    d_model: Optional[int] = "${oc.select:model.d_model,null}"  # type: ignore[assignment]  # noqa: UP045


def noam(update: int, d_model: int, warmup_updates: int = 4000, scale: float = 1.0) -> float:
    """Equation (3) for the update number ``update``, counted from 1."""
    return scale * d_model**-0.5 * min(update**-0.5, update * warmup_updates**-1.5)


@register_lr_scheduler("t2017_noam", dataclass=T2017NoamConfig)
class T2017Noam(FairseqLRScheduler):
    """Sets the learning rate before each update; ``--lr`` has no say, which is said once.

    Raises:
        UsageError: neither the model nor ``--noam-d-model`` gives a width, or the warmup is not positive.
    """

    def __init__(self, cfg: Any, optimizer: Any) -> None:
        super().__init__(cfg, optimizer)
        d_model = cfg.noam_d_model if cfg.noam_d_model is not None else cfg.d_model
        if d_model is None:
            raise UsageError("the schedule t2017_noam needs d_model and this model has none: add --noam-d-model")
        if d_model < 1 or cfg.warmup_updates < 1:
            raise UsageError(f"t2017_noam: d_model is {d_model}, warmup {cfg.warmup_updates}: both must be at least 1")
        self.d_model: int = d_model
        logger.info(
            f"learning rate by equation (3): d_model {d_model}, warmup {cfg.warmup_updates} updates, "
            f"scale {cfg.noam_scale}; --lr has no say"
        )
        self.step_update(0)

    def step(self, epoch: int, val_loss: float | None = None) -> float:
        """Nothing changes at the end of an epoch."""
        super().step(epoch, val_loss)
        return self.optimizer.get_lr()

    def step_update(self, num_updates: int) -> float:
        """Sets the rate of update ``num_updates + 1``."""
        self.optimizer.set_lr(noam(num_updates + 1, self.d_model, self.cfg.warmup_updates, self.cfg.noam_scale))
        return self.optimizer.get_lr()
