"""Every architecture of Table 3 at its real size, with a small dictionary: one update, then the cache."""

import pytest
import torch
from torch import Tensor

from t2017_plugin.fairseq_side.architectures import ARCHITECTURES, architecture_settings
from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.fairseq_side.training import T2017Adam, T2017AdamConfig
from t2017_plugin.paper.training import learning_rate, smoothed_cross_entropy
from tests.builders import PAD, make_batch, make_model

pytestmark = pytest.mark.unit
# Rows A and B are the ones whose d_k and d_v are free of d_model / h; E learns its positions.
ROWS = [name for name in ARCHITECTURES if name.startswith(("t2017_a_", "t2017_b_", "t2017_e_"))]


def loss_of(model: T2017Transformer, batch: dict[str, Tensor]) -> Tensor:
    logits, _ = model(batch["src_tokens"], None, batch["prev_output_tokens"])
    return smoothed_cross_entropy(torch.log_softmax(logits, -1), batch["target"], 0.1, PAD)[0]


@pytest.mark.parametrize("architecture", ROWS)
def test_one_update_and_the_cache(architecture: str) -> None:
    model = make_model(100, **{**architecture_settings(architecture), "dropout": 0.0})
    batch = make_batch([7, 5], [6, 8], 100)
    config = T2017AdamConfig()
    config.lr = [0.25]
    optimizer = T2017Adam(config, list(model.parameters()))
    optimizer.set_lr(learning_rate(1, model.config.d_model))
    before = loss_of(model, batch)
    before.backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    optimizer.step()
    with torch.no_grad():
        # Equation (3) at update 1 moves every weight by at most 1.7e-7, along the gradient.
        assert float(loss_of(model, batch)) < float(before)
        encoder_out = model.encoder(batch["src_tokens"])
        expected, _ = model.decoder(batch["prev_output_tokens"], encoder_out=encoder_out)
        state: dict[str, object] = {}
        for length in range(1, 9):
            newest, _ = model.decoder(
                batch["prev_output_tokens"][:, :length], encoder_out=encoder_out, incremental_state=state
            )
            # float32 through six layers of width 512
            torch.testing.assert_close(newest[:, 0], expected[:, length - 1], atol=2e-5, rtol=0)
