"""How the text of a data-bin was made: ``text_settings.json``, which lies beside the binarised data.

    {"source_lang": "en", "target_lang": "de", "tokenizer": "moses", "normalise_punctuation": false,
     "aggressive_dash_splits": false, "bpe": "subword_nmt", "bpe_codes": "codes", "bpe_codes_sha256": "..."}

``tokenizer`` and ``bpe`` may be "none" for text that is already tokens. The path of the codes is relative to the file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2017_plugin.errors import UsageError
from t2017_plugin.files import whole_or_nothing

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
