"""Beam search (section 6.1): beam 4, length penalty alpha 0.6, at most 50 tokens more than the source.

The paper names these numbers and says "terminate early when possible". The rest is what the authors
ran (tensor2tensor 1.0.14, utils/beam_search.py). Each sentence keeps ``beam`` alive hypotheses and
at most ``beam`` finished ones. In every step

1. the best 2 * beam continuations of its alive hypotheses are taken, over the whole vocabulary;
2. those that end in EOS compete with the finished ones by log P / lp(length); the best ``beam`` stay;
3. the best ``beam`` of the others are the new alive ones.

A sentence is done when it has a finished hypothesis and even the worst one beats what the best alive
one could still reach, log P(alive) / lp(limit); or at its limit, the tokens of its source + 50, both
with EOS. Nothing depends on the other sentences of a batch. EOS is never forced: where nothing has
finished at the limit, the alive hypotheses are the result, with their plain log P.

Lengths are in generated tokens with EOS, scores in nats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from t2017_plugin.paper.config import LENGTH_PENALTIES, TRANSLATION_SEARCH, Search
from t2017_plugin.paper.model import Transformer


def length_penalty(length: float, alpha: float, form: str = "gnmt") -> float:
    """lp(Y), by which log P of a finished hypothesis Y is divided before it is compared.

        gnmt    lp(Y) = ((5 + |Y|) / 6)^alpha      Wu et al. 2016, equation 14: the paper's
        power   lp(Y) = |Y|^alpha                  stock fairseq (sequence_generator.py:674)

    The same alpha means different things: at 25 tokens, gnmt with 0.6 acts about as power with 0.5.

    Raises:
        ValueError: there is no such form.
    """
    if form not in LENGTH_PENALTIES:
        raise ValueError(f"unknown length penalty {form!r}: choose one of {', '.join(LENGTH_PENALTIES)}")
    return ((5.0 + length) / 6.0) ** alpha if form == "gnmt" else float(length) ** alpha


class NextTokens(Protocol):
    """What the search asks of a model, for B sentences with n hypotheses each: n is 1 at first, then the beam."""

    def log_p(self, newest: Tensor) -> Tensor:
        """Return log P of every next token, in nats and float32. The search may write into it.

        Shape:
            newest: (B, n), the last token of each hypothesis -> (B, n, V)
        """

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """Let hypothesis i of each sentence continue hypothesis ``parents[:, i]``; then keep ``sentences`` only.

        Shape:
            parents: (B, beam); sentences: (new B,), or None for all
        """


class WholePrefix:
    """The model as it stands in ``model.py``: every step runs the decoder over all tokens so far.

    Shape:
        source: (B, S)
    """

    def __init__(self, model: Transformer, source: Tensor) -> None:
        self.decoder = model.decoder
        self.memory, _ = model.encoder(source)
        self.hidden = model.encoder.hidden(source)
        self.tokens: Tensor | None = None

    def log_p(self, newest: Tensor) -> Tensor:
        """As ``NextTokens``. Shape: (B, n) -> (B, n, V)."""
        newest = newest.unsqueeze(-1)
        self.tokens = newest if self.tokens is None else torch.cat([self.tokens, newest], dim=-1)
        n = newest.size(1)
        memory, hidden = (each.repeat_interleave(n, dim=0) for each in (self.memory, self.hidden))
        features, _, _ = self.decoder(self.tokens.flatten(0, 1), memory, hidden)
        logits = self.decoder.logits(features[:, -1])
        return torch.log_softmax(logits, dim=-1, dtype=torch.float32).unflatten(0, (-1, n))

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """As ``NextTokens``. Shape: (B, beam), (new B,)."""
        assert self.tokens is not None
        self.tokens = self.tokens.gather(1, parents.unsqueeze(-1).expand(-1, -1, self.tokens.size(-1)))
        if sentences is not None:
            self.tokens, self.memory, self.hidden = (x[sentences] for x in (self.tokens, self.memory, self.hidden))


@dataclass(frozen=True)
class Hypothesis:
    """A translation: its tokens with EOS, its score, log P up to each token, and whether it ends in EOS."""

    tokens: list[int]
    score: float
    log_p: list[float]
    finished: bool


@dataclass
class Finished:
    """Finished hypotheses of each sentence. Unused places have a score of minus infinity.

    A hypothesis is a cell: how many steps it continues, times the beam, plus the slot it continues.

    Shape:
        score, log_p, cell: (B, beam)
    """

    score: Tensor
    log_p: Tensor
    cell: Tensor

    @classmethod
    def none(cls, sentences: int, beam: int, device: torch.device) -> Finished:
        """Have no hypothesis yet. Shape: (sentences, beam)."""
        empty = torch.full((sentences, beam), -torch.inf, device=device)
        return cls(empty, empty.clone(), torch.zeros(sentences, beam, dtype=torch.long, device=device))

    def best_with(self, other: Finished, rank: Tensor) -> Finished:
        """Keep as many as there are here of those with the highest rank, the first of equals.

        Shape:
            rank: (B, n + other n)
        """
        place = rank.sort(dim=1, descending=True, stable=True).indices[:, : self.score.size(1)]
        pairs = (self.score, other.score), (self.log_p, other.log_p), (self.cell, other.cell)
        return Finished(*(torch.cat(pair, dim=1).gather(1, place) for pair in pairs))

    def of(self, sentences: Tensor) -> Finished:
        """Choose sentences. Shape: sentences: (new B,)."""
        return Finished(self.score[sentences], self.log_p[sentences], self.cell[sentences])


class Rule(Protocol):
    """Which hypotheses finish, and when a sentence is done."""

    def finish(self, old: Finished, ends: Tensor, log_p: Tensor, cell: Tensor, length: int) -> Finished:
        """Let candidates that end compete with the finished ones.

        Shape:
            ends, log_p, cell: (B, 2 * beam), best first
        """

    def is_done(self, finished: Finished, alive_log_p: Tensor) -> Tensor:
        """Say which sentences are done. Shape: alive_log_p: (B, beam), best first -> (B,)."""

    def keep(self, sentences: Tensor) -> None:
        """Keep these sentences only. Shape: (new B,)."""


class PaperRule:
    """The authors' rule, for each sentence by itself.

    Args:
        limits: the most tokens of each sentence.
        wanted: how many of the best hypotheses must be certain before a sentence is done. With 1 the best
            one is the same and known sooner; the authors' rule, over all of the beam, decides about the others.
    """

    def __init__(self, search: Search, limits: Sequence[int], device: torch.device, wanted: int | None = None) -> None:
        self.search, self.wanted = search, wanted or search.beam
        at_limit = [length_penalty(limit, search.alpha, search.length_penalty) for limit in limits]
        self.penalty_at_limit = torch.tensor(at_limit, device=device)

    def finish(self, old: Finished, ends: Tensor, log_p: Tensor, cell: Tensor, length: int) -> Finished:
        """Step 2 above. Shape: ends, log_p, cell: (B, 2 * beam)."""
        score = log_p / length_penalty(length, self.search.alpha, self.search.length_penalty)
        new = Finished(score.masked_fill_(~ends, -torch.inf), log_p, cell)
        return old.best_with(new, torch.cat([old.score, new.score], dim=1))

    def is_done(self, finished: Finished, alive_log_p: Tensor) -> Tensor:
        """Compare the worst finished hypothesis with the best score still possible. Shape: (B, beam) -> (B,)."""
        wanted = finished.score[:, : self.wanted]
        worst = torch.where(wanted.isneginf(), torch.inf, wanted).amin(dim=1)
        return worst.isfinite() & (worst > alive_log_p[:, 0] / self.penalty_at_limit)

    def keep(self, sentences: Tensor) -> None:
        """Keep these sentences only. Shape: (new B,)."""
        self.penalty_at_limit = self.penalty_at_limit[sentences]


# How often a GPU is asked which sentences are done, in steps: it has to be waited for.
STEPS_BETWEEN_LOOKS = 8
Best = Callable[[Tensor, int], tuple[Tensor, Tensor]]
# Values as Python's own: a list over steps, sentences and slots.
Steps = list[list[list[float]]]


def top_k(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the best ``count`` values of the last axis and their indices. Shape: (..., V) -> (..., count)."""
    values, indices = scores.topk(min(count, scores.size(-1)))
    return values, indices


class Beam:
    """All hypotheses of a batch, alive and finished, and what was chosen in each step.

    Step t of slot i holds a token, the slot of step t - 1 that it continues, and log P up to there. A
    step so moves a few numbers and never a sequence; hypotheses are read back when all is over.

    Args:
        limits: the most tokens of each sentence.
        start, eos: the decoder's first input, and the symbol that ends a hypothesis.
        width: alive hypotheses of a sentence.
        best: what finds the best continuations; ``top_k`` is the plain way.
        look_every: after how many steps the sentences that are done leave the batch. What is recorded of
            them is the same; 1 spares the most work, more lets a GPU run ahead.

    Shape:
        newest, parents, alive_log_p: (B, n), with n = 1 at first and then ``width``
    """

    def __init__(
        self,
        limits: Sequence[int],
        start: int,
        eos: int,
        width: int,
        rule: Rule,
        device: torch.device,
        best: Best,
        look_every: int,
    ) -> None:
        self.eos, self.width, self.rule, self.device, self.best = eos, width, rule, device, best
        self.look_every, self.length, self.is_done = look_every, 0, not limits
        self.limit, self.all_limits = torch.tensor(limits, device=device), set(limits)
        self.longest = max(limits, default=0)
        # Which sentences of the batch are still in it, and where; None while all are.
        self.sentences: Tensor | None = None
        # Which of these are done, and have not left yet.
        self.done = torch.zeros(len(limits), dtype=torch.bool, device=device)
        # At first all hypotheses of a sentence are the same, and one is enough.
        self.newest = torch.full((len(limits), 1), start, device=device)
        self.parents = torch.zeros_like(self.newest)
        self.alive_log_p = torch.zeros(len(limits), 1, device=device)
        self.finished = Finished.none(len(limits), width, device)
        self.any_finished = False
        # By sentence of the batch: every step, the outcome, and whether its hypotheses have ended.
        self.steps: list[tuple[Tensor, Tensor, Tensor]] = []
        self.outcome = Finished.none(len(limits), width, device)
        self.complete = torch.zeros(len(limits), dtype=torch.bool, device=device)

    def advance(self, log_p: Tensor) -> None:
        """Make one step from log P of all next tokens: 1, 2 and 3 above. Shape: (B, n, V)."""
        self.length += 1
        candidate, parent, token = self._continuations(log_p)
        if candidate.size(1) < self.width:
            candidate, parent, token = (_filled(x, self.width) for x in (candidate, parent, token))
        ends = token.eq(self.eos)

        # On a CPU it costs nothing to ask whether anything ends here; a GPU would have to be waited for.
        if self.look_every > 1 or bool(ends.any()):
            self.any_finished = True
            cell = parent + (self.length - 1) * self.width
            self.finished = self.rule.finish(self.finished, ends, candidate, cell, self.length)
            candidate = candidate.masked_fill(ends, -torch.inf)

        candidate, place = candidate.sort(dim=1, descending=True, stable=True)
        self.alive_log_p, place = candidate[:, : self.width], place[:, : self.width]
        self.newest, self.parents = token.gather(1, place), parent.gather(1, place)
        self.steps.append((self._of_all(self.newest), self._of_all(self.parents), self._of_all(self.alive_log_p)))

    def _continuations(self, log_p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Find the best 2 * beam: log P, the slot continued, the token; equals by the lower slot and token.

        ``topk`` says nothing of the order of equals. With one more than is needed they are seen, also those
        that were left out; then the whole vocabulary is sorted. A GPU is not asked: it would have to be
        waited for.

        Shape:
            (B, n, V) -> (B, 2 * beam), or all there are
        """
        count, (_, n, vocabulary) = min(2 * self.width, log_p.size(1) * log_p.size(2)), log_p.shape
        each, tokens = self.best(log_p, 2 * self.width + 1)
        choices = each.size(2)
        total = each.add_(self.alive_log_p.unsqueeze(-1)).flatten(1)
        candidate, index = total.topk(min(count + 1, n * choices))
        if self.look_every == 1:
            equal = candidate[:, 1:].eq(candidate[:, :-1])
            if bool(equal.any()) and bool((equal & candidate[:, 1:].isfinite()).any()):
                total = (log_p + self.alive_log_p.unsqueeze(-1)).flatten(1)
                candidate, index = total.sort(dim=1, descending=True, stable=True)
                return candidate[:, :count], index[:, :count] // vocabulary, index[:, :count] % vocabulary
        candidate, index = candidate[:, :count], index[:, :count]
        return candidate, index // choices, tokens.flatten(1).gather(1, index)

    def let_go(self) -> Tensor | None:
        """Record the sentences that are done, and return the others in their new order; None if all stay.

        Sentences from the end take the places of those that leave, so that a model that remembers
        something for each sentence has little to move.

        Shape:
            -> (new B,)
        """
        at_limit = self.length in self.all_limits
        if not (self.any_finished or at_limit):
            return None
        before, done = self.done, self.done | self.rule.is_done(self.finished, self.alive_log_p)
        if at_limit:
            done = done | self.limit.eq(self.length)
        self.done = done
        self.is_done = self.length == self.longest
        if self.look_every > 1:
            self._record(done & ~before)
            if self.is_done or self.length % self.look_every:
                return None
        leaving = done.tolist()
        if True not in leaving:
            return None
        if self.look_every == 1:
            self._record(done)
        count = leaving.count(False)
        self.is_done = count == 0
        if self.is_done:
            return None
        last = iter([place for place in range(count, len(leaving)) if not leaving[place]])
        places = [next(last) if leaving[place] else place for place in range(count)]
        staying = torch.tensor(places, device=self.device)
        self.rule.keep(staying)
        self.sentences = staying if self.sentences is None else self.sentences[staying]
        self.newest, self.alive_log_p = self.newest[staying], self.alive_log_p[staying]
        self.finished, self.limit, self.done = self.finished.of(staying), self.limit[staying], self.done[staying]
        return staying

    def _of_all(self, values: Tensor) -> Tensor:
        """Put values of the sentences still searched in the places of all. Shape: (B, width) -> (all, width)."""
        if self.sentences is None:
            return values
        return values.new_zeros(len(self.complete), self.width).index_copy_(0, self.sentences, values)

    def _record(self, ends: Tensor) -> None:
        """Write down how sentences end: their alive hypotheses where none has finished. Shape: (B,)."""
        where = torch.arange(len(ends), device=self.device) if self.sentences is None else self.sentences
        complete = self.finished.score.isfinite().any(dim=1)
        finished, alive, ends = complete[:, None], self.alive_log_p, ends[:, None]
        cell = torch.arange(self.width, device=self.device) + self.length * self.width
        for kept, of_finished, of_alive in (
            (self.outcome.score, self.finished.score, alive),
            (self.outcome.log_p, self.finished.log_p, alive),
            (self.outcome.cell, self.finished.cell, cell),
        ):
            kept[where] = torch.where(ends, torch.where(finished, of_finished, of_alive), kept[where])
        self.complete[where] = torch.where(ends[:, 0], complete, self.complete[where])

    def hypotheses(self, most: int) -> list[list[Hypothesis]]:
        """Read back the hypotheses of each sentence, best first and at most ``most``.

        Raises:
            ValueError: there is none, because the model's probabilities are not numbers.
        """
        order = self.outcome.score.sort(dim=1, descending=True, stable=True).indices[:, :most]
        best = Finished(*(x.gather(1, order) for x in (self.outcome.score, self.outcome.log_p, self.outcome.cell)))
        scores, totals, cells = best.score.tolist(), best.log_p.tolist(), best.cell.tolist()
        useful, complete = best.score.isfinite().tolist(), self.complete.tolist()
        steps = [torch.stack(values).tolist() for values in zip(*self.steps, strict=True)] or [[], [], []]
        results = []
        for sentence in range(len(complete)):
            found = []
            for rank, cell in enumerate(cells[sentence]):
                if not useful[sentence][rank]:
                    continue
                tokens, log_p = self._read_back(steps, sentence, cell)
                if complete[sentence]:
                    tokens.append(self.eos)
                    log_p.append(totals[sentence][rank])
                found.append(Hypothesis(tokens, scores[sentence][rank], log_p, complete[sentence]))
            if not found:
                raise ValueError(
                    "the model gives no token a finite probability: are its weights finite (fp16 overflow)?"
                )
            results.append(found)
        return results

    def _read_back(self, steps: list[Steps], sentence: int, cell: int) -> tuple[list[int], list[float]]:
        all_tokens, all_parents, all_log_p = steps
        tokens, log_p = [], []
        step, slot = divmod(cell, self.width)
        while step:
            step -= 1
            tokens.append(int(all_tokens[step][sentence][slot]))
            log_p.append(all_log_p[step][sentence][slot])
            slot = int(all_parents[step][sentence][slot])
        return tokens[::-1], log_p[::-1]


def _filled(x: Tensor, width: int) -> Tensor:
    """Repeat the last candidate where a small vocabulary gives too few. Shape: (B, n) -> (B, width)."""
    filler = x[:, -1:].expand(-1, width - x.size(1))
    return torch.cat([x, torch.full_like(filler, -torch.inf) if x.is_floating_point() else filler], dim=1)


Restrict = Callable[[Tensor, int, Tensor | None], Tensor]


def beam_search(
    model: NextTokens,
    limits: Sequence[int],
    start: int,
    eos: int,
    search: Search = TRANSLATION_SEARCH,
    *,
    device: torch.device | None = None,
    wanted: int | None = None,
    rule: Rule | None = None,
    restrict: Restrict | None = None,
    best: Best = top_k,
    look_every: int | None = None,
) -> list[list[Hypothesis]]:
    """Search a batch, and return the hypotheses of each sentence, best first.

    Args:
        limits: the most tokens of each sentence, with EOS.
        start: the first input of the decoder.
        wanted: how many hypotheses of each sentence; the whole beam by default.
        rule: another rule than the paper's, for comparison.
        restrict: gets log P (B, n, V), the number of the step from 1, and the sentences still searched;
            gives log P with minus infinity for what may not follow.
        best: a faster ``top_k``.
        look_every: steps after which the sentences that are done leave the batch: 1 on a CPU, 8 elsewhere.
    """
    device = device or torch.device("cpu")
    look_every = look_every or (1 if device.type == "cpu" else STEPS_BETWEEN_LOOKS)
    rule = rule or PaperRule(search, limits, device, wanted)
    with torch.inference_mode():
        beam = Beam(limits, start, eos, search.beam, rule, device, best, look_every)
        while not beam.is_done:
            log_p = model.log_p(beam.newest)
            if restrict is not None:
                log_p = restrict(log_p, beam.length + 1, beam.sentences)
            beam.advance(log_p)
            staying = beam.let_go()
            if not beam.is_done:
                model.select(beam.parents, staying)
        return beam.hypotheses(wanted or search.beam)


def translate(
    model: Transformer, source: Tensor, eos: int, search: Search = TRANSLATION_SEARCH, wanted: int | None = None
) -> list[list[Hypothesis]]:
    """Search with a model as it stands in ``model.py``, for each source of a batch.

    Shape:
        source: (B, S), each sentence with EOS, padded
    """
    model.eval()
    real = (~model.encoder.hidden(source)).sum(dim=-1).flatten()
    limits = (real + search.extra).tolist()
    with torch.inference_mode():
        prefix = WholePrefix(model, source)
    return beam_search(prefix, limits, eos, eos, search, device=source.device, wanted=wanted)
