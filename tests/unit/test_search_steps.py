"""Equal probabilities, and looking at the sentences that are done only now and then, as on a GPU."""

import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor

from t2017_plugin.fairseq_side.generator import Ensemble, Restriction
from t2017_plugin.fast.decoding import best_of_many
from t2017_plugin.paper.config import Search
from t2017_plugin.paper.search import Hypothesis, beam_search, length_penalty
from tests.builders import EOS, PAD, make_batch, make_model

BOS = 0


class Table:
    """A "model" whose log P depends on the step, the sentence and the last token only.

    Shape:
        rows: (steps, B, V, V)
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows, self.step = rows, 0

    def log_p(self, newest: Tensor) -> Tensor:
        """Shape: (B, n) -> (B, n, V)."""
        table = self.rows[self.step]
        self.step += 1
        return table.gather(1, newest.unsqueeze(-1).expand(-1, -1, table.size(-1)))

    def select(self, parents: Tensor, sentences: Tensor | None) -> None:
        """Shape: (B, beam), (new B,)."""
        if sentences is not None:
            self.rows = self.rows[:, sentences]


def authors_search(rows: Tensor, limit: int, search: Search, eos: int) -> list[tuple[list[int], float]]:
    """tensor2tensor 1.0.14's beam_search.py for one sentence; equals stand in the order of their index.

    Shape:
        rows: (steps, V, V)
    """
    vocabulary = rows.size(-1)
    alive: list[tuple[list[int], float]] = [([], 0.0)]
    finished: list[tuple[list[int], float]] = []
    for step in range(limit):
        flat = []
        for tokens, total in alive:
            last = tokens[-1] if tokens else eos
            flat += [([*tokens, k], total + float(rows[step, last, k])) for k in range(vocabulary)]
        # Python's sort keeps the order of equals.
        best = sorted(flat, key=lambda each: -each[1])[: 2 * search.beam]
        penalty = length_penalty(step + 1, search.alpha)
        ends = [(tokens, float(torch.tensor(total) / penalty)) for tokens, total in best if tokens[-1] == eos]
        finished = sorted(finished + ends, key=lambda each: -each[1])[: search.beam]
        alive = [each for each in best if each[0][-1] != eos][: search.beam]
        bound = float(torch.tensor(alive[0][1]) / length_penalty(limit, search.alpha))
        if finished and finished[-1][1] > bound:
            break
    return finished or alive


def tokens_and_scores(found: list[Hypothesis]) -> list[tuple[list[int], float]]:
    return [(each.tokens, each.score) for each in found]


def test_five_equal_probabilities() -> None:
    """The smallest case: EOS is symbol 0 and of equals the first, so it ends at once."""
    rows = torch.full((3, 1, 5, 5), 0.2).log()
    assert beam_search(Table(rows), [3], 0, 0, Search(beam=1))[0][0].tokens == [0]


@hypothesis_settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    vocabulary=st.integers(5, 70),
    beam=st.sampled_from([1, 2, 4]),
    alpha=st.sampled_from([0.0, 0.6]),
    limits=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    kinds=st.integers(1, 5),
)
def test_equals_stand_in_the_authors_order(
    seed: int, vocabulary: int, beam: int, alpha: float, limits: list[int], kinds: int
) -> None:
    """All lists, where log P takes a few values only (multiples of 1/2, whose sums are exact)."""
    torch.manual_seed(seed)
    rows = -0.5 * torch.randint(2, 2 + kinds, (max(limits), len(limits), vocabulary, vocabulary)).float()
    search = Search(beam=beam, alpha=alpha)
    expected = [authors_search(rows[:, i], limit, search, 1) for i, limit in enumerate(limits)]
    for best in (None, best_of_many):
        options = {} if best is None else {"best": best}
        found = beam_search(Table(rows), limits, 1, 1, search, **options)
        assert [tokens_and_scores(each) for each in found] == expected


@hypothesis_settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    beam=st.sampled_from([1, 3, 4]),
    limits=st.lists(st.integers(1, 30), min_size=1, max_size=6),
    wanted=st.sampled_from([None, 1]),
    look_every=st.integers(2, 9),
)
def test_when_one_looks_changes_nothing(
    seed: int, beam: int, limits: list[int], wanted: int | None, look_every: int
) -> None:
    """Sentences that are done stay in the batch until one looks; what was recorded of them stays as it was."""
    torch.manual_seed(seed)
    rows = torch.log_softmax(2.0 * torch.randn(max(limits), len(limits), 12, 12), -1)
    search = Search(beam=beam)
    at_once = beam_search(Table(rows), limits, 1, 1, search, wanted=wanted)
    later = beam_search(Table(rows), limits, 1, 1, search, wanted=wanted, look_every=look_every)
    assert later == at_once


def waits(look_every: int) -> tuple[dict[str, int], int, list[list[Hypothesis]]]:
    """Count, in one search by a cached model, the operators for which a GPU has to be waited for."""
    model = make_model(seed=2, embeddings="separate")
    model.eval()
    with torch.no_grad():
        model.decoder.output.weight *= 3.0
        model.decoder.output.weight[EOS] += 0.3
    source = make_batch([3, 9, 5, 6, 12, 4], [2] * 6)["src_tokens"]
    limits = (source.ne(PAD).sum(1) + 20).tolist()
    ensemble = Ensemble([model])
    steps = 0

    class Counted:
        def log_p(self, newest: Tensor) -> Tensor:
            nonlocal steps
            steps += 1
            return ensemble.log_p(newest)

        select = staticmethod(ensemble.select)

    with torch.inference_mode():
        ensemble.start({"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}, 4)
    restrict = Restriction(EOS, (PAD, BOS), 0, None, None)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        found = beam_search(Counted(), limits, EOS, EOS, restrict=restrict, best=best_of_many, look_every=look_every)
    names = ("aten::nonzero", "aten::_local_scalar_dense")
    counts = {name: sum(each.count for each in profile.key_averages() if each.key == name) for name in names}
    return counts, steps, found


def test_a_gpu_is_waited_for_once_in_eight_steps() -> None:
    """On the path of a GPU, run on a CPU. The control: the path of a CPU asks in every step."""
    counts, steps, found = waits(8)
    assert steps > 16
    assert all(count <= steps // 8 for count in counts.values()), counts
    control, control_steps, at_once = waits(1)
    assert control["aten::_local_scalar_dense"] >= control_steps
    assert [[each.tokens for each in one] for one in found] == [[each.tokens for each in one] for one in at_once]
    # Sentences left the batch on both paths: the counts are of a search in which that happened.
    assert len({len(one[0].tokens) for one in at_once}) > 1
