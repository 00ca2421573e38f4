"""Everything our model computes for a recorded one, under T2T's names; the updates by fairseq's trainer."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import torch
from fairseq.trainer import Trainer
from torch import Tensor

from tests.parity.t2t_model import Ours, expected_dropout
from tests.parity.t2t_names import under_t2t_names


def activations(ours: Ours) -> dict[str, Tensor]:
    """Everything between the embeddings and the logits, caught by hooks; attention computed by its formula."""
    model, caught = ours.model, {}

    def catch(key: str, module: Any, before: bool = False) -> Any:
        def hook(_: Any, given: Any, output: Any = None) -> None:
            value = given if before else output
            caught[key] = value[0] if isinstance(value, tuple) else value

        return module.register_forward_pre_hook(hook) if before else module.register_forward_hook(hook)

    hooks = []
    for side, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        hooks.append(catch(f"{side}_input", stack.layers[0], before=True))
        hooks.append(catch(f"{side}_output", stack.layers[-1]))
        for i, layer in enumerate(stack.layers):
            sublayers = [(f"{side}_self_attention", layer.self_attention, layer.self_attention_norm)]
            if side == "decoder":
                sublayers.append(("encdec_attention", layer.encoder_attention, layer.encoder_attention_norm))
            for name, attention, _ in sublayers:
                hooks.append(catch(f"attn/{side}/layer_{i}/{name}", attention.dropout))
            sublayers.append(("ffn", layer.feed_forward, layer.feed_forward_norm))
            for number, (name, module, norm) in enumerate(sublayers):
                hooks.append(catch(f"act/{side}/layer_{i}/{name}", module))
                hooks.append(catch(f"act/{side}/layer_{i}/post_norm" + (f"#{number}" if number else ""), norm))
    model(ours.source(), None, shifted_targets(ours), need_weights=True)
    for hook in hooks:
        hook.remove()
    return caught


def shifted_targets(ours: Ours) -> Tensor:
    """Targets shifted right with their padding, as T2T does: EOS is an input too, in front of the padding.

    fairseq's collater moves EOS to the front instead. No loss reads the rows in which the two differ.
    """
    targets = torch.from_numpy(ours.arrays["targets"]).long()
    return torch.cat([torch.full((len(targets), 1), ours.task.target_dictionary.eos()), targets[:, :-1]], dim=1)


def recorded(ours: Ours, prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Copy what ours has, as keys of a file."""
    named = under_t2t_names(ours.config, tensors)
    return {f"{prefix}/{name}": array.copy() for name, array in named.items() if array is not None}


def as_loaded(ours: Ours) -> dict[str, Any]:
    """Return settings and weights as they arrived in the registered classes."""
    named = under_t2t_names(ours.config, ours.model.state_dict())
    absent = sorted(name for name, array in named.items() if array is None)
    model = ours.cfg.model
    arrived = {
        "d": model.d_model, "ff": model.d_ff, "h": model.heads, "layers": model.layers,
        "key": model.heads * model.d_k, "value": model.heads * model.d_v, "shared": model.embeddings == "shared",
        "vin": len(ours.task.source_dictionary), "vout": len(ours.task.target_dictionary),
        "ls": ours.criterion.epsilon, "warmup": ours.cfg.lr_scheduler.warmup_updates,
        "probe": [model.dropout, model.attention_dropout, model.relu_dropout],
        "attn_bias": model.attention_bias, "live_tspace": model.target_space_embedding,
    }  # fmt: skip
    given = json.loads(str(ours.arrays["config_json"]))
    return {
        "config_json": np.array(json.dumps({name: arrived.get(name, value) for name, value in given.items()})),
        "frozen_zero_vars": np.array(absent, dtype=bytes),
        **{f"var/{name}": np.zeros_like(ours.arrays[f"var/{name}"]) for name in absent},
        **recorded(ours, "var", ours.model.state_dict()),
    }


def forward(ours: Ours) -> dict[str, Any]:
    """Token ids, activations, logits and losses of batch 1."""
    sample = ours.sample()
    order = sample["id"].argsort()
    targets = sample["target"][order]
    with torch.no_grad():
        # Attention by its formula for the activations, by torch's fused function for the logits.
        inside = activations(ours)
        logits = ours.model(ours.source(), None, shifted_targets(ours))[0]
    total, tokens = ours.loss(sample)
    return {
        "inputs": sample["net_input"]["src_tokens"][order], "targets": targets, **inside, "logits": logits,
        "loss_per_token": ours.loss_per_token(logits, targets), "loss_weights": targets.ne(ours.criterion.padding_idx),
        "loss_num": np.array(total), "loss_den": np.array(tokens), "loss_total": np.array(total / tokens),
    }  # fmt: skip


def trained(ours: Ours) -> dict[str, Any]:
    """Gradients of batch 1 and, where they were recorded, three updates, by fairseq's trainer."""
    trainer = Trainer(ours.cfg, ours.task, ours.model, ours.criterion)
    if "train/lr_applied" not in ours.arrays:
        trainer.train_step([ours.sample()])
        return recorded(ours, "grad", {name: parameter.grad for name, parameter in ours.model.named_parameters()})
    result: dict[str, Any] = {"train/lr_applied": [], "train/loss_before_update": []}
    for step in (1, 2, 3):
        sample = ours.sample(f"_{step}")
        order = sample["id"].argsort()
        result[f"train/inputs_{step}"] = sample["net_input"]["src_tokens"][order]
        result[f"train/targets_{step}"] = sample["target"][order]
        total, tokens = ours.loss(sample)
        result["train/loss_before_update"].append(total / tokens)
        result["train/lr_applied"].append(trainer.get_lr())
        trainer.train_step([sample])
        if step == 1:
            gradients = {name: parameter.grad for name, parameter in ours.model.named_parameters()}
            result |= recorded(ours, "grad", gradients)
    total, tokens = ours.loss(ours.sample("_1"))
    result["train/loss_after3_on_batch1"] = np.array(total / tokens)
    return result | recorded(ours, "var_after3", ours.model.state_dict())


@cache
def reproduce(file: str) -> dict[str, Any]:
    """Everything our model computes for a file, by the keys of the file; the search has its own module."""
    ours = Ours(file)
    ours.model.train()
    with expected_dropout(any(ours.config["probe"])):
        result = {**as_loaded(ours), **forward(ours)}
        # Last, because it changes the weights.
        return result | trained(ours)
