"""Beam search as the paper's authors ran it (section 6.1; tensor2tensor 1.0.14, utils/beam_search.py).

Each sentence keeps ``beam`` alive and at most ``beam`` finished hypotheses. In every step

1. the best 2 * beam continuations of its alive hypotheses are taken, over the whole vocabulary;
2. those that end in EOS compete with the finished ones by log P / lp(length); the best ``beam`` stay;
3. the best ``beam`` of the others are the new alive ones.

A sentence stops when it has a finished hypothesis and even its worst one beats what the best alive one could still
reach, log P(alive) / lp(limit), or at its own limit of source tokens + extra (both with EOS). Nothing depends on the
other sentences of the batch. EOS is never forced: where nothing has finished at the limit, the alive hypotheses are
returned with their plain log P and ``finished`` False.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.decoding.best import best_of_many
from t2017_plugin.decoding.ensemble import Ensemble
from t2017_plugin.decoding.length_penalty import length_penalty
from t2017_plugin.errors import UsageError


@dataclass
class Hypotheses:
    """The hypotheses of the sentences still searched; unused places have a score of minus infinity.

    Shape:
        tokens: (B, beam, t); history: (B, beam, t), log P up to each token; score: (B, beam)
    """

    tokens: Tensor
    history: Tensor
    score: Tensor

    def take(self, index: Tensor) -> "Hypotheses":
        """Chooses by place within each sentence. Shape: index: (B, n)."""
        deep = index.unsqueeze(-1).expand(-1, -1, self.tokens.size(-1))
        return Hypotheses(self.tokens.gather(1, deep), self.history.gather(1, deep), self.score.gather(1, index))

    def keep(self, sentences: Tensor) -> "Hypotheses":
        """Chooses sentences. Shape: sentences: (new B,)."""
        return Hypotheses(self.tokens[sentences], self.history[sentences], self.score[sentences])

    def joined_with(self, other: "Hypotheses") -> "Hypotheses":
        """Both sets side by side, the shorter one padded."""
        width = max(self.tokens.size(-1), other.tokens.size(-1))
        pairs = ((self.tokens, other.tokens), (self.history, other.history))
        tokens, history = (torch.cat([_widen(a, width), _widen(b, width)], dim=1) for a, b in pairs)
        return Hypotheses(tokens, history, torch.cat([self.score, other.score], dim=1))


def _widen(x: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(x, (0, width - x.size(-1)))


@dataclass(frozen=True)
class SearchSettings:
    """What the search is asked for; lengths are generated tokens with EOS."""

    beam: int = 4
    alpha: float = 0.6
    form: str = "gnmt"
    min_length: int = 0
    # How many of the best hypotheses are wanted; the search of a sentence stops when they are settled.
    settled: int = 4


def beam_search(
    ensemble: Ensemble,
    net_input: dict[str, Tensor],
    limits: Sequence[int],
    settings: SearchSettings,
    eos: int,
    start: int,
    never: Sequence[int] = (),
    prefix: Tensor | None = None,
) -> list[list[dict[str, Any]]]:
    """Searches a batch; for each sentence its hypotheses, best first, as fairseq's generators return them.

    ``never`` are tokens that may not be generated; ``prefix`` (B, P), padded with -1, is forced; ``start`` fills the
    first decoder input. Scores are in nats.
    """
    beam, device = settings.beam, net_input["src_tokens"].device
    sentences = len(limits)
    results: list[list[dict[str, Any]]] = [[] for _ in limits]
    ensemble.start(net_input, beam)
    limit = torch.tensor(limits, device=device)
    original = torch.arange(sentences, device=device)
    # All hypotheses of a sentence are the same at first: one is enough.
    alive = Hypotheses(
        torch.empty(sentences, 1, 0, dtype=torch.long, device=device),
        torch.empty(sentences, 1, 0, device=device),
        torch.zeros(sentences, 1, device=device),
    )
    finished = alive.take(original.new_zeros(sentences, 0))
    penalty_at_limit = torch.tensor(
        [length_penalty(length, settings.alpha, settings.form) for length in limits], device=device
    )

    for length in range(1, max(limits, default=0) + 1):
        first = alive.tokens.new_full((*alive.score.shape, 1), start)
        scores, total = ensemble.scores(torch.cat([first, alive.tokens], dim=-1))
        scores[..., list(never)] = -torch.inf
        if length <= settings.min_length:
            scores[..., eos] = -torch.inf
        if prefix is not None and length <= prefix.size(1):
            scores = _force(scores, prefix[original, length - 1])

        # 1. the best 2 * beam continuations: they are among the best 2 * beam of each hypothesis
        each, token = best_of_many(scores, 2 * beam)
        each = alive.score.unsqueeze(-1) + each - total.unsqueeze(-1)
        best, index = each.flatten(1).topk(min(2 * beam, each.size(1) * each.size(2)))
        parent, token = index // each.size(2), token.flatten(1).gather(1, index)
        if best.size(1) < beam:
            best, parent, token = _fill(best, beam), _fill(parent, beam), _fill(token, beam)
        candidates = alive.take(parent)
        candidates = Hypotheses(
            torch.cat([candidates.tokens, token.unsqueeze(-1)], dim=-1),
            torch.cat([candidates.history, best.unsqueeze(-1)], dim=-1),
            best,
        )
        ends = token.eq(eos)

        # 2. finished: the best of the old ones and of the candidates that end here
        ended = Hypotheses(
            candidates.tokens,
            candidates.history,
            (best / length_penalty(length, settings.alpha, settings.form)).masked_fill(~ends, -torch.inf),
        )
        finished = finished.joined_with(ended)
        finished = finished.take(finished.score.topk(min(beam, finished.score.size(1))).indices)

        # 3. alive: the best of the others
        score, place = best.masked_fill(ends, -torch.inf).topk(beam)
        alive = candidates.take(place)
        alive.score = score

        # What is wanted is settled when even the last of it beats what the best alive hypothesis could still reach.
        wanted = finished.score[:, : settings.settled]
        worst = wanted.masked_fill(wanted.isneginf(), torch.inf).min(dim=1).values
        beaten = worst.isfinite() & (worst > alive.score[:, 0] / penalty_at_limit)
        done = beaten | limit.eq(length)
        leaving = done.nonzero().flatten().tolist()
        for i in leaving:
            results[int(original[i])] = _result(finished, alive, i, eos, settings.settled)
        if len(leaving) == len(done):
            break
        on = _order(done, leaving) if leaving else None
        ensemble.select(parent.gather(1, place), on)
        if on is not None:
            alive, finished = alive.keep(on), finished.keep(on)
            limit, original, penalty_at_limit = limit[on], original[on], penalty_at_limit[on]
    return results


def _order(done: Tensor, leaving: list[int]) -> Tensor:
    """The sentences that go on, those from the end in the places of those that leave. Shape: (B,) -> (new B,)."""
    count = len(done) - len(leaving)
    order = torch.arange(count, device=done.device)
    gaps = [i for i in leaving if i < count]
    order[gaps] = (~done[count:]).nonzero().flatten() + count
    return order


def _fill(x: Tensor, width: int) -> Tensor:
    """Repeats the last candidate where a small vocabulary gives too few. Shape: (B, n) -> (B, width)."""
    filler = x[:, -1:].expand(-1, width - x.size(1))
    return torch.cat([x, torch.full_like(filler, -torch.inf) if x.is_floating_point() else filler], dim=1)


def _force(scores: Tensor, token: Tensor) -> Tensor:
    """Leaves only the forced token of each sentence; -1 forces nothing. Shape: scores: (B, n, V); token: (B,)."""
    forced = token.clamp(min=0)[:, None, None].expand(-1, scores.size(1), 1)
    only = torch.full_like(scores, -torch.inf).scatter(-1, forced, scores.gather(-1, forced))
    return torch.where(token.ge(0)[:, None, None], only, scores)


def _result(finished: Hypotheses, alive: Hypotheses, sentence: int, eos: int, most: int) -> list[dict[str, Any]]:
    """The best hypotheses of one sentence, at most ``most``; the alive ones where nothing has finished."""
    complete = bool(finished.score[sentence, 0].isfinite())
    chosen = finished if complete else alive
    if not chosen.score[sentence].isfinite().any():
        raise UsageError("the model gives no token a finite probability: are its weights finite (fp16 overflow)?")
    result = []
    for place in chosen.score[sentence, :most].isfinite().nonzero().flatten().tolist():
        tokens = chosen.tokens[sentence, place]
        if complete:
            tokens = tokens[: int(tokens.eq(eos).nonzero()[0]) + 1]
        history = chosen.history[sentence, place, : len(tokens)]
        result.append(
            {
                "tokens": tokens.clone(),
                "score": chosen.score[sentence, place].clone(),
                "positional_scores": history.diff(prepend=history.new_zeros(1)),
                "finished": complete,
                "attention": torch.empty(0),
                "alignment": torch.empty(0),
            }
        )
    return result
