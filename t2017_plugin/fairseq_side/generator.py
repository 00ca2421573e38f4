"""The paper's search as a fairseq generator: ensembles, limits, what may not be generated, alignments.

The search itself is ``paper.search``; here it meets fairseq's settings and fairseq's models.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.models import FairseqIncrementalDecoder
from fairseq.sequence_scorer import SequenceScorer
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.model import T2017Decoder, memory_of
from t2017_plugin.fast.decoding import CachedModel, DecoderStep, best_of_many
from t2017_plugin.paper.config import TRANSLATION_SEARCH, Search
from t2017_plugin.paper.search import Hypothesis, NextTokens, PaperRule, Rule, beam_search

logger = logging.getLogger(__name__)

# Flags of fairseq-generate that mean another search, with the value at which they are off.
OTHER_SEARCHES: dict[str, Any] = {
    "sampling": False,
    "sampling_topk": -1,
    "sampling_topp": -1.0,
    "diverse_beam_groups": -1,
    "diversity_rate": -1.0,
    "match_source_len": False,
    "constraints": None,
    "no_repeat_ngram_size": 0,
    "no_early_stop": False,
    "temperature": 1.0,
    "unkpen": 0,
    "lm_path": None,
    "replace_unk": None,
    "retain_dropout": False,
    "print_step": False,
    "retain_iter_history": False,
    "eos_token": None,
}


class AnyModel:
    """Any incremental fairseq model in a search: each hypothesis has its own copy of everything."""

    def __init__(self, model: Any, net_input: dict[str, Tensor]) -> None:
        self.model = model
        self.output = model.encoder.forward_torchscript(net_input)
        self.state: dict[str, Any] = {}
        # All tokens so far: such a model reads its position from their number.
        self.tokens: Tensor | None = None
        self.hypotheses = 1

    def log_p(self, newest: Tensor) -> Tensor:
        """As ``paper.search.NextTokens``. Shape: (B, n) -> (B, n, V)."""
        self.hypotheses = newest.size(1)
        rows = newest.reshape(-1, 1)
        self.tokens = rows if self.tokens is None else torch.cat([self.tokens, rows], dim=1)
        output = self.model.decoder(self.tokens, encoder_out=self.output, incremental_state=self.state)
        last = (output[0][:, -1:, :], *output[1:])
        log_p = self.model.get_normalized_probs(last, log_probs=True)[:, -1].float()
        return log_p.view(*newest.shape, -1)

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """Copy every cache, as fairseq's own search does. Shape: (B, beam), (new B,)."""
        rows = torch.arange(len(parents), device=parents.device).unsqueeze(1) * self.hypotheses + parents
        rows = (rows if sentences is None else rows[sentences]).flatten()
        self.model.decoder.reorder_incremental_state_scripting(self.state, rows)
        self.output = self.model.encoder.reorder_encoder_out(self.output, rows)
        if self.tokens is not None:
            self.tokens = self.tokens[rows]


class Ensemble:
    """One model or several: the mean of their probabilities.

    Raises:
        UsageError: a model decodes without a cache.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        for model in models:
            if not isinstance(getattr(model, "decoder", None), FairseqIncrementalDecoder):
                raise UsageError(f"{type(model).__name__} has no incremental decoder: use --search stock")
        self.models = list(models)
        self.members: list[NextTokens] = []
        self.steps: list[DecoderStep | None] = [None] * len(self.models)

    def start(self, net_input: dict[str, Tensor], beam: int) -> None:
        """Encode the sources. Shape: net_input["src_tokens"]: (B, S)."""
        self.members = []
        for place, model in enumerate(self.models):
            if isinstance(model.decoder, T2017Decoder):
                memory, hidden = memory_of(model.encoder.forward_torchscript(net_input))
                self.members.append(CachedModel(self._step(place), memory, hidden, beam))
            else:
                self.members.append(AnyModel(model, net_input))

    def _step(self, place: int) -> DecoderStep:
        """Return the step of a model of ours; its copies of weights are kept from batch to batch if they are final."""
        decoder = self.models[place].decoder
        copy = decoder.is_final and decoder.output.weight.device.type == "cpu"
        step = self.steps[place]
        if step is None or step.copy != copy:
            step = self.steps[place] = DecoderStep(decoder, copy)
        step.refresh()
        return step

    def log_p(self, newest: Tensor) -> Tensor:
        """As ``paper.search.NextTokens``, of all models together. Shape: (B, n) -> (B, n, V)."""
        each = [member.log_p(newest) for member in self.members]
        if len(each) == 1:
            return each[0]
        return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """As ``paper.search.NextTokens``, in all models. Shape: (B, beam), (new B,)."""
        for member in self.members:
            member.select(parents, sentences)


class Restriction:
    """What fairseq's settings forbid or force, by setting log P to minus infinity.

    Args:
        eos: the symbol that ends a hypothesis.
        never: symbols that are never generated.
        min_length: no EOS before so many tokens.
        prefix: tokens that each sentence must begin with, padded with -1.
        eos_at: the most tokens of each sentence where EOS is forced there, as fairseq's own search does.

    Shape:
        prefix: (B, P); eos_at: (B,)
    """

    def __init__(
        self, eos: int, never: Sequence[int], min_length: int, prefix: Tensor | None, eos_at: Tensor | None
    ) -> None:
        self.eos, self.never, self.min_length, self.prefix, self.eos_at = eos, never, min_length, prefix, eos_at
        self.ends = set() if eos_at is None else set(eos_at.tolist())

    def __call__(self, log_p: Tensor, length: int, sentences: Tensor | None) -> Tensor:
        """Restrict one step. Shape: log_p: (B, n, V); sentences: (B,), or None for all -> (B, n, V)."""
        for token in self.never:
            log_p[..., token].fill_(-torch.inf)
        if self.eos_at is not None and length in self.ends:
            at_limit = _of(self.eos_at, sentences).eq(length)
            log_p = force(log_p, torch.where(at_limit, self.eos, -1))
        elif length <= self.min_length:
            log_p[..., self.eos].fill_(-torch.inf)
        if self.prefix is not None and length <= self.prefix.size(1):
            log_p = force(log_p, _of(self.prefix[:, length - 1], sentences))
        return log_p


def _of(values: Tensor, sentences: Tensor | None) -> Tensor:
    return values if sentences is None else values[sentences]


def force(log_p: Tensor, token: Tensor) -> Tensor:
    """Leave only the forced token to each sentence; -1 forces nothing. Shape: (B, n, V); token: (B,) -> (B, n, V)."""
    forced = token.clamp(min=0)[:, None, None].expand(-1, log_p.size(1), 1)
    only = torch.full_like(log_p, -torch.inf).scatter(-1, forced, log_p.gather(-1, forced))
    return torch.where(token.ge(0)[:, None, None], only, log_p)


class SearchGenerator(ABC):
    """What both searches share: the interface of fairseq's ``SequenceGenerator``.

    Args:
        models: one model, or several for an ensemble (mean of their probabilities).
        dictionary: the target dictionary.
        args: fairseq's generation settings.
    """

    search: Search
    never: tuple[int, ...] = ()
    wanted: int
    min_length = 0
    eos_at_limit = False

    def __init__(self, models: Sequence[Any], dictionary: Dictionary, args: Any) -> None:
        self.ensemble = Ensemble(models)
        self.positions = min(model.max_decoder_positions() for model in models)
        self.pad, self.eos = dictionary.pad(), dictionary.eos()
        self.max_len = (float(getattr(args, "max_len_a", 0)), int(getattr(args, "max_len_b", 200)))
        self.alignment: Any = None
        # fairseq removes these from the text it prints.
        self.symbols_to_strip_from_output = {self.eos}

    @abstractmethod
    def limits(self, source: Tensor) -> list[int]:
        """Return the most tokens, with EOS, for each sentence of a batch. Shape: source: (B, S), padded."""

    @abstractmethod
    def rule(self, limits: list[int], device: torch.device) -> Rule:
        """Say when hypotheses finish and sentences are done."""

    @torch.no_grad()
    def generate(
        self,
        models: Sequence[Any],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Any]]]:
        """Search a batch; ``models`` is not used, since the generator already has them.

        Each hypothesis is a dictionary with ``tokens``, ``score`` (nats, normalised), ``positional_scores`` and
        ``finished``; best first.

        Shape:
            sample["net_input"]["src_tokens"]: (B, S); prefix_tokens: (B, P), padded
        """
        if constraints is not None:
            raise UsageError("the paper's search takes no constraints: use --search stock")
        net_input = {name: value for name, value in sample["net_input"].items() if name != "prev_output_tokens"}
        for model in self.ensemble.models:
            model.eval()
        device = net_input["src_tokens"].device
        limits = self.limits(net_input["src_tokens"])
        prefix = None if prefix_tokens is None else prefix_tokens.masked_fill(prefix_tokens.eq(self.pad), -1)
        eos_at = torch.tensor(limits, device=device) if self.eos_at_limit else None
        try:
            with torch.inference_mode():
                self.ensemble.start(net_input, self.search.beam)
            found = beam_search(
                self.ensemble,
                limits,
                self.eos if bos_token is None else bos_token,
                self.eos,
                self.search,
                device=device,
                wanted=self.wanted,
                rule=self.rule(limits, device),
                restrict=Restriction(self.eos, self.never, self.min_length, prefix, eos_at),
                best=best_of_many,
            )
        except UsageError:
            raise
        except ValueError as error:
            raise UsageError(str(error)) from error
        results = [[as_fairseq(each, device) for each in hypotheses] for hypotheses in found]
        unfinished = sum(not hypotheses[0].finished for hypotheses in found)
        if unfinished:
            logger.warning(
                f"{unfinished} of {len(results)} sentences had no finished hypothesis at their length limit: "
                "returned as they stand, ranked by log P without a length penalty"
            )
        if self.alignment:
            add_alignments(self.ensemble.models, sample, results, self.pad, self.eos, str(self.alignment))
        return results


def as_fairseq(hypothesis: Hypothesis, device: torch.device) -> dict[str, Any]:
    """Give a hypothesis the form in which fairseq's generators return it."""
    log_p = torch.tensor(hypothesis.log_p, device=device)
    return {
        "tokens": torch.tensor(hypothesis.tokens, dtype=torch.long, device=device),
        "score": torch.tensor(hypothesis.score, device=device),
        "positional_scores": log_p.diff(prepend=log_p.new_zeros(1)),
        "finished": hypothesis.finished,
        "attention": torch.empty(0),
        "alignment": torch.empty(0),
    }


class PaperGenerator(SearchGenerator):
    """Beam search of section 6.1.

    Args:
        models, dictionary: as above.
        args: fairseq's generation settings; ``beam``, ``lenpen`` (alpha), ``nbest``, ``min_len``, ``max_len_a``,
            ``max_len_b``, ``unnormalized``, ``print_alignment`` are honoured, flags of other searches refused.
        extra_length: limit on generated tokens, beyond the source's tokens (both with EOS).
        form: the length penalty, ``gnmt`` or ``power``.
        allow_all_tokens: also generate padding and BOS, as the authors' code would; for tests against it.

    Raises:
        UsageError: a flag asks for what this search does not do.
    """

    def __init__(
        self,
        models: Sequence[Any],
        dictionary: Dictionary,
        args: Any,
        extra_length: int = TRANSLATION_SEARCH.extra,
        form: str = TRANSLATION_SEARCH.length_penalty,
        allow_all_tokens: bool = False,
    ) -> None:
        refuse_other_searches(args)
        super().__init__(models, dictionary, args)
        alpha = float(getattr(args, "lenpen", TRANSLATION_SEARCH.alpha))
        alpha = 0.0 if getattr(args, "unnormalized", False) else alpha
        if not alpha >= 0.0:
            # A longer hypothesis could still overtake after the search has stopped.
            raise UsageError(
                f"--lenpen (alpha) is {alpha}: the paper's search needs 0 or more; --search stock takes any"
            )
        beam = int(getattr(args, "beam", TRANSLATION_SEARCH.beam))
        if beam < 1:
            raise UsageError(f"--beam is {beam}: it must be at least 1")
        if int(getattr(args, "nbest", 1)) > beam:
            raise UsageError(f"--nbest {args.nbest} is more than --beam {beam}")
        if extra_length < 0:
            raise UsageError(f"--extra-length is {extra_length}: it must be 0 or more")
        self.search = Search(beam, alpha, extra_length, form)
        self.wanted = 1 if int(getattr(args, "nbest", beam)) == 1 else beam
        self.min_length = max(0, int(getattr(args, "min_len", -1)))
        self.never = () if allow_all_tokens else (dictionary.pad(), dictionary.bos())
        self.alignment = getattr(args, "print_alignment", None)

    def limit(self, source_length: int) -> int:
        """Return the most tokens that may be generated, EOS counted, for so many source tokens with EOS.

        Source + extra length. Explicit ``--max-len-a`` and ``--max-len-b`` replace that by floor(a * source + b) tokens
        and EOS, computed, unlike stock's, from each sentence's own length. Learned positions end with their table.
        """
        a, b = self.max_len
        wanted = source_length + self.search.extra
        # fairseq's defaults are 0 and 200; any other pair is a wish of the user's.
        if (a, b) != (0.0, 200):
            wanted = max(1, int(a * source_length + b) + 1)
        return min(wanted, self.positions)

    def limits(self, source: Tensor) -> list[int]:
        """Return ``limit`` of each sentence of a batch. Shape: source: (B, S), padded."""
        return [self.limit(length) for length in source.ne(self.pad).sum(dim=1).tolist()]

    def rule(self, limits: list[int], device: torch.device) -> Rule:
        """Take the authors' rule."""
        return PaperRule(self.search, limits, device, self.wanted)


def refuse_other_searches(args: Any) -> None:
    """Refuse the first flag that the paper's search would otherwise ignore.

    Raises:
        UsageError: there is one.
    """
    for name, off in OTHER_SEARCHES.items():
        value = getattr(args, name, off)
        if value is not None and value != off:
            flag = name.replace("_", "-")
            raise UsageError(f"--{flag} is not part of the paper's search: drop it or add --search stock")


def is_ours(model: Any) -> bool:
    """Whether a model has this plugin's decoder."""
    return isinstance(getattr(model, "decoder", None), T2017Decoder)


class AlignedScorer(SequenceScorer):
    """fairseq's scorer of references (``--score-reference``), with alignments also where ``forward`` keeps no weights.

    Args:
        how: hard or soft, the value of ``--print-alignment``.
    """

    def __init__(self, dictionary: Dictionary, how: str) -> None:
        super().__init__(dictionary)
        self.how = how

    def generate(self, models: Sequence[Any], sample: dict[str, Any], **unused: Any) -> list[list[dict[str, Any]]]:
        """As ``SequenceScorer.generate``. Shape: sample["net_input"]["src_tokens"]: (B, S)."""
        results: list[list[dict[str, Any]]] = super().generate(models, sample, **unused)
        add_alignments(models, sample, results, self.pad, self.eos, self.how)
        return results


def add_alignments(
    models: Sequence[Any], sample: dict[str, Any], results: list[list[dict[str, Any]]], pad: int, eos: int, how: str
) -> None:
    """Fill in ``attention`` (S, T) and ``alignment`` (``how`` is hard or soft) of every hypothesis.

    The last layer's weights over the source, averaged over heads and models, are computed once more with the whole
    target at hand; the search itself then need not carry any weights.

    Raises:
        UsageError: a model cannot give its weights.
    """
    if not all(is_ours(model) for model in models):
        raise UsageError("--print-alignment needs t2017_transformer here: use --search stock, or leave it out")
    source = sample["net_input"]["src_tokens"]
    extract = utils.extract_hard_alignment if how == "hard" else utils.extract_soft_alignment
    for sentence, hypotheses in enumerate(results):
        tokens = source[sentence].unsqueeze(0)
        for hypothesis in hypotheses:
            weights = _weights(models, tokens, hypothesis["tokens"], eos)
            hypothesis["attention"] = weights.transpose(0, 1)
            target = hypothesis["tokens"].cpu()
            hypothesis["alignment"] = extract(weights.clone().cpu(), tokens[0].cpu(), target, pad, eos)


def _weights(models: Sequence[Any], source: Tensor, target: Tensor, eos: int) -> Tensor:
    """Shape: source: (1, S); target: (T,) -> (T, S)."""
    shifted = torch.cat([target.new_tensor([eos]), target[:-1]]).unsqueeze(0)
    each = []
    for model in models:
        _, extra = model.decoder(shifted, encoder_out=model.encoder(source), need_weights=True)
        each.append(extra["attn"][0][0].float())
    return torch.stack(each).mean(dim=0)
