"""Our model with the weights of a recorded one.

It is built the way a user's training builds it: flags, task, registered model and criterion, fairseq's collater.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F
from fairseq import options
from fairseq.data import LanguagePairDataset
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from torch import Tensor

from t2017_plugin.fairseq_side.dictionary import T2TDictionary
from t2017_plugin.fairseq_side.tasks import T2017TranslationTask
from t2017_plugin.fairseq_side.training import smoothed_cross_entropy
from t2017_plugin.fast.layers import Dropout
from t2017_plugin.t2t.weights import convert_variables
from tests.parity.t2t_golden import load, settings


def flags(file: str) -> list[str]:
    """Write the command line of a training run with the settings of a file."""
    config = settings(file)
    h, (residual, attention, relu) = config["h"], config["probe"]
    pairs = {
        "task": "t2017_translation", "arch": "t2017_base", "layers": config["layers"], "d-model": config["d"],
        "d-ff": config["ff"], "heads": h, "d-k": config["key"] // h, "d-v": config["value"] // h,
        "dropout": residual, "attention-dropout": attention, "relu-dropout": relu,
        "sinusoid": "paper" if config.get("pos") == "paper" else "t2t",
        "embeddings": "shared" if config["shared"] else "separate",
        "criterion": "t2017_label_smoothing", "label-smoothing": config["ls"], "smoothing-over": "others",
        "optimizer": "t2017_adam", "adam-epsilon-form": "t2t",
        "lr-scheduler": "t2017_noam", "warmup-updates": config["warmup"], "max-tokens": 4096,
    }  # fmt: skip
    switches = ["--cpu", "--no-progress-bar"]
    switches += ["--attention-bias"] if config.get("attn_bias") else []
    switches += ["--target-space-embedding"] if config.get("live_tspace") else []
    return ["no-data", *(text for name, value in pairs.items() for text in (f"--{name}", str(value))), *switches]


class Ours:
    """Task, model, criterion and data of one file."""

    def __init__(self, file: str) -> None:
        self.file, self.config, self.arrays = file, settings(file), load(file)
        args = options.parse_args_and_arch(options.get_training_parser(), flags(file))
        self.cfg = convert_namespace_to_omegaconf(args)
        source = T2TDictionary(f"s{i}" for i in range(2, self.config["vin"]))
        target = source if self.config["shared"] else T2TDictionary(f"t{i}" for i in range(2, self.config["vout"]))
        self.task = T2017TranslationTask(self.cfg.task, source, target)
        self.model = self.task.build_model(self.cfg.model)
        self.criterion = self.task.build_criterion(self.cfg.criterion)
        variables = {key[4:]: array for key, array in self.arrays.items() if key.startswith("var/")}
        self.model.load_state_dict(convert_variables(variables, self.cfg.model, self.config["tspace"]), strict=True)
        # T2T's loss subtracts what the best possible prediction would still cost; ours does not.
        eps, classes = self.config["ls"], self.config["vout"]
        self.least_loss = -((1 - eps) * np.log(1 - eps) + eps * np.log(eps / (classes - 1) + 1e-20))

    def sample(self, suffix: str = "") -> dict[str, Any]:
        """Make a recorded batch with fairseq's collater from single sentences."""
        data = [
            [torch.from_numpy(row[row != 0]).long() for row in self.arrays[f"{name}{suffix}"]]
            for name in (("train/inputs", "train/targets") if suffix else ("inputs", "targets"))
        ]
        sizes = [[len(sentence) for sentence in side] for side in data]
        pairs = LanguagePairDataset(
            data[0], sizes[0], self.task.source_dictionary, data[1], sizes[1], self.task.target_dictionary,
            left_pad_source=self.task.cfg.left_pad_source, left_pad_target=self.task.cfg.left_pad_target,
        )  # fmt: skip
        return pairs.collater([pairs[i] for i in range(len(pairs))])

    def source(self) -> Tensor:
        """Return the padded source of batch 1."""
        return torch.from_numpy(self.arrays["inputs"]).long()

    def loss(self, sample: dict[str, Any]) -> tuple[float, int]:
        """T2T's loss of a batch in nats, summed over its target tokens, and their number."""
        with torch.no_grad():
            loss, tokens, _ = self.criterion(self.model, sample)
        return float(loss) - tokens * self.least_loss, tokens

    def loss_per_token(self, logits: Tensor, targets: Tensor) -> np.ndarray:
        """T2T's loss of every target position, zero at padding."""
        log_probabilities = self.model.get_normalized_probs((logits, None), log_probs=True)
        rows = zip(log_probabilities.flatten(0, 1), targets.flatten(), strict=True)
        loss = self.criterion
        losses = [
            smoothed_cross_entropy(row[None, None], y[None, None], loss.epsilon, loss.padding_idx, loss.over)[0]
            for row, y in rows
        ]
        return (torch.stack(losses).view(targets.shape) - targets.ne(0) * self.least_loss).numpy()


@contextmanager
def expected_dropout(active: bool) -> Iterator[None]:
    """Dropout replaced by what it is on average before rescaling, keep * x, in modules and inside attention."""

    def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        return x * (1 - p) if training else x

    def drop(module: Dropout, x: Tensor) -> Tensor:
        return dropout(x, module.p, module.training)

    def attention(
        q: Tensor, k: Tensor, v: Tensor, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False
    ) -> Tensor:
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        seen = torch.ones_like(scores, dtype=torch.bool).tril() if is_causal else attn_mask
        return scores.masked_fill(~seen, -torch.inf).softmax(-1) * (1 - dropout_p) @ v

    with ExitStack() as patches:
        if active:
            patches.enter_context(mock.patch.object(F, "dropout", dropout))
            patches.enter_context(
                mock.patch.object(Dropout, "forward", lambda site, x: dropout(x, site.p, site.training))
            )
            patches.enter_context(mock.patch.object(F, "scaled_dot_product_attention", attention))
        yield
