"""The loss, the optimiser and the schedule of ``paper.training``, registered with fairseq.

``t2017_label_smoothing``, ``t2017_adam`` and ``t2017_noam``: each works with stock fairseq's model and
beside stock's other parts too.
"""

import ast
import copy
import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, List, Optional  # noqa: UP035

import torch
from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from fairseq.optim import FairseqOptimizer, register_optimizer
from fairseq.optim.lr_scheduler import FairseqLRScheduler, register_lr_scheduler
from omegaconf import II
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.guards import refuse_fp16_without_gpu, refuse_unjoined_processes
from t2017_plugin.fast.loss import smoothed_loss
from t2017_plugin.paper.config import EPSILON_FORMS, SMOOTHING_OVER, Training
from t2017_plugin.paper.model import Decoder
from t2017_plugin.paper.training import Adam, learning_rate, smoothed_cross_entropy, smoothing_over_all

logger = logging.getLogger(__name__)


# --- 5.4 Label smoothing -------------------------------------------------------------------------


@dataclass
class T2017LabelSmoothingConfig(FairseqDataclass):
    """Settings of the loss."""

    label_smoothing: float = field(default=Training.eps_ls, metadata={"help": "eps_ls (section 5.4)"})
    smoothing_over: ChoiceEnum(list(SMOOTHING_OVER)) = field(  # type: ignore[valid-type]
        default=Training.smoothing_over,
        metadata={"help": "all: eps/K on every class (the paper's citation); others: eps/(K-1), as T2T and stock"},
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("t2017_label_smoothing", dataclass=T2017LabelSmoothingConfig)
class T2017LabelSmoothing(FairseqCriterion):
    """The smoothed loss for any fairseq model, with the unsmoothed likelihood and its perplexity logged beside it.

    Raises:
        UsageError: epsilon is not in [0, 1).
    """

    def __init__(self, task: Any, label_smoothing: float, smoothing_over: str, sentence_avg: bool) -> None:
        super().__init__(task)
        if not 0.0 <= label_smoothing < 1.0:
            raise UsageError(f"--label-smoothing is {label_smoothing}: it must be in [0, 1)")
        self.epsilon = label_smoothing
        self.over = str(smoothing_over)
        self.sentence_avg = sentence_avg

    def half(self) -> "T2017LabelSmoothing":
        """Hear from fairseq's trainer that ``--fp16`` is on, which a settings file may say too.

        Raises:
            UsageError: there is no GPU.
        """
        refuse_fp16_without_gpu()
        return super().half()

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """Compute a batch's loss, the count to divide it by, and the log.

        The count is of target tokens, or of sentences with ``--sentence-avg``.

        Shape:
            sample["target"]: (B, T) -> a scalar
        """
        loss, likelihood = self.losses(model, sample)
        sample_size = sample["target"].size(0) if self.sentence_avg else sample["ntokens"]
        return (
            loss,
            sample_size,
            {
                "loss": loss.detach(),
                "nll_loss": likelihood.detach(),
                "ntokens": sample["ntokens"],
                "nsentences": sample["target"].size(0),
                "sample_size": sample_size,
            },
        )

    def losses(self, model: Any, sample: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Compute smoothed loss and negative log-likelihood, summed, in nats.

        For this plugin's model the projection is part of the loss and done in slices; any other model, and mixed types
        (fairseq's ``--amp``), go through all log-probabilities.

        Shape:
            sample["target"]: (B, T) -> two scalars
        """
        target = sample["target"]
        decoder = getattr(model, "decoder", None)
        if isinstance(decoder, Decoder):
            features, _ = model(**sample["net_input"], features_only=True)
            weight = decoder.output.weight
            if features.dtype == weight.dtype:
                real = target.ne(self.padding_idx)
                epsilon = smoothing_over_all(self.epsilon, self.over, len(weight))
                if features.device.type == "cpu":
                    return smoothed_loss(features[real], weight, target[real], epsilon)
                # To leave padding out, a GPU would have to say first how much there is.
                counts = real.flatten().float()
                return smoothed_loss(features.flatten(0, 1), weight, target.flatten(), epsilon, counts)
            output = (decoder.logits(features), None)
        else:
            output = model(**sample["net_input"])
        log_p = model.get_normalized_probs(output, log_probs=True).float()
        return smoothed_cross_entropy(log_p, target, self.epsilon, self.padding_idx, self.over)

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log, in bits as all of fairseq does: ``loss`` smoothed, ``nll_loss`` not, ``ppl`` = 2 ^ nll_loss."""

        def total(name: str) -> Any:
            return sum(log.get(name, 0) for log in logging_outputs)

        tokens, sample_size = total("ntokens"), total("sample_size")
        metrics.log_scalar("loss", total("loss") / sample_size / math.log(2), sample_size, round=3)
        metrics.log_scalar("nll_loss", total("nll_loss") / tokens / math.log(2), tokens, round=3)
        metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Let the counts be summed over processes before they are reduced."""
        return True


# --- 5.3 Optimiser -------------------------------------------------------------------------------


@dataclass
class T2017AdamConfig(FairseqDataclass):
    """Settings of the optimiser; the paper's are the defaults."""

    adam_betas: Any = field(
        default=(Training.beta_1, Training.beta_2), metadata={"help": "beta_1 and beta_2 (section 5.3)"}
    )
    adam_eps: float = field(default=Training.epsilon, metadata={"help": "epsilon (section 5.3)"})
    adam_epsilon_form: ChoiceEnum(list(EPSILON_FORMS)) = field(  # type: ignore[valid-type]
        default=Training.epsilon_form,
        metadata={"help": "paper: epsilon after the bias correction; t2t: before it, as TensorFlow and stock fairseq"},
    )
    weight_decay: float = field(
        default=0.0, metadata={"help": "decay of the weights themselves, as fairseq's Adam does it; the paper has none"}
    )
    lr: List[float] = II("optimization.lr")  # noqa: UP006  (fairseq reads no newer form)


@register_optimizer("t2017_adam", dataclass=T2017AdamConfig)
class T2017Adam(FairseqOptimizer):
    """The paper's optimiser for fairseq, in one fused call of torch; its state is saved with the checkpoint."""

    def __init__(self, cfg: Any, params: Iterable[Any]) -> None:
        super().__init__(cfg)
        refuse_unjoined_processes()
        settings = {"epsilon" if name == "eps" else name: value for name, value in self.optimizer_config.items()}
        self._optimizer = Adam(params, epsilon_form=str(cfg.adam_epsilon_form), fused=True, **settings)

    def load_state_dict(self, state_dict: dict[str, Any], optimizer_overrides: dict[str, Any] | None = None) -> None:
        """Resume from a checkpoint's state, on a GPU or not."""
        super().load_state_dict(in_the_layout_of(list(self.params), state_dict), optimizer_overrides)

    @property
    def optimizer_config(self) -> dict[str, Any]:
        """Say what a resumed run takes from its command line instead of the checkpoint."""
        return {
            # Overwritten by the schedule before the first update.
            "lr": float(self.cfg.lr[0] if isinstance(self.cfg.lr, Sequence) else self.cfg.lr),
            "betas": read_betas(self.cfg.adam_betas),
            "eps": self.cfg.adam_eps,
            "weight_decay": self.cfg.weight_decay,
        }


def read_betas(value: Any) -> tuple[float, float]:
    """Read beta_1 and beta_2 from a pair, or from text such as '(0.9, 0.98)'.

    Raises:
        UsageError: it is not two numbers in [0, 1).
    """
    try:
        first, second = (float(beta) for beta in (ast.literal_eval(value) if isinstance(value, str) else value))
    except (ValueError, SyntaxError, TypeError):
        first = second = math.nan
    if not (0.0 <= first < 1.0 and 0.0 <= second < 1.0):
        raise UsageError(f"--adam-betas is {value!r}: give two numbers in [0, 1), as in '(0.9, 0.98)'")
    return first, second


def in_the_layout_of(parameters: list[Tensor], state: dict[str, Any]) -> dict[str, Any]:
    """Change a saved state whose tensors are flattened into one, or are not, where the parameters are otherwise.

    fairseq flattens the float32 copy of the weights under ``--fp16`` on a GPU, and only there; so a run that is
    resumed on another kind of machine would find a state of another layout.

    Shape:
        parameters: any
    """
    groups, stored = state["param_groups"], state["state"]
    count = sum(len(group["params"]) for group in groups)
    if len(groups) != 1 or count == len(parameters) or 1 not in (count, len(parameters)) or not stored:
        return state
    moments = [name for name, value in stored[0].items() if torch.is_tensor(value) and value.dim()]
    if count == 1:
        parts = {name: stored[0][name].flatten().split([each.numel() for each in parameters]) for name in moments}
        new = {
            # copied: each counts its own updates
            i: {**copy.deepcopy(stored[0]), **{name: parts[name][i].view_as(each).clone() for name in moments}}
            for i, each in enumerate(parameters)
        }
    else:
        joined = {name: torch.cat([stored[i][name].flatten() for i in range(count)]) for name in moments}
        new = {0: {**stored[0], **joined}}
    return {**state, "state": new, "param_groups": [{**groups[0], "params": list(new)}]}


# --- 5.3 Learning rate ---------------------------------------------------------------------------


@dataclass
class T2017NoamConfig(FairseqDataclass):
    """Settings of the schedule; the paper's are the defaults."""

    warmup_updates: int = field(
        default=Training.warmup_steps, metadata={"help": "warmup_steps of equation (3), in updates"}
    )
    noam_scale: float = field(default=1.0, metadata={"help": "factor on equation (3); 1 is the paper"})
    noam_d_model: Optional[int] = field(  # noqa: UP045  (fairseq reads no newer form)
        default=None, metadata={"help": "d_model of equation (3) for a model that has no d_model of its own"}
    )
    # Same name as the model's field, so that both read one flag; null for a model without it.
    d_model: Optional[int] = "${oc.select:model.d_model,null}"  # type: ignore[assignment]  # noqa: UP045
    max_update: int = II("optimization.max_update")


@register_lr_scheduler("t2017_noam", dataclass=T2017NoamConfig)
class T2017Noam(FairseqLRScheduler):
    """Set the learning rate before each update; ``--lr`` has no say, which is said once.

    fairseq calls a schedule with the number of updates done so far, and equation (3) counts from 1: the rate of the
    next update is computed with that number plus 1. The log has ``minutes_left`` until ``--max-update``.

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
        """Change nothing at the end of an epoch."""
        super().step(epoch, val_loss)
        return self.optimizer.get_lr()

    def step_update(self, num_updates: int) -> float:
        """Set the rate of update ``num_updates + 1``, and log the time left."""
        rate = learning_rate(num_updates + 1, self.d_model, self.cfg.warmup_updates, self.cfg.noam_scale)
        self.optimizer.set_lr(rate)
        updates = self.cfg.max_update
        # Without a whole configuration around it, the setting is still a reference to one.
        if isinstance(updates, int) and updates and num_updates:
            metrics.log_derived("minutes_left", lambda meters: minutes_left(updates, meters), priority=840)
        return self.optimizer.get_lr()


def minutes_left(updates: int, meters: Any) -> float | None:
    """Compute the minutes until ``updates`` are done, at the speed of the interval that is logged."""
    done, speed = meters.get("num_updates"), meters.get("ups")
    if done is None or speed is None or not speed.avg:
        return None
    return round(max(updates - float(done.val), 0.0) / float(speed.avg) / 60, 1)
