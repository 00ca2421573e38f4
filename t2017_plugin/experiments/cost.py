"""What training costs in floating-point operations: by the paper's rule, and by counting (Table 2).

    rule      training time * number of GPUs * sustained single-precision rate of the GPU
    counting  2 operations for each multiply-add of a matrix product; backward takes twice what forward takes

Counted are the products of sections 3.2 to 3.4: projections, scores, weighted sums, both layers of the feed-forward
networks, and the projection before the softmax. Softmax, norms, dropout and Adam are left out (together a percent or
two). Of masked self-attention all n * n scores count, as they are computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The paper's footnote to Table 2, in operations a second.
SUSTAINED = {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}
# Section 5.2 and Table 2: hours of training on eight P100, and what the table prints.
PAPER = {"t2017_base": (12.0, 3.3e18), "t2017_big": (84.0, 2.3e19), "t2017_big_enfr": (84.0, 2.3e19)}


@dataclass(frozen=True)
class Tokens:
    """What a training sees in all, and the mean lengths of a pair, in tokens with EOS."""

    source: float
    target: float
    source_length: float
    target_length: float


def forward_multiply_adds(sizes: Mapping[str, Any], vocabulary: int, tokens: Tokens) -> dict[str, float]:
    """Multiply-adds of the forward pass over all tokens, by part."""
    n, d, ff, h = (sizes[name] for name in ("layers", "d_model", "d_ff", "heads"))
    d_k, d_v = sizes["d_k"], sizes["d_v"]
    queries, keys_values, output = d * h * d_k, d * h * (d_k + d_v), h * d_v * d
    attended = h * (d_k + d_v)  # for each query and each key: a score and a weighted value
    source, target = tokens.source, tokens.target
    return {
        "encoder, projections": n * source * (queries + keys_values + output),
        "encoder, attention": n * source * tokens.source_length * attended,
        "encoder, feed-forward": n * source * 2 * d * ff,
        "decoder, projections": n * (target * (2 * queries + keys_values + 2 * output) + source * keys_values),
        "decoder, attention": n * target * (tokens.target_length + tokens.source_length) * attended,
        "decoder, feed-forward": n * target * 2 * d * ff,
        "before the softmax": target * d * vocabulary,
    }


def training_operations(sizes: Mapping[str, Any], vocabulary: int, tokens: Tokens) -> float:
    """Operations of forward and backward over all tokens of a training."""
    return 2 * 3 * sum(forward_multiply_adds(sizes, vocabulary, tokens).values())


def by_the_rule(seconds: float, gpus: int, rate: float) -> float:
    """The paper's rule."""
    return seconds * gpus * rate
