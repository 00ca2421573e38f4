"""Label smoothing (section 5.4, after Szegedy et al. 2015).

    loss = -sum_k q'(k) log p(k),   q'(k) = (1 - eps) * [k = y] + eps / K             --smoothing-over all
                                    q'(k) = (1 - eps) * [k = y] + eps / (K - 1) * [k != y]           others

K counts all rows of the output matrix. ``all`` is what the paper cites; ``others`` is what the authors' code and stock
fairseq compute. The second is the first with eps * K / (K - 1) in place of eps.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from fairseq import utils
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.precision import refuse_fp16_without_gpu
from t2017_plugin.fast.chunked_loss import smoothed_loss
from t2017_plugin.modules.decoder import Decoder


@dataclass
class T2017LabelSmoothingConfig(FairseqDataclass):
    """Settings of the loss."""

    label_smoothing: float = field(default=0.1, metadata={"help": "eps_ls (section 5.4)"})
    smoothing_over: ChoiceEnum(["all", "others"]) = field(  # type: ignore[valid-type]
        default="all",
        metadata={"help": "all: eps/K on every class (the paper's citation); others: eps/(K-1), as T2T and stock"},
    )
    sentence_avg: bool = II("optimization.sentence_avg")


def mass_over_all(epsilon: float, over: str, classes: int) -> float:
    """The eps that, spread over all classes, gives the same q' as ``epsilon`` spread as ``over`` says."""
    return epsilon * classes / (classes - 1) if over == "others" else epsilon


def smoothed_cross_entropy(
    log_probabilities: Tensor, target: Tensor, epsilon: float, over: str, padding_index: int
) -> tuple[Tensor, Tensor]:
    """Smoothed loss and plain negative log-likelihood, both in nats and summed over target tokens with EOS.

    Shape:
        log_probabilities: (B, T, V) in float32; target: (B, T), padding weighs nothing -> two scalars
    """
    epsilon = mass_over_all(epsilon, over, log_probabilities.size(-1))
    padding = target.eq(padding_index)
    likelihood = log_probabilities.gather(-1, target.unsqueeze(-1)).squeeze(-1).masked_fill(padding, 0.0).sum()
    uniform = log_probabilities.mean(dim=-1).masked_fill(padding, 0.0).sum()
    return -((1.0 - epsilon) * likelihood + epsilon * uniform), -likelihood


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
        """Called by fairseq's trainer for ``--fp16``; the command line is checked earlier, a settings file is not.

        Raises:
            UsageError: there is no GPU.
        """
        refuse_fp16_without_gpu()
        return super().half()

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """Loss of a batch, the count to divide it by (target tokens, or sentences with --sentence-avg), the log."""
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
        """Smoothed loss and negative log-likelihood, summed, in nats.

        For this plugin's model the projection is part of the loss and done in slices; any other model, and mixed types
        (fairseq's ``--amp``), go through all log-probabilities.
        """
        target = sample["target"]
        if isinstance(getattr(model, "decoder", None), Decoder):
            features, _ = model(**sample["net_input"], features_only=True)
            weight = model.decoder.output.weight
            if features.dtype == weight.dtype:
                real = target.ne(self.padding_idx)
                epsilon = mass_over_all(self.epsilon, self.over, len(weight))
                if features.device.type == "cpu":
                    return smoothed_loss(features[real], weight, target[real], epsilon)
                # To leave padding out, a GPU would have to tell the CPU first how much there is.
                weighs = real.flatten().float()
                return smoothed_loss(features.flatten(0, 1), weight, target.flatten(), epsilon, weighs)
            output = (model.decoder.output_layer(features), None)
        else:
            output = model(**sample["net_input"])
        log_probabilities = model.get_normalized_probs(output, log_probs=True).float()
        return smoothed_cross_entropy(log_probabilities, target, self.epsilon, self.over, self.padding_idx)

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Logs, in bits as all of fairseq does: ``loss`` smoothed, ``nll_loss`` not, ``ppl`` = 2 ^ nll_loss a token."""

        def total(name: str) -> Any:
            return sum(log.get(name, 0) for log in logging_outputs)

        tokens, sample_size = total("ntokens"), total("sample_size")
        metrics.log_scalar("loss", total("loss") / sample_size / math.log(2), sample_size, round=3)
        metrics.log_scalar("nll_loss", total("nll_loss") / tokens / math.log(2), tokens, round=3)
        metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """The counts may be summed over processes before they are reduced."""
        return True
