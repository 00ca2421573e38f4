"""Adam in both epsilon forms against fairseq's own, TensorFlow's formula and Kingma's algorithm 1."""

import math
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fairseq.optim.adam import Adam as StockAdam
from torch import Tensor

from t2017_plugin.fairseq_side.training import T2017Adam

pytestmark = pytest.mark.parity

STEPS, BETA_1, BETA_2 = 10, 0.9, 0.98
# Large beside the gradients below, so that the place of epsilon shows; 1e-9 is the paper's.
EPSILONS = [1e-3, 1e-9]
SHAPES = [(7, 5), (5,)]


def rate(step: int) -> float:
    """Warm-up: every update has another learning rate."""
    return 0.01 * step


def start(dtype: torch.dtype = torch.float32) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in SHAPES]


def gradients(step: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """Around 1e-3, other ones in every step, some of them 0."""
    generator = torch.Generator().manual_seed(100 + step)
    each = [1e-3 * torch.randn(shape, generator=generator, dtype=torch.float64) for shape in SHAPES]
    return [gradient.masked_fill(gradient.abs() < 2e-4, 0.0).to(dtype) for gradient in each]


def run(make: Callable[[list[Tensor]], Any], dtype: torch.dtype = torch.float32) -> list[Tensor]:
    """The parameters after ``STEPS`` updates."""
    parameters = [torch.nn.Parameter(value) for value in start(dtype)]
    optimizer = make(parameters)
    for step in range(1, STEPS + 1):
        for parameter, gradient in zip(parameters, gradients(step, dtype), strict=True):
            parameter.grad = gradient
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
    return [parameter.detach() for parameter in parameters]


def ours(epsilon: float, form: str, weight_decay: float = 0.0) -> Callable[[list[Tensor]], Any]:
    cfg = Namespace(
        adam_betas=(BETA_1, BETA_2), adam_eps=epsilon, adam_epsilon_form=form, weight_decay=weight_decay, lr=[0.0]
    )
    return lambda parameters: T2017Adam(cfg, parameters)


def stock(epsilon: float, weight_decay: float = 0.0) -> Callable[[list[Tensor]], Any]:
    return lambda parameters: StockAdam(parameters, betas=(BETA_1, BETA_2), eps=epsilon, weight_decay=weight_decay)


def formula(update: Callable[[Tensor, Tensor, int], Tensor]) -> list[Tensor]:
    """The parameters by moments and an update rule written out, in float64."""
    result = []
    for place, value in enumerate(start(torch.float64)):
        m, v = torch.zeros_like(value), torch.zeros_like(value)
        for n in range(1, STEPS + 1):
            gradient = gradients(n, torch.float64)[place]
            m = BETA_1 * m + (1 - BETA_1) * gradient
            v = BETA_2 * v + (1 - BETA_2) * gradient**2
            value = value - rate(n) * update(m, v, n)
        result.append(value)
    return result


def kingma(epsilon: float) -> list[Tensor]:
    """Algorithm 1 of Kingma and Ba: m_hat / (sqrt(v_hat) + epsilon)."""
    return formula(lambda m, v, n: (m / (1 - BETA_1**n)) / ((v / (1 - BETA_2**n)).sqrt() + epsilon))


def tensorflow(epsilon: float) -> list[Tensor]:
    """AdamOptimizer's documentation: lr_t = lr sqrt(1 - beta_2^t) / (1 - beta_1^t); lr_t m / (sqrt(v) + epsilon)."""
    return formula(lambda m, v, n: math.sqrt(1 - BETA_2**n) / (1 - BETA_1**n) * m / (v.sqrt() + epsilon))


def assert_close(first: list[Tensor], second: list[Tensor], tolerance: float) -> None:
    """Against the way gone in ten updates, about 0.5."""
    for one, other in zip(first, second, strict=True):
        assert (one.double() - other.double()).abs().max().item() < tolerance


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_t2t_form_is_fairseqs_adam_and_tensorflows(epsilon: float) -> None:
    # float32: ten roundings of numbers around 1.
    assert_close(run(ours(epsilon, "t2t")), run(stock(epsilon)), 2e-6)
    assert_close(run(ours(epsilon, "t2t"), torch.float64), tensorflow(epsilon), 1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_paper_form_is_kingmas_algorithm(epsilon: float) -> None:
    assert_close(run(ours(epsilon, "paper"), torch.float64), kingma(epsilon), 1e-12)
    assert_close(run(ours(epsilon, "paper")), kingma(epsilon), 2e-6)


def test_the_forms_differ_where_epsilon_matters() -> None:
    """Else the tests above could not tell them apart."""
    difference = max((a - b).abs().max().item() for a, b in zip(kingma(1e-3), tensorflow(1e-3), strict=True))
    assert difference > 1e-2


@pytest.mark.parametrize("form", ["paper", "t2t"])
def test_weight_decay_is_fairseqs(form: str) -> None:
    """Taken from the weights, not added to the gradient."""
    tolerance = 2e-6
    plain = run(ours(1e-9, form))
    decayed = run(ours(1e-9, form, weight_decay=0.1))
    assert_close(decayed, run(stock(1e-9, weight_decay=0.1)), tolerance)
    assert max((a - b).abs().max().item() for a, b in zip(plain, decayed, strict=True)) > 1e-2


@pytest.mark.parametrize("form", ["paper", "t2t"])
def test_state_goes_through_a_file(form: str, tmp_path: Any) -> None:
    """Five updates, saved and read as a checkpoint does it, five more: bit for bit ten updates."""
    straight = run(ours(1e-3, form))
    parameters = [torch.nn.Parameter(value) for value in start()]
    optimizer = ours(1e-3, form)(parameters)
    for step in range(1, STEPS + 1):
        if step == STEPS // 2 + 1:
            torch.save(optimizer.state_dict(), tmp_path / "state.pt")
            optimizer = ours(1e-3, form)(parameters)
            optimizer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
        for parameter, gradient in zip(parameters, gradients(step), strict=True):
            parameter.grad = gradient
        optimizer.set_lr(rate(step))
        optimizer.step()
    assert all(torch.equal(a, b.detach()) for a, b in zip(straight, parameters, strict=True))


def test_what_the_command_line_says_wins_over_the_checkpoint() -> None:
    """As with all of fairseq's optimisers: a resumed run may change epsilon."""
    parameters = [torch.nn.Parameter(value) for value in start()]
    old = ours(1e-3, "paper")(parameters)
    parameters[0].grad = torch.ones_like(parameters[0])
    old.step()
    new = ours(1e-9, "paper")(parameters)
    new.load_state_dict(old.state_dict(), new.optimizer_config)
    assert [group["eps"] for group in new.param_groups] == [1e-9]
