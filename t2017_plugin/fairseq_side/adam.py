"""Adam (section 5.3; Kingma and Ba 2015, algorithm 1) with beta_1 = 0.9, beta_2 = 0.98, epsilon = 1e-9.

    m_hat = m / (1 - beta_1^n),  v_hat = v / (1 - beta_2^n)
    paper    w -= lr * m_hat / (sqrt(v_hat) + epsilon)
    t2t      w -= lr * sqrt(1 - beta_2^n) / (1 - beta_1^n) * m / (sqrt(v) + epsilon)

The second form, epsilon before the bias correction, is what TensorFlow and fairseq's own Adam compute. It is the first
one with epsilon / sqrt(1 - beta_2^n) in place of epsilon, which is how it is computed here.
"""

import ast
import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, List  # noqa: UP035

import torch
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.optim import FairseqOptimizer, register_optimizer
from omegaconf import II
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.distributed import refuse_unjoined_processes


@dataclass
class T2017AdamConfig(FairseqDataclass):
    """Settings of the optimiser; the paper's are the defaults."""

    adam_betas: Any = field(default=(0.9, 0.98), metadata={"help": "beta_1 and beta_2 (section 5.3)"})
    adam_eps: float = field(default=1e-9, metadata={"help": "epsilon (section 5.3)"})
    adam_epsilon_form: ChoiceEnum(["paper", "t2t"]) = field(  # type: ignore[valid-type]
        default="paper",
        metadata={"help": "paper: epsilon after the bias correction; t2t: before it, as TensorFlow and stock fairseq"},
    )
    weight_decay: float = field(
        default=0.0, metadata={"help": "decay of the weights themselves, as fairseq's Adam does it; the paper has none"}
    )
    lr: List[float] = II("optimization.lr")  # noqa: UP006  (fairseq reads no newer form)


def read_betas(value: Any) -> tuple[float, float]:
    """beta_1 and beta_2 from a pair or from text such as '(0.9, 0.98)'.

    Raises:
        UsageError: it is not two numbers in [0, 1).
    """
    try:
        first, second = (float(beta) for beta in (ast.literal_eval(value) if isinstance(value, str) else value))
    except (ValueError, SyntaxError, TypeError):
        first = second = math.nan
    if not (0.0 <= first < 1.0 and 0.0 <= second < 1.0):
        raise UsageError(f"--adam-betas is {value!r}: give two numbers in [0, 1), as in '(0.9, 0.98)'")
    return first, second


class Adam(torch.optim.AdamW):
    """torch's fused Adam with both places for epsilon.

    AdamW is Adam, except that weight decay, which is off, shrinks the weights as in fairseq's own Adam instead of being
    added to the gradient.
    """

    supports_flat_params = True

    def __init__(self, params: Iterable[Any], epsilon: float, epsilon_form: str, **settings: Any) -> None:
        super().__init__(params, eps=epsilon, fused=True, **settings)
        self.epsilon = epsilon
        self.epsilon_form = epsilon_form
        self.updates_done: int | None = 0  # None: to be read from the state, once

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """One update."""
        if self.updates_done is None:
            # torch counts in a tensor, which on a GPU must not be asked at every update.
            self.updates_done = max((int(state["step"]) for state in self.state.values()), default=0)
        self.updates_done += 1
        if self.epsilon_form == "t2t":
            for group in self.param_groups:
                group["eps"] = self.epsilon / math.sqrt(1.0 - group["betas"][1] ** self.updates_done)
        return super().step(closure)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from a saved state."""
        super().load_state_dict(state_dict)
        self.updates_done = None


def in_the_layout_of(parameters: list[Tensor], state: dict[str, Any]) -> dict[str, Any]:
    """A saved state for these parameters, where one of the two has all of them in one flat tensor.

    fairseq flattens the float32 copy of the weights under ``--fp16`` on a GPU, and only then; so a run that goes on in
    another precision would find a state of another layout.
    """
    groups, stored = state["param_groups"], state["state"]
    count = sum(len(group["params"]) for group in groups)
    if len(groups) != 1 or count == len(parameters) or 1 not in (count, len(parameters)) or not stored:
        return state
    moments = [name for name, value in stored[0].items() if torch.is_tensor(value) and value.dim()]
    if count == 1:
        parts = {name: stored[0][name].flatten().split([each.numel() for each in parameters]) for name in moments}
        new = {
            # copied: each counts its own updates
            i: {**copy.deepcopy(stored[0]), **{name: parts[name][i].view_as(each).clone() for name in moments}}
            for i, each in enumerate(parameters)
        }
    else:
        joined = {name: torch.cat([stored[i][name].flatten() for i in range(count)]) for name in moments}
        new = {0: {**stored[0], **joined}}
    return {**state, "state": new, "param_groups": [{**groups[0], "params": list(new)}]}


@register_optimizer("t2017_adam", dataclass=T2017AdamConfig)
class T2017Adam(FairseqOptimizer):
    """The paper's optimiser for fairseq; its state is saved and resumed with the checkpoint."""

    def __init__(self, cfg: Any, params: Iterable[Any]) -> None:
        super().__init__(cfg)
        refuse_unjoined_processes()
        settings = {key: value for key, value in self.optimizer_config.items() if key != "eps"}
        self._optimizer = Adam(params, cfg.adam_eps, str(cfg.adam_epsilon_form), **settings)

    def load_state_dict(self, state_dict: dict[str, Any], optimizer_overrides: dict[str, Any] | None = None) -> None:
        """Goes on from a checkpoint's state, whichever precision it was trained in."""
        super().load_state_dict(in_the_layout_of(list(self.params), state_dict), optimizer_overrides)

    @property
    def optimizer_config(self) -> dict[str, Any]:
        """What a resumed run takes from its command line instead of the checkpoint."""
        return {
            # Overwritten by the schedule before the first update.
            "lr": float(self.cfg.lr[0] if isinstance(self.cfg.lr, Sequence) else self.cfg.lr),
            "betas": read_betas(self.cfg.adam_betas),
            "eps": self.cfg.adam_eps,
            "weight_decay": self.cfg.weight_decay,
        }
