"""Positional encoding (section 3.5).

    PE(pos, 2i)     = sin(pos / 10000^(2i / d_model))
    PE(pos, 2i + 1) = cos(pos / 10000^(2i / d_model))

Sines and cosines alternate and the first position is 0. Two other layouts exist as switches:

    t2t    sin in the first half of the channels, cos in the second; the angle is pos * 10000^(-i / (d_model / 2 - 1));
           first position 0 (tensor2tensor 1.0.14, common_attention.add_timing_signal_1d)
    stock  the same channels and angles, but the first position is padding index + 1 = 2
           (fairseq, sinusoidal_positional_embedding.py:56-62 and utils.py:256-266)

Row (E) of Table 3 learns the positions instead.
"""

import math

import torch
from torch import Tensor, nn

from t2017_plugin.errors import UsageError

LAYOUTS = ("paper", "t2t", "stock")
FIRST_TABLE_LENGTH = 512


def sinusoid(length: int, d_model: int, layout: str = "paper", first_position: int = 0) -> Tensor:
    """Positional encodings of ``length`` consecutive positions (section 3.5), float32.

    Angles are computed in float64: in float32 the angle of position 1000 is already off by 5e-5. Of an odd ``d_model``
    the paper's layout drops the last cosine, the other two leave the last channel zero, as their sources do.

    Shape:
        -> (length, d_model)
    Raises:
        ValueError: the layout is not one of ``LAYOUTS``.
    """
    position = torch.arange(first_position, first_position + length, dtype=torch.float64).unsqueeze(1)
    table = torch.zeros(length, d_model, dtype=torch.float64)
    if layout == "paper":
        exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
        angle = position / 10000.0**exponent
        table[:, 0::2] = angle.sin()
        table[:, 1::2] = angle.cos()[:, : d_model // 2]
    elif layout in ("t2t", "stock"):
        half = d_model // 2
        rate = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / max(half - 1, 1)))
        angle = position * rate
        table[:, :half] = angle.sin()
        table[:, half : 2 * half] = angle.cos()
    else:
        raise ValueError(f"unknown sinusoid layout {layout!r}: choose one of {', '.join(LAYOUTS)}")
    return table.float()


def positions_of(tokens: Tensor, padding_index: int) -> Tensor:
    """Position of every token counted from 0 over real tokens only, so that padding on either side changes nothing.

    Shape:
        tokens: (B, S) -> (B, S); padding gets a valid but meaningless position
    """
    return (tokens.ne(padding_index).long().cumsum(dim=1) - 1).clamp(min=0)


class SinusoidPositions(nn.Module):
    """Section 3.5 for any length: the table grows when a longer sentence comes, and is never saved.

    Shape:
        positions: (B, T) or (T,) of int64 -> (B, T, d_model) or (T, d_model)
    """

    table: Tensor

    def __init__(self, d_model: int, layout: str, padding_index: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.layout = layout
        # Stock numbers positions from padding index + 1; with fairseq's dictionaries that is 2.
        self.first_position = padding_index + 1 if layout == "stock" else 0
        self.register_buffer("table", self._rows(FIRST_TABLE_LENGTH), persistent=False)

    def _rows(self, length: int) -> Tensor:
        return sinusoid(length, self.d_model, self.layout, self.first_position)

    def forward(self, positions: Tensor, length: int) -> Tensor:
        """Encodings of ``positions``, all of which are below ``length`` (given, so that a GPU need not be asked)."""
        if length > self.table.size(0):
            self.table = self._rows(max(length, 2 * self.table.size(0))).to(self.table)
        return self.table[positions]


class LearnedPositions(nn.Module):
    """One trained vector a position (row (E) of Table 3), for at most ``max_positions`` positions.

    Initialised as the token tables are, N(0, 1 / d_model); neither the paper nor the authors' public code says how.

    Raises:
        UsageError: a sentence is longer than the table.
    """

    def __init__(self, d_model: int, max_positions: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(max_positions, d_model)

    def forward(self, positions: Tensor, length: int) -> Tensor:
        if length > self.embedding.num_embeddings:
            raise UsageError(
                f"a sentence of {length} tokens, but the learned positions end at {self.embedding.num_embeddings}: "
                "train with a larger --max-learned-positions or with --positions sinusoid, or shorten the sentence"
            )
        return self.embedding(positions)
