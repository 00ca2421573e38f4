"""Initial weights: ``--init stock`` draws as a stock model does, ``--init t2t`` within the authors' bounds."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from t2017_plugin.checkpoints.stock_weights import copy_to_stock

pytestmark = pytest.mark.parity

D_MODEL, D_FF, HEADS, D_K = 128, 256, 4, 32
# Of 128 * 128 draws the measured standard deviation is off by 1 / sqrt(2 n) = 0.6 %; six times that, for 40 matrices.
DEVIATION = 0.035
OURS = {"layers": 1, "d_model": D_MODEL, "d_ff": D_FF, "heads": HEADS, "d_k": D_K, "d_v": D_K}
STOCK = {
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_embed_dim": D_MODEL,
    "encoder_ffn_embed_dim": D_FF,
    "decoder_ffn_embed_dim": D_FF,
    "encoder_attention_heads": HEADS,
    "decoder_attention_heads": HEADS,
}


def glorot(rows: int, columns: int) -> float:
    """Bound of a Glorot-uniform matrix."""
    return math.sqrt(6 / (rows + columns))


def assert_uniform(values: Tensor, bound: float, name: str) -> None:
    """Inside +-bound, reaching nearly to it, with the standard deviation bound / sqrt(3)."""
    assert values.abs().max() <= bound * (1 + 1e-6), name
    assert values.abs().max() > bound * (1 - 20 / values.numel()), name
    if values.dim() == 2:
        assert values.std().item() == pytest.approx(bound / math.sqrt(3), rel=DEVIATION), name


@pytest.mark.parametrize("embeddings", ["shared", "separate"])
def test_stock_initialisation_is_stocks(build: Any, embeddings: str) -> None:
    """Every matrix of a stock model and of ours under its names: kind, spread, bounds; zeros where stock has zeros."""
    task = build.task()
    ours = copy_to_stock(build.ours(task, 1, embeddings=embeddings, **OURS))
    stock = build.stock(task, 2, share_all_embeddings=embeddings == "shared", **STOCK).state_dict()
    assert ours.keys() == stock.keys()
    for name in ours:
        one, other = ours[name], stock[name]
        assert one.shape == other.shape, name
        assert torch.equal(one.eq(0), other.eq(0)), name
        assert torch.equal(one.eq(1), other.eq(1)), name
        if one.dim() == 2 and one.size(0) != len(task.target_dictionary):
            assert one.std().item() == pytest.approx(other.std().item(), rel=2 * DEVIATION), name
            # Uniform: the largest of thousands of draws is the bound.
            assert one.abs().max().item() == pytest.approx(other.abs().max().item(), rel=0.01), name
        elif name.endswith(("_proj.bias", "fc1.bias", "fc2.bias")) and not one.eq(0).all():
            # A few hundred uniform draws.
            assert one.abs().max().item() == pytest.approx(other.abs().max().item(), rel=0.1), name


def test_stock_initialisation_by_its_formulas(build: Any) -> None:
    ours = copy_to_stock(build.ours(build.task(), 3, **OURS))
    layer = "decoder.layers.0"
    linear = 1 / math.sqrt(D_MODEL)
    for attention in ("self_attn", "encoder_attn"):
        for matrix in "qkv":
            name = f"{layer}.{attention}.{matrix}_proj"
            assert_uniform(ours[f"{name}.weight"], glorot(D_MODEL, D_MODEL) / math.sqrt(2), name)
            assert_uniform(ours[f"{name}.bias"], linear, name)
        assert_uniform(ours[f"{layer}.{attention}.out_proj.weight"], glorot(D_MODEL, D_MODEL), attention)
        assert ours[f"{layer}.{attention}.out_proj.bias"].eq(0).all()
    # torch's nn.Linear: U(-1/sqrt(in), 1/sqrt(in)), weights and biases.
    for name, width in (("fc1", D_MODEL), ("fc2", D_FF)):
        assert_uniform(ours[f"{layer}.{name}.weight"], 1 / math.sqrt(width), name)
        assert_uniform(ours[f"{layer}.{name}.bias"], 1 / math.sqrt(width), name)


@pytest.mark.parametrize("bias", [False, True])
def test_t2t_initialisation_by_its_formulas(build: Any, bias: bool) -> None:
    """Glorot over the stacked matrix, biases 0; d_k, d_v free of d_model / h."""
    d_k, d_v = 24, 48
    sizes = {**OURS, "d_k": d_k, "d_v": d_v}
    model = build.ours(build.task(), 4, init="t2t", attention_bias=bias, **sizes)
    layer = model.decoder.layers[0]
    attention, across, network = layer.self_attention, layer.encoder_attention, layer.feed_forward
    for matrix, rows, columns in (
        (attention.w_qkv, HEADS * (2 * d_k + d_v), D_MODEL),
        (attention.w_o, D_MODEL, HEADS * d_v),
        (across.w_q, HEADS * d_k, D_MODEL),
        (across.w_kv, HEADS * (d_k + d_v), D_MODEL),
        (across.w_o, D_MODEL, HEADS * d_v),
        (network.w_1, D_FF, D_MODEL),
        (network.w_2, D_MODEL, D_FF),
    ):
        assert matrix.weight.shape == (rows, columns)
        assert_uniform(matrix.weight, glorot(rows, columns), str(matrix))
    biases = [parameter for name, parameter in model.named_parameters() if name.endswith("bias")]
    assert len([1 for name, _ in model.named_parameters() if "w_qkv.bias" in name]) == 2 * bias
    assert all(parameter.eq(0).all() for parameter in biases)
    norms = [module for module in model.modules() if isinstance(module, torch.nn.LayerNorm)]
    assert len(norms) == 5 and all(norm.weight.eq(1).all() for norm in norms)


@pytest.mark.parametrize("init", ["t2t", "stock"])
def test_tables_are_normal_with_variance_one_over_d_model(build: Any, init: str) -> None:
    task = build.task()
    for symbol in range(500):
        task.target_dictionary.add_symbol(f"more{symbol}")
    model = build.ours(task, 5, init=init, embeddings="separate", positions="learned", **OURS)
    tables = (model.encoder.embedding, model.decoder.embedding, model.decoder.output,
              model.encoder.positions.embedding, model.decoder.positions.embedding)  # fmt: skip
    for table in tables:
        weights = table.weight.detach()
        assert weights.std().item() == pytest.approx(D_MODEL**-0.5, rel=DEVIATION)
        # A normal distribution, not a uniform one: 4.55 % lie beyond two standard deviations.
        assert weights.abs().gt(2 * D_MODEL**-0.5).float().mean().item() == pytest.approx(0.0455, rel=0.1)
    padding = model.encoder.embedding.weight[task.source_dictionary.pad()]
    assert padding.eq(0).all().item() == (init == "stock")


def test_the_same_seed_draws_the_same_weights(build: Any) -> None:
    for init in ("t2t", "stock"):
        first, again, other = (build.ours(build.task(), seed, init=init).state_dict() for seed in (6, 6, 7))
        assert all(torch.equal(first[name], again[name]) for name in first)
        assert not torch.equal(first["encoder.embedding.weight"], other["encoder.embedding.weight"])
