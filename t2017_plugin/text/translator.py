"""Raw text in, raw text out: one or several trained models with the text pipeline of its data and the task's search.

    from t2017_plugin import Translator
    Translator.load("average.pt", data_bin="data-bin").translate(["Hello ."])

Every line gives exactly one line, in order, whatever it holds; a line without words gives an empty one. Lines are
batched by length, and the search sees to it that nothing depends on the other lines of a batch.
"""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data.data_utils import collate_tokens
from torch import Tensor

from t2017_plugin.checkpoints.loading import load_ensemble
from t2017_plugin.errors import UsageError
from t2017_plugin.files import without_line_ends
from t2017_plugin.text.pipeline import TextPipeline


@dataclass(frozen=True)
class Hypothesis:
    """One translation of a line.

    Attributes:
        text: raw text of the target language.
        words: the same as tokens, BPE units joined.
        score: log P / length penalty in nats, higher is better (a line cut into pieces has the sum of theirs).
        finished: whether it ends in EOS; False where nothing had ended at the limit on length.
    """

    text: str
    words: str
    score: float
    finished: bool = True


EMPTY = Hypothesis("", "", 0.0)
# What to do with a line that is longer than what a model has learned about.
LONG_LINES = ("pieces", "cut")


@dataclass(frozen=True)
class _Piece:
    """A line, or a part of a very long one, as the model reads it."""

    line: int
    place: int
    tokens: Tensor


@dataclass(frozen=True)
class _Found:
    """A hypothesis of a piece: units between spaces, the search's score, whether it ended."""

    units: str
    score: float
    finished: bool


class Translator:
    """Translates lines with a model, or with several as an ensemble.

    Args:
        task: fairseq's task, with its dictionaries.
        models: trained models of that task.
        pipeline: turns raw lines into units and back.
        beam, alpha: the search's width and length penalty (section 6.1).
        max_tokens: source units of a batch, padding included.
        long_lines: lines with more units than ``longest`` are translated in ``pieces``, or ``cut`` off there.
    """

    def __init__(
        self,
        task: Any,
        models: Sequence[Any],
        pipeline: TextPipeline,
        beam: int = 4,
        alpha: float = 0.6,
        max_tokens: int = 4000,
        long_lines: str = LONG_LINES[0],
    ) -> None:
        self.task, self.models, self.pipeline = task, list(models), pipeline
        self.beam, self.alpha, self.max_tokens, self.long_lines = beam, alpha, max_tokens, long_lines
        self.device = next(self.models[0].parameters()).device
        self.dictionary = task.source_dictionary
        self.longest = self._longest_piece()
        # How many source units there were, how many of them the dictionary does not have, and how many lines were cut.
        self.units = self.unknown = self.cut_lines = 0
        self._generator(1)

    @classmethod
    def load(
        cls,
        checkpoint: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        data_bin: str | os.PathLike[str],
        beam: int = 4,
        alpha: float = 0.6,
        max_tokens: int = 4000,
        device: str | None = None,
        precision: str = "fp32",
        long_lines: str = LONG_LINES[0],
    ) -> Translator:
        """Load a checkpoint with the dictionaries and the text settings of the data-bin it was trained on.

        Args:
            checkpoint: a file, or several for an ensemble: the mean of their probabilities.
            device: ``cpu`` or ``cuda``; by default a GPU if there is one.
            precision: ``fp32``, ``fp16`` or ``bf16``, whatever the checkpoint was trained in.

        Raises:
            UsageError: a file is missing or damaged, or checkpoint and data-bin do not belong together.
        """

        checkpoints = [checkpoint] if isinstance(checkpoint, (str, os.PathLike)) else list(checkpoint)
        pipeline = TextPipeline.load(data_bin)
        languages = pipeline.settings.source_lang, pipeline.settings.target_lang
        task, models = load_ensemble(checkpoints, data_bin, *languages, precision=precision)
        for model in models:
            model.to(device or ("cuda" if torch.cuda.is_available() else "cpu"))
            # fairseq's word to a model that its weights do not change any more.
            model.make_generation_fast_()
        return cls(task, models, pipeline, beam, alpha, max_tokens, long_lines)

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Translate raw lines; the result has as many, in the same order."""
        return [hypotheses[0].text for hypotheses in self.hypotheses(lines)]

    def hypotheses(
        self,
        lines: Sequence[str],
        nbest: int = 1,
        progress: Callable[[int], None] | None = None,
        encoded: bool = False,
    ) -> list[list[Hypothesis]]:
        """Return the best translations of each line, best first; at least one and at most ``nbest``.

        Args:
            encoded: the lines are not raw text but units of the dictionary, between spaces.
            progress: called after each batch with the number of lines that are done.

        Raises:
            UsageError: ``nbest`` is larger than the beam.
        """
        if isinstance(lines, str):
            raise UsageError("give a list of lines to translate, not one string")
        generator = self._generator(nbest)
        encode = str if encoded else self.pipeline.encode
        pieces = [piece for number, line in enumerate(lines) for piece in self._pieces(number, encode(line).split())]
        left = [0] * len(lines)
        for piece in pieces:
            left[piece.line] += 1
        done = left.count(0)
        found: list[dict[int, list[_Found]]] = [{} for _ in lines]
        for batch in self._batches(pieces):
            for piece, hypotheses in zip(batch, self._search(generator, batch), strict=True):
                found[piece.line][piece.place] = hypotheses[:nbest]
                left[piece.line] -= 1
                done += not left[piece.line]
            if progress:
                progress(done)
        return [self._joined([parts[place] for place in sorted(parts)]) for parts in found]

    def _generator(self, nbest: int) -> Any:
        return self.task.build_generator(self.models, Namespace(beam=self.beam, lenpen=self.alpha, nbest=nbest))

    def _longest_piece(self) -> int:
        """Most units of a piece without EOS, so that source and longest translation have positions in the model."""
        source = min(model.max_positions()[0] for model in self.models)
        target = min(model.max_positions()[1] for model in self.models)
        room = int(target) - int(getattr(self.task.cfg, "extra_length", 50))
        return max(1, min(LONGEST_PIECE, int(source), room) - 1)

    def _index(self, unit: str) -> int:
        """Return the index of a unit in the dictionary; text that reads like a special symbol does not become one."""
        try:
            index = self.dictionary.index(unit)
        except UsageError:  # of an imported model, which has no symbol for it: padding takes its place, and is not seen
            return int(self.dictionary.unk())
        return index if index >= self.dictionary.nspecial else self.dictionary.unk()

    def _pieces(self, number: int, units: list[str]) -> list[_Piece]:
        parts = cut_into_pieces(units, self.longest)
        self.cut_lines += len(parts) > 1
        if self.long_lines == "cut":
            parts = parts[:1]
        pieces = []
        for place, part in enumerate(parts):
            tokens = torch.tensor([*map(self._index, part), self.dictionary.eos()])
            self.units += len(part)
            self.unknown += int(tokens.eq(self.dictionary.unk()).sum())
            pieces.append(_Piece(number, place, tokens))
        return pieces

    def _batches(self, pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
        """Pieces of similar length together, the longest first, at most ``max_tokens`` units with padding."""
        batch: list[_Piece] = []
        for piece in sorted(pieces, key=lambda piece: (-len(piece.tokens), piece.line, piece.place)):
            if batch and (len(batch) + 1) * len(batch[0].tokens) > self.max_tokens:
                yield batch
                batch = []
            batch.append(piece)
        if batch:
            yield batch

    def _search(self, generator: Any, batch: Sequence[_Piece]) -> list[list[_Found]]:
        """Return the hypotheses of a batch, best first."""

        left = bool(getattr(self.task.cfg, "left_pad_source", False))
        tokens = collate_tokens([piece.tokens for piece in batch], self.dictionary.pad(), left_pad=left)
        lengths = torch.tensor([len(piece.tokens) for piece in batch])
        net_input = {"src_tokens": tokens.to(self.device), "src_lengths": lengths.to(self.device)}
        results = self.task.inference_step(generator, self.models, {"net_input": net_input})
        target = self.task.target_dictionary
        return [
            [
                _Found(target.string(found["tokens"].cpu()), float(found["score"]), bool(found.get("finished", True)))
                for found in result
            ]
            for result in results
        ]

    def _joined(self, parts: Sequence[list[_Found]]) -> list[Hypothesis]:
        """Return the hypotheses of a line from those of its pieces, the n-th from the n-th of each."""
        if not parts:
            return [EMPTY]
        joined = []
        for rank in range(min(len(part) for part in parts)):
            units = " ".join(part[rank].units for part in parts)
            text, words = self.pipeline.decode(units), self.pipeline.words(units)
            score = sum(part[rank].score for part in parts)
            finished = all(part[rank].finished for part in parts)
            joined.append(Hypothesis(without_line_ends(text), without_line_ends(words), score, finished))
        return joined


# --- Very long lines ----------------------------------------------------------------------------
#
# Very long lines in pieces that a model can take.
#
# Attention needs memory with the square of a line's length, and a model has learned nothing about
# lines much longer than those it was trained on (training pairs end at about 250 tokens). A line of
# more units than ``LONGEST_PIECE`` is cut at sentence ends if there are any, else between words.

LONGEST_PIECE = 512  # units, EOS included
SENTENCE_ENDS = (".", "!", "?", "...", ";", ":", "。", "！", "？")
SEPARATOR = "@@"


def cut_into_pieces(units: Sequence[str], longest: int) -> list[Sequence[str]]:
    """Cut units into pieces of at most ``longest``; joined they are the same units. No units give no piece."""
    pieces = []
    start = 0
    while len(units) - start > longest:
        end = _cut(units, start, longest)
        pieces.append(units[start:end])
        start = end
    if start < len(units):
        pieces.append(units[start:])
    return pieces


def _cut(units: Sequence[str], start: int, longest: int) -> int:
    """Where the piece from ``start`` ends: after the last sentence end of its second half, else after the last word."""
    limit, half = start + longest, start + longest // 2
    for end in range(limit, half, -1):
        if units[end - 1] in SENTENCE_ENDS:
            return end
    for end in range(limit, half, -1):
        if not units[end - 1].endswith(SEPARATOR):
            return end
    return limit
