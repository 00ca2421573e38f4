"""The paper's search as a fairseq generator."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.decoding.beam_search import beam_search
from t2017_plugin.decoding.length_penalty import check_alpha
from t2017_plugin.decoding.rules import PaperRule, SearchSettings, StockRule
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.alignment import add_alignments
from t2017_plugin.fairseq_side.ensemble import Ensemble

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


class SearchGenerator(ABC):
    """What both searches share: the interface of fairseq's ``SequenceGenerator``.

    Args:
        models: one model, or several for an ensemble (mean of their probabilities)
        dictionary: the target dictionary
        args: fairseq's generation settings
    """

    settings: SearchSettings
    never: tuple[int, ...]

    def __init__(self, models: Sequence[Any], dictionary: Any, args: Any) -> None:
        self.ensemble = Ensemble(models)
        self.positions = min(model.max_decoder_positions() for model in models)
        self.pad, self.eos = dictionary.pad(), dictionary.eos()
        self.max_len = (float(getattr(args, "max_len_a", 0)), int(getattr(args, "max_len_b", 200)))
        self.alignment: Any = None
        # fairseq removes these from the text it prints.
        self.symbols_to_strip_from_output = {self.eos}

    @abstractmethod
    def limits(self, source: Tensor) -> list[int]:
        """Most tokens, with EOS, for each sentence of a batch. Shape: source: (B, S), padded."""

    @abstractmethod
    def rule(self, limits: list[int], device: torch.device) -> PaperRule | StockRule:
        """When hypotheses finish and sentences are done."""

    @torch.no_grad()
    def generate(
        self,
        models: Sequence[Any],
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Any]]]:
        """Hypotheses of a batch, best first; each a dictionary with ``tokens``, ``score`` (nats, normalised),
        ``positional_scores`` and ``finished``. ``models`` is not used: the generator already has them.
        """
        if constraints is not None:
            raise UsageError("the paper's search takes no constraints: use --search stock")
        net_input = {name: value for name, value in sample["net_input"].items() if name != "prev_output_tokens"}
        for model in self.ensemble.models:
            model.eval()
        limits = self.limits(net_input["src_tokens"])
        prefix = None if prefix_tokens is None else prefix_tokens.masked_fill(prefix_tokens.eq(self.pad), -1)
        results = beam_search(
            self.ensemble,
            net_input,
            limits,
            self.settings,
            self.eos,
            self.eos if bos_token is None else bos_token,
            self.never,
            prefix,
            self.rule(limits, net_input["src_tokens"].device),
        )
        unfinished = sum(not hypotheses[0]["finished"] for hypotheses in results)
        if unfinished:
            logger.warning(
                f"{unfinished} of {len(results)} sentences had no finished hypothesis at their length limit: "
                "returned as they stand, ranked by log P without a length penalty"
            )
        if self.alignment:
            add_alignments(self.ensemble.models, sample, results, self.pad, self.eos, str(self.alignment))
        return results


class PaperGenerator(SearchGenerator):
    """Beam search of section 6.1.

    Args:
        models: one model, or several for an ensemble (mean of their probabilities)
        dictionary: the target dictionary
        args: fairseq's generation settings; ``beam``, ``lenpen`` (alpha), ``nbest``, ``min_len``, ``max_len_a``,
            ``max_len_b``, ``unnormalized``, ``print_alignment`` are honoured, flags of other searches refused
        extra_length: limit on generated tokens, beyond the source's tokens (both with EOS)
        form: the length penalty, ``gnmt`` or ``power``
        allow_all_tokens: also generate padding and BOS, as the authors' code would; for tests against it

    Raises:
        UsageError: a flag asks for what this search does not do.
    """

    def __init__(
        self,
        models: Sequence[Any],
        dictionary: Any,
        args: Any,
        extra_length: int = 50,
        form: str = "gnmt",
        allow_all_tokens: bool = False,
    ) -> None:
        refuse_other_searches(args)
        super().__init__(models, dictionary, args)
        alpha = 0.0 if getattr(args, "unnormalized", False) else float(getattr(args, "lenpen", 0.6))
        check_alpha(alpha)
        beam = int(getattr(args, "beam", 4))
        if beam < 1:
            raise UsageError(f"--beam is {beam}: it must be at least 1")
        if int(getattr(args, "nbest", 1)) > beam:
            raise UsageError(f"--nbest {args.nbest} is more than --beam {beam}")
        if extra_length < 0:
            raise UsageError(f"--extra-length is {extra_length}: it must be 0 or more")
        # One hypothesis wanted: it is settled once it beats the best alive one, which the others need not do. The best
        # hypothesis is the same either way; the authors' rule, over all of the beam, decides about the lower ones.
        settled = 1 if int(getattr(args, "nbest", beam)) == 1 else beam
        self.settings = SearchSettings(beam, alpha, form, max(0, int(getattr(args, "min_len", -1))), settled)
        self.extra_length = extra_length
        self.never = () if allow_all_tokens else (dictionary.pad(), dictionary.bos())
        self.alignment = getattr(args, "print_alignment", None)

    def limit(self, source_length: int) -> int:
        """Most tokens that may be generated, EOS counted, for a source of ``source_length`` tokens with its EOS.

        Source + extra length. Explicit ``--max-len-a`` and ``--max-len-b`` replace that by floor(a * source + b) tokens
        and EOS, computed, unlike stock's, from each sentence's own length. Learned positions end with their table.
        """
        a, b = self.max_len
        wanted = source_length + self.extra_length
        # fairseq's defaults are 0 and 200; any other pair is a wish of the user's.
        if (a, b) != (0.0, 200):
            wanted = max(1, int(a * source_length + b) + 1)
        return min(wanted, self.positions)

    def limits(self, source: Tensor) -> list[int]:
        """``limit`` of each sentence of a batch. Shape: source: (B, S), padded."""
        return [self.limit(length) for length in source.ne(self.pad).sum(dim=1).tolist()]

    def rule(self, limits: list[int], device: torch.device) -> PaperRule | StockRule:
        """When hypotheses finish and sentences are done."""
        return PaperRule(self.settings, limits, device)


def refuse_other_searches(args: Any) -> None:
    """One line for the first flag that the paper's search would otherwise ignore."""
    for name, off in OTHER_SEARCHES.items():
        value = getattr(args, name, off)
        if value is not None and value != off:
            flag = name.replace("_", "-")
            raise UsageError(f"--{flag} is not part of the paper's search: drop it or add --search stock")
