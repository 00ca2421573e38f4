"""Beam search as the paper's authors ran it (section 6.1; tensor2tensor 1.0.14, utils/beam_search.py).

Each sentence keeps ``beam`` alive and at most ``beam`` finished hypotheses. In every step

1. the best 2 * beam continuations of its alive hypotheses are taken, over the whole vocabulary;
2. those that end in EOS compete with the finished ones by log P / lp(length); the best ``beam`` stay;
3. the best ``beam`` of the others are the new alive ones.

A sentence stops when it has a finished hypothesis and even its worst one beats what the best alive one could still
reach, log P(alive) / lp(limit), or at its own limit of source tokens + extra (both with EOS). Nothing depends on the
other sentences of the batch. EOS is never forced: where nothing has finished at the limit, the alive hypotheses are
returned with their plain log P and ``finished`` False.

Step 2 and the stop are a rule of their own (``rules``), so that fairseq's rule can be had at the same speed.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.decoding.history import Finished, History
from t2017_plugin.decoding.rules import PaperRule, SearchSettings, StockRule
from t2017_plugin.fairseq_side.ensemble import Ensemble
from t2017_plugin.fast.best_of_many import best_of_many


def beam_search(
    ensemble: Ensemble,
    net_input: dict[str, Tensor],
    limits: Sequence[int],
    settings: SearchSettings,
    eos: int,
    start: int,
    never: Sequence[int] = (),
    prefix: Tensor | None = None,
    rule: PaperRule | StockRule | None = None,
) -> list[list[dict[str, Any]]]:
    """Searches a batch; for each sentence its hypotheses, best first, as fairseq's generators return them.

    ``limits`` are the most tokens of each sentence, with EOS. ``never`` are tokens that may not be generated;
    ``prefix`` (B, P), padded with -1, is forced; ``start`` is the first decoder input; ``rule`` is the paper's where
    none is given. Scores are in nats.
    """
    rule = rule or PaperRule(settings, limits, net_input["src_tokens"].device)
    with torch.inference_mode():
        history = _search(ensemble, net_input, limits, settings, eos, start, never, prefix, rule)
    return history.results(eos, settings.settled)


def _search(
    ensemble: Ensemble,
    net_input: dict[str, Tensor],
    limits: Sequence[int],
    settings: SearchSettings,
    eos: int,
    start: int,
    never: Sequence[int],
    prefix: Tensor | None,
    rule: PaperRule | StockRule,
) -> History:
    beam, device, sentences = settings.beam, net_input["src_tokens"].device, len(limits)
    ensemble.start(net_input, beam)
    history = History(sentences, beam, device)
    finished = Finished.none(sentences, beam, device)
    ending = set(limits)
    limit = torch.tensor(limits, device=device)
    # The sentences of the batch by their first places; None while all are there.
    original: Tensor | None = None
    # All hypotheses of a sentence are the same at first: one is enough.
    newest = torch.full((sentences, 1), start, device=device)
    # On a CPU it costs nothing to ask whether anything has ended; a GPU would have to be waited for.
    on_gpu = device.type != "cpu"
    any_finished = False
    alive = torch.zeros(sentences, 1, device=device)

    for length in range(1, max(limits, default=0) + 1):
        scores = ensemble.log_p(newest)
        for token in never:
            scores[..., token].fill_(-torch.inf)
        if rule.eos_at_limit and length in ending:
            scores = _only(scores, eos, limit.eq(length))
        elif length <= settings.min_length:
            scores[..., eos].fill_(-torch.inf)
        if prefix is not None and length <= prefix.size(1):
            forced = prefix[:, length - 1] if original is None else prefix[original, length - 1]
            scores = _force(scores, forced)

        # 1. the best 2 * beam continuations: they are among the best 2 * beam of each hypothesis
        each, tokens = best_of_many(scores, 2 * beam)
        each.add_(alive.unsqueeze(-1))
        candidate, index = each.flatten(1).topk(min(2 * beam, each.size(1) * each.size(2)))
        parent, written = index // each.size(2), tokens.flatten(1).gather(1, index)
        if candidate.size(1) < beam:
            candidate, parent, written = (_fill(x, beam) for x in (candidate, parent, written))
        ends = written.eq(eos)

        # 2. finished: the best of the old ones and of the candidates that end here
        if on_gpu or bool(ends.any()):
            any_finished = True
            finished = rule.finish(finished, ends, candidate, parent + (length - 1) * beam, length)
            candidate = candidate.masked_fill(ends, -torch.inf)

        # 3. alive: the best of the others
        alive, place = candidate.topk(beam)
        newest, parent = written.gather(1, place), parent.gather(1, place)
        history.add(newest, parent, alive, original)

        at_limit = length in ending
        if not (any_finished or at_limit):
            ensemble.select(parent, None)
            continue
        done = rule.done(finished, alive)
        if at_limit:
            done = done | limit.eq(length)
        leaving = done.nonzero().flatten()
        if not len(leaving):
            ensemble.select(parent, None)
            continue
        history.settle(finished, alive, leaving, original)
        if len(leaving) == len(done):
            break
        on = _order(done, leaving.tolist())
        ensemble.select(parent, on)
        rule.keep(on)
        original = on if original is None else original[on]
        newest, alive, finished, limit = newest[on], alive[on], finished.keep(on), limit[on]
    return history


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


def _only(scores: Tensor, token: int, where: Tensor) -> Tensor:
    """Leaves only one token to the sentences ``where``. Shape: scores: (B, n, V); where: (B,)."""
    return _force(scores, torch.where(where, token, -1))


def _force(scores: Tensor, token: Tensor) -> Tensor:
    """Leaves only the forced token of each sentence; -1 forces nothing. Shape: scores: (B, n, V); token: (B,)."""
    forced = token.clamp(min=0)[:, None, None].expand(-1, scores.size(1), 1)
    only = torch.full_like(scores, -torch.inf).scatter(-1, forced, scores.gather(-1, forced))
    return torch.where(token.ge(0)[:, None, None], only, scores)
