"""``--search stock``: fairseq's beam search by its own rules, computed with this plugin's cache.

Every rule is fairseq's (sequence_generator.py): log P / length^alpha, only ends among the best
``beam`` continuations count, a sentence is done with as many as the beam, one limit on length for
the whole batch, EOS forced there. Its hypotheses and scores are those of fairseq's
``SequenceGenerator`` up to float32 rounding; tests/parity/test_stock_search.py holds the two
together. What only fairseq's generator does (sampling, constraints, prefixes, ...) is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor

from t2017_plugin.fairseq_side.generator import OTHER_SEARCHES, SearchGenerator
from t2017_plugin.fairseq_side.model import T2017Decoder
from t2017_plugin.paper.config import Search
from t2017_plugin.paper.search import Finished, Rule, length_penalty

# Flags with which fairseq's own generator is needed, beside those of other searches.
FAIRSEQ_ONLY = {**OTHER_SEARCHES, "prefix_size": 0, "print_alignment": None, "prefix_allowed_tokens_fn": None}


class StockRule:
    """fairseq's rule, in the place of ``paper.search.PaperRule``."""

    def __init__(self, search: Search) -> None:
        self.search = search

    def finish(self, old: Finished, ends: Tensor, log_p: Tensor, cell: Tensor, length: int) -> Finished:
        """Fill the free places in the order of the candidates. Shape: ends, log_p, cell: (B, 2 * beam)."""
        beam = self.search.beam
        ends = ends[:, :beam] & log_p[:, :beam].isfinite()
        score = log_p[:, :beam] / length_penalty(length, self.search.alpha, self.search.length_penalty)
        new = Finished(score.masked_fill_(~ends, -torch.inf), log_p[:, :beam], cell[:, :beam])
        there = torch.cat([old.score, new.score], dim=1).isfinite()
        order = torch.arange(there.size(1), 0, -1, device=there.device)
        return old.best_with(new, there * order)

    def is_done(self, finished: Finished, alive_log_p: Tensor) -> Tensor:
        """Count: as many hypotheses must have finished as the beam is wide. Shape: (B, beam) -> (B,)."""
        return finished.score.isfinite().all(dim=1)

    def keep(self, sentences: Tensor) -> None:
        """Remember nothing of single sentences. Shape: (new B,)."""


def can_search(models: Sequence[Any], args: Any) -> bool:
    """Whether these models and flags ask for nothing but plain beam search on this plugin's models."""
    plain = all(getattr(args, name, off) in (off, None) for name, off in FAIRSEQ_ONLY.items())
    return plain and all(isinstance(getattr(model, "decoder", None), T2017Decoder) for model in models)


class StockSearch(SearchGenerator):
    """fairseq's ``SequenceGenerator`` for this plugin's models.

    Args:
        models: one model, or several for an ensemble.
        dictionary: the target dictionary.
        args: fairseq's generation settings: ``beam``, ``lenpen``, ``unnormalized``, ``min_len``, ``max_len_a``,
            ``max_len_b``.
        otherwise: makes fairseq's own generator, for batches with a prefix or constraints.
    """

    eos_at_limit = True

    def __init__(self, models: Sequence[Any], dictionary: Dictionary, args: Any, otherwise: Callable[[], Any]) -> None:
        super().__init__(models, dictionary, args)
        beam = min(int(getattr(args, "beam", 5)), len(dictionary) - 1)
        alpha = 0.0 if getattr(args, "unnormalized", False) else float(getattr(args, "lenpen", 1))
        self.search = Search(beam, alpha, length_penalty="power")
        self.wanted = beam
        self.min_length = int(getattr(args, "min_len", 1))
        self.never = (dictionary.pad(),)
        self.otherwise = otherwise

    def generate(
        self,
        models: Sequence[Any],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Any]]]:
        """As ``SearchGenerator.generate``. Shape: sample["net_input"]["src_tokens"]: (B, S)."""
        if prefix_tokens is None and constraints is None:
            return super().generate(models, sample, bos_token=bos_token)
        found: list[list[dict[str, Any]]] = self.otherwise().generate(
            models, sample, prefix_tokens=prefix_tokens, constraints=constraints, bos_token=bos_token
        )
        return found

    def limits(self, source: Tensor) -> list[int]:
        """Return one limit for all: a * longest source + b tokens and EOS. Shape: source: (B, S), padded."""
        a, b = self.max_len
        longest = min(int(a * source.size(1) + b), self.positions - 1)
        assert self.min_length <= longest, "min_len cannot be larger than max_len"
        return [longest + 1] * source.size(0)

    def rule(self, limits: list[int], device: torch.device) -> Rule:
        """Take fairseq's rule."""
        return StockRule(self.search)
