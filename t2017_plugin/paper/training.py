"""How the model is trained: the learning rate and Adam (section 5.3), the smoothed loss (section 5.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from t2017_plugin.paper.config import EPSILON_FORMS, SMOOTHING_OVER, Training


def learning_rate(update: int, d_model: int, warmup_steps: int = 4000, scale: float = 1.0) -> float:
    """lrate = d_model^-0.5 * min(step_num^-0.5, step_num * warmup_steps^-1.5)         (3)

    ``update`` is step_num, counted from 1: the first update already moves. ``scale`` is 1 in the paper.
    """
    return scale * d_model**-0.5 * min(update**-0.5, update * warmup_steps**-1.5)


class Adam(torch.optim.AdamW):
    """Adam with beta_1 = 0.9, beta_2 = 0.98, epsilon = 1e-9 (section 5.3; Kingma and Ba 2015).

        m_hat = m / (1 - beta_1^n),  v_hat = v / (1 - beta_2^n)
        paper    w -= lr * m_hat / (sqrt(v_hat) + epsilon)
        t2t      w -= lr * sqrt(1 - beta_2^n) / (1 - beta_1^n) * m / (sqrt(v) + epsilon)

    The second, epsilon before the bias correction, is what TensorFlow and fairseq's own Adam compute.
    It is the first with epsilon / sqrt(1 - beta_2^n) in place of epsilon, and is computed so.

    torch's AdamW is Adam but for weight decay, which is off unless asked for.

    Raises:
        ValueError: there is no such form.
    """

    # fairseq asks whether one flat tensor of all weights will do.
    supports_flat_params = True

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 0.0,
        betas: tuple[float, float] = (Training.beta_1, Training.beta_2),
        epsilon: float = Training.epsilon,
        epsilon_form: str = Training.epsilon_form,
        weight_decay: float = 0.0,
        fused: bool | None = None,
    ) -> None:
        if epsilon_form not in EPSILON_FORMS:
            raise ValueError(f"unknown form of epsilon {epsilon_form!r}: choose one of {', '.join(EPSILON_FORMS)}")
        super().__init__(params, lr=lr, betas=betas, eps=epsilon, weight_decay=weight_decay, fused=fused)
        self.epsilon, self.epsilon_form = epsilon, epsilon_form
        self.updates_done: int | None = 0  # None: to be read from the state, once

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Make one update."""
        if self.updates_done is None:
            # torch counts in a tensor, and a GPU should not be asked for it at every update.
            self.updates_done = max((int(state["step"]) for state in self.state.values()), default=0)
        self.updates_done += 1
        if self.epsilon_form == "t2t":
            for group in self.param_groups:
                group["eps"] = self.epsilon / math.sqrt(1.0 - group["betas"][1] ** self.updates_done)
        return super().step(closure)

    def load_state_dict(self, state_dict: dict[str, object]) -> None:
        """Resume from a saved state."""
        super().load_state_dict(state_dict)
        self.updates_done = None


def smoothing_over_all(eps_ls: float, over: str, classes: int) -> float:
    """Return the eps_ls that, spread over ``all`` classes, gives the same targets as ``eps_ls`` spread ``over``.

    Raises:
        ValueError: ``over`` is neither ``all`` nor ``others``.
    """
    if over not in SMOOTHING_OVER:
        raise ValueError(f"unknown smoothing over {over!r}: choose one of {', '.join(SMOOTHING_OVER)}")
    return eps_ls * classes / (classes - 1) if over == "others" else eps_ls


def smoothed_cross_entropy(
    logits: Tensor, target: Tensor, eps_ls: float, padding_index: int, over: str = "all"
) -> tuple[Tensor, Tensor]:
    """Label smoothing (section 5.4), and the plain negative log-likelihood beside it.

        loss = -sum_k q'(k) log p(k),  q'(k) = (1 - eps_ls) [k = y] + eps_ls / K              all
                                       q'(k) = (1 - eps_ls) [k = y] + eps_ls / (K - 1) [k != y]  others

    K counts all rows of the output matrix. ``all`` is what the paper cites (Szegedy et al. 2015),
    ``others`` what the authors' code and stock fairseq compute. Log-probabilities may be given for
    logits. Both sums are in nats, over target tokens with EOS; padding has no part in them.

    Shape:
        logits: (..., K); target: (...) -> two scalars
    """
    logits, target = logits.reshape(-1, logits.size(-1)), target.reshape(-1)
    eps_ls = smoothing_over_all(eps_ls, over, logits.size(-1))
    loss = F.cross_entropy(logits, target, ignore_index=padding_index, reduction="sum", label_smoothing=eps_ls)
    return loss, F.cross_entropy(logits, target, ignore_index=padding_index, reduction="sum")
