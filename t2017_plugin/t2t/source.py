"""Where a Tensor2Tensor model's variables come from: an ``.npz`` file or a TensorFlow checkpoint."""

import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from t2017_plugin.errors import UsageError
from t2017_plugin.t2t.tf_checkpoint import TensorFlowCheckpoint, checkpoint_prefix
from t2017_plugin.t2t.weights import BOOKKEEPING

PREFIX = "var/"  # in files that hold more than variables
UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError)


@dataclass(frozen=True)
class SourceModel:
    """What was read.

    Attributes:
        name: the file, or the prefix of the checkpoint's files
        variables: weights by T2T's names
        bookkeeping: names of what training left beside them, which is not read: the optimiser's slots and counters
        updates: how many there were; 0 where the source does not say
    """

    name: str
    variables: dict[str, np.ndarray]
    bookkeeping: list[str]
    updates: int


def read_variables(path: str | os.PathLike[str]) -> SourceModel:
    """Reads a model's variables.

    Args:
        path: an ``.npz`` file whose keys are ``var/NAME`` (other keys beside them are left alone) or bare names; or the
            prefix of a checkpoint such as ``model.ckpt-250000``, one of its files, or its folder

    Raises:
        UsageError: there is no such file, or it is damaged or another kind of file.
    """
    prefix = checkpoint_prefix(path)
    if prefix is not None:
        return _sorted_out(prefix, TensorFlowCheckpoint(prefix))
    try:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise UsageError(f"{path} is damaged, found at {damaged}: copy it again")
        with np.load(path, allow_pickle=False) as file:
            return _sorted_out(str(path), file)
    except UsageError:
        raise
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file, and no {path}.index; name an .npz file or a checkpoint") from error
    except UNREADABLE as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"{path} cannot be read as an .npz file of arrays ({reason}); "
            "a checkpoint of TensorFlow has a file that ends in .index, name that"
        ) from error


def _sorted_out(name: str, arrays: Mapping[str, np.ndarray]) -> SourceModel:
    """Only what belongs to the model is read: optimisers keep twice as much."""
    prefix = PREFIX if any(key.startswith(PREFIX) for key in arrays) else ""
    # A variable of TensorFlow calls itself NAME:0.
    keys = {key.removeprefix(prefix).removesuffix(":0"): key for key in arrays if key.startswith(prefix)}
    bookkeeping = [variable for variable in keys if BOOKKEEPING.search(variable)]
    variables = {variable: np.asarray(arrays[key]) for variable, key in keys.items() if variable not in bookkeeping}
    counter = next((keys[variable] for variable in bookkeeping if variable.endswith("global_step")), None)
    updates = 0 if counter is None else int(np.ravel(arrays[counter])[0])
    return SourceModel(str(Path(name)), variables, bookkeeping, updates)
