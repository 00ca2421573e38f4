"""The average of several checkpoints of one run (section 6.1: the last 5 for base, the last 20 for big).

    mean[w] = (w_1 + ... + w_n) / n   for every parameter w

One file is open at a time: in memory are at most the sums (two models' worth in float64) and the model that is
being added. The optimiser's state, twice the size of the model, is neither read nor written.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from t2017_plugin.checkpoints.loading import load_checkpoint, num_updates, refuse_damaged, stored_settings
from t2017_plugin.errors import UsageError
from t2017_plugin.files import whole_or_nothing
from t2017_plugin.paper.averaging import RunningMean, is_averaged

# Settings that change what the weights mean though not always their shapes; dropout, seeds and
# paths may differ within a run.
ARCHITECTURE_SETTING = re.compile(
    r"_name|arch|share_.*|d_model|d_ff|d_k|d_v|positions|sinusoid|embeddings|attention_bias|decoder_start|layer_norm_eps"
    r"|target_space_embedding|layernorm_embedding"
    r"|.*(layers|heads|embed_dim|normalize_before|learned_pos|activation_fn|cutoff|scale_embedding|positional_embeddings)"
)
# What tells one training from another: the section of the stored settings, and the setting.
RUN_SETTINGS = (("common", "seed"), ("checkpoint", "save_dir"))
OPTIMISER_STATES = ("last_optimizer_state", "optimizer")
MODEL_COPIES = ("ema", "ema_fp32_params")
RECORD = "t2017_average"


@dataclass(frozen=True)
class AverageReport:
    """What went into an average: the files in the order they were added, each with its number of updates."""

    files: list[Path]
    updates: list[int]


def average_checkpoints(
    paths: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str], several_runs: bool = False
) -> AverageReport:
    """Write the mean of checkpoints as a checkpoint that fairseq-generate loads.

    Settings, counters and integer buffers are those of the checkpoint with the most updates;
    ``extra_state["t2017_average"]`` records the files and their updates. float16 and bfloat16 weights come out as
    float32.

    Args:
        several_runs: also take checkpoints of trainings that began apart, with another seed or folder.

    Raises:
        UsageError: a file is missing, cut off, damaged, named twice, of another model or, unless ``several_runs``, of
            another run, or ``output`` is one of the files. No output is left behind then, and a file already at
            ``output`` stays.
    """
    files = [Path(path) for path in paths]
    if not files:
        raise UsageError("no checkpoint to average")
    refuse_duplicates(files)
    if any(Path(output).exists() and os.path.samefile(output, path) for path in files):
        raise UsageError(f"{output} is one of the checkpoints to average; choose another output")
    with whole_or_nothing(output) as temporary:
        state, report = _average(files, several_runs)
        try:
            torch.save(state, temporary)
        except RuntimeError as error:  # how torch tells a full disk
            raise UsageError(f"{output} could not be written: {error}") from error
    return report


def _average(files: list[Path], several_runs: bool) -> tuple[dict[str, Any], AverageReport]:
    mean = RunningMean()
    newest: dict[str, Any] = {}
    architecture: dict[str, Any] = {}
    run: dict[str, Any] = {}
    updates: list[int] = []
    known: dict[tuple[int, bytes], Path] = {}
    for path in files:
        state = load_checkpoint(path)
        refuse_damaged(path, state)
        architecture = architecture or _architecture(state)
        _refuse_other_architecture(architecture, _architecture(state), files[0], path)
        run = run or _run(state)
        if not several_runs:
            _refuse_other_run(run, _run(state), files[0], path)
        updates.append(num_updates(state))
        is_newest = updates[-1] == max(updates)
        try:
            mean.add(state["model"], is_newest)
        except ValueError as error:
            raise UsageError(f"{path} cannot be averaged with {files[0]}: {error}; leave it out") from error
        first = known.setdefault((updates[-1], digest(state["model"])), path)
        if first is not path:
            raise UsageError(
                f"{path} holds the same weights as {first} (update {updates[-1]}); name each checkpoint once"
            )
        if is_newest:
            newest = _without_large_parts(state)
        del state
    newest["model"] = mean.mean()
    newest["extra_state"][RECORD] = {"files": [path.name for path in files], "num_updates": updates}
    return newest, AverageReport(files, updates)


def digest(model: Mapping[str, Tensor]) -> bytes:
    """Compute a digest of the weights of a state, equal only for equal weights.

    Shape:
        any
    """
    result = hashlib.blake2b(digest_size=16)
    for tensor in model.values():
        if is_averaged(tensor):
            result.update(tensor.detach().reshape(-1).contiguous().view(torch.uint8).numpy().data)
    return result.digest()


def _architecture(state: dict[str, Any]) -> dict[str, Any]:
    stored = stored_settings(state, "model")
    return {key: value for key, value in stored.items() if ARCHITECTURE_SETTING.fullmatch(key)}


def _refuse_other_architecture(first: dict[str, Any], other: dict[str, Any], first_path: Path, path: Path) -> None:
    for key in sorted(first.keys() | other.keys()):
        if first.get(key) != other.get(key):
            values = f"{key} is {first.get(key)} in {first_path} and {other.get(key)} in {path}"
            raise UsageError(f"{values}: they are not checkpoints of one model")


def _run(state: dict[str, Any]) -> dict[str, Any]:
    return {name: stored_settings(state, section).get(name) for section, name in RUN_SETTINGS}


def _refuse_other_run(first: dict[str, Any], other: dict[str, Any], first_path: Path, path: Path) -> None:
    for name, value in first.items():
        if None not in (value, other[name]) and value != other[name]:
            raise UsageError(
                f"{first_path} and {path} are of two trainings ({name} is {value} and {other[name]}), and the mean of "
                "such weights means nothing; if one goes on from the other, add --several-runs"
            )


def uneven_updates(updates: Sequence[int]) -> str | None:
    """Say which two checkpoints are closer than half the largest distance between neighbours, if any are."""
    ordered = sorted(updates)
    pairs = [(later - earlier, earlier, later) for earlier, later in zip(ordered, ordered[1:], strict=False)]
    if not pairs or 2 * min(pairs)[0] >= max(pairs)[0]:
        return None
    distance, earlier, later = min(pairs)
    return f"updates {earlier:,} and {later:,} are {distance:,} apart, others {max(pairs)[0]:,}"


def _without_large_parts(state: dict[str, Any]) -> dict[str, Any]:
    """Return all but model and optimiser, copied, so that the file behind the tensors can be let go."""
    rest = {key: None if key in OPTIMISER_STATES else value for key, value in state.items() if key != "model"}
    extra = rest.get("extra_state") or {}
    rest["extra_state"] = {key: value for key, value in extra.items() if key not in MODEL_COPIES}
    history = rest.get("optimizer_history") or []
    rest["optimizer_history"] = [
        {key: value for key, value in entry.items() if key != "optimizer"} for entry in history
    ]
    return copy.deepcopy(rest)


# --- Which checkpoints --------------------------------------------------------------------------
#
# Which checkpoints of a run to average: the last N update checkpoints, or epoch checkpoints.
#
# fairseq-train names what it saves every ``--save-interval-updates``
# checkpoint_<epoch>_<updates>.pt, and what it saves at the end of an epoch checkpoint<epoch>.pt. An
# update checkpoint that falls on the end of an epoch exists only under the epoch's name.

# By kind: what the name looks like, and how to recognise it. The last group counts updates or
# epochs.
KINDS = {
    "update": ("checkpoint_<epoch>_<updates>.pt", re.compile(r"checkpoint_\d+_(\d+)\.pt")),
    "epoch": ("checkpoint<epoch>.pt", re.compile(r"checkpoint(\d+)\.pt")),
}


def checkpoints_of(folder: Path, kind: str) -> list[Path]:
    """Return the checkpoints of a kind in a folder, in the order of their updates or epochs."""
    _, name = KINDS[kind]
    found = [(int(match[1]), path) for path in folder.iterdir() if (match := name.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def checkpoint_folder(run: Path) -> Path:
    """Return where the checkpoints of a run are: the folder itself, or below it as the recipes write them."""
    for folder in (run, run / "checkpoints", run / "t2017" / "checkpoints"):
        if folder.is_dir() and any(checkpoints_of(folder, kind) for kind in KINDS):
            return folder
    return run


def last_checkpoints(folder: str | os.PathLike[str], last: int, by: str = "update") -> list[Path]:
    """Return the last ``last`` checkpoints of a run, oldest first.

    Args:
        folder: the checkpoints' folder, or a recipe's run that has it inside.
        by: ``"update"``, those saved every so many updates, or ``"epoch"``, those of the end of epochs.

    Raises:
        UsageError: the folder does not exist or holds fewer; the line says how many of both kinds there are.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder of checkpoints")
    if last < 1:
        raise UsageError(f"--last {last}: at least one checkpoint is needed")
    folder = checkpoint_folder(folder)
    found = checkpoints_of(folder, by)
    if len(found) < last:
        other = "epoch" if by == "update" else "update"
        others = len(checkpoints_of(folder, other))
        advice = f"; with --by {other} there are {others} ({KINDS[other][0]})" if others else ""
        raise UsageError(
            f"{folder} holds {len(found)} {by} checkpoints ({KINDS[by][0]}), {last} were asked for{advice}"
        )
    return found[-last:]


def refuse_duplicates(paths: list[Path]) -> None:
    """Refuse a list that names one file twice, also through links.

    Raises:
        UsageError: naming both entries.
    """
    seen: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError as error:
            raise UsageError(f"{path}: no such checkpoint file") from error
        first = seen.setdefault((status.st_dev, status.st_ino), path)
        if first is not path:
            raise UsageError(f"{path} is the same file as {first}; an average takes each checkpoint once")
