"""The residual connection and its layer normalisation (section 3.1), written once.

    LayerNorm(x + Dropout(Sublayer(x)))

Post-norm: nothing is normalised before a sub-layer, and no further norm follows the last layer of a stack.
Dropout stands where section 5.4 puts it: on the sub-layer's output, before it is added and normalised.
"""

from torch import Tensor, nn

from t2017_plugin.fast.dropout import Dropout


class ResidualNorm(nn.Module):
    """Adds a sub-layer's output to its input and normalises the sum (section 3.1).

    The mean and the population variance are taken over the last axis; epsilon stands inside the square root. The paper
    does not state epsilon: 1e-6 is the authors' value, stock uses 1e-5 (modules/layer_norm.py:28).

    Shape:
        x, sublayer_output: (..., d_model) -> (..., d_model)
    """

    def __init__(self, d_model: int, dropout: float, epsilon: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.norm = nn.LayerNorm(d_model, eps=epsilon)

    def forward(self, x: Tensor, sublayer_output: Tensor) -> Tensor:
        return self.norm(x + self.dropout(sublayer_output))
