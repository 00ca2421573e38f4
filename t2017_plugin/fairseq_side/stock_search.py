"""``--search stock``: fairseq's beam search by its own rules, computed with this plugin's cache.

Every rule is fairseq's (sequence_generator.py): log P / length^alpha, the end by number of hypotheses, one limit on
length for the whole batch, EOS forced there. Its hypotheses and scores are those of fairseq's ``SequenceGenerator`` up
to float32 rounding; a test holds the two together. What only fairseq's generator does (sampling, constraints, prefixes,
...) is left to it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.decoding.rules import PaperRule, SearchSettings, StockRule
from t2017_plugin.fairseq_side.generator import OTHER_SEARCHES, SearchGenerator
from t2017_plugin.modules.decoder import Decoder

# Flags with which fairseq's own generator is needed, beside those of other searches.
FAIRSEQ_ONLY = {**OTHER_SEARCHES, "prefix_size": 0, "print_alignment": None, "prefix_allowed_tokens_fn": None}


def can_search(models: Sequence[Any], args: Any) -> bool:
    """Whether these models and flags ask for nothing but plain beam search on this plugin's models."""
    plain = all(getattr(args, name, off) in (off, None) for name, off in FAIRSEQ_ONLY.items())
    return plain and all(isinstance(getattr(model, "decoder", None), Decoder) for model in models)


class StockSearch(SearchGenerator):
    """fairseq's ``SequenceGenerator`` for this plugin's models.

    Args:
        models: one model, or several for an ensemble
        dictionary: the target dictionary
        args: fairseq's generation settings: ``beam``, ``lenpen``, ``unnormalized``, ``min_len``, ``max_len_a``,
            ``max_len_b``
        otherwise: makes fairseq's own generator, for batches with a prefix or constraints
    """

    def __init__(self, models: Sequence[Any], dictionary: Any, args: Any, otherwise: Callable[[], Any]) -> None:
        super().__init__(models, dictionary, args)
        beam = min(int(getattr(args, "beam", 5)), len(dictionary) - 1)
        alpha = 0.0 if getattr(args, "unnormalized", False) else float(getattr(args, "lenpen", 1))
        self.settings = SearchSettings(beam, alpha, "power", int(getattr(args, "min_len", 1)), beam)
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
        """As ``SearchGenerator.generate``."""
        if prefix_tokens is None and constraints is None:
            return super().generate(models, sample, bos_token=bos_token)
        found: list[list[dict[str, Any]]] = self.otherwise().generate(
            models, sample, prefix_tokens=prefix_tokens, constraints=constraints, bos_token=bos_token
        )
        return found

    def limits(self, source: Tensor) -> list[int]:
        """One limit for all: a * longest source + b tokens and EOS. Shape: source: (B, S), padded."""
        a, b = self.max_len
        longest = min(int(a * source.size(1) + b), self.positions - 1)
        assert self.settings.min_length <= longest, "min_len cannot be larger than max_len"
        return [longest + 1] * source.size(0)

    def rule(self, limits: list[int], device: torch.device) -> PaperRule | StockRule:
        """fairseq's."""
        return StockRule(self.settings)
