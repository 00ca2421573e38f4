"""The paper's batch: about 25,000 source and 25,000 target tokens per update over all devices (section 5.1).

fairseq's ``--max-tokens`` limits, for each batch of a device, sentences times the longest of them on either side:
padding counts, and so does the longer side for both. An update therefore holds fewer real tokens than devices times
``--update-freq`` times ``--max-tokens``. Here fairseq's own batching is run on a data-bin's lengths and counted.

Tokens are BPE units with EOS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from fairseq.data import data_utils

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.tasks import T2017TranslationConfig, T2017TranslationTask
from t2017_plugin.markdown import table
from t2017_plugin.paper.config import Training

Integers = npt.NDArray[np.integer[Any]]

PAPER = Training()
SEED = 1  # fairseq's default; it decides the order of sentences of equal length

# Tensor2Tensor 1.0.14, data_reader.py: upper bounds of the buckets, and positions per device and bucket.
T2T_BOUNDS = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
T2T_POSITIONS = 4_096


@dataclass(frozen=True)
class Lengths:
    """Tokens of every pair of a split, both sides with EOS, and fairseq's order of them."""

    dataset: Any  # fairseq's, which makes the batches
    source: Integers
    target: Integers
    order: Integers


@dataclass(frozen=True)
class UpdateContent:
    """What an update holds: pairs and tokens, means over an epoch; ``padded`` counts padding as well."""

    updates_per_epoch: float
    sentences: float
    source: float
    target: float
    source_padded: float
    target_padded: float
    left_out: int

    @property
    def tokens(self) -> float:
        """The mean of source and target tokens, padding left out."""
        return (self.source + self.target) / 2

    def as_dict(self) -> dict[str, float]:
        """Return it under the names it has in JSON."""
        fields = asdict(self)
        return {"updates_an_epoch": fields.pop("updates_per_epoch"), **fields}


def default_update_freq(devices: int) -> int:
    """Return how many batches a device takes for an update, so that each is about as large as on the paper's GPUs."""
    return math.ceil(PAPER.gpus / devices)


def read_lengths(data_bin: Path, split: str = "train", source: str | None = None, target: str | None = None) -> Lengths:
    """Read the lengths of a split of a data-bin, through fairseq's own task.

    Raises:
        UsageError: there is no such folder, split or language pair.
    """
    if not data_bin.is_dir():
        raise UsageError(f"{data_bin}: no such folder; name what fairseq-preprocess wrote (--destdir)")
    if not list(data_bin.glob(f"{split}.*.idx")):
        raise UsageError(f"{data_bin} holds no {split}.*.idx; name what fairseq-preprocess wrote (--destdir)")
    config = T2017TranslationConfig(
        data=str(data_bin),
        source_lang=source,
        target_lang=target,
        # Borrowed from other sections of a whole configuration, which there is none of here.
        dataset_impl=None,
        train_subset=split,
        required_seq_len_multiple=1,
    )
    try:
        task = T2017TranslationTask.setup_task(config)
        task.load_dataset(split)
    except (FileNotFoundError, OSError) as error:
        raise UsageError(f"{data_bin}: {error}") from error
    dataset = task.dataset(split)
    with data_utils.numpy_seed(SEED + 1):
        order = dataset.ordered_indices()
    return Lengths(dataset, np.asarray(dataset.src_sizes), np.asarray(dataset.tgt_sizes), order)


def fairseq_update(
    lengths: Lengths, max_tokens: int, update_freq: int, devices: int, multiple: int = 1
) -> UpdateContent:
    """Count what fairseq-train puts into an update, over the batches of one epoch.

    Pairs longer than ``max_tokens`` are left out, as fairseq-train does. Devices take batches in
    turn; the last update of an epoch is what is left.

    Raises:
        UsageError: every pair is longer than that.
    """
    order = lengths.order
    longest = np.maximum(lengths.source[order], lengths.target[order])
    kept = order[longest <= max_tokens]
    batches = lengths.dataset.batch_by_size(kept, max_tokens=max_tokens, required_batch_size_multiple=multiple)
    if not len(batches):
        raise UsageError(f"--max-tokens {max_tokens}: no pair is that short; choose more")
    updates = math.ceil(math.ceil(len(batches) / devices) / update_freq)
    source = sum(len(batch) * int(lengths.source[batch].max()) for batch in batches)
    target = sum(len(batch) * int(lengths.target[batch].max()) for batch in batches)
    taken = np.concatenate(batches)
    return UpdateContent(
        updates_per_epoch=updates,
        sentences=len(taken) / updates,
        source=int(lengths.source[taken].sum()) / updates,
        target=int(lengths.target[taken].sum()) / updates,
        source_padded=source / updates,
        target_padded=target / updates,
        left_out=len(order) - len(taken),
    )


def t2t_update(lengths: Lengths, devices: int = PAPER.gpus) -> UpdateContent:
    """Count what Tensor2Tensor 1.0.14 puts into an update: 4,096 positions per device, in buckets by length.

    The length of a pair is that of its longer side. A bucket with the upper bound b gives batches
    of 4096 // b pairs for each device; longer pairs than the last bound are left out. Padding is
    counted up to the bound.

    Raises:
        UsageError: every pair is longer than the last bound.
    """
    length = np.maximum(lengths.source, lengths.target)
    updates, kept, padded = 0.0, np.zeros(len(length), dtype=bool), 0.0
    for lower, upper in zip((0, *T2T_BOUNDS), T2T_BOUNDS, strict=False):
        inside = (length > lower) & (length <= upper)
        updates += int(inside.sum()) / (T2T_POSITIONS // upper * devices)
        padded += int(inside.sum()) * upper
        kept |= inside
    if not updates:
        raise UsageError(f"no pair has at most {T2T_BOUNDS[-1]} tokens per side")
    source, target = int(lengths.source[kept].sum()), int(lengths.target[kept].sum())
    return UpdateContent(
        updates_per_epoch=updates,
        sentences=int(kept.sum()) / updates,
        source=source / updates,
        target=target / updates,
        source_padded=padded / updates,
        target_padded=padded / updates,
        left_out=int(len(length) - kept.sum()),
    )


def fit_max_tokens(lengths: Lengths, tokens: int, update_freq: int, devices: int) -> int:
    """Choose the ``--max-tokens`` whose updates hold ``tokens`` real tokens, the mean of both sides, to half a percent.

    Where the data is too small for that, the nearest that was tried.
    """
    limit = max(1, round(tokens / (devices * update_freq)))
    tried: dict[int, float] = {}
    for _ in range(12):
        if limit in tried:
            break
        tried[limit] = fairseq_update(lengths, limit, update_freq, devices).tokens
        if abs(tried[limit] / tokens - 1) < 0.005:
            break
        limit = max(int(lengths.target.min()), 1, round(limit * tokens / tried[limit]))
    return min(tried, key=lambda each: abs(tried[each] - tokens))


def side_by_side(rows: Sequence[tuple[str, UpdateContent]]) -> str:
    """Return updates side by side as a Markdown table, one per line."""
    heading = ("", "updates per epoch", "pairs", "source", "target", "source, padded", "target, padded", "left out")
    cells = []
    for name, row in rows:
        numbers = (row.updates_per_epoch, row.sentences, row.source, row.target, row.source_padded, row.target_padded)
        cells.append([name, *(f"{number:,.0f}" for number in numbers), f"{row.left_out:,}"])
    return table(heading, cells)
