"""Search and scoring: fairseq's own generator and scorer on our model, our search on fairseq's model."""

import copy
from typing import Any

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer

from t2017_plugin.fairseq_side.generator import PaperGenerator
from t2017_plugin.fairseq_side.model import CACHE
from t2017_plugin.fairseq_side.stock_search import StockSearch
from t2017_plugin.paper.search import length_penalty

pytestmark = pytest.mark.parity

# float32, summed over the tokens of a hypothesis, in nats.
CLOSE = 2e-4


def generation(**settings: Any) -> GenerationConfig:
    """fairseq's generation settings; ``min_len`` is left to the search."""
    return GenerationConfig(**{"max_len_a": 1.0, "max_len_b": 10, "min_len": -1, **settings})


def search(
    task: Any, models: list[Any], sample: dict[str, Any], seq_gen_cls: Any = None, **settings: Any
) -> list[list[dict[str, Any]]]:
    """As fairseq-generate does it: the task's generator on a batch that it may change."""
    generator = task.build_generator(models, generation(**settings), seq_gen_cls)
    with torch.no_grad():
        return generator.generate(models, copy.deepcopy(sample))


def assert_same(first: list[list[dict[str, Any]]], second: list[list[dict[str, Any]]]) -> None:
    """The same hypotheses in the same order, the same scores."""
    assert len(first) == len(second)
    for one, other in zip(first, second, strict=True):
        assert [h["tokens"].tolist() for h in one] == [h["tokens"].tolist() for h in other]
        for a, b in zip(one, other, strict=True):
            assert float(a["score"]) == pytest.approx(float(b["score"]), abs=CLOSE)
            torch.testing.assert_close(a["positional_scores"], b["positional_scores"], rtol=0, atol=CLOSE)


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("beam", [1, 4, 5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stock_search_finds_the_same_on_both_models(
    trained_pair: Any, batch_of: Any, build: Any, seed: int, beam: int, left: bool
) -> None:
    """Our computation of stock's rule, fairseq's generator on our model, and fairseq's generator on stock's."""
    pair, task, sample = trained_pair(seed), build.task(search="stock"), batch_of(seed, left)
    assert isinstance(task.build_generator([pair.ours], generation()), StockSearch)
    assert isinstance(task.build_generator([pair.stock], generation()), SequenceGenerator)
    settings = {"beam": beam, "nbest": beam, "lenpen": 0.6}
    ours, stock = (search(task, [model], sample, **settings) for model in (pair.ours, pair.stock))
    assert_same(ours, stock)
    assert_same(ours, search(task, [pair.ours], sample, **settings, seq_gen_cls=SequenceGenerator))
    assert all(len(hypotheses) == beam for hypotheses in ours)
    assert len({len(h["tokens"]) for hypotheses in ours for h in hypotheses}) > 1


@pytest.mark.parametrize(
    "settings",
    [
        {"lenpen": 1.0},
        {"lenpen": 0.0},
        {"lenpen": -0.5},
        {"lenpen": 2.0},
        {"unnormalized": True},
        {"max_len_a": 0.0, "max_len_b": 3},
        {"max_len_a": 0.0, "max_len_b": 0, "min_len": 0},
        {"max_len_a": 0.5, "max_len_b": 2},
        {"min_len": 6},
        {"beam": 60},
    ],
    ids=str,
)
def test_stock_rules_under_other_flags(trained_pair: Any, batch_of: Any, build: Any, settings: dict[str, Any]) -> None:
    """Penalties, limits at which EOS is forced, a least length, more hypotheses than symbols."""
    task = build.task(search="stock")
    for seed in (1, 2, 3):
        pair, sample, flags = trained_pair(seed), batch_of(seed), {"beam": 4, "nbest": 4, **settings}
        assert_same(search(task, [pair.ours], sample, **flags), search(task, [pair.stock], sample, **flags))


@pytest.mark.parametrize(
    "flags", [{"sampling": True}, {"no_repeat_ngram_size": 2}, {"print_alignment": "hard"}, {"prefix_size": 1}], ids=str
)
def test_other_flags_of_stocks_search_are_left_to_fairseq(trained_pair: Any, build: Any, flags: dict[str, Any]) -> None:
    generator = build.task(search="stock").build_generator([trained_pair(1).ours], generation(**flags))
    assert isinstance(generator, SequenceGenerator)


def test_prefixes_under_stocks_rule_are_fairseqs(trained_pair: Any, batch_of: Any, build: Any) -> None:
    pair, task, sample = trained_pair(1), build.task(search="stock"), batch_of(1)
    prefix = sample["target"][:, :2]
    found = []
    for model in (pair.ours, pair.stock):
        generator = task.build_generator([model], generation(beam=4, nbest=4))
        with torch.no_grad():
            found.append(generator.generate([model], copy.deepcopy(sample), prefix_tokens=prefix))
    assert_same(*found)


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("beam", [1, 4, 5])
def test_our_search_finds_the_same_on_both_models(
    trained_pair: Any, batch_of: Any, build: Any, beam: int, left: bool
) -> None:
    task = build.task()
    for seed in (1, 2, 3):
        pair, sample = trained_pair(seed), batch_of(seed, left)
        assert isinstance(task.build_generator([pair.stock], generation()), PaperGenerator)
        settings = {"beam": beam, "nbest": beam, "lenpen": 0.6}
        ours, stock = (search(task, [model], sample, **settings) for model in (pair.ours, pair.stock))
        assert_same(ours, stock)


@pytest.mark.parametrize("which", ["paper", "stock"])
def test_a_hypothesis_does_not_depend_on_padding(trained_pair: Any, batch_of: Any, build: Any, which: str) -> None:
    """On either side, or none because the sentence is alone; a fixed limit, since stock's depends on the batch."""
    pair, task = trained_pair(1), build.task(search=which)
    settings = {"beam": 4, "lenpen": 0.6, "max_len_a": 0.0, "max_len_b": 12}
    left, right = (search(task, [pair.ours], batch_of(1, side), **settings) for side in (True, False))
    assert_same(left, right)
    sample = batch_of(1)
    for i, tokens in enumerate(sample["net_input"]["src_tokens"]):
        tokens = tokens[tokens.ne(pair.task.source_dictionary.pad())]
        alone = {"net_input": {"src_tokens": tokens[None], "src_lengths": torch.tensor([len(tokens)])}}
        place = sample["id"].tolist().index(int(sample["id"][i]))
        assert_same(search(task, [pair.ours], alone, **settings), left[place : place + 1])


def test_ensembles_of_two(trained_pair: Any, batch_of: Any, build: Any) -> None:
    """Both searches, on two of our models, two of stock's, and one of each."""
    first, second, sample = trained_pair(2), trained_pair(3), batch_of(8)
    for which in ("stock", "paper"):
        task = build.task(search=which)
        expected = search(task, [first.ours, second.ours], sample, beam=4, lenpen=0.6)
        assert_same(search(task, [first.stock, second.stock], sample, beam=4, lenpen=0.6), expected)
        assert_same(search(task, [first.ours, second.stock], sample, beam=4, lenpen=0.6), expected)
        alone = search(task, [first.ours], sample, beam=4, lenpen=0.6)
        assert [h[0]["tokens"].tolist() for h in alone] != [h[0]["tokens"].tolist() for h in expected]


def test_an_ensemble_scores_with_the_mean_probability(trained_pair: Any, batch_of: Any, build: Any) -> None:
    pair, other, sample = trained_pair(2), trained_pair(3), batch_of(10)
    pad = pair.task.source_dictionary.pad()
    results = search(build.task(), [pair.ours, other.ours], sample, beam=4, nbest=4, lenpen=0.6)
    for source, hypotheses in zip(sample["net_input"]["src_tokens"], results, strict=True):
        source = source[source.ne(pad)][None]
        for hypothesis in hypotheses:
            assert hypothesis["finished"]
            target = hypothesis["tokens"]
            mean = sum(
                model(source, torch.tensor([source.size(1)]), target.roll(1)[None])[0].softmax(-1)[0]
                for model in (pair.ours, other.ours)
            ) / 2  # fmt: skip
            log_p = mean.log().gather(-1, target[:, None]).squeeze(-1)
            torch.testing.assert_close(hypothesis["positional_scores"], log_p, rtol=0, atol=CLOSE)
            score = log_p.sum().item() / length_penalty(len(target), 0.6)
            assert float(hypothesis["score"]) == pytest.approx(score, abs=CLOSE)


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
def test_fairseqs_scorer(trained_pair: Any, batch_of: Any, build: Any, left: bool) -> None:
    """``--score-reference``: the same on both models, for one and for two, and equal to the log-softmax."""
    pair, other, sample, task = trained_pair(1), trained_pair(2), batch_of(12, left), build.task()
    pad = task.target_dictionary.pad()
    for ours, stock in (([pair.ours], [pair.stock]), ([pair.ours, other.ours], [pair.stock, other.stock])):
        results = []
        for models in (ours, stock):
            scorer = task.build_generator(models, generation(score_reference=True))
            assert isinstance(scorer, SequenceScorer)
            results.append(scorer.generate(models, copy.deepcopy(sample)))
        assert_same(*results)
        probabilities = sum(model(**sample["net_input"])[0].softmax(-1) for model in ours) / len(ours)
        for i, (hypothesis,) in enumerate(results[0]):
            target = sample["target"][i][sample["target"][i].ne(pad)]
            log_p = probabilities[i, : len(target)].log().gather(-1, target[:, None]).squeeze(-1)
            torch.testing.assert_close(hypothesis["positional_scores"], log_p, rtol=0, atol=CLOSE)
            assert float(hypothesis["score"]) == pytest.approx(log_p.mean().item(), abs=CLOSE)


@pytest.mark.parametrize("decoder_start", ["zeros", "eos"])
@pytest.mark.parametrize("shared", [True, False], ids=["one output a sentence", "a copy a hypothesis"])
def test_cached_equals_uncached_when_hypotheses_change_places(
    build: Any, batch_of: Any, decoder_start: str, shared: bool
) -> None:
    """Random parents after every step, and sentences that leave; ours (shared) and fairseq's way of reordering."""
    task, beam = build.task(), 3
    model = build.ours(task, 14, decoder_start=decoder_start).eval()
    net_input = batch_of(14)["net_input"]
    generator = torch.Generator().manual_seed(14)
    encoded = model.encoder(net_input["src_tokens"])
    sentences = torch.arange(4)
    cached_from = encoded if shared else model.encoder.reorder_encoder_out(encoded, sentences.repeat_interleave(beam))
    state: dict[str, Any] = {}
    tokens = torch.full((4 * beam, 1), task.target_dictionary.eos())
    for step in range(8):
        newest = model.decoder(tokens, encoder_out=cached_from, incremental_state=state)[0]
        rows = model.encoder.reorder_encoder_out(encoded, sentences.repeat_interleave(beam))
        whole = model.decoder(tokens, encoder_out=rows)[0]
        # float32 through two layers.
        torch.testing.assert_close(newest[:, -1], whole[:, -1], rtol=1e-4, atol=1e-5)
        stay = torch.tensor([0, 2, 3]) if step == 2 else torch.tensor([1, 0]) if step == 4 else None
        on = torch.arange(len(sentences)) if stay is None else stay
        full_parent = torch.randint(beam, (len(sentences), beam), generator=generator)
        parent = full_parent[on]
        order = (on[:, None] * beam + parent).flatten()
        if shared:
            state[CACHE].choose_parents(full_parent)
            if stay is not None:
                state[CACHE].keep_sentences(stay)
        else:
            model.decoder.reorder_incremental_state_scripting(state, order)
            cached_from = model.encoder.reorder_encoder_out(cached_from, order)
        sentences = sentences[on]
        new = torch.randint(4, len(task.target_dictionary), (len(order), 1), generator=generator)
        tokens = torch.cat([tokens[order], new], dim=1)
