"""What the decoder remembers between two steps of a search.

The hypotheses of a sentence share one pool of keys and values: a place for each position and each of ``beam`` slots,
written once and never moved. A mask tells which places are a hypothesis's own; when hypotheses change places, only the
mask is reordered. Keys and values of the encoder's output have one copy for each sentence.
"""

import torch
from torch import Tensor

POSITIONS_AT_FIRST = 16


def additive(visible: Tensor, dtype: torch.dtype) -> Tensor:
    """0 where visible, minus infinity elsewhere: the form of mask that costs least in every layer."""
    return torch.zeros(visible.shape, dtype=dtype, device=visible.device).masked_fill_(~visible, -torch.inf)


class DecoderCache:
    """Keys and values of all decoder layers for a batch of B sentences with ``beam`` hypotheses each.

    Keys and values stand side by side as the projections make them, width h * (d_k + d_v).

    Args:
        memory: keys and values of the encoder's output for each layer
        memory_mask: added to the scores over the encoder's output
        beam: slots for each sentence and position; with fairseq's own search every row is a sentence with one slot

    Shape:
        memory: (B, S, width); memory_mask: (B, 1, 1, S); mask: (B, 1, hypotheses, length * beam)
    """

    def __init__(self, memory: list[Tensor], memory_mask: Tensor, beam: int) -> None:
        self.memory = memory
        self.memory_mask = memory_mask
        self.beam = beam
        self.length = 0
        self.pools: list[Tensor | None] = [None] * len(memory)
        # With one hypothesis a sentence all places are its own.
        self.mask: Tensor | None = None
        self._slots = additive(torch.eye(beam, dtype=torch.bool, device=memory_mask.device), memory_mask.dtype)

    @property
    def sentences(self) -> int:
        """B, as long as they are searched."""
        return len(self.memory_mask)

    def begin_step(self, hypotheses: int) -> None:
        """Opens a new position for ``hypotheses`` newest tokens a sentence: one at the very start, then ``beam``."""
        self.length += 1
        if self.beam > 1:
            own = self._slots[:hypotheses].expand(self.sentences, 1, -1, -1)
            self.mask = own if self.mask is None else torch.cat([self.mask, own], dim=-1)

    def append(self, layer: int, newest: Tensor) -> Tensor:
        """Writes the newest position of a layer and returns the pool up to it.

        Shape:
            newest: (B, hypotheses, width) -> (B, length * beam, width)
        """
        pool = self.pools[layer]
        if pool is None or pool.size(1) < self.length:
            pool = self.pools[layer] = self._grown(pool, newest)
        pool[:, self.length - 1, : newest.size(1)] = newest
        return pool[:, : self.length].flatten(1, 2)

    def _grown(self, pool: Tensor | None, like: Tensor) -> Tensor:
        positions = POSITIONS_AT_FIRST if pool is None else 2 * pool.size(1)
        # Zeros, not whatever was in memory: a hidden slot is multiplied by weight 0, and 0 * nan is not 0.
        grown = like.new_zeros(self.sentences, positions, self.beam, like.size(-1))
        if pool is not None:
            grown[:, : pool.size(1)] = pool
        return grown

    def choose_parents(self, parents: Tensor) -> None:
        """Hypothesis i of each sentence now continues hypothesis ``parents[:, i]``. Shape: (B, beam)."""
        if self.mask is not None:
            index = parents[:, None, :, None].expand(-1, -1, -1, self.mask.size(-1))
            self.mask = self.mask.gather(2, index)

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
                store[moved, :filled] = store[source, :filled]
            return store[:count]

        self.pools = [pool if pool is None else keep(pool, self.length) for pool in self.pools]
        self.memory = [keep(memory, memory.size(1)) for memory in self.memory]
        self.memory_mask = self.memory_mask.index_select(0, sentences)
        if self.mask is not None:
            self.mask = self.mask.index_select(0, sentences)
