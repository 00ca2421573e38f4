"""A checkpoint as a task and a model that are ready to search, with one line when it does not fit its data-bin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from t2017_plugin.checkpoints.loading import load_checkpoint, settings
from t2017_plugin.errors import UsageError

TRANSLATION = "t2017_translation"
PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def load_for_inference(
    checkpoint: str | os.PathLike[str], data_bin: str | os.PathLike[str], source_lang: str, target_lang: str
) -> tuple[Any, Any]:
    """Set up the task on a data-bin and load the model of a checkpoint into it; as ``load_ensemble`` with one."""
    task, models = load_ensemble([checkpoint], data_bin, source_lang, target_lang)
    return task, models[0]


def load_ensemble(
    checkpoints: Sequence[str | os.PathLike[str]],
    data_bin: str | os.PathLike[str],
    source_lang: str,
    target_lang: str,
    precision: str = "fp32",
) -> tuple[Any, list[Any]]:
    """Set up the first checkpoint's task on a data-bin and load the models of all into it.

    A task that does not search as the paper did (stock ``translation``) is replaced by ``t2017_translation``, so a
    stock model is searched in the same way. Whatever precision a checkpoint was trained in, it is decoded in
    ``precision``: fp32, fp16 or bf16.

    Raises:
        UsageError: a file is missing or damaged, or a checkpoint was not trained on these dictionaries.
    """
    from fairseq import checkpoint_utils

    state = load_checkpoint(checkpoints[0])
    task = _task(settings(state, "task"), data_bin, source_lang, target_lang)
    del state
    models = []
    for checkpoint in checkpoints:
        load_checkpoint(checkpoint)  # one line where the file is missing or damaged
        try:
            loaded, _ = checkpoint_utils.load_model_ensemble([str(checkpoint)], task=task)
        except (RuntimeError, KeyError, UsageError) as error:
            sizes = f"{len(task.source_dictionary)} and {len(task.target_dictionary)} symbols"
            reason = " ".join(str(error).split())[:200]
            if isinstance(error, UsageError):  # its advice is for who trains
                reason = reason.partition(":")[0]
            raise UsageError(
                f"{checkpoint} does not fit the dictionaries of {data_bin} ({sizes}); "
                f"name the data-bin it was trained on ({reason})"
            ) from error
        model = loaded[0].to(PRECISIONS[precision])
        model.eval()
        models.append(model)
    return task, models


def _task(stored: dict[str, Any], data_bin: str | os.PathLike[str], source_lang: str, target_lang: str) -> Any:
    """The task of the checkpoint with this data, or ours for one that searches fairseq's way."""
    from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY, setup_task
    from omegaconf import OmegaConf

    for language in (source_lang, target_lang):
        dictionary = Path(data_bin) / f"dict.{language}.txt"
        if not dictionary.exists():
            raise UsageError(f"{dictionary} is missing; name the data-bin that fairseq-preprocess made")
    name = str(stored.get("_name") or stored.get("task") or TRANSLATION)
    if not getattr(TASK_REGISTRY.get(name), "searches_as_the_paper", False):
        name = TRANSLATION
    config = OmegaConf.structured(TASK_DATACLASS_REGISTRY[name])
    known = {key: value for key, value in stored.items() if key in config and value is not None}
    chosen = {"_name": name, "data": str(data_bin), "source_lang": source_lang, "target_lang": target_lang}
    return setup_task(OmegaConf.merge(config, {**known, **chosen}))
