"""Under the stock switches and with the same weights, our model is fairseq's: outputs and gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor

from t2017_plugin.checkpoints.stock_weights import copy_to_stock, from_stock
from t2017_plugin.errors import UsageError

pytestmark = pytest.mark.parity

# float32, two layers; the two ways of computing attention round differently.
CLOSE = {"rtol": 1e-4, "atol": 2e-5}
# float64, once both look their positions up in one table.
SAME = {"rtol": 1e-10, "atol": 1e-12}
# The same behind stock's attention over the encoder's output, whose softmax is float32 whatever the model is.
BEHIND_FLOAT32_SOFTMAX = {"rtol": 1e-5, "atol": 2e-6}


def one_position_table(pair: Any, length: int = 64) -> None:
    """Ours in float64 for both: stock computes its angles in float32."""
    for ours, stock in ((pair.ours.encoder, pair.stock.encoder), (pair.ours.decoder, pair.stock.decoder)):
        first = stock.embed_positions.padding_idx + 1
        stock.embed_positions.weights[first : first + length] = ours.positions.table[:length]


def real(values: Tensor, tokens: Tensor, pair: Any) -> Tensor:
    """The positions that are not padding."""
    return values[tokens.ne(pair.task.source_dictionary.pad())]


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("embeddings", ["shared", "decoder", "separate"])
def test_encoder_output_and_logits(make_pair: Any, batch_of: Any, left: bool, embeddings: str) -> None:
    pair, sample = make_pair(3, embeddings), batch_of(3, left)
    net_input = sample["net_input"]
    encoder_input = {name: net_input[name] for name in ("src_tokens", "src_lengths")}
    ours = pair.ours.encoder(**encoder_input)["encoder_out"][0]
    stock = pair.stock.encoder(**encoder_input)["encoder_out"][0].transpose(0, 1)
    tokens = net_input["src_tokens"]
    torch.testing.assert_close(real(ours, tokens, pair), real(stock, tokens, pair), **CLOSE)
    ours, stock = pair.ours(**net_input)[0], pair.stock(**net_input)[0]
    torch.testing.assert_close(real(ours, sample["target"], pair), real(stock, sample["target"], pair), **CLOSE)


def test_in_float64_both_are_the_same_to_rounding(make_pair: Any, batch_of: Any) -> None:
    pair, sample = make_pair(5), batch_of(5)
    pair.ours.double(), pair.stock.double()
    one_position_table(pair)
    net_input = sample["net_input"]
    tokens, lengths = net_input["src_tokens"], net_input["src_lengths"]
    ours = pair.ours.encoder(tokens)["encoder_out"][0]
    stock = pair.stock.encoder(tokens, lengths)["encoder_out"][0].transpose(0, 1)
    torch.testing.assert_close(real(ours, tokens, pair), real(stock, tokens, pair), **SAME)
    ours, stock = (real(model(**net_input)[0], sample["target"], pair) for model in (pair.ours, pair.stock))
    torch.testing.assert_close(ours, stock, **BEHIND_FLOAT32_SOFTMAX)


def test_gradients_of_every_weight(make_pair: Any, batch_of: Any) -> None:
    """Of a loss on all logits of real positions, in float64."""
    pair, sample = make_pair(7), batch_of(7)
    pair.ours.double(), pair.stock.double()
    one_position_table(pair)
    for model in (pair.ours, pair.stock):
        logits = real(model(**sample["net_input"])[0], sample["target"], pair)
        (logits.logsumexp(-1) - logits[:, 4]).sum().backward()
    stock = from_stock({name: parameter.grad for name, parameter in pair.stock.named_parameters()})
    ours = {name: parameter.grad for name, parameter in pair.ours.named_parameters()}
    # The table used three times is named once by named_parameters, in both models.
    assert set(ours) == set(stock)
    assert all(gradient.abs().max() > 0 for gradient in ours.values())
    for name, gradient in ours.items():
        # Against the largest entry: gradients of biases of keys are sums that cancel.
        difference = (gradient - stock[name]).abs().max() / gradient.abs().max()
        assert difference < 1e-5, name


def test_a_model_without_attention_biases_is_stock_with_zeros(make_pair: Any, batch_of: Any) -> None:
    pair, sample = make_pair(9, attention_bias=False), batch_of(9)
    ours, stock = (model(**sample["net_input"])[0] for model in (pair.ours, pair.stock))
    torch.testing.assert_close(real(ours, sample["target"], pair), real(stock, sample["target"], pair), **CLOSE)


def test_copy_there_and_back_changes_nothing(make_pair: Any) -> None:
    for embeddings in ("shared", "separate"):
        pair = make_pair(2, embeddings)
        back = from_stock(pair.stock.state_dict())
        state = pair.ours.state_dict()
        assert list(sorted(back)) == list(sorted(state))
        assert all(torch.equal(back[name], state[name]) for name in state)
        pair.ours.load_state_dict(back, strict=True)


def test_stacked_matrices_keep_their_order(make_pair: Any) -> None:
    """W^Q, W^K, W^V are told apart: the first rows of w_qkv are stock's q_proj and so on."""
    pair = make_pair(4)
    ours, stock = pair.ours.decoder.layers[1], pair.stock.decoder.layers[1]
    query, key, value = ours.self_attention.w_qkv.weight.chunk(3)
    assert torch.equal(query, stock.self_attn.q_proj.weight)
    assert torch.equal(key, stock.self_attn.k_proj.weight)
    assert torch.equal(value, stock.self_attn.v_proj.weight)
    key, value = ours.encoder_attention.w_kv.weight.chunk(2)
    assert torch.equal(key, stock.encoder_attn.k_proj.weight)
    assert torch.equal(value, stock.encoder_attn.v_proj.weight)


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"sinusoid": "paper"}, "--sinusoid stock"),
        ({"decoder_start": "zeros"}, "--decoder-start eos"),
        ({"d_k": 4}, "--d-k 8"),
        ({"d_v": 16}, "--d-v 8"),
        ({"layer_norm_eps": 1e-6}, "--layer-norm-eps 1e-05"),
        ({"positions": "learned"}, "--positions sinusoid"),
    ],
)
def test_what_stock_cannot_hold_is_refused_with_the_flag(build: Any, settings: dict[str, Any], flag: str) -> None:
    with pytest.raises(UsageError, match=flag):
        copy_to_stock(build.ours(build.task(), **settings))


def test_weights_without_a_place_are_refused(build: Any) -> None:
    stock = build.stock(build.task(), encoder_normalize_before=True)
    with pytest.raises(UsageError, match="encoder.layer_norm.weight"):
        from_stock(stock.state_dict())
