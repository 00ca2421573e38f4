"""Single pieces on recorded inputs: positions, loss, layer normalisation, Adam, learning rate, batch sizes."""

import re
from functools import cache
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils
from torch import Tensor, nn

from t2017_plugin.fairseq_side.training import (
    T2017Adam,
    T2017AdamConfig,
    T2017Noam,
    T2017NoamConfig,
)
from t2017_plugin.paper.config import Model
from t2017_plugin.paper.model import ResidualNorm, sinusoid
from t2017_plugin.paper.training import smoothed_cross_entropy
from tests.parity.t2t_golden import PIECES, load

# T2T's hyperparameters: padded positions a GPU and batch, longest example, bits of a bucket's bound.
HPARAMS = {
    "transformer_base": (4096, 256, 1),
    "transformer_big": (4096, 256, 2),
    "transformer_parsing_base": (4096, 512, 1),
    "transformer_parsing_big": (2048, 512, 2),
    "transformer_base_single_gpu": (8192, 256, 2),
}


def tensor(key: str) -> Tensor:
    """Return a recorded input."""
    return torch.from_numpy(load(PIECES)[key])


def positions(key: str) -> Tensor:
    """Compute the encodings of ``timing/lenL_chC``, perhaps every n-th row of them."""
    length, channels, every = re.fullmatch(r"timing/len(\d+)_ch(\d+)(?:_every(\d+))?", key).groups()
    return sinusoid(int(length), int(channels), "t2t")[:: int(every or 1)]


def losses(key: str) -> Tensor:
    """Smoothed cross entropy of every token less its minimum, with or without weight on padding; or the weights."""
    epsilon, what = re.fullmatch(r"xent/ls([\d.]+)_(\w+)", key).groups()
    labels, eps = tensor("xent/labels").long(), float(epsilon)
    if what == "weights":
        return labels.ne(0).float()
    log_probabilities = tensor("xent/logits").log_softmax(-1)
    classes = log_probabilities.size(-1)
    least = -((1 - eps) * np.log(1 - eps) + eps * np.log(eps / (classes - 1) + 1e-20))
    padding = 0 if what == "per_token" else -1
    rows = zip(log_probabilities.flatten(0, 1), labels.flatten(), strict=True)
    each = [smoothed_cross_entropy(row[None, None], y[None, None], eps, padding, "others")[0] for row, y in rows]
    return torch.stack(each).view(labels.shape) - labels.ne(padding) * least


def layer_norm(default: bool) -> Tensor:
    """Run the module of every sub-layer, with the default epsilon, on a sub-layer output of zero."""
    x = tensor("layer_norm/x")
    module = ResidualNorm(Model(d_model=x.size(-1), P_drop=0.0))
    if not default:
        module.norm.weight.data, module.norm.bias.data = tensor("layer_norm/scale"), tensor("layer_norm/bias")
    return module(x, torch.zeros_like(x)).detach()


def optimizer(weights: Tensor) -> T2017Adam:
    """Make the registered optimiser with T2T's place for epsilon."""
    return T2017Adam(T2017AdamConfig(adam_epsilon_form="t2t", lr=[0.0]), [nn.Parameter(weights)])


def adam() -> Tensor:
    """Return the weights after each of the recorded steps."""
    adam, result = optimizer(tensor("adam/w0").clone()), []
    weights = next(iter(adam.params))
    for gradient, lr in zip(tensor("adam/grads"), tensor("adam/lr"), strict=True):
        adam.set_lr(float(lr))
        weights.grad = gradient.clone()
        adam.step()
        result.append(weights.detach().clone())
    return torch.stack(result)


def learning_rates(name: str) -> dict[str, Any]:
    """Return the rates of the recorded updates; T2T's learning rate of 0.1 is the paper's factor 1."""
    d_model = int(re.search(r"_d(\d+)", name)[1])
    warmup, learning_rate = load(PIECES)[f"{name}/warmup_and_hparam_lr"]
    config = T2017NoamConfig(warmup_updates=int(warmup), noam_scale=float(10 * learning_rate), noam_d_model=d_model)
    schedule = T2017Noam(config, optimizer(torch.zeros(1)))
    numbers = load(PIECES)[f"{name}/step_num"]
    # fairseq counts the updates done, so that of the first is 0.
    rates = [schedule.step_update(int(number) - 1) for number in numbers]
    return {
        f"{name}/step_num": numbers,
        f"{name}/lr_applied": np.array(rates),
        f"{name}/warmup_and_hparam_lr": np.array([config.warmup_updates, config.noam_scale / 10]),
    }


def batches(name: str) -> dict[str, Any]:
    """Return what fairseq makes of ``--max-tokens`` at T2T's buckets, on each of G GPUs.

    A bucket's bound grows by its highest bit >> bits. fairseq has no buckets: it fills a batch with sentences of about
    one length, so that a batch of a bucket's longest sentences must have T2T's number of them.
    """
    hparams, gpus = re.fullmatch(r"batching/(\w+)_x(\d+)", name).groups()
    tokens, longest, bits = HPARAMS[hparams]
    bounds = [8]
    while bounds[-1] < longest:
        bounds.append(bounds[-1] + (1 << (bounds[-1].bit_length() - 1 - bits)))
    sizes = []
    for bound in bounds:
        sentences = np.arange(2 * tokens // bound)
        made = data_utils.batch_by_size(sentences, lambda _, n=bound: n, max_tokens=tokens)
        sizes.append(len(made[0]) * int(gpus))
    return {
        f"{name}/boundaries": np.array(bounds[:-1]),
        f"{name}/batch_sizes": np.array(sizes),
        f"{name}/max_length": np.array(longest),
    }


def computed(key: str) -> dict[str, Any]:
    """Compute what ours makes of the inputs of one recorded output; an input stands for itself."""
    recorded = load(PIECES)
    if key.startswith("timing/"):
        return {key: positions(key)}
    if key.startswith("xent/ls"):
        return {key: losses(key)}
    if key.startswith("layer_norm/y"):
        return {key: layer_norm(key.endswith("default_scale_bias"))}
    if key == "adam/w":
        return {key: adam()}
    if key.endswith("/step_num"):
        return learning_rates(key.removesuffix("/step_num"))
    if key.endswith("/boundaries"):
        return batches(key.removesuffix("/boundaries"))
    return {key: recorded[key]}


@cache
def reproduce() -> dict[str, Any]:
    """Everything in pieces.npz."""
    result: dict[str, Any] = {}
    for key in load(PIECES):
        if key not in result:
            result |= computed(key)
    return result
