"""What running code shows of the differences of the search (section 6.1)."""

from argparse import Namespace
from typing import Any

import torch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from t2017_plugin.differences.small_models import Measured, make_ours, make_pairs, make_task
from t2017_plugin.fairseq_side.generator import PaperGenerator
from t2017_plugin.paper.config import TRANSLATION_SEARCH as SEARCH
from t2017_plugin.paper.config import Search
from t2017_plugin.paper.search import STEPS_BETWEEN_LOOKS, beam_search, length_penalty


def penalty() -> Measured:
    """Ranks hypotheses of all lengths up to 40 by both penalties with the same alpha."""
    alpha = SEARCH.alpha
    pairs: dict[str, list[float]] = {"gnmt": [], "power": []}
    for form, scores in pairs.items():
        scores.extend([-4.0 / length_penalty(5, alpha, form), -5.6 / length_penalty(10, alpha, form)])
    flips = total = 0
    for one in range(2, 41):
        for other in range(one + 1, 41):
            # The longer hypothesis costs 0.16 to 0.4 nats for each further token, as finished beams do.
            for cost in (0.16, 0.2, 0.25, 0.3, 0.4):
                low, high = -0.8 * one, -0.8 * one - cost * (other - one)
                ranks = {
                    form: low / length_penalty(one, alpha, form) > high / length_penalty(other, alpha, form)
                    for form in ("gnmt", "power")
                }
                flips += ranks["gnmt"] != ranks["power"]
                total += 1
    return (
        f"log P -4.0 in 5 tokens against -5.6 in 10: GNMT {pairs['gnmt'][0]:.4f} against {pairs['gnmt'][1]:.4f}, "
        f"stock's form {pairs['power'][0]:.4f} against {pairs['power'][1]:.4f}: the other one wins; of "
        f"{total:,} pairs of lengths and costs {100 * flips / total:.0f}% change places",
        {**pairs, "flips": flips, "pairs": total},
    )


def _generators(model: Any, alpha: float, form: str = "gnmt", min_len: int = -1) -> dict[str, Any]:
    dictionary = make_task().target_dictionary
    settings = Namespace(beam=SEARCH.beam, lenpen=alpha, min_len=min_len)
    return {
        "here": PaperGenerator([model], dictionary, settings, extra_length=10, form=form),
        "stock": SequenceGenerator(
            [model], dictionary, beam_size=SEARCH.beam, max_len_a=1, max_len_b=10, len_penalty=alpha
        ),
    }


def _search(generator: Any, source: Tensor) -> list[tuple[list[int], float]]:
    """Return the best hypothesis of each source and its log P."""
    sample = {"net_input": {"src_tokens": source, "src_lengths": source.ne(1).sum(1)}}
    best = [hypotheses[0] for hypotheses in generator.generate([], sample)]
    return [(hypothesis["tokens"].tolist(), float(hypothesis["positional_scores"].sum())) for hypothesis in best]


def _best(generator: Any, source: Tensor) -> list[list[int]]:
    return [tokens for tokens, _ in _search(generator, source)]


def _random_model(seed: int) -> Any:
    """Untrained, but with a sharper softmax and EOS made likelier, so that hypotheses end at different lengths."""
    model = make_ours(seed, embeddings="separate")
    with torch.no_grad():
        model.decoder.output.weight *= 2.0
        model.decoder.layers[-1].feed_forward_norm.norm.bias += 0.5
        # Features now have mean 0.5, so EOS gains 0.1 * 0.5 * d_model = 3.2 nats over the others on average.
        model.decoder.output.weight[2] += 0.1
    return model


def length_limit() -> Measured:
    """Longest output of a source of 3 tokens, alone and beside one of 11, of a model that never stops."""
    model = _random_model(1)
    with torch.no_grad():
        model.decoder.output.weight[2] -= 1.0
    source, _, _ = make_pairs([3, 11])
    lengths = {}
    for name, generator in _generators(model, SEARCH.alpha).items():
        alone, beside = _best(generator, source[:1, :3])[0], _best(generator, source)[0]
        lengths[name] = (len(alone), len(beside))
    return (
        "source of 3 tokens, limit + 10, tokens written alone and beside a source of 11: "
        + ", ".join(f"{name} {alone} and {beside}" for name, (alone, beside) in lengths.items()),
        lengths,
    )


def batch_dependence() -> Measured:
    """Best hypotheses of sentences in one batch against the same ones alone."""
    changed = dict.fromkeys(("here", "stock"), 0)
    total = 0
    for seed in range(1, 6):
        source, lengths, _ = make_pairs([3, 4, 5, 6, 12], seed=seed)
        model = _random_model(seed)
        total += len(source)
        for name, generator in _generators(model, SEARCH.alpha).items():
            together = _best(generator, source)
            alone = [
                _best(generator, row[:length].unsqueeze(0))[0] for row, length in zip(source, lengths, strict=True)
            ]
            changed[name] += sum(one != other for one, other in zip(together, alone, strict=True))
    return (
        f"untrained models, {total} sentences: best hypothesis changes with the batch for {changed['here']} here, "
        f"{changed['stock']} with stock's search",
        {"sentences": total, **changed},
    )


def rules() -> Measured:
    """Search one sentence at a time with one model and penalty: candidates, stop and forced EOS differ."""
    differ = better = worse = total = 0
    for seed in range(1, 9):
        source, lengths, _ = make_pairs([3, 4, 5, 6, 7, 8], seed=seed)
        generators = _generators(_random_model(seed), 1.0, "power", min_len=1)
        for row, length in zip(source, lengths, strict=True):
            best = {name: _search(search, row[:length].unsqueeze(0))[0] for name, search in generators.items()}
            total += 1
            differ += best["here"][0] != best["stock"][0]
            scores = [log_p / len(tokens) for tokens, log_p in (best["here"], best["stock"])]
            better += scores[0] > scores[1] + 1e-5
            worse += scores[0] < scores[1] - 1e-5
    return (
        f"untrained models, both with stock's penalty, {total} sentences one by one: another best in {differ}; "
        f"ours scores higher in {better}, stock's in {worse}",
        {"sentences": total, "differ": differ, "ours_higher": better, "stock_higher": worse},
    )


class _Uniform:
    """Gives five symbols the same probability in every step."""

    def log_p(self, newest: Tensor) -> Tensor:
        """As ``paper.search.NextTokens``. Shape: (B, n) -> (B, n, 5)."""
        return torch.full((*newest.shape, 5), 0.2).log()

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """Remember nothing. Shape: (B, beam), (new B,)."""


def ties() -> Measured:
    """Five equal probabilities, of which the first is EOS: where both paths of the search go."""
    tokens = {}
    for name, look_every in (("cpu", 1), ("gpu", STEPS_BETWEEN_LOOKS)):
        found = beam_search(_Uniform(), [3], 0, 0, Search(beam=1), look_every=look_every)
        tokens[name] = found[0][0].tokens
    return (
        f"five equal probabilities, EOS is symbol 0, limit 3, beam 1: {tokens['cpu']} on the path of a CPU, as T2T; "
        f"{tokens['gpu']} on that of a GPU, run on a CPU",
        tokens,
    )
