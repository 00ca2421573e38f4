"""``t2017_translation``: fairseq's translation task with the paper's search and every sentence kept (section 6.1)."""

import copy
import functools
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from omegaconf import OmegaConf, open_dict

from t2017_plugin.checkpoints.selection import SAVED_BY
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.dictionary import load_dictionary
from t2017_plugin.fairseq_side.distributed import refuse_unjoined_processes
from t2017_plugin.fairseq_side.divergence import stop_if_diverged
from t2017_plugin.fairseq_side.generator import PaperGenerator
from t2017_plugin.fairseq_side.hub import PAPER_GENERATION
from t2017_plugin.fairseq_side.saving import CheckpointClock, prepare_training
from t2017_plugin.fairseq_side.stock_search import StockSearch, can_search

# fairseq drops pairs, the longest test sentences among them, when a last batch is not a multiple of its default 8.
KEEP_EVERY_SENTENCE = {"required_batch_size_multiple": 1}
ANY_LENGTH = 1_000_000


@dataclass
class T2017TranslationConfig(TranslationConfig):
    """fairseq's settings of the task, and the search's."""

    search: ChoiceEnum(["paper", "stock"]) = field(  # type: ignore[valid-type]
        default="paper", metadata={"help": "beam search as the authors ran it, or fairseq's own with all its rules"}
    )
    length_penalty_form: ChoiceEnum(["gnmt", "power"]) = field(  # type: ignore[valid-type]
        default="gnmt", metadata={"help": "gnmt: ((5 + length) / 6)^alpha, the paper's; power: length^alpha, stock's"}
    )
    extra_length: int = field(
        default=50,
        metadata={"help": "generated tokens with EOS <= source tokens with EOS + this, for each sentence by itself"},
    )
    save_interval_minutes: float = field(
        default=0.0,
        metadata={"help": "write a checkpoint every N minutes of training as well (section 6.1: 10); 0 is off"},
    )
    left_pad_source: bool = field(default=False, metadata={"help": "pad the source on the left"})
    max_source_positions: int = field(default=ANY_LENGTH, metadata={"help": "max number of tokens in the source"})
    max_target_positions: int = field(default=ANY_LENGTH, metadata={"help": "max number of tokens in the target"})


@register_task("t2017_translation", dataclass=T2017TranslationConfig)
class T2017TranslationTask(TranslationTask):
    """Translation with beam 4 and alpha 0.6 by default; flags given on the command line win."""

    searches_as_the_paper = True
    checkpoint_clock: CheckpointClock | None = None
    saved_by: Sequence[str] = ()
    updates_in_all: int = 0  # --max-update, 0 where the run has no such end

    @classmethod
    def add_args(cls, parser: Any) -> None:
        """Adds the task's flags and puts the paper's values in place of fairseq's defaults."""
        super().add_args(parser)
        parser.set_defaults(**PAPER_GENERATION, **KEEP_EVERY_SENTENCE)

    @classmethod
    def load_dictionary(cls, filename: str) -> Dictionary:
        """A dictionary of fairseq's, or of an imported Tensor2Tensor model, which has that model's ids."""
        return load_dictionary(filename)

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> Any:
        """Builds the model; a training process that a launcher started but fairseq did not join is refused."""
        if not from_checkpoint:
            refuse_unjoined_processes()
            if self.cfg.save_interval_minutes < 0:
                raise UsageError(f"--save-interval-minutes is {self.cfg.save_interval_minutes}: it must be 0 or more")
            prepare_training()
        return super().build_model(cfg, from_checkpoint)

    def get_batch_iterator(self, dataset: Any, *settings: Any, epoch: int = 1, **more: Any) -> Any:
        """fairseq's iterator over batches, which are made once, and as in the first epoch wherever a run goes on from.

        fairseq makes them anew when a run is gone on with, ordering sentences of equal length by the epoch's number:
        gone on with after its first epoch, a run would not be the one that was not interrupted.
        """
        made_once = self.can_reuse_epoch_itr(dataset) and not (
            more.get("disable_iterator_cache") or more.get("update_epoch_batch_itr")
        )
        if not made_once or dataset in self.dataset_to_epoch_iter:
            return super().get_batch_iterator(dataset, *settings, epoch=epoch, **more)
        iterator = super().get_batch_iterator(dataset, *settings, epoch=1, **more)
        iterator.epoch = max(epoch, 1)
        return iterator

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """What goes into every checkpoint: whether the number of updates or the clock asked for it."""
        return {SAVED_BY: list(self.saved_by)}

    def build_generator(
        self,
        models: Any,
        args: Any,
        seq_gen_cls: Any = None,
        extra_gen_cls_kwargs: dict[str, Any] | None = None,
        prefix_allowed_tokens_fn: Any = None,
    ) -> Any:
        """The paper's search, or fairseq's with ``--search stock``.

        Raises:
            UsageError: a setting asks for what the paper's search does not do.
        """
        if str(self.cfg.search) == "stock" or getattr(args, "score_reference", False):
            args = stock_settings(args)
            others = seq_gen_cls or extra_gen_cls_kwargs or prefix_allowed_tokens_fn
            if not others and not getattr(args, "score_reference", False) and can_search(models, args):
                fairseqs = functools.partial(super().build_generator, models, args)
                return StockSearch(models, self.target_dictionary, args, fairseqs)
            return super().build_generator(models, args, seq_gen_cls, extra_gen_cls_kwargs, prefix_allowed_tokens_fn)
        return PaperGenerator(
            models, self.target_dictionary, args, self.cfg.extra_length, str(self.cfg.length_penalty_form)
        )

    def train_step(
        self, sample: Any, model: Any, criterion: Any, optimizer: Any, update_num: int, ignore_grad: bool = False
    ) -> Any:
        """Loss and gradients of a batch; a run that has diverged ends here, in one line."""
        stop_if_diverged(update_num)
        return super().train_step(sample, model, criterion, optimizer, update_num, ignore_grad)

    def optimizer_step(self, optimizer: Any, model: Any, update_num: int) -> None:
        """One update; logs the rate it used, since fairseq's own ``lr`` is that of the next one, and the time left."""
        metrics.log_scalar("lr_used", optimizer.get_lr(), weight=0, priority=310)
        if self.updates_in_all:
            metrics.log_derived("minutes_left", lambda meters: minutes_left(self.updates_in_all, meters), priority=840)
        super().optimizer_step(optimizer, model, update_num)


def minutes_left(updates: int, meters: Any) -> float | None:
    """Until ``updates`` are done, at the speed of the interval that is logged."""
    done, speed = meters.get("num_updates"), meters.get("ups")
    if done is None or speed is None or not speed.avg:
        return None
    return round(max(updates - float(done.val), 0.0) / float(speed.avg) / 60, 1)


def stock_settings(args: Any) -> Any:
    """The same settings with fairseq's own minimum length where none was given."""
    if getattr(args, "min_len", 1) >= 0:
        return args
    settings = copy.copy(args)
    with open_dict(settings) if OmegaConf.is_config(settings) else nullcontext():
        settings.min_len = 1
    return settings
