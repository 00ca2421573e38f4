"""What ``fast`` computes quicker against what it replaces: the paper's own modules, built beside it."""

from typing import Any

import pytest
import torch

from t2017_plugin.fairseq_side.model import T2017Transformer, memory_of
from t2017_plugin.fairseq_side.settings import paper_model
from t2017_plugin.fast.decoding import CachedModel, DecoderCache, DecoderStep, best_of_many
from t2017_plugin.fast.layers import Dropout, use_fast_dropout
from t2017_plugin.paper.config import Search
from t2017_plugin.paper.initial_weights import make_transformer
from t2017_plugin.paper.model import Transformer
from t2017_plugin.paper.search import beam_search, translate
from tests.builders import EOS, PAD, make_batch, make_model

pytestmark = pytest.mark.unit
# Sums of a few dozen float32 products in another order, through two layers.
ROUNDING = 1e-5


def paper_twin(model: T2017Transformer) -> Transformer:
    """The paper's model in torch alone, with the same weights under the same names."""
    twin = Transformer(paper_model(model.config), len(model.decoder.dictionary), padding_index=PAD).eval()
    twin.load_state_dict(model.state_dict())
    return twin


@pytest.mark.parametrize(
    "settings",
    [{}, {"attention_bias": True, "d_k": 4}, {"positions": "learned"}, {"embeddings": "separate", "sinusoid": "stock"}],
    ids=str,
)
def test_the_registered_model_is_the_papers(settings: dict[str, Any]) -> None:
    """Logits and gradients: with one call for attention, and as the formula stands."""
    model = make_model(**settings)
    twin, batch = paper_twin(model), make_batch([7, 4], [6, 3])
    registered, _ = model(batch["src_tokens"], None, batch["prev_output_tokens"])
    plain = twin(batch["src_tokens"], batch["prev_output_tokens"])
    real = batch["target"].ne(PAD)
    torch.testing.assert_close(registered[real], plain[real], atol=ROUNDING, rtol=0)
    for logits in (registered, plain):
        logits[real].square().mean().backward()
    gradients = dict(twin.named_parameters())
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name].grad, atol=ROUNDING, rtol=0)


def test_the_same_seed_gives_the_same_initial_weights() -> None:
    model = make_model(seed=3)
    torch.manual_seed(3)
    twin = make_transformer(paper_model(model.config), len(model.decoder.dictionary), padding_index=PAD)
    assert twin.state_dict().keys() == model.state_dict().keys()
    assert all(
        torch.equal(one, other)
        for one, other in zip(twin.state_dict().values(), model.state_dict().values(), strict=True)
    )


def test_every_dropout_is_the_fast_one() -> None:
    model = make_model(attention_dropout=0.1)
    twin = paper_twin(model)
    assert {type(each) for each in model.modules() if isinstance(each, torch.nn.Dropout)} == {Dropout}
    assert not any(isinstance(each, Dropout) for each in twin.modules())
    rates = [each.p for each in model.modules() if isinstance(each, Dropout)]
    use_fast_dropout(twin)
    assert [each.p for each in twin.modules() if isinstance(each, Dropout)] == rates


@pytest.mark.parametrize("beam, wanted", [(4, None), (4, 1), (1, None), (7, None)])
def test_search_with_a_cache_is_search_without(beam: int, wanted: int | None) -> None:
    """Sentences of several lengths in one batch; a sharper softmax, so that hypotheses end at different steps."""
    model = make_model(seed=2, embeddings="separate")
    with torch.no_grad():
        model.decoder.output.weight *= 3.0
        model.decoder.output.weight[EOS] += 0.3
    source = make_batch([3, 9, 5, 6], [2] * 4)["src_tokens"]
    search = Search(beam=beam, extra=8)
    plain = translate(paper_twin(model), source, EOS, search, wanted)
    with torch.inference_mode():
        memory, hidden = memory_of(model.encoder(source))
        cached = CachedModel(DecoderStep(model.decoder, copy=True), memory, hidden, beam)
    limits = (source.ne(PAD).sum(1) + search.extra).tolist()
    quick = beam_search(cached, limits, EOS, EOS, search, wanted=wanted, best=best_of_many)
    ends = set()
    for one, other in zip(plain, quick, strict=True):
        assert [each.tokens for each in one] == [each.tokens for each in other]
        assert [each.finished for each in one] == [each.finished for each in other]
        scores = [[each.score for each in found] for found in (one, other)]
        assert scores[0] == pytest.approx(scores[1], abs=ROUNDING)
        ends |= {len(each.tokens) for each in one}
    assert len(ends) > 1


@pytest.mark.parametrize("settings", [{}, {"attention_bias": True}, {"d_k": 4}, {"decoder_start": "eos"}], ids=str)
def test_a_step_is_the_last_position_of_a_full_run(settings: dict[str, Any]) -> None:
    """With the weights as they lie and with transposed copies of them."""
    model = make_model(**settings)
    source = make_batch([6, 4], [2, 2])["src_tokens"]
    target = torch.cat([torch.full((2, 1), EOS), torch.randint(4, 40, (2, 6))], dim=1)
    with torch.no_grad():
        encoder_out = model.encoder(source)
        expected, _ = model.decoder(target, encoder_out=encoder_out)
        for copy in (False, True):
            step, cache = DecoderStep(model.decoder, copy), DecoderCache(model.decoder, *memory_of(encoder_out), 1)
            for position in range(7):
                features, _ = step.features(target[:, position : position + 1], cache)
                torch.testing.assert_close(step.logits(features), expected[:, position], atol=ROUNDING, rtol=0)


def test_copies_of_weights_follow_the_weights() -> None:
    """A model that is loaded anew, or moved to another precision, is not searched with what it was before."""
    model, other = make_model(seed=1), make_model(seed=2)
    step = DecoderStep(model.decoder, copy=True)
    x = torch.randn(3, model.config.d_model)
    before = step.logits(x)
    model.load_state_dict(other.state_dict())
    step.refresh()
    torch.testing.assert_close(step.logits(x), other.decoder.output_layer(x), atol=ROUNDING, rtol=0)
    assert not torch.allclose(before, step.logits(x))
    model.double()
    step.refresh()
    assert step.logits(x.double()).dtype == torch.float64
