"""One or several models as one next-token distribution, for the search."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fast.step import DecoderStep
from t2017_plugin.modules.decoder import Decoder


class Member(Protocol):
    """A model in the middle of a search over B sentences with n hypotheses each: n is 1 at first, then the beam."""

    def log_p(self, newest: Tensor) -> Tensor:
        """Log-probabilities of all next tokens, nats, float32; the search may write into them.

        Shape:
            newest: (B, n), the last token of each hypothesis -> (B, n, V)
        """

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """Hypothesis i of each sentence continues hypothesis ``parents[:, i]``; then only ``sentences`` go on.

        Shape:
            parents: (B, beam); sentences: (new B,) or None for all
        """


class OwnModel:
    """This plugin's model: the hypotheses of a sentence share its encoder output and one pool of keys and values."""

    def __init__(self, model: Any, step: DecoderStep, net_input: dict[str, Tensor], beam: int) -> None:
        self.step = step
        self.cache = model.decoder.start_cache(model.encoder.forward_torchscript(net_input), beam)

    def log_p(self, newest: Tensor) -> Tensor:
        """One step of the decoder."""
        features, _ = self.step.features(newest, self.cache)
        return torch.log_softmax(self.step.logits(features), dim=-1, dtype=torch.float32).view(*newest.shape, -1)

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
        # All tokens so far: such a model reads its position from their number.
        self.tokens: Tensor | None = None
        self.hypotheses = 1

    def log_p(self, newest: Tensor) -> Tensor:
        """One step of the model's own decoder."""
        self.hypotheses = newest.size(1)
        rows = newest.reshape(-1, 1)
        self.tokens = rows if self.tokens is None else torch.cat([self.tokens, rows], dim=1)
        output = self.model.decoder(self.tokens, encoder_out=self.output, incremental_state=self.state)
        last = (output[0][:, -1:, :], *output[1:])
        log_p = self.model.get_normalized_probs(last, log_probs=True)[:, -1].float()
        return log_p.view(*newest.shape, -1)

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """Copies every cache, as fairseq's own search does."""
        rows = torch.arange(len(parents), device=parents.device).unsqueeze(1) * self.hypotheses + parents
        rows = (rows if sentences is None else rows[sentences]).flatten()
        self.model.decoder.reorder_incremental_state_scripting(self.state, rows)
        self.output = self.model.encoder.reorder_encoder_out(self.output, rows)
        if self.tokens is not None:
            self.tokens = self.tokens[rows]


class Ensemble:
    """The mean of the models' probabilities. Raises ``UsageError`` for a model that decodes without a cache."""

    def __init__(self, models: Sequence[Any]) -> None:
        for model in models:
            if not isinstance(getattr(model, "decoder", None), FairseqIncrementalDecoder):
                raise UsageError(f"{type(model).__name__} has no incremental decoder: use --search stock")
        self.models = list(models)
        self.members: list[Member] = []
        self.steps: list[DecoderStep | None] = [None] * len(self.models)

    def start(self, net_input: dict[str, Tensor], beam: int) -> None:
        """Encodes the sources. Shape: net_input["src_tokens"]: (B, S)."""
        self.members = []
        for place, model in enumerate(self.models):
            if isinstance(model.decoder, Decoder):
                self.members.append(OwnModel(model, self._step(place), net_input, beam))
            else:
                self.members.append(AnyModel(model, net_input, beam))

    def _step(self, place: int) -> DecoderStep:
        """The step of a model of ours; its copies of weights are kept from batch to batch where they are final."""
        decoder = self.models[place].decoder
        copy = decoder.final and decoder.output.weight.device.type == "cpu"
        step = self.steps[place]
        if step is None or step.copy != copy:
            step = self.steps[place] = DecoderStep(decoder, copy)
        step.refresh()
        return step

    def log_p(self, newest: Tensor) -> Tensor:
        """As ``Member.log_p``, of all models together."""
        each = [member.log_p(newest) for member in self.members]
        if len(each) == 1:
            return each[0]
        return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """As ``Member.select``, in all models."""
        for member in self.members:
            member.select(parents, sentences)
