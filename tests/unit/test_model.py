"""The whole model (sections 3.1 to 3.4): order of norm and residual, leaks, tying, dropout sites, cache, counts."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.architectures import architecture_settings
from t2017_plugin.fairseq_side.model import CACHE, T2017Transformer
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.fast.layers import Dropout
from tests.builders import EOS, PAD, make_batch, make_model, make_task

pytestmark = pytest.mark.unit
# Float32 sums of some dozen terms in another order, through two layers.
ROUNDING = 3e-6


def logits(model: T2017Transformer, batch: dict[str, Tensor]) -> Tensor:
    return model(batch["src_tokens"], None, batch["prev_output_tokens"])[0]


def zero_sublayers(model: nn.Module) -> None:
    """Makes every attention and feed-forward network return zeros."""
    for name, parameter in model.named_parameters():
        if ".w_o." in name or ".w_2." in name:
            nn.init.zeros_(parameter)


def test_post_norm_order() -> None:
    """With zero sub-layers each layer is LayerNorm, applied twice in the encoder and three times in the decoder."""
    model, batch = make_model(), make_batch([6, 4], [5, 3])
    zero_sublayers(model)
    x = model.encoder.embed(batch["src_tokens"])
    expected = x
    for _ in range(2 * 2):
        expected = F.layer_norm(expected, (32,), eps=1e-6)
    encoder_out = model.encoder(batch["src_tokens"])
    torch.testing.assert_close(encoder_out["encoder_out"][0], expected, atol=ROUNDING, rtol=0)
    expected = model.decoder.embed(batch["prev_output_tokens"])
    for _ in range(2 * 3):
        expected = F.layer_norm(expected, (32,), eps=1e-6)
    features, _ = model.decoder.extract_features(batch["prev_output_tokens"], encoder_out=encoder_out)
    torch.testing.assert_close(features, expected, atol=ROUNDING, rtol=0)


def test_no_norm_outside_the_layers() -> None:
    """Two norms in an encoder layer, three in a decoder layer, and none elsewhere."""
    names = [name for name, module in make_model().named_modules() if isinstance(module, nn.LayerNorm)]
    assert len(names) == 2 * 2 + 2 * 3
    assert all(".layers." in name for name in names)


def test_embedding_is_scaled_and_output_is_not() -> None:
    model = make_model()
    tokens = torch.tensor([[7, 9, EOS]])
    table = model.encoder.embedding.weight
    expected = table[tokens] * math.sqrt(32) + model.encoder.positions(torch.arange(3), 3)
    torch.testing.assert_close(model.encoder.embed(tokens), expected, atol=ROUNDING, rtol=0)
    features = torch.randn(1, 2, 32)
    torch.testing.assert_close(model.decoder.output_layer(features), features @ table.T, atol=ROUNDING, rtol=0)


def test_decoder_starts_with_a_zero_vector() -> None:
    """The first input is its position alone; with eos it is the embedding of EOS, as stock feeds it."""
    tokens = torch.tensor([[EOS, 7, 9]])
    zeros, eos = make_model(), make_model(decoder_start="eos")
    first = zeros.decoder.positions(torch.arange(1), 1)[0]
    torch.testing.assert_close(zeros.decoder.embed(tokens)[0, 0], first, atol=0, rtol=0)
    expected = first + eos.decoder.embedding.weight[EOS] * math.sqrt(32)
    torch.testing.assert_close(eos.decoder.embed(tokens)[0, 0], expected, atol=ROUNDING, rtol=0)
    torch.testing.assert_close(eos.decoder.embed(tokens)[0, 1:], zeros.decoder.embed(tokens)[0, 1:], atol=0, rtol=0)


def test_decoder_sees_no_later_target() -> None:
    model, batch = make_model(), make_batch([6], [7])
    before = logits(model, batch)
    for position in range(1, 7):
        changed = dict(batch, prev_output_tokens=batch["prev_output_tokens"].clone())
        changed["prev_output_tokens"][0, position] = 39 - int(batch["prev_output_tokens"][0, position]) % 7
        after = logits(model, changed)
        torch.testing.assert_close(after[:, :position], before[:, :position], atol=0, rtol=0)
        assert not torch.allclose(after[:, position:], before[:, position:], atol=1e-3)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_leaks_nothing(side: str) -> None:
    """A sentence alone, and the same one beside a longer one, padded on either side."""
    model = make_model()
    batch = make_batch([5, 9], [4, 8])
    together = logits(model, batch)
    source = batch["src_tokens"][:1, :5]
    padding = torch.full((1, 4), PAD)
    padded = torch.cat([padding, source] if side == "left" else [source, padding], dim=1)
    alone = model(source, None, batch["prev_output_tokens"][:1, :4])[0]
    torch.testing.assert_close(together[:1, :4], alone, atol=ROUNDING, rtol=0)
    again = model(padded, None, batch["prev_output_tokens"][:1, :4])[0]
    torch.testing.assert_close(again, alone, atol=ROUNDING, rtol=0)


def test_the_row_of_the_padding_symbol_has_no_say_in_the_input() -> None:
    model, batch = make_model(), make_batch([3, 6], [2, 5])
    with torch.no_grad():
        before = model.encoder(batch["src_tokens"])["encoder_out"][0]
        model.encoder.embedding.weight[PAD] = 100.0
        after = model.encoder(batch["src_tokens"])["encoder_out"][0]
    real = batch["src_tokens"].ne(PAD)
    torch.testing.assert_close(after[real], before[real], atol=0, rtol=0)


@pytest.mark.parametrize("kind, tables", [("shared", 1), ("decoder", 2), ("separate", 3)])
def test_embeddings_switch(kind: str, tables: int) -> None:
    model = make_model(embeddings=kind)
    weights = (model.encoder.embedding.weight, model.decoder.embedding.weight, model.decoder.output.weight)
    assert len({id(weight) for weight in weights}) == tables
    assert len({weight.data_ptr() for weight in weights}) == tables
    batch = make_batch([5], [4])
    logits(model, batch).sum().backward()
    assert all(weight.grad is not None for weight in weights)


def test_tied_model_needs_one_dictionary() -> None:
    config = T2017TransformerConfig()
    with pytest.raises(UsageError, match="40 and 44 types.*--joined-dictionary.*--embeddings") as refusal:
        T2017Transformer.build_model(config, make_task(40, 44))
    assert "\n" not in str(refusal.value)
    T2017Transformer.build_model(T2017TransformerConfig(layers=1, embeddings="decoder"), make_task(40, 44))


@pytest.mark.parametrize("setting", [{"heads": 0}, {"d_k": -1}, {"dropout": 1.0}, {"attention_dropout": -0.1}])
def test_impossible_settings_are_refused(setting: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=next(iter(setting)).replace("_", "-")):
        make_model(**setting)


@pytest.mark.parametrize(
    "settings_",
    [{}, {"d_k": 3, "d_v": 11}, {"positions": "learned"}, {"decoder_start": "eos"}, {"attention_bias": True}],
)
def test_cached_decoding_equals_uncached(settings_: dict[str, object]) -> None:
    model, batch = make_model(**settings_), make_batch([6, 4, 9], [8, 8, 8])
    with torch.no_grad():
        encoder_out = model.encoder(batch["src_tokens"])
        expected, _ = model.decoder(batch["prev_output_tokens"], encoder_out=encoder_out)
        state: dict[str, object] = {}
        for length in range(1, 9):
            step, _ = model.decoder(
                batch["prev_output_tokens"][:, :length], encoder_out=encoder_out, incremental_state=state
            )
            torch.testing.assert_close(step[:, 0], expected[:, length - 1], atol=ROUNDING, rtol=0)


def test_cache_follows_random_reordering() -> None:
    """Hypotheses of a sentence are moved and copied at every step; the cache must give what a full run gives."""
    model, beam = make_model(), 3
    source = make_batch([6, 4], [2, 2])["src_tokens"]
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        encoder_out = model.encoder(source)
        copied = model.encoder.reorder_encoder_out(encoder_out, torch.arange(2).repeat_interleave(beam))
        tokens = torch.full((2 * beam, 1), EOS)
        state: dict[str, Any] = {}
        for _ in range(7):
            step, _ = model.decoder(tokens, encoder_out=encoder_out, incremental_state=state)
            full, _ = model.decoder(tokens, encoder_out=copied)
            torch.testing.assert_close(step[:, 0], full[:, -1], atol=ROUNDING, rtol=0)
            parents = torch.randint(beam, (2, beam), generator=generator)
            state[CACHE].choose_parents(parents)
            newest = torch.randint(4, 40, (2 * beam, 1), generator=generator)
            rows = (parents + torch.tensor([[0], [beam]])).flatten()
            tokens = torch.cat([tokens[rows], newest], dim=1)


def test_weights_of_all_attentions_on_request() -> None:
    model, batch = make_model(), make_batch([6, 4], [5, 3])
    encoder_out = model.encoder(batch["src_tokens"], need_weights=True, return_all_hiddens=True)
    assert [tuple(w.shape) for w in encoder_out["attention_weights"]] == [(2, 4, 6, 6)] * 2
    assert len(encoder_out["encoder_states"]) == 3
    plain, _ = model.decoder(batch["prev_output_tokens"], encoder_out=encoder_out)
    explicit, extra = model.decoder(batch["prev_output_tokens"], encoder_out=encoder_out, need_weights=True)
    torch.testing.assert_close(explicit, plain, atol=ROUNDING, rtol=0)
    assert [tuple(w.shape) for w in extra["self_attention_weights"]] == [(2, 4, 5, 5)] * 2
    assert [tuple(w.shape) for w in extra["encoder_attention_weights"]] == [(2, 4, 5, 6)] * 2
    torch.testing.assert_close(extra["attn"][0], extra["encoder_attention_weights"][-1].mean(1))


@pytest.mark.parametrize(
    "settings_, sites",
    [
        # section 5.4: 2 sums of embedding and position, 2 sub-layers in an encoder layer, 3 in a decoder layer
        ({}, {0.1: 2 + 2 * 2 + 2 * 3}),
        ({"relu_dropout": 0.3}, {0.1: 2 + 2 * 2 + 2 * 3, 0.3: 4}),
    ],
)
def test_dropout_sites(settings_: dict[str, float], sites: dict[float, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call of dropout in training is counted by its rate."""
    model, batch = make_model(dropout=0.1, **settings_).train(), make_batch([5], [4])
    seen: dict[float, int] = {}

    def count(site: Dropout, x: Tensor) -> Tensor:
        if site.training and site.p > 0:
            seen[site.p] = seen.get(site.p, 0) + 1
        return x

    monkeypatch.setattr(Dropout, "forward", count)
    attended = F.scaled_dot_product_attention
    rates: list[float] = []

    def spy(*args: Tensor, dropout_p: float = 0.0, **options: object) -> Tensor:
        rates.append(dropout_p)
        return attended(*args, dropout_p=dropout_p, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    logits(model, batch)
    assert seen == sites
    assert rates == [0.0] * 6


def test_attention_dropout_reaches_every_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []

    def spy(query: Tensor, key: Tensor, value: Tensor, dropout_p: float = 0.0, **options: object) -> Tensor:
        rates.append(dropout_p)
        return value.new_zeros(*query.shape[:-1], value.size(-1))

    monkeypatch.setattr(F, "scaled_dot_product_attention", spy)
    model = make_model(attention_dropout=0.2)
    logits(model.train(), make_batch([5], [4]))
    assert rates == [0.2] * 6
    logits(model.eval(), make_batch([5], [4]))
    assert rates[6:] == [0.0] * 6


def by_formula(vocabulary: int, n: int, d_model: int, d_ff: int, h: int, d_k: int, d_v: int) -> int:
    """Parameters of section 3: one table, biasless attention, a biased feed-forward network, 2 d_model a norm."""
    attention = d_model * h * (2 * d_k + d_v) + h * d_v * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    encoder = attention + feed_forward + 2 * 2 * d_model
    decoder = 2 * attention + feed_forward + 3 * 2 * d_model
    return vocabulary * d_model + n * (encoder + decoder)


@pytest.mark.parametrize(
    "architecture, printed", [("t2017_base", 65_073_152), ("t2017_big", 218_226_688), ("t2017_big_enfr", 218_226_688)]
)
def test_parameter_counts(architecture: str, printed: int) -> None:
    s = architecture_settings(architecture)
    formula = by_formula(40_960, s["layers"], s["d_model"], s["d_ff"], s["heads"], s["d_k"], s["d_v"])
    assert formula == printed
    with torch.device("meta"):
        model = T2017Transformer.build_model(T2017TransformerConfig(**s), make_task(40_960))
    assert sum(parameter.numel() for parameter in model.parameters()) == printed


def test_architectures_differ_from_base_as_table_3_says() -> None:
    base, big, enfr = (architecture_settings(f"t2017_{name}") for name in ("base", "big", "big_enfr"))
    assert (base["layers"], base["d_model"], base["d_ff"], base["heads"], base["d_k"], base["d_v"]) == (
        6, 512, 2048, 8, 64, 64,
    )  # fmt: skip
    assert {name: big[name] for name in big if big[name] != base[name]} == {
        "d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3,
    }  # fmt: skip
    assert {name: enfr[name] for name in enfr if enfr[name] != big[name]} == {"dropout": 0.1}
    assert base["dropout"] == 0.1 and base["attention_dropout"] == base["relu_dropout"] == 0.0
