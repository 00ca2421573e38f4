"""What the decoder remembers between two steps of a search.

Keys and values of the self-attention grow by one position a step and have one row for each hypothesis; keys and values
of the encoder's output are computed once and have one row for each sentence.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass
class LayerCache:
    """Keys and values of one decoder layer.

    Shape:
        key: (B * beam, h, t, d_k); value: (B * beam, h, t, d_v)
        memory_key: (B, h, S, d_k); memory_value: (B, h, S, d_v)
    """

    memory_key: Tensor
    memory_value: Tensor
    key: Tensor | None = None
    value: Tensor | None = None

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Adds the newest position and returns all positions so far."""
        self.key = key if self.key is None else torch.cat([self.key, key], dim=2)
        self.value = value if self.value is None else torch.cat([self.value, value], dim=2)
        return self.key, self.value

    def select(self, hypotheses: Tensor, sentences: Tensor | None) -> None:
        """Keeps these rows, in this order; ``sentences`` None keeps every sentence where it is."""
        if self.key is not None and self.value is not None:
            self.key = self.key.index_select(0, hypotheses)
            self.value = self.value.index_select(0, hypotheses)
        if sentences is not None:
            self.memory_key = self.memory_key.index_select(0, sentences)
            self.memory_value = self.memory_value.index_select(0, sentences)


@dataclass
class DecoderCache:
    """The layers' caches, the mask of the encoder's output and the number of positions decoded so far.

    Shape:
        memory_hidden: (B, 1, 1, S), True hides
    """

    memory_hidden: Tensor | None
    layers: list[LayerCache] = field(default_factory=list)
    length: int = 0

    def select(self, hypotheses: Tensor, sentences: Tensor | None = None) -> None:
        """Reorders the rows after a step of the search: hypotheses by their parents, sentences that go on."""
        for layer in self.layers:
            layer.select(hypotheses, sentences)
        if sentences is not None and self.memory_hidden is not None:
            self.memory_hidden = self.memory_hidden.index_select(0, sentences)
