"""From raw text to the tokens a model reads, and back: the one place for Moses tokenisation and BPE.

    raw line -> (punctuation normalised) -> Moses tokens -> BPE units -> model -> BPE units -> tokens -> raw line

``python -m t2017_plugin.text.filters`` gives each step as a filter from stdin to stdout, one output line for each
input line, for the recipes that prepare data.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2017_plugin.errors import UsageError
from t2017_plugin.files import whole_or_nothing

SEPARATOR = "@@"
# subword-nmt needs time with the square of a word's length; longer words (base64, separators) are
# cut up before.
LONGEST_WORD = 200  # characters
# The tokeniser sets the typographic apostrophe apart and its detokeniser knows the plain one only.
APOSTROPHE_APART = re.compile(r"(?<=[^\W\d_]) ’ (?=[^\W\d_])")
ELIDING_LANGUAGES = ("fr", "it")


@functools.lru_cache(maxsize=16)
def _moses_tokenizer(language: str) -> Any:
    from sacremoses import MosesTokenizer

    return MosesTokenizer(lang=language)


@functools.lru_cache(maxsize=16)
def _moses_detokenizer(language: str) -> Any:
    from sacremoses import MosesDetokenizer

    return MosesDetokenizer(lang=language)


@functools.lru_cache(maxsize=16)
def _normalizer(language: str) -> Any:
    from sacremoses import MosesPunctNormalizer

    return MosesPunctNormalizer(lang=language)


def moses_tokenize(line: str, language: str, aggressive_dash_splits: bool = False) -> str:
    """Tokenise as tokenizer.perl -l ``language`` does, with its default escaping (``'`` becomes ``&apos;``)."""
    return _moses_tokenizer(language).tokenize(
        line, return_str=True, escape=True, aggressive_dash_splits=aggressive_dash_splits
    )


def moses_detokenize(line: str, language: str) -> str:
    """Join tokens to text as detokenizer.perl -l ``language`` does, escapes undone.

    In French and Italian a typographic apostrophe between letters is joined too, as the plain one is: l ’ eau, l’eau.
    """
    text = _moses_detokenizer(language).detokenize(line.split())
    return APOSTROPHE_APART.sub("’", text) if language in ELIDING_LANGUAGES else text


def normalise_punctuation(line: str, language: str) -> str:
    """Replace typographic punctuation as normalize-punctuation.perl -l ``language`` does."""
    return _normalizer(language).normalize(line)


def replace_unicode_punctuation(line: str) -> str:
    """Replace typographic punctuation as replace-unicode-punctuation.perl does; lower quotation marks („) stay."""
    return str(_normalizer("en").replace_unicode_punct(line))


def remove_bpe(line: str) -> str:
    """Join BPE units to words: every unit but a word's last ends in ``@@``."""
    return re.sub(rf"{SEPARATOR}( |$)", "", line)


class SubwordUnits:
    """Byte-pair encoding with the codes of ``subword-nmt learn-bpe`` or ``learn-joint-bpe-and-vocab``."""

    def __init__(self, codes: str | os.PathLike[str]) -> None:
        from subword_nmt.apply_bpe import BPE

        with open(codes, encoding="utf-8") as file:
            self.bpe = BPE(file, separator=SEPARATOR)

    def apply(self, line: str) -> str:
        """Cut the words of a tokenised line into BPE units."""
        units: list[str] = []
        for word in line.split():
            pieces = [word[start : start + LONGEST_WORD] for start in range(0, len(word), LONGEST_WORD)]
            for piece in pieces[:-1]:
                units += self.bpe.segment_tokens([piece])
                units[-1] += SEPARATOR
            units += self.bpe.segment_tokens(pieces[-1:])
        return " ".join(units)


class TextPipeline:
    """The steps of one data-bin: :meth:`encode` for the source, :meth:`decode` for what the model wrote."""

    def __init__(self, settings: TextSettings, folder: str | os.PathLike[str]) -> None:
        self.settings = settings
        self.units = None if settings.bpe == "none" else SubwordUnits(Path(folder) / str(settings.bpe_codes))

    @classmethod
    def load(cls, data_bin: str | os.PathLike[str]) -> TextPipeline:
        """Read ``text_settings.json`` of a data-bin and the codes it names.

        Raises:
            UsageError: there are none, or the codes are not the ones the data was made with.
        """
        return cls(load_text_settings(data_bin), data_bin)

    def tokenize(self, line: str, language: str) -> str:
        """Turn a raw line into words, separated by single spaces."""
        if self.settings.normalise_punctuation:
            line = normalise_punctuation(line, language)
        if self.settings.tokenizer == "moses":
            line = moses_tokenize(line, language, self.settings.aggressive_dash_splits)
        return " ".join(line.split())

    def encode(self, line: str, language: str | None = None) -> str:
        """Turn a raw line, by default of the source language, into the units that the dictionary holds."""
        words = self.tokenize(line, language or self.settings.source_lang)
        return words if self.units is None else self.units.apply(words)

    def words(self, units: str) -> str:
        """Turn units that the model wrote into words."""
        return units if self.units is None else remove_bpe(units)

    def decode(self, units: str) -> str:
        """Turn units that the model wrote into a raw line of the target language."""
        words = self.words(units)
        return moses_detokenize(words, self.settings.target_lang) if self.settings.tokenizer == "moses" else words


# --- How the data of a model was made -----------------------------------------------------------
#
# How the text of a data-bin was made: ``text_settings.json``, which lies beside the binarised data.
#
#     {"source_lang": "en", "target_lang": "de", "tokenizer": "moses", "normalise_punctuation": false,
#      "aggressive_dash_splits": false, "bpe": "subword_nmt", "bpe_codes": "codes", "bpe_codes_sha256": "..."}
#
# ``tokenizer`` and ``bpe`` may be "none" for text that is already tokens. The path of the codes is
# relative to the file.

FILE_NAME = "text_settings.json"
CHOICES = {"tokenizer": ("moses", "none"), "bpe": ("subword_nmt", "none")}


@dataclass(frozen=True)
class TextSettings:
    """What turns raw text into the tokens of a data-bin, and back.

    ``aggressive_dash_splits`` is tokenizer.perl's -a ("a-b" becomes "a @-@ b"). It is off, as in the authors' data,
    where BPE cuts such words; fairseq-interactive has it on unless it is given --moses-no-dash-splits.
    """

    source_lang: str
    target_lang: str
    tokenizer: str = "moses"
    normalise_punctuation: bool = False
    aggressive_dash_splits: bool = False
    bpe: str = "subword_nmt"
    bpe_codes: str | None = None
    bpe_codes_sha256: str | None = None

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(f"text settings: {name} is {getattr(self, name)!r}; it can be {' or '.join(choices)}")
        if self.bpe != "none" and not self.bpe_codes:
            raise UsageError(f"text settings: bpe is {self.bpe}, which needs bpe_codes, the file of its merges")

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the settings to a folder that holds the codes, with the codes' SHA-256; return the path written.

        Raises:
            UsageError: there are no such codes in the folder.
        """
        written = self
        if self.bpe != "none":
            written = dataclasses.replace(self, bpe_codes_sha256=_sha256(Path(folder) / str(self.bpe_codes)))
        path = Path(folder) / FILE_NAME
        with whole_or_nothing(path) as temporary:
            temporary.write_text(json.dumps(dataclasses.asdict(written), indent=2) + "\n", encoding="utf-8")
        return path


def load_text_settings(folder: str | os.PathLike[str]) -> TextSettings:
    """Read the settings of a data-bin and check that the codes are the ones it was made with.

    Raises:
        UsageError: the file is missing or not understood, or the codes are missing or others.
    """
    path = Path(folder) / FILE_NAME
    if not Path(folder).is_dir():
        raise UsageError(f"{folder} is not a folder; name the data-bin that the model was trained on")
    if not path.exists():
        raise UsageError(
            f"{path} is missing, so nobody knows how this data was tokenised; "
            f"write it with: python -m t2017_plugin.text.filters describe --data-bin {folder} --help"
        )
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        settings = TextSettings(**_known(stored, path))
    except (json.JSONDecodeError, UnicodeDecodeError, TypeError) as error:
        raise UsageError(f"{path} cannot be understood: {error}") from error
    if settings.bpe != "none":
        codes = Path(folder) / str(settings.bpe_codes)
        found = _sha256(codes)
        if settings.bpe_codes_sha256 and settings.bpe_codes_sha256 != found:
            raise UsageError(f"{codes} is not the file that the data was made with (SHA-256 {found[:12]}... differs)")
    return settings


def _known(stored: Any, path: Path) -> dict[str, Any]:
    if not isinstance(stored, dict):
        raise UsageError(f"{path} cannot be understood: it is not a JSON object")
    unknown = stored.keys() - {field.name for field in dataclasses.fields(TextSettings)}
    if unknown:
        raise UsageError(f"{path}: {sorted(unknown)[0]!r} is no setting known here")
    return stored


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError(f"{path}: no such file of BPE codes; copy it there") from error
