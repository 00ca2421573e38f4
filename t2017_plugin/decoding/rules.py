"""What differs between the authors' search and stock fairseq's: which hypotheses finish, and when a sentence is done.

paper   tensor2tensor 1.0.14, utils/beam_search.py: all of the best 2 * beam continuations that end compete with
        the finished ones; done when the worst finished one beats what the best alive one could still reach
stock   fairseq, sequence_generator.py: only ends among the best beam continuations count, in the order in which
        they come; done with as many as the beam; at the limit EOS is forced
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from t2017_plugin.decoding.history import Finished
from t2017_plugin.decoding.length_penalty import length_penalty


@dataclass(frozen=True)
class SearchSettings:
    """What the search is asked for; lengths are generated tokens with EOS."""

    beam: int = 4
    alpha: float = 0.6
    form: str = "gnmt"
    min_length: int = 0
    # How many of the best hypotheses are wanted; the paper's search of a sentence stops when they are settled.
    settled: int = 4


class PaperRule:
    """The authors' rule, for each sentence by itself. ``limits``: most tokens of each sentence."""

    eos_at_limit = False

    def __init__(self, settings: SearchSettings, limits: Sequence[int], device: torch.device) -> None:
        self.settings = settings
        penalties = [length_penalty(limit, settings.alpha, settings.form) for limit in limits]
        self.penalty_at_limit = torch.tensor(penalties, device=device)

    def finish(self, old: Finished, ends: Tensor, log_p: Tensor, cell: Tensor, length: int) -> Finished:
        """The best of the finished hypotheses and of the candidates that end here.

        Shape:
            ends, log_p, cell: (B, candidates), best first
        """
        score = log_p / length_penalty(length, self.settings.alpha, self.settings.form)
        new = Finished(score.masked_fill_(~ends, -torch.inf), log_p, cell)
        return old.best_with(new, torch.cat([old.score, new.score], dim=1))

    def done(self, finished: Finished, alive_log_p: Tensor) -> Tensor:
        """Where even the last of the wanted hypotheses beats what the best alive one could still reach. Shape: (B,)."""
        wanted = finished.score[:, : self.settings.settled]
        # Sorted, best first: those that are there end with the worst of them.
        worst = torch.where(wanted.isneginf(), torch.inf, wanted).amin(dim=1)
        return worst.isfinite() & (worst > alive_log_p[:, 0] / self.penalty_at_limit)

    def keep(self, sentences: Tensor) -> None:
        """Goes on with these sentences. Shape: (new B,)."""
        self.penalty_at_limit = self.penalty_at_limit[sentences]


class StockRule:
    """fairseq's rule; its limit is one for the whole batch, as it depends on the longest source there."""

    eos_at_limit = True

    def __init__(self, settings: SearchSettings) -> None:
        self.settings = settings

    def finish(self, old: Finished, ends: Tensor, log_p: Tensor, cell: Tensor, length: int) -> Finished:
        """Fills the free places in the order of the candidates. Shape: ends, log_p, cell: (B, candidates)."""
        beam = self.settings.beam
        ends = ends[:, :beam] & log_p[:, :beam].isfinite()
        score = log_p[:, :beam] / length_penalty(length, self.settings.alpha, self.settings.form)
        new = Finished(score.masked_fill_(~ends, -torch.inf), log_p[:, :beam], cell[:, :beam])
        there = torch.cat([old.score, new.score], dim=1).isfinite()
        order = torch.arange(there.size(1), 0, -1, device=there.device)
        return old.best_with(new, there * order)

    def done(self, finished: Finished, alive_log_p: Tensor) -> Tensor:
        """Where as many hypotheses have finished as the beam is wide. Shape: (B,)."""
        return finished.score.isfinite().all(dim=1)

    def keep(self, sentences: Tensor) -> None:
        """Nothing is kept by sentence."""
