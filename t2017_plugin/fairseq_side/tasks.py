"""The tasks: ``t2017_translation`` (section 6.1) and ``t2017_parsing`` (section 6.3).

fairseq's translation task with the paper's search, and with every sentence kept. Parsing is
translation into a linearised tree, with a dictionary for each side, beam 21, alpha 0.3 and at most
300 tokens more than the source.
"""

import copy
import functools
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from fairseq.tasks import register_task
from fairseq.tasks.translation import EVAL_BLEU_ORDER, TranslationConfig, TranslationTask
from omegaconf import OmegaConf, open_dict
from sacrebleu.metrics import BLEU

from t2017_plugin.fairseq_side.dictionary import load_dictionary
from t2017_plugin.fairseq_side.generator import AlignedScorer, PaperGenerator, is_ours
from t2017_plugin.fairseq_side.guards import refuse_unjoined_processes, stop_if_diverged
from t2017_plugin.fairseq_side.patches import stop_loading_at_exit, write_whole_checkpoints
from t2017_plugin.fairseq_side.settings import PARSING_GENERATION, TRANSLATION_GENERATION
from t2017_plugin.fairseq_side.stock_search import StockSearch, can_search
from t2017_plugin.paper.config import LENGTH_PENALTIES, PARSING_SEARCH, TRANSLATION_SEARCH

# fairseq drops pairs, the longest test sentences among them, when a last batch is not a multiple of its default 8.
KEEP_EVERY_SENTENCE = {"required_batch_size_multiple": 1}
ANY_LENGTH = 1_000_000
EXTRA_LENGTH = "generated tokens with EOS <= source tokens with EOS + this, for each sentence by itself"


@dataclass
class T2017TranslationConfig(TranslationConfig):
    """fairseq's settings of the task, and the search's."""

    search: ChoiceEnum(["paper", "stock"]) = field(  # type: ignore[valid-type]
        default="paper", metadata={"help": "beam search as the authors ran it, or fairseq's own with all its rules"}
    )
    length_penalty_form: ChoiceEnum(list(LENGTH_PENALTIES)) = field(  # type: ignore[valid-type]
        default=TRANSLATION_SEARCH.length_penalty,
        metadata={"help": "gnmt: ((5 + length) / 6)^alpha, the paper's; power: length^alpha, stock's"},
    )
    extra_length: int = field(default=TRANSLATION_SEARCH.extra, metadata={"help": EXTRA_LENGTH})
    left_pad_source: bool = field(default=False, metadata={"help": "pad the source on the left"})
    max_source_positions: int = field(default=ANY_LENGTH, metadata={"help": "max number of tokens in the source"})
    max_target_positions: int = field(default=ANY_LENGTH, metadata={"help": "max number of tokens in the target"})


@register_task("t2017_translation", dataclass=T2017TranslationConfig)
class T2017TranslationTask(TranslationTask):
    """Translation with beam 4 and alpha 0.6 by default; flags given on the command line win."""

    searches_as_the_paper = True
    generation = TRANSLATION_GENERATION

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Add the task's flags, and put the paper's values in place of fairseq's defaults."""
        super().add_args(parser)
        parser.set_defaults(**cls.generation, **KEEP_EVERY_SENTENCE)

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        """Load a dictionary of fairseq's, or of an imported Tensor2Tensor model, which has that model's ids."""
        return load_dictionary(filename)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Build the model.

        Raises:
            UsageError: a launcher started this training process among others, and fairseq did not join it.
        """
        if not from_checkpoint:
            refuse_unjoined_processes()
            write_whole_checkpoints()
            stop_loading_at_exit()
        return super().build_model(cfg, from_checkpoint)

    def get_batch_iterator(self, dataset: Any, *settings: Any, epoch: int = 1, **more: Any) -> Any:
        """Make fairseq's iterator over batches, which are those of the first epoch wherever a run is resumed.

        fairseq makes the batches anew when a run is resumed, and orders sentences of equal length by the epoch's
        number: resumed after its first epoch, a run would not be the one that was not interrupted.
        """
        made_once = self.can_reuse_epoch_itr(dataset) and not (
            more.get("disable_iterator_cache") or more.get("update_epoch_batch_itr")
        )
        if not made_once or dataset in self.dataset_to_epoch_iter:
            return super().get_batch_iterator(dataset, *settings, epoch=epoch, **more)
        iterator = super().get_batch_iterator(dataset, *settings, epoch=1, **more)
        iterator.epoch = max(epoch, 1)
        return iterator

    def build_generator(
        self,
        models: Any,
        args: Any,
        seq_gen_cls: Any = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Any = None,
    ) -> Any:
        """Build the paper's search, or fairseq's with ``--search stock``.

        Raises:
            UsageError: a setting asks for what the paper's search does not do.
        """
        alignment = getattr(args, "print_alignment", None)
        if getattr(args, "score_reference", False) and alignment and all(is_ours(model) for model in models):
            return AlignedScorer(self.target_dictionary, str(alignment))
        if str(self.cfg.search) == "stock" or getattr(args, "score_reference", False):
            args = with_stock_minimum(args)
            others = seq_gen_cls or extra_gen_cls_kwargs or prefix_allowed_tokens_fn
            if not others and not getattr(args, "score_reference", False) and can_search(models, args):
                fairseqs = functools.partial(super().build_generator, models, args)
                return StockSearch(models, self.target_dictionary, args, fairseqs)
            return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        return PaperGenerator(
            models, self.target_dictionary, args, self.cfg.extra_length, str(self.cfg.length_penalty_form)
        )

    def reduce_metrics(self, logging_outputs: Any, criterion: Any) -> None:
        """As fairseq, and BLEU 0 where every translation of a batch is empty: fairseq then logs none.

        Training with ``--best-checkpoint-metric bleu`` ended there with ``KeyError: 'bleu'``.
        """
        super().reduce_metrics(logging_outputs, criterion)
        searched = [log for log in logging_outputs if "_bleu_sys_len" in log]
        if searched and not any(log[f"_bleu_totals_{n}"] for log in searched for n in range(EVAL_BLEU_ORDER)):
            for name in ("_bleu_counts", "_bleu_totals"):
                metrics.log_scalar(name, np.zeros(EVAL_BLEU_ORDER))
            for name in ("_bleu_sys_len", "_bleu_ref_len"):
                metrics.log_scalar(name, sum(int(log[name]) for log in searched))
            metrics.log_derived("bleu", bleu_of_sums)

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> Any:
        """Compute loss and gradients of a batch; a run that has diverged ends here, in one line."""
        stop_if_diverged(update_num)
        return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)

    def optimizer_step(self, optimizer: Any, model: Any, update_num: int) -> None:
        """Make one update, and log the rate it used: fairseq's own ``lr`` is that of the next one."""
        metrics.log_scalar("lr_used", optimizer.get_lr(), weight=0, priority=310)
        super().optimizer_step(optimizer, model, update_num)


@dataclass
class T2017ParsingConfig(T2017TranslationConfig):
    """The translation task's settings with the longer limit of section 6.3."""

    extra_length: int = field(default=PARSING_SEARCH.extra, metadata={"help": EXTRA_LENGTH})


@register_task("t2017_parsing", dataclass=T2017ParsingConfig)
class T2017ParsingTask(T2017TranslationTask):
    """Words in, linearised trees out; beam 21 and alpha 0.3 by default, flags given on the command line win."""

    generation = PARSING_GENERATION


def bleu_of_sums(meters: Any) -> float:
    """Compute BLEU, in percent, of all batches that were logged so far, as fairseq does."""
    counts, totals = (meters[name].sum.tolist() for name in ("_bleu_counts", "_bleu_totals"))
    system, reference = (int(meters[name].sum) for name in ("_bleu_sys_len", "_bleu_ref_len"))
    return round(float(BLEU.compute_bleu(counts, totals, system, reference, smooth_method="exp").score), 2)


def with_stock_minimum(args: Any) -> Any:
    """Give the same settings with fairseq's own minimum length where none was given."""
    if getattr(args, "min_len", 1) >= 0:
        return args
    settings = copy.copy(args)
    with open_dict(settings) if OmegaConf.is_config(settings) else nullcontext():
        settings.min_len = 1
    return settings
