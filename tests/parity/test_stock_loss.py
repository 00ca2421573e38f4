"""Our loss on the stock model and the stock loss on ours: the same numbers, the same gradients, the same log."""

import math
from typing import Any

import pytest
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics

from t2017_plugin.fairseq_side.training import T2017LabelSmoothing

pytestmark = pytest.mark.parity

# Sums of float32 over a batch; relative to the loss.
CLOSE = {"rtol": 2e-6, "atol": 0.0}


def stock_loss(task: Any, epsilon: float = 0.1, sentence_avg: bool = False) -> Any:
    return LabelSmoothedCrossEntropyCriterion(task, sentence_avg, epsilon)


def our_loss(task: Any, epsilon: float = 0.1, over: str = "others", sentence_avg: bool = False) -> Any:
    return T2017LabelSmoothing(task, epsilon, over, sentence_avg)


def logged(criterion: Any, logs: list[dict[str, Any]]) -> dict[str, float]:
    """What would stand in the training log."""
    with metrics.aggregate(new_root=True) as aggregator:
        criterion.reduce_metrics(logs)
    return dict(aggregator.get_smoothed_values())


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("whose", ["ours", "stock"])
def test_smoothing_over_others_is_stocks_loss(
    make_pair: Any, batch_of: Any, epsilon: float, sentence_avg: bool, whose: str
) -> None:
    """On either model."""
    pair, sample = make_pair(1), batch_of(1)
    model = getattr(pair, whose)
    ours, our_size, our_log = our_loss(pair.task, epsilon, "others", sentence_avg)(model, sample)
    stock, stock_size, stock_log = stock_loss(pair.task, epsilon, sentence_avg)(model, sample)
    torch.testing.assert_close(ours, stock, **CLOSE)
    assert our_size == stock_size
    assert our_log.keys() == stock_log.keys()
    for name in our_log:
        assert float(our_log[name]) == pytest.approx(float(stock_log[name]), rel=2e-6), name


def test_all_four_combinations_give_one_loss(make_pair: Any, batch_of: Any) -> None:
    pair, sample = make_pair(2), batch_of(2)
    losses = [
        criterion(pair.task)(model, sample)[0].item()
        for criterion in (our_loss, stock_loss)
        for model in (pair.ours, pair.stock)
    ]
    # Two models: as close as their logits are.
    assert losses == pytest.approx([losses[0]] * 4, rel=1e-5)


@pytest.mark.parametrize("whose", ["ours", "stock"])
def test_gradients_are_stocks(make_pair: Any, batch_of: Any, whose: str) -> None:
    pair, sample = make_pair(3), batch_of(3)
    model = getattr(pair, whose)
    gradients = []
    for criterion in (our_loss(pair.task), stock_loss(pair.task)):
        model.zero_grad()
        criterion(model, sample)[0].backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters()})
    for name, gradient in gradients[0].items():
        # float32, against the largest entry. That of stock's key biases is 0 in exact numbers, since a softmax does
        # not see a constant; what is there is rounding, 2e-7 where other gradients are above 1e-2.
        assert (gradient - gradients[1][name]).abs().max() < 1e-5 * gradients[1][name].abs().max() + 1e-6, name


def test_padding_weighs_nothing(make_pair: Any, batch_of: Any) -> None:
    """The loss of a padded batch is the sum of the losses of its sentences alone."""
    pair, sample = make_pair(4), batch_of(4)
    for over in ("all", "others"):
        criterion = our_loss(pair.task, over=over)
        together = criterion(pair.ours, sample)[0].item()
        alone = 0.0
        for i in range(len(sample["target"])):
            source, target = (x[x.ne(pair.task.source_dictionary.pad())] for x in
                              (sample["net_input"]["src_tokens"][i], sample["target"][i]))  # fmt: skip
            net_input = {
                "src_tokens": source[None],
                "src_lengths": torch.tensor([len(source)]),
                "prev_output_tokens": target.roll(1)[None],
            }
            one = {"net_input": net_input, "target": target[None], "ntokens": len(target)}
            alone += criterion(pair.ours, one)[0].item()
        assert together == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("over", ["all", "others"])
def test_loss_by_the_formula(make_pair: Any, batch_of: Any, over: str) -> None:
    """-sum_k q'(k) log p(k), token by token, in float64; K is the number of rows of the output matrix."""
    pair, sample = make_pair(5), batch_of(5)
    logits, target = pair.ours(**sample["net_input"])[0].double(), sample["target"]
    epsilon, classes = 0.1, logits.size(-1)
    assert classes == len(pair.task.target_dictionary)
    expected = plain = 0.0
    for row, y in zip(logits.flatten(0, 1), target.flatten().tolist(), strict=True):
        if y == pair.task.target_dictionary.pad():
            continue
        log_p = row - row.exp().sum().log()
        for k in range(classes):
            if over == "all":
                q = (1 - epsilon) * (k == y) + epsilon / classes
            else:
                q = 1 - epsilon if k == y else epsilon / (classes - 1)
            expected -= q * log_p[k].item()
        plain -= log_p[y].item()
    loss, sample_size, log = our_loss(pair.task, epsilon, over)(pair.ours, sample)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert log["nll_loss"].item() == pytest.approx(plain, rel=1e-5)
    # The log is in bits a token, and ppl is of the unsmoothed likelihood.
    line = logged(our_loss(pair.task), [log])
    assert line["loss"] == pytest.approx(expected / sample_size / math.log(2), abs=6e-4)
    assert line["nll_loss"] == pytest.approx(plain / sample_size / math.log(2), abs=6e-4)
    assert line["ppl"] == pytest.approx(math.exp(plain / sample_size), rel=1e-3)


def test_the_log_is_stocks_over_several_batches(make_pair: Any, batch_of: Any) -> None:
    pair = make_pair(6)
    batches = [batch_of(seed, lengths=lengths) for seed, lengths in ((1, (3, 8)), (2, (12,)), (3, (1, 2, 5)))]
    ours, stock = our_loss(pair.task), stock_loss(pair.task)
    our_line = logged(ours, [ours(pair.ours, batch)[2] for batch in batches])
    stock_line = logged(stock, [stock(pair.ours, batch)[2] for batch in batches])
    assert our_line == pytest.approx(stock_line, rel=1e-3)
    assert {"loss", "nll_loss", "ppl"} == set(our_line)
