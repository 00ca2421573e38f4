"""Position-wise feed-forward network (section 3.3).

    FFN(x) = max(0, x W_1 + b_1) W_2 + b_2                                (2)

The same two maps at every position, different ones in every layer; both have biases.
"""

import torch
from torch import Tensor, nn

from t2017_plugin.fast.dropout import Dropout


class FeedForward(nn.Module):
    """Equation (2), with the authors' optional dropout after the ReLU (0 in every setting of the paper).

    Shape:
        x: (..., d_model) -> (..., d_model)
    """

    def __init__(self, d_model: int, d_ff: int, relu_dropout: float = 0.0) -> None:
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.relu_dropout = Dropout(relu_dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_2(self.relu_dropout(torch.relu(self.w_1(x))))
