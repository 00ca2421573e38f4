"""Token embeddings (section 3.4).

One matrix serves source embedding, target embedding and the projection before the softmax. Embeddings are multiplied by
sqrt(d_model); the projection is not.
"""

import math

import torch.nn.functional as F
from torch import Tensor, nn


class TokenEmbedding(nn.Embedding):
    """Looks tokens up and multiplies by sqrt(d_model); padding becomes the zero vector, as in the authors' code.

    The factor and the zeroing are one product, so that the row of the padding symbol may hold anything: it is a class
    of the softmax like any other and is trained there.

    Shape:
        tokens: (B, T) of int64 -> (B, T, d_model)
    """

    def __init__(self, vocabulary_size: int, d_model: int, padding_index: int) -> None:
        super().__init__(vocabulary_size, d_model)
        self.padding_index = padding_index
        self.scale = math.sqrt(d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        factor = tokens.ne(self.padding_index).to(self.weight.dtype) * self.scale
        return F.embedding(tokens, self.weight) * factor.unsqueeze(-1)
