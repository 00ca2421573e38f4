"""Loading of any fairseq checkpoint with weights-only loading on, and one clear line when a file cannot be used."""

from __future__ import annotations

import argparse
import errno
import os
import pickle
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY, setup_task
from omegaconf import OmegaConf
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.patches import allow_safe_globals

ZIP_MAGIC = b"PK\x03\x04"
NAMED_GLOBAL = re.compile(r"(?:GLOBAL |unrecognized function |<class ')([\w.]+)")


def load_checkpoint(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Load a fairseq checkpoint for the CPU.

    Tensors of the newer file format are mapped and read when they are touched. Tensors that were one when the file
    was written (tied weights on a CPU) are one again.

    Raises:
        UsageError: there is no such file, it is cut off, it is no checkpoint, it holds no model, or it holds a type
            that weights-only loading does not know; each names the file.
    """
    allow_safe_globals()
    path = Path(path)
    mapped = _starts_as_archive(path)
    try:
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        raise UsageError(_refused_global(path, str(error))) from error
    except (RuntimeError, EOFError, ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise UsageError(_not_whole(path)) from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        # The place of the archive's table of contents, read from damaged bytes, lay outside the file.
        raise UsageError(_not_whole(path)) from error
    if not isinstance(state, dict) or not isinstance(state.get("model"), Mapping):
        raise UsageError(f"{path} holds no 'model' entry, so it is not a checkpoint of fairseq-train; name one that is")
    return state


def refuse_damaged(path: Path, state: Mapping[str, Any]) -> None:
    """Compare the checksums of the parts of a file that hold its model; mapping, they are not looked at.

    torch numbers the parts in the order in which it meets them, and fairseq saves the model first. The optimiser's
    state, two thirds of a file, is not read.

    Raises:
        UsageError: a checksum is wrong.
    """
    if not _starts_as_archive(path):
        return
    storages = {each.untyped_storage().data_ptr() for each in state["model"].values() if isinstance(each, Tensor)}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            folder, _, number = member.filename.rpartition("/")
            if not number.isdecimal() or (folder.endswith("/data") and int(number) < len(storages)):
                try:
                    with archive.open(member) as part:
                        while part.read(1 << 20):
                            pass
                except zipfile.BadZipFile as error:
                    raise UsageError(f"{path} is damaged ({member.filename}: wrong checksum); copy it again") from error


def _starts_as_archive(path: Path) -> bool:
    """Whether a file has the zip format of torch >= 1.6, the only one that can be mapped."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a checkpoint file in it")
    try:
        with open(path, "rb") as file:
            return file.read(len(ZIP_MAGIC)) == ZIP_MAGIC
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such checkpoint file") from error


def _not_whole(path: Path) -> str:
    size = path.stat().st_size
    return (
        f"{path} cannot be read as a checkpoint ({size:,} bytes): it was cut off while it was written or copied, "
        "or it is another kind of file; copy it again or leave it out"
    )


def _refused_global(path: Path, message: str) -> str:
    """One line for what the weights-only loader refused, which is also how a text file fails."""
    named = NAMED_GLOBAL.search(message)
    if named is None:
        return _not_whole(path)
    if "is blocked" in message:
        return f"{path} holds {named.group(1)}, which can run programs; do not load it"
    return (
        f"{path} holds an object of {named.group(1)}, which weights-only loading does not allow; "
        "if you trust the file and that type, register it with torch.serialization.add_safe_globals in your user-dir"
    )


def num_updates(state: Mapping[str, Any]) -> int:
    """Return the number of updates after which a checkpoint was written; 0 when the file does not say."""
    history = state.get("optimizer_history") or [{}]
    return int(history[-1].get("num_updates", 0))


def stored_settings(state: Mapping[str, Any], section: str) -> dict[str, Any]:
    """One section of the stored settings (``model``, ``task``, ...) as a plain dictionary, of new and old files.

    New files hold a ``cfg`` with sections, each a dictionary or a Namespace; old ones one flat ``args`` for everything.
    """
    cfg = state.get("cfg")
    stored = cfg.get(section) if isinstance(cfg, Mapping) else state.get("args")
    if isinstance(stored, argparse.Namespace):
        return dict(vars(stored))
    return dict(stored) if isinstance(stored, Mapping) else {}


# --- For inference ------------------------------------------------------------------------------
#
# A checkpoint as a task and a model that are ready to search, with one line when it does not fit
# its data-bin.

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
    state = load_checkpoint(checkpoints[0])
    task = _task(stored_settings(state, "task"), data_bin, source_lang, target_lang)
    del state
    models = []
    for checkpoint in checkpoints:
        refuse_damaged(Path(checkpoint), load_checkpoint(checkpoint))  # one line where it is missing or damaged
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
    """Return the task of the checkpoint with this data, or ours for one that searches fairseq's way."""
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
