"""The paper's search (section 6.1): against exhaustive search, against greedy search, and alone as in company."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.generator import PaperGenerator
from t2017_plugin.fairseq_side.model import T2017Transformer
from t2017_plugin.paper.search import length_penalty
from tests.builders import EOS, PAD, make_batch, make_dictionary, make_model

pytestmark = pytest.mark.unit
# Scores are sums of a dozen float32 log-probabilities.
SCORE = 2e-5
BOS = 0


def sharpened(model: T2017Transformer, factor: float) -> T2017Transformer:
    """Larger output weights: a random model's next-token distribution is otherwise nearly uniform."""
    with torch.no_grad():
        model.decoder.output.weight.mul_(factor)
    return model


def random_model(vocabulary: int = 40, seed: int = 0, **settings: Any) -> T2017Transformer:
    return sharpened(make_model(vocabulary, seed, embeddings="separate", **settings), 3.0)


def generator(model: T2017Transformer, vocabulary: int = 40, extra: int = 6, form: str = "gnmt", **args: Any) -> Any:
    return PaperGenerator([model], make_dictionary(vocabulary), SimpleNamespace(**args), extra, form)


def search(generator: PaperGenerator, source: Tensor, **options: Any) -> list[list[dict[str, Any]]]:
    return generator.generate([], {"net_input": {"src_tokens": source, "src_lengths": None}}, **options)


def log_p(model: T2017Transformer, source: Tensor, target: list[int]) -> float:
    """log P(target | source) in nats from one uncached run; padding and BOS have probability as any other token."""
    shifted = torch.tensor([[EOS, *target[:-1]]])
    with torch.no_grad():
        logits, _ = model(source, None, shifted)
    chosen = torch.log_softmax(logits[0], -1).gather(1, torch.tensor(target).unsqueeze(1))
    return float(chosen.sum())


@pytest.mark.parametrize("form", ["gnmt", "power"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.6, 1.0, 2.0])
def test_wide_beam_finds_the_best_of_all_sequences(alpha: float, form: str) -> None:
    """Vocabulary of three symbols and EOS, at most five tokens: all 364 complete hypotheses, ranked by the formula."""
    model = random_model(7, seed=3)
    source = make_batch([2], [2], 7)["src_tokens"]
    symbols = [3, 4, 5, 6]  # unknown word and three words; padding and BOS are never generated
    ranked = []
    for length in range(1, 6):
        for words in itertools.product(symbols, repeat=length - 1):
            target = [*words, EOS]
            ranked.append((log_p(model, source, target) / length_penalty(length, alpha, form), target))
    ranked.sort(reverse=True)
    found = search(generator(model, 7, extra=3, form=form, beam=400, lenpen=alpha), source)[0]
    assert found[0]["tokens"].tolist() == ranked[0][1]
    for hypothesis, (score, _) in zip(found[:5], ranked, strict=False):
        assert float(hypothesis["score"]) == pytest.approx(score, abs=SCORE)
        assert float(hypothesis["positional_scores"].sum()) == pytest.approx(
            log_p(model, source, hypothesis["tokens"].tolist()), abs=SCORE
        )


def greedy_search(model: T2017Transformer, source: Tensor, limit: int) -> tuple[str, list[int]]:
    """The search with a beam of 1 and alpha 0 by hand, and how it ends.

    The two best continuations are taken at each step. The most probable one that is not EOS goes on; EOS among the two
    ends a hypothesis there. The more probable of what has ended wins, or what is alive at the limit if nothing has.
    """
    alive: list[int] = []
    ended: dict[str, list[int]] = {}
    while len(alive) < limit and "EOS first" not in ended:
        with torch.no_grad():
            row = model(source, None, torch.tensor([[EOS, *alive]]))[0][0, -1]
        row[[PAD, BOS]] = -torch.inf
        first, second = row.topk(2).indices.tolist()
        if EOS in (first, second):
            kind, target = "EOS first" if first == EOS else "EOS second", [*alive, EOS]
            # A later end in second place wins only where it is more probable than the earlier one.
            if kind not in ended or log_p(model, source, target) > log_p(model, source, ended[kind]):
                ended[kind] = target
        alive.append(second if first == EOS else first)
    if not ended:
        return "no end", alive
    return max(ended.items(), key=lambda end: log_p(model, source, end[1]))


def test_beam_of_one_is_greedy() -> None:
    """Tokens and end equal those of the search by hand, whichever of the three ways it ends."""
    ends = []
    for seed in range(16):
        model = random_model(12, seed=seed)
        source = make_batch([5], [2], 12, seed=seed)["src_tokens"]
        end, target = greedy_search(model, source, limit=5 + 6)
        found = search(generator(model, 12, beam=1, lenpen=0.0), source)[0][0]
        assert found["tokens"].tolist() == target and found["finished"] is (end != "no end")
        ends.append(end)
    # All three ways to end were seen.
    assert set(ends) == {"EOS first", "EOS second", "no end"}


@hypothesis_settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(2, 9), min_size=2, max_size=5),
    seed=st.integers(0, 5),
    left=st.booleans(),
    beam=st.sampled_from([1, 4, 5]),
)
def test_nothing_depends_on_the_neighbours(lengths: list[int], seed: int, left: bool, beam: int) -> None:
    """Each sentence alone, unpadded, gives what it gives in a batch: hypotheses, order, scores, and limit."""
    model = random_model(seed=seed)
    source = make_batch(lengths, [2] * len(lengths), seed=seed)["src_tokens"]
    search_it = generator(model, beam=beam)
    if left:
        source = torch.stack([row.roll(int(row.eq(PAD).sum())) for row in source])
    together = search(search_it, source)
    for row, hypotheses in zip(source, together, strict=True):
        alone = search(search_it, row[row.ne(PAD)].unsqueeze(0))[0]
        assert [h["tokens"].tolist() for h in alone] == [h["tokens"].tolist() for h in hypotheses]
        for one, other in zip(alone, hypotheses, strict=True):
            assert float(one["score"]) == pytest.approx(float(other["score"]), abs=SCORE)
        assert all(len(h["tokens"]) <= int(row.ne(PAD).sum()) + 6 for h in hypotheses)


def plain_search(
    model: T2017Transformer, source: Tensor, beam: int, alpha: float, limit: int, stop: bool
) -> list[tuple[float, list[int]]]:
    """The algorithm of the authors (tensor2tensor 1.0.14, utils/beam_search.py) for one sentence, without a cache."""
    alive: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, limit + 1):
        candidates = []
        for score, target in alive:
            with torch.no_grad():
                row = torch.log_softmax(model(source, None, torch.tensor([[EOS, *target]]))[0][0, -1], -1)
            candidates += [(score + float(row[k]), [*target, k]) for k in range(len(row)) if k not in (PAD, BOS)]
        candidates = sorted(candidates, reverse=True)[: 2 * beam]
        ended = [(s / length_penalty(length, alpha), t) for s, t in candidates if t[-1] == EOS]
        finished = sorted(finished + ended, reverse=True)[:beam]
        alive = [candidate for candidate in candidates if candidate[1][-1] != EOS][:beam]
        if stop and finished and finished[-1][0] > alive[0][0] / length_penalty(limit, alpha):
            break
    return finished or alive


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("seed", range(6))
def test_against_a_plain_search(seed: int, alpha: float) -> None:
    """The whole list equals the plain algorithm's; the best one also that of a search that never stops early."""
    model = random_model(12, seed=seed)
    source = make_batch([4], [2], 12, seed=seed)["src_tokens"]
    found = search(generator(model, 12, extra=8, beam=4, lenpen=alpha), source)[0]
    expected = plain_search(model, source, 4, alpha, 12, stop=True)
    assert [h["tokens"].tolist() for h in found] == [target for _, target in expected]
    assert [float(h["score"]) for h in found] == pytest.approx([score for score, _ in expected], abs=SCORE)
    assert found[0]["tokens"].tolist() == plain_search(model, source, 4, alpha, 12, stop=False)[0][1]


def test_unfinished_hypotheses_are_returned_and_marked() -> None:
    """Where EOS may not come: the alive hypotheses at the limit, with plain log P, and no EOS forced."""
    model = random_model()
    search_it = generator(model, extra=3, beam=2, min_len=50)
    source = make_batch([5, 3], [2, 2])["src_tokens"]
    for row, hypotheses in zip(source, search(search_it, source), strict=True):
        length = int(row.ne(PAD).sum())
        assert len(hypotheses) == 2
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"].tolist()
            assert hypothesis["finished"] is False and len(tokens) == length + 3 and EOS not in tokens
            expected = log_p(model, row[row.ne(PAD)].unsqueeze(0), tokens)
            assert float(hypothesis["score"]) == pytest.approx(expected, abs=SCORE)


def test_padding_and_bos_are_never_generated() -> None:
    model = random_model(8, seed=1)
    with torch.no_grad():
        model.decoder.output.weight[[PAD, BOS]] *= 5.0
    for hypotheses in search(generator(model, 8, beam=4), make_batch([6, 3, 8], [2, 2, 2], 8)["src_tokens"]):
        assert all({PAD, BOS}.isdisjoint(hypothesis["tokens"].tolist()) for hypothesis in hypotheses)


def test_prefix_is_forced() -> None:
    model = random_model()
    source = make_batch([5, 4, 6], [2, 2, 2])["src_tokens"]
    prefix = torch.tensor([[7, 8], [9, PAD], [EOS, PAD]])
    found = search(generator(model, beam=3), source, prefix_tokens=prefix)
    assert all(hypothesis["tokens"].tolist()[:2] == [7, 8] for hypothesis in found[0])
    assert all(hypothesis["tokens"].tolist()[0] == 9 for hypothesis in found[1])
    assert [hypothesis["tokens"].tolist() for hypothesis in found[2]] == [[EOS]]


def test_ensemble_is_the_mean_of_the_probabilities() -> None:
    one, two = random_model(seed=0), random_model(seed=1)
    source = make_batch([5], [2])["src_tokens"]
    both = PaperGenerator([one, two], make_dictionary(40), SimpleNamespace(beam=4), 6)
    hypothesis = search(both, source)[0][0]
    tokens = hypothesis["tokens"].tolist()
    shifted = torch.tensor([[EOS, *tokens[:-1]]])
    with torch.no_grad():
        mean = sum(torch.softmax(model(source, None, shifted)[0][0], -1) for model in (one, two)) / 2
    total = float(mean.gather(1, torch.tensor(tokens).unsqueeze(1)).log().sum())
    penalty = length_penalty(len(tokens), 0.6) if hypothesis["finished"] else 1.0
    assert float(hypothesis["score"]) == pytest.approx(total / penalty, abs=SCORE)


def test_limit_of_explicit_flags_is_of_each_sentence() -> None:
    model = random_model()
    assert generator(model, extra=50).limit(7) == 57
    assert generator(model, max_len_a=1.0, max_len_b=50).limit(7) == 58
    assert generator(model, max_len_a=0.5, max_len_b=10).limit(7) == 14


def test_the_two_penalties_choose_differently() -> None:
    """log P -4.0 at 5 tokens and -5.6 at 10: gnmt with 0.6 prefers the short one, stock's length^0.6 the long one."""
    gnmt = (-4.0 / length_penalty(5, 0.6), -5.6 / length_penalty(10, 0.6))
    power = (-4.0 / length_penalty(5, 0.6, "power"), -5.6 / length_penalty(10, 0.6, "power"))
    assert gnmt == pytest.approx((-2.9441, -3.2316), abs=5e-5)
    assert power == pytest.approx((-1.5229, -1.4067), abs=5e-5)


@pytest.mark.parametrize(
    "args, flag",
    [
        ({"sampling": True}, "--sampling"),
        ({"diverse_beam_groups": 2}, "--diverse-beam-groups"),
        ({"no_repeat_ngram_size": 3}, "--no-repeat-ngram-size"),
        ({"temperature": 0.5}, "--temperature"),
        ({"unkpen": 1.0}, "--unkpen"),
        ({"lenpen": -0.5}, "--lenpen"),
        ({"beam": 0}, "--beam"),
        ({"nbest": 5, "beam": 4}, "--nbest"),
    ],
)
def test_what_the_search_does_not_do_is_refused(args: dict[str, Any], flag: str) -> None:
    with pytest.raises(UsageError, match=flag) as refusal:
        generator(random_model(), **args)
    assert "\n" not in str(refusal.value)
