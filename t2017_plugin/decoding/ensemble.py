"""One or several models as one next-token distribution, for the search."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.modules.decoder import Decoder


class Member(Protocol):
    """A model in the middle of a search over B sentences with n hypotheses each: n is 1 at first, then the beam."""

    def scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of all next tokens and what to subtract from them to have log-probabilities in nats, float32.

        Shape:
            tokens: (B, n, t), the decoder's inputs so far -> (B, n, V) and (B, n)
        """

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """Hypothesis i of each sentence continues hypothesis ``parents[:, i]``; then only ``sentences`` go on.

        Shape:
            parents: (B, beam); sentences: (new B,) or None for all
        """


class OwnModel:
    """This plugin's model: the hypotheses of a sentence share its encoder output and one pool of keys and values."""

    def __init__(self, model: Any, net_input: dict[str, Tensor], beam: int) -> None:
        self.decoder: Decoder = model.decoder
        self.cache = self.decoder.start_cache(model.encoder.forward_torchscript(net_input), beam)

    def scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Logits and their log-sum-exp, which is cheaper than log-probabilities of all V."""
        features, _ = self.decoder.step(tokens[..., -1], self.cache)
        logits = self.decoder.output_layer(features).float()
        return logits, logits.logsumexp(dim=-1)

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """Nothing but tables moves, and sentences from the end into the places of those that left."""
        self.cache.choose_parents(parents)
        if sentences is not None:
            self.cache.keep_sentences(sentences)


class AnyModel:
    """Any incremental fairseq model: each hypothesis has its own copy of everything."""

    def __init__(self, model: Any, net_input: dict[str, Tensor], beam: int) -> None:
        self.model = model
        self.output = model.encoder.forward_torchscript(net_input)
        self.state: dict[str, Any] = {}
        self.hypotheses = 1

    def scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities and zeros."""
        sentences, self.hypotheses, _ = tokens.shape
        output = self.model.decoder(tokens.flatten(0, 1), encoder_out=self.output, incremental_state=self.state)
        newest = (output[0][:, -1:, :], *output[1:])
        log_p = self.model.get_normalized_probs(newest, log_probs=True)[:, -1].float()
        return log_p.view(sentences, self.hypotheses, -1), log_p.new_zeros(sentences, self.hypotheses)

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """Copies every cache, as fairseq's own search does."""
        rows = torch.arange(len(parents), device=parents.device).unsqueeze(1) * self.hypotheses + parents
        rows = (rows if sentences is None else rows[sentences]).flatten()
        self.model.decoder.reorder_incremental_state_scripting(self.state, rows)
        self.output = self.model.encoder.reorder_encoder_out(self.output, rows)


class Ensemble:
    """The mean of the models' probabilities. Raises ``UsageError`` for a model that decodes without a cache."""

    def __init__(self, models: Sequence[Any]) -> None:
        for model in models:
            if not isinstance(getattr(model, "decoder", None), FairseqIncrementalDecoder):
                raise UsageError(f"{type(model).__name__} has no incremental decoder: use --search stock")
        self.models = list(models)
        self.members: list[Member] = []

    def start(self, net_input: dict[str, Tensor], beam: int) -> None:
        """Encodes the sources. Shape: net_input["src_tokens"]: (B, S)."""
        self.members = [
            OwnModel(model, net_input, beam) if isinstance(model.decoder, Decoder) else AnyModel(model, net_input, beam)
            for model in self.models
        ]

    def scores(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """As ``Member.scores``, of all models together."""
        each = [member.scores(tokens) for member in self.members]
        if len(each) == 1:
            return each[0]
        log_p = torch.logsumexp(torch.stack([scores - total.unsqueeze(-1) for scores, total in each]), dim=0)
        return log_p - math.log(len(each)), log_p.new_zeros(log_p.shape[:2])

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """As ``Member.select``, in all models."""
        for member in self.members:
            member.select(parents, sentences)
