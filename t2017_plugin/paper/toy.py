"""The paper in one small run: build a model, train it to reverse digits, and search, in torch alone.

    python -m t2017_plugin.paper.model

It takes some seconds, and is also how the parts of this folder go together.
"""

from __future__ import annotations

import torch
from torch import Tensor

from t2017_plugin.paper.config import Model, Training
from t2017_plugin.paper.initial_weights import make_transformer
from t2017_plugin.paper.search import translate
from t2017_plugin.paper.training import Adam, learning_rate, smoothed_cross_entropy

PAD, EOS, FIRST_DIGIT, VOCABULARY = 0, 1, 2, 12


def make_pairs(count: int, length: int = 6) -> tuple[Tensor, Tensor]:
    """Make sequences of digits with EOS, and the same reversed. Shape: -> (count, length + 1), twice."""
    digits = torch.randint(FIRST_DIGIT, VOCABULARY, (count, length))
    end = torch.full((count, 1), EOS)
    return torch.cat([digits, end], dim=1), torch.cat([digits.flip(1), end], dim=1)


def main(updates: int = 400, warmup_steps: int = 100) -> float:
    """Train, print the loss now and then, and return the share of unseen sequences that come out right."""
    torch.manual_seed(1)
    training = Training(warmup_steps=warmup_steps)
    config = Model(N=2, d_model=64, d_ff=128, h=4, d_k=16, d_v=16, P_drop=0.0)
    model = make_transformer(config, VOCABULARY, padding_index=PAD)
    adam = Adam(model.parameters())
    for update in range(1, updates + 1):
        source, target = make_pairs(64)
        shifted = torch.cat([torch.full_like(target[:, :1], EOS), target[:, :-1]], dim=1)
        loss, _ = smoothed_cross_entropy(model(source, shifted), target, training.eps_ls, PAD)
        adam.zero_grad()
        (loss / target.ne(PAD).sum()).backward()
        for group in adam.param_groups:
            group["lr"] = learning_rate(update, config.d_model, training.warmup_steps, scale=0.5)
        adam.step()
        if update % 100 == 0:
            print(f"update {update}: loss {loss.item() / target.numel():.3f} nats per token")
    source, target = make_pairs(50)
    best = [hypotheses[0].tokens for hypotheses in translate(model, source, EOS)]
    right = sum(one == other for one, other in zip(best, target.tolist(), strict=True)) / len(best)
    print(f"{right:.0%} of 50 unseen sequences of digits come out reversed")
    return right
