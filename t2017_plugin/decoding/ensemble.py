"""One or several models as one next-token distribution, for the search."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from fairseq.models import FairseqIncrementalDecoder
from torch import Tensor

from t2017_plugin.errors import UsageError


class Ensemble:
    """Next-token log-probabilities of the hypotheses of a batch, from the mean probability of all models.

    Works with this plugin's model, in which the hypotheses of a sentence share the encoder's output, and with any
    incremental fairseq model, for which the output is copied for each of them.

    Raises:
        UsageError: a model decodes without a cache.
    """

    def __init__(self, models: Sequence[Any]) -> None:
        for model in models:
            if not isinstance(getattr(model, "decoder", None), FairseqIncrementalDecoder):
                raise UsageError(f"{type(model).__name__} has no incremental decoder: use --search stock")
        self.models = list(models)
        self.shared = [hasattr(model.decoder, "select_hypotheses") for model in self.models]
        self.outputs: list[Any] = []
        self.states: list[dict[str, Any]] = []

    def start(self, net_input: dict[str, Tensor], beam: int) -> None:
        """Encodes the sources. Shape: net_input["src_tokens"]: (B, S)."""
        self.outputs = [model.encoder.forward_torchscript(net_input) for model in self.models]
        self.states = [{} for _ in self.models]
        sentences = net_input["src_tokens"].size(0)
        copies = torch.arange(sentences, device=net_input["src_tokens"].device).repeat_interleave(beam)
        for i, model in enumerate(self.models):
            if not self.shared[i]:
                self.outputs[i] = model.encoder.reorder_encoder_out(self.outputs[i], copies)

    def log_probabilities(self, tokens: Tensor) -> Tensor:
        """log p(next token) in nats, float32.

        Shape:
            tokens: (B * beam, t), the decoder's input so far -> (B * beam, V)
        """
        each = []
        for model, output, state in zip(self.models, self.outputs, self.states, strict=True):
            logits, extra = model.decoder(tokens, encoder_out=output, incremental_state=state)[:2]
            newest = (logits[:, -1:, :], extra)
            each.append(model.get_normalized_probs(newest, log_probs=True)[:, -1].float())
        if len(each) == 1:
            return each[0]
        return torch.logsumexp(torch.stack(each), dim=0) - math.log(len(each))

    def select(self, hypotheses: Tensor, sentences: Tensor | None) -> None:
        """Moves the caches to the chosen parents; ``sentences`` names those that go on, None means all.

        Shape:
            hypotheses: (new B * beam,), rows of the old batch; sentences: (new B,)
        """
        for i, model in enumerate(self.models):
            if self.shared[i]:
                model.decoder.select_hypotheses(self.states[i], hypotheses, sentences)
            else:
                model.decoder.reorder_incremental_state_scripting(self.states[i], hypotheses)
                self.outputs[i] = model.encoder.reorder_encoder_out(self.outputs[i], hypotheses)
