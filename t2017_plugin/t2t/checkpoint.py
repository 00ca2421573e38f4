"""An imported model as files that fairseq's programs and this plugin's commands read: a folder that is data-bin too."""

import os
import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf
from torch import Tensor

from t2017_plugin.checkpoints.for_inference import load_for_inference
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.dictionary import T2TDictionary
from t2017_plugin.text.settings import TextSettings

CHECKPOINT = "checkpoint.pt"
CODES = "codes"
RECORD = "t2017_import_t2t"


def model_flags(settings: Mapping[str, Any]) -> list[str]:
    """The settings of a model as flags of fairseq-train, switches that are off left out."""
    flags = ["--arch", "t2017_base"]
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            flags.append(flag)
        elif value is not False:
            flags += [flag, str(value)]
    return flags


def fairseq_settings(settings: Mapping[str, Any], source_lang: str, target_lang: str) -> dict[str, Any]:
    """All sections of the settings that fairseq-train would have stored for this model, the authors' loss and Adam."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    flags = [".", "--task", "t2017_translation", "--source-lang", source_lang, "--target-lang", target_lang]
    flags += ["--criterion", "t2017_label_smoothing", "--smoothing-over", "others", "--lr-scheduler", "t2017_noam"]
    flags += ["--optimizer", "t2017_adam", "--adam-epsilon-form", "t2t", *model_flags(settings)]
    args = options.parse_args_and_arch(options.get_training_parser(), flags)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq calls hydra by names that are going away
        stored: Any = OmegaConf.to_container(convert_namespace_to_omegaconf(args), resolve=True, enum_to_str=True)
    return dict(stored)


def write_model(
    folder: Path,
    model: Mapping[str, Tensor],
    settings: Mapping[str, Any],
    dictionaries: Mapping[str, T2TDictionary],
    updates: int,
    codes: str | os.PathLike[str] | None = None,
) -> None:
    """Writes checkpoint, dictionaries and text settings.

    Args:
        folder: an existing one
        model: the state of the model
        dictionaries: by language, the source's first
        updates: how many the model was trained for; further training starts to count from 0
        codes: the merges of BPE that raw text is cut with; without them, text is lines of the vocabulary's symbols
    """
    source_lang, target_lang = dictionaries
    history = {
        "criterion_name": "T2017LabelSmoothing",
        "optimizer_name": "T2017Adam",
        "lr_scheduler_state": {},
        "num_updates": updates,
    }
    state = {
        "args": None,
        "cfg": fairseq_settings(settings, source_lang, target_lang),
        "model": dict(model),
        "criterion": None,
        "optimizer_history": [history],
        "task_state": {},
        "extra_state": {
            "train_iterator": {"version": 2, "epoch": 1, "iterations_in_epoch": 0, "shuffle": True},
            RECORD: {"num_updates": updates},
        },
        "last_optimizer_state": None,
    }
    torch.save(state, folder / CHECKPOINT)
    for language, dictionary in dictionaries.items():
        dictionary.save(str(folder / f"dict.{language}.txt"))
    text = TextSettings(source_lang, target_lang, tokenizer="none", bpe="none")
    if codes is not None:
        shutil.copyfile(codes, folder / CODES)
        text = TextSettings(source_lang, target_lang, bpe_codes=CODES)
    text.save(folder)


def check_model(folder: Path, model: Mapping[str, Tensor], source_lang: str, target_lang: str) -> Tensor:
    """Loads what was written, as the translator does, and runs one sentence through it.

    Shape:
        -> logits (1, 4, V)
    Raises:
        UsageError: the weights are not those that were written, or the logits are not finite.
    """
    task, loaded = load_for_inference(folder / CHECKPOINT, folder, source_lang, target_lang)
    state = loaded.state_dict()
    if state.keys() != model.keys() or not all(torch.equal(state[name], tensor) for name, tensor in model.items()):
        raise UsageError("the checkpoint does not come back as it was written: is the disk full?")
    source, target = task.source_dictionary, task.target_dictionary
    first, eos = source.nspecial, source.eos()
    tokens = torch.tensor([[min(first + step, len(source) - 1) for step in range(5)] + [eos]])
    previous = torch.tensor([[eos] + [min(first + step, len(target) - 1) for step in range(3)]])
    with torch.no_grad():
        logits = loaded(tokens, torch.tensor([tokens.size(1)]), previous)[0]
    if not logits.isfinite().all():
        raise UsageError("the imported model gives logits that are not finite: its variables are damaged")
    return logits
