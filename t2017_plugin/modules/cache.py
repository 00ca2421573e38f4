"""What the decoder remembers between two steps of a search.

The hypotheses of a sentence share one pool of keys and values: a place for each position and each of ``beam`` slots,
written once and never moved. Which slot holds position t of a hypothesis is told by a small table of ancestors; when
hypotheses change places only the table is reordered, and a mask made from it once a step hides the slots of others.
Keys and values of the encoder's output have one copy for each sentence.
"""

import torch
from torch import Tensor

POSITIONS_AT_FIRST = 16


def additive(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where visible, minus infinity elsewhere: the form of mask that costs least in every layer."""
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, -torch.inf)


class DecoderCache:
    """Keys and values of all decoder layers for a batch of B sentences with ``beam`` hypotheses each.

    Args:
        memory: key and value of the encoder's output for each layer
        memory_mask: added to the scores over the encoder's output
        beam: slots for each sentence and position; with fairseq's own search every row is a sentence with one slot

    Shape:
        memory: (B, h, S, d_k) and (B, h, S, d_v); memory_mask: (B, 1, 1, S); ancestors: (B, hypotheses, length)
    """

    def __init__(self, memory: list[tuple[Tensor, Tensor]], memory_mask: Tensor, beam: int) -> None:
        self.memory = [(key.contiguous(), value.contiguous()) for key, value in memory]
        self.memory_mask = memory_mask
        self.beam = beam
        self.length = 0
        self.pools: list[tuple[Tensor, Tensor] | None] = [None] * len(memory)
        self.ancestors = torch.zeros(len(memory_mask), beam, 0, dtype=torch.long, device=memory_mask.device)
        self.mask: Tensor | None = None

    @property
    def sentences(self) -> int:
        """B, as long as they are searched."""
        return len(self.memory_mask)

    def begin_step(self, hypotheses: int) -> None:
        """Opens a new position for ``hypotheses`` newest tokens a sentence: one at the very start, then ``beam``."""
        device = self.memory_mask.device
        own = torch.arange(hypotheses, device=device).view(1, hypotheses, 1).expand(self.sentences, -1, -1)
        self.ancestors = torch.cat([self.ancestors[:, :hypotheses], own], dim=-1)
        self.length += 1
        if self.beam > 1:
            visible = self.ancestors.unsqueeze(-1) == torch.arange(self.beam, device=device)
            self.mask = additive(visible.flatten(2).unsqueeze(1), self.memory_mask.dtype)

    def append(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Writes the newest position of a layer and returns the pool up to it.

        Shape:
            key, value: (B, h, hypotheses, d) -> (B, h, length * beam, d)
        """
        pool = self.pools[layer]
        if pool is None or pool[0].size(2) < self.length:
            pool = self.pools[layer] = (self._grown(pool and pool[0], key), self._grown(pool and pool[1], value))
        for store, newest in zip(pool, (key, value), strict=True):
            store[:, :, self.length - 1, : key.size(2)] = newest
        return pool[0][:, :, : self.length].flatten(2, 3), pool[1][:, :, : self.length].flatten(2, 3)

    def _grown(self, store: Tensor | None, like: Tensor) -> Tensor:
        sentences, h, _, width = like.shape
        positions = POSITIONS_AT_FIRST if store is None else 2 * store.size(2)
        # Zeros, not whatever was in memory: a hidden slot is multiplied by weight 0, and 0 * nan is not 0.
        grown = like.new_zeros(sentences, h, positions, self.beam, width)
        if store is not None:
            grown[:, :, : store.size(2)] = store
        return grown

    def choose_parents(self, parents: Tensor) -> None:
        """Hypothesis i of each sentence now continues hypothesis ``parents[:, i]``. Shape: (B, beam)."""
        index = parents.unsqueeze(-1).expand(-1, -1, self.length)
        self.ancestors = self.ancestors.gather(1, index)

    def keep_sentences(self, sentences: Tensor) -> None:
        """Goes on with these sentences, in this order. Shape: (new B,).

        Where sentences from the end fill the places of those that left, only they are copied, and only what is filled.
        """
        count = len(sentences)
        moved = (sentences != torch.arange(count, device=sentences.device)).nonzero().flatten()
        source = sentences[moved]
        in_place = bool((source >= count).all())

        def keep(store: Tensor, filled: int) -> Tensor:
            if not in_place:
                return store.index_select(0, sentences)
            if len(moved):
                store[moved, :, :filled] = store[source, :, :filled]
            return store[:count]

        for layer, pool in enumerate(self.pools):
            if pool is not None:
                self.pools[layer] = (keep(pool[0], self.length), keep(pool[1], self.length))
        width = self.memory_mask.size(-1)
        self.memory = [(keep(key, width), keep(value, width)) for key, value in self.memory]
        self.memory_mask = self.memory_mask.index_select(0, sentences)
        self.ancestors = self.ancestors.index_select(0, sentences)
