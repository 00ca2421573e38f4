"""A Tensor2Tensor model becomes a folder that fairseq's programs and this plugin's commands read.

The folder holds the checkpoint, a dictionary per language and the text settings, so it is a data-bin
too. A vocabulary file of Tensor2Tensor has one symbol per line. It may begin with padding and EOS, as
T2T writes it, or hold the symbols alone, as the ready-made ``vocab.bpe.32000`` does, to which T2T adds
the two in front. Files of T2T's own subwords have quotes around every symbol.
"""

import contextlib
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf
from torch import Tensor

from t2017_plugin.checkpoints.loading import load_for_inference
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.dictionary import EOS, PAD, T2TDictionary, placeholder
from t2017_plugin.fairseq_side.registration import register
from t2017_plugin.fairseq_side.settings import T2017TransformerConfig
from t2017_plugin.files import read_lines
from t2017_plugin.t2t.variables import (
    ATTENTION_BIAS,
    ENGLISH_GERMAN_BPE,
    TARGET_SPACE,
    Sizes,
    SourceModel,
    canonical,
    describe,
    read_variables,
)
from t2017_plugin.t2t.weights import convert_variables
from t2017_plugin.text.pipeline import TextSettings

CHECKPOINT = "checkpoint.pt"
CODES = "codes"
RECORD = "t2017_import_t2t"
# In files of T2T's own subwords the special symbols may end in _, as words do there.
SPECIAL = {PAD: PAD, f"{PAD}_": PAD, EOS: EOS, f"{EOS}_": EOS}
VISIBLE_SPACE = "\u2423"


@dataclass(frozen=True)
class ImportOptions:
    """What the variables do not say about a model.

    Attributes:
        source_lang, target_lang: names of the languages, for ``dict.LANG.txt`` and fairseq's flags
        heads: h
        sinusoid: layout of the positions; ``t2t`` is that of all of the authors' versions
        target_space_id: row of the table of target spaces
        source_rows: rows of the source's table, where there is one ``shared`` table per vocabulary
        source_vocab, target_vocab: T2T's vocabulary files; without one, the symbols are ids
        bpe_codes: subword-nmt's merges of the model's BPE
    """

    source_lang: str
    target_lang: str
    heads: int = 8
    sinusoid: str = "t2t"
    target_space_id: int = ENGLISH_GERMAN_BPE
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
    """Read a model, write the folder ``output`` whole or not at all, and try what was written.

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
    """Give a folder that takes the place of ``output`` when the block ends well, and is removed when it does not."""
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
    """Make the source's and the target's dictionary, in that order."""
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
            dictionaries[language], without_symbol[language] = numbered_dictionary(rows), None
        else:
            dictionaries[language], without_symbol[language] = read_vocabulary(file, rows)
    return dictionaries, without_symbol


def _unused(variables: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> list[str]:
    """Name the variables that were left out because they are zero and the model has no place for them."""
    unused = []
    for name in variables:
        bias = ATTENTION_BIAS.search(canonical(name)) and not settings["attention_bias"]
        if bias or (canonical(name) == TARGET_SPACE and not settings["target_space_embedding"]):
            unused.append(name)
    return unused


def read_vocabulary(path: str | os.PathLike[str], rows: int) -> tuple[T2TDictionary, int]:
    """Read the symbols of a file with T2T's ids, and count the model's rows that have none.

    White space within a symbol becomes U+2423, since tokens of text stand between spaces. Of a symbol that comes twice
    the last counts, as in T2T; the other row, like rows beyond the file, gets a placeholder.

    Raises:
        UsageError: there is no such file, it is not UTF-8, it has more symbols than ``rows``, or only one of the
            special symbols is where it should be.
    """
    symbols = read_lines(path)
    if symbols and symbols[0] in (f"'{special}'" for special in SPECIAL):
        symbols = [_unquoted(symbol) for symbol in symbols]
    first = [SPECIAL.get(symbol) for symbol in symbols[:2]]
    if first == [PAD, EOS]:
        symbols = symbols[2:]
    elif any(first):
        raise UsageError(f"{path}: the first lines are {symbols[:2]}; they should be {PAD} and {EOS}, or neither")
    if len(symbols) + 2 > rows:
        raise UsageError(
            f"{path} has {len(symbols)} symbols beside {PAD} and {EOS}, and the model's table {rows} rows: "
            "it is another model's vocabulary"
        )
    symbols = [re.sub(r"\s", VISIBLE_SPACE, symbol) for symbol in symbols] + [""] * (rows - 2 - len(symbols))
    last = {symbol: number for number, symbol in enumerate(symbols) if symbol and symbol not in SPECIAL}
    kept = [symbol if last.get(symbol) == number else "" for number, symbol in enumerate(symbols)]
    return T2TDictionary(symbol or placeholder(number + 2) for number, symbol in enumerate(kept)), kept.count("")


def numbered_dictionary(rows: int) -> T2TDictionary:
    """Make a dictionary whose symbols are their ids, for a model without a vocabulary file: text is lines of ids."""
    return T2TDictionary(map(str, range(2, rows)))


def _unquoted(symbol: str) -> str:
    """Take off the quotes, where both are there; T2T's files may lack them on some lines."""
    quoted = len(symbol) > 1 and symbol[0] == symbol[-1] and symbol[0] in "'\""
    return symbol[1:-1] if quoted else symbol


def model_flags(settings: Mapping[str, Any]) -> list[str]:
    """Write the settings of a model as flags of fairseq-train, switches that are off left out."""
    flags = ["--arch", "t2017_base"]
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            flags.append(flag)
        elif value is not False:
            flags += [flag, str(value)]
    return flags


def fairseq_settings(settings: Mapping[str, Any], source_lang: str, target_lang: str) -> dict[str, Any]:
    """Make all settings that fairseq-train would have stored for this model, with the authors' loss and Adam."""
    register()
    flags = [".", "--task", "t2017_translation", "--source-lang", source_lang, "--target-lang", target_lang]
    flags += ["--criterion", "t2017_label_smoothing", "--smoothing-over", "others", "--lr-scheduler", "t2017_noam"]
    flags += ["--optimizer", "t2017_adam", "--adam-epsilon-form", "t2t", *model_flags(settings)]
    args = fairseq_options.parse_args_and_arch(fairseq_options.get_training_parser(), flags)
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
    """Write checkpoint, dictionaries and text settings.

    Args:
        folder: an existing one
        model: the state of the model
        dictionaries: by language, the source's first
        updates: how many the model was trained for; further training starts to count from 0
        codes: the merges of BPE that raw text is cut with; without them, text is lines of the vocabulary's symbols

    Shape:
        ``model``: parameters as they are in a checkpoint
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
    """Load what was written, as the translator does, and run one sentence through it.

    Shape:
        ``model``: parameters as they are in a checkpoint -> logits (1, 4, V)
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
