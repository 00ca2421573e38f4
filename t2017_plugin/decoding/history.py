"""What a search has chosen so far, written once: hypotheses are read back from it when the search is over.

Step t of hypothesis slot i of a sentence holds a token, the slot of step t - 1 that it continues and log P up to there.
A finished hypothesis is a cell (how many steps it continues, and which slot), its log P with EOS and its score; so a
step moves a few numbers, and never a sequence.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.errors import UsageError


@dataclass
class Finished:
    """The finished hypotheses of the sentences still searched; unused places have a score of minus infinity.

    Shape:
        score, log_p: (B, n), nats; cell: (B, n), number of steps * beam + slot
    """

    score: Tensor
    log_p: Tensor
    cell: Tensor

    @classmethod
    def none(cls, sentences: int, beam: int, device: torch.device) -> "Finished":
        """No hypothesis yet."""
        empty = torch.full((sentences, beam), -torch.inf, device=device)
        return cls(empty, empty.clone(), torch.zeros(sentences, beam, dtype=torch.long, device=device))

    def best_with(self, other: "Finished", rank: Tensor) -> "Finished":
        """The as many hypotheses of both that have the highest rank. Shape: rank: (B, n + other n)."""
        place = rank.topk(self.score.size(1)).indices
        score, log_p, cell = (
            torch.cat(pair, dim=1).gather(1, place)
            for pair in ((self.score, other.score), (self.log_p, other.log_p), (self.cell, other.cell))
        )
        return Finished(score, log_p, cell)

    def keep(self, sentences: Tensor) -> "Finished":
        """Chooses sentences. Shape: sentences: (new B,)."""
        return Finished(self.score[sentences], self.log_p[sentences], self.cell[sentences])


class History:
    """The steps of all N sentences of a batch, also of those whose search is over.

    Args:
        sentences: N
        beam: slots of each
    """

    def __init__(self, sentences: int, beam: int, device: torch.device) -> None:
        self.sentences, self.beam, self.device = sentences, beam, device
        self.tokens: list[Tensor] = []
        self.parents: list[Tensor] = []
        self.log_p: list[Tensor] = []
        # By original sentence: the outcome, and whether it is one of finished hypotheses.
        self.outcome = Finished.none(sentences, beam, device)
        self.complete = torch.zeros(sentences, dtype=torch.bool, device=device)

    def add(self, token: Tensor, parent: Tensor, log_p: Tensor, original: Tensor | None) -> None:
        """Writes a step. Shape: (B, beam) each; original: (B,), or None while all N are searched."""
        for store, values in ((self.tokens, token), (self.parents, parent), (self.log_p, log_p)):
            if original is not None:
                values = values.new_zeros(self.sentences, self.beam).index_copy_(0, original, values)
            store.append(values)

    def settle(self, finished: Finished, alive_log_p: Tensor, sentences: Tensor, original: Tensor | None) -> None:
        """Records the outcome of ``sentences``: the alive hypotheses where nothing has finished.

        Shape:
            alive_log_p: (B, beam); sentences: (n,), places in the batch; original: (B,) or None
        """
        where = sentences if original is None else original[sentences]
        chosen, alive = finished.keep(sentences), alive_log_p[sentences]
        complete = chosen.score.isfinite().any(dim=1)
        cell = torch.arange(self.beam, device=self.device) + len(self.tokens) * self.beam
        self.outcome.score[where] = torch.where(complete[:, None], chosen.score, alive)
        self.outcome.log_p[where] = torch.where(complete[:, None], chosen.log_p, alive)
        self.outcome.cell[where] = torch.where(complete[:, None], chosen.cell, cell)
        self.complete[where] = complete

    def results(self, eos: int, most: int) -> list[list[dict[str, Any]]]:
        """For each sentence its hypotheses, best first and at most ``most``, as fairseq's generators return them.

        Raises:
            UsageError: there is none, because the model's probabilities are not numbers.
        """
        order = self.outcome.score.sort(dim=1, descending=True, stable=True).indices[:, :most]
        score, total = self.outcome.score.gather(1, order), self.outcome.log_p.gather(1, order)
        cells, complete = self.outcome.cell.gather(1, order).tolist(), self.complete.tolist()
        useful = score.isfinite().tolist()
        tokens, parents = (torch.stack(steps).tolist() if steps else [] for steps in (self.tokens, self.parents))
        log_p = torch.stack(self.log_p).tolist() if self.log_p else []
        totals = total.tolist()
        results: list[list[dict[str, Any]]] = []
        for sentence in range(self.sentences):
            hypotheses = []
            for rank, cell in enumerate(cells[sentence]):
                if not useful[sentence][rank]:
                    continue
                written, sums = [], []
                step, slot = divmod(cell, self.beam)
                while step:
                    step -= 1
                    written.append(tokens[step][sentence][slot])
                    sums.append(log_p[step][sentence][slot])
                    slot = parents[step][sentence][slot]
                written.reverse()
                sums.reverse()
                if complete[sentence]:
                    written.append(eos)
                    sums.append(totals[sentence][rank])
                hypotheses.append(self._hypothesis(written, sums, score[sentence, rank], complete[sentence]))
            if not hypotheses:
                raise UsageError(
                    "the model gives no token a finite probability: are its weights finite (fp16 overflow)?"
                )
            results.append(hypotheses)
        return results

    def _hypothesis(self, tokens: list[int], sums: list[float], score: Tensor, complete: bool) -> dict[str, Any]:
        history = torch.tensor(sums, device=self.device)
        return {
            "tokens": torch.tensor(tokens, dtype=torch.long, device=self.device),
            "score": score.clone(),
            "positional_scores": history.diff(prepend=history.new_zeros(1)),
            "finished": complete,
            "attention": torch.empty(0),
            "alignment": torch.empty(0),
        }
