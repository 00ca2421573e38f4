"""A Tensor2Tensor model becomes a folder with a fairseq checkpoint, its dictionaries and its text settings."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.dictionary import T2TDictionary
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.t2t.checkpoint import check_model, write_model
from t2017_plugin.t2t.sizes import TARGET_SPACE, Sizes, describe
from t2017_plugin.t2t.source import SourceModel, read_variables
from t2017_plugin.t2t.vocabulary import numbered, read_vocabulary
from t2017_plugin.t2t.weights import ATTENTION_BIAS, canonical, convert_variables


@dataclass(frozen=True)
class ImportOptions:
    """What the variables do not say.

    Attributes:
        source_lang, target_lang: names of the languages, for ``dict.LANG.txt`` and fairseq's flags
        heads: h
        sinusoid: layout of the positions; ``t2t`` is that of all of the authors' versions
        target_space_id: row of the table of target spaces
        source_rows: rows of the source's table, where there is one ``shared`` table a vocabulary
        source_vocab, target_vocab: T2T's vocabulary files; without one, the symbols are ids
        bpe_codes: subword-nmt's merges of the model's BPE
    """

    source_lang: str
    target_lang: str
    heads: int = 8
    sinusoid: str = "t2t"
    target_space_id: int = 9
    source_rows: int | None = None
    source_vocab: str | None = None
    target_vocab: str | None = None
    bpe_codes: str | None = None


@dataclass(frozen=True)
class ImportReport:
    """What was read and what it became.

    Attributes:
        source: the variables that were read
        sizes: the model's settings
        unused: variables without a place, all of them zero
        without_symbol: by language, rows of the dictionary that have a placeholder; None where all symbols are ids
        parameters: of the model, a tied table counted once
        logits: of the sentence the written model was tried on
    """

    source: SourceModel
    sizes: Sizes
    unused: list[str]
    without_symbol: dict[str, int | None]
    parameters: int
    logits: Tensor


def import_model(path: str | os.PathLike[str], output: str | os.PathLike[str], options: ImportOptions) -> ImportReport:
    """Reads a model, writes the folder ``output`` whole or not at all, and tries what was written.

    Raises:
        UsageError: the variables, a vocabulary or an option do not fit, or ``output`` is a folder with files in it.
    """
    with _new_folder(Path(output)) as folder:
        source = read_variables(path)
        sizes = describe(
            source.variables, options.heads, options.target_space_id, options.sinusoid, options.source_rows
        )
        _refuse_infinite(source.variables)
        dictionaries, without_symbol = _dictionaries(sizes, options)
        config = T2017TransformerConfig(**sizes.settings)
        state = convert_variables(source.variables, config, options.target_space_id, sizes.source_types)
        write_model(folder, state, sizes.settings, dictionaries, source.updates, options.bpe_codes)
        logits = check_model(folder, state, options.source_lang, options.target_lang)
    parameters = sum({id(tensor): tensor.numel() for tensor in state.values()}.values())
    unused = _unused(source.variables, sizes.settings)
    return ImportReport(source, sizes, unused, without_symbol, parameters, logits)


@contextlib.contextmanager
def _new_folder(output: Path) -> Iterator[Path]:
    """A folder beside ``output`` that takes its place when the block ends well, and is removed when it does not."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output} is there already: name a new folder, or remove it")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output.absolute().parent} is not a folder, so {output.name} cannot be made there")
    folder = output.absolute().with_name(f".{output.name}.{os.getpid()}.part")
    folder.mkdir()
    try:
        yield folder
        os.replace(folder, output)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _refuse_infinite(variables: Mapping[str, np.ndarray]) -> None:
    for name, array in variables.items():
        if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
            raise UsageError(f"{name} holds values that are no finite numbers: the model has diverged or is damaged")


def _dictionaries(sizes: Sizes, options: ImportOptions) -> tuple[dict[str, T2TDictionary], dict[str, int | None]]:
    """The source's and the target's dictionary, in that order."""
    if options.source_lang == options.target_lang:
        raise UsageError(f"source and target are both {options.source_lang}: name two languages")
    files = [options.source_vocab, options.target_vocab]
    if sizes.settings["embeddings"] == "shared" and files[0] != files[1]:
        raise UsageError("the model has one table for source and target, so they share one vocabulary: use --vocab")
    dictionaries: dict[str, T2TDictionary] = {}
    without_symbol: dict[str, int | None] = {}
    languages = (options.source_lang, options.target_lang)
    for language, file, rows in zip(languages, files, (sizes.source_types, sizes.target_types), strict=True):
        if file is None:
            dictionaries[language], without_symbol[language] = numbered(rows), None
        else:
            dictionaries[language], without_symbol[language] = read_vocabulary(file, rows)
    return dictionaries, without_symbol


def _unused(variables: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> list[str]:
    """Variables that were left out because they are zero and the model has no place for them."""
    unused = []
    for name in variables:
        bias = ATTENTION_BIAS.search(canonical(name)) and not settings["attention_bias"]
        if bias or (canonical(name) == TARGET_SPACE and not settings["target_space_embedding"]):
            unused.append(name)
    return unused
