"""A run as the recipes leave it, read back: settings, log, translation, scores, versions, hashes of the data.

RUN/logs/train.log                what fairseq-train logged
RUN/steps/{train,generate,score}.json   stamps: the settings used, hashes of data-bin, translation and reference
RUN/decode/generate.LANG          the translation of the test set, raw text
RUN/bleu.json or scores.json      what t2017 score says of it
RUN/machine.json, memory.json     where there: versions and processor, peak memory of training
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.curves import Curves, read_curves
from t2017_plugin.experiments.settings_file import ASSIGNMENT, flat_settings
from t2017_plugin.files import read_lines

SEED = "common.seed"
# Decoding has its own say in these sections.
OF_DECODING = ("task", "generation", "common_eval")
# Where things are, and what is printed: no difference of the model or its training.
NO_SETTING = re.compile(r"(hydra|defaults)\..*|common\.(user_dir|seed|log_\w+)|task\.data|checkpoint\.save_dir")
LEVELS_UP = 5


@dataclass(frozen=True)
class Run:
    """One trained and scored run.

    ``settings`` are dotted names and values without the seed; ``data`` the SHA-256 of each file of the data-bin;
    ``reference`` is None when the file is no longer where the run was scored; ``memory`` is in bytes.
    """

    folder: Path
    seed: int
    settings: dict[str, Any]
    data: dict[str, str]
    reference: Path | None
    reference_hash: str
    hypotheses: list[str]
    scores: dict[str, Any]
    curves: Curves
    machine: dict[str, Any]
    memory: int | None

    @property
    def language(self) -> str:
        """The target language the scores were computed for."""
        return str(self.scores.get("target_lang") or self.settings.get("task.target_lang") or "")

    @property
    def name(self) -> str:
        """The folder's name, or the name of the folder above where this one only tells the seed."""
        name, above = self.folder.name, self.folder.parent.name
        return above if re.fullmatch(r"seed[-_]?\d+", name) and above else name


def read_run(folder: str | Path) -> Run:
    """Read a run.

    Raises:
        UsageError: the folder is no run, was not scored, or its translation is not the one that was scored.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder; name the folder of a run, such as runs/demo/t2017")
    if not (folder / "logs" / "train.log").is_file():
        arms = sorted(path.parent.parent for path in folder.glob("*/logs/train.log"))
        hint = f"; it holds {' and '.join(map(str, arms))}, name these" if arms else ""
        raise UsageError(f"{folder} is no run: it has no logs/train.log{hint}")
    scores = _json(folder / "bleu.json") or _json(folder / "scores.json")
    if not scores or not {"sacrebleu", "paper_bleu"} <= scores.keys():
        raise UsageError(f"{folder} has no scores (bleu.json); translate and score it first, as steps 4 and 5 do")
    trained = _json(folder / "steps" / "train.json") or _json(folder / "steps" / "training_began.json")
    generated, scored = (_json(folder / "steps" / f"{step}.json") for step in ("generate", "score"))
    for step, stamp in (("train", trained), ("generate", generated), ("score", scored)):
        if not stamp:
            raise UsageError(f"{folder}: steps/{step}.json is not there; run the recipe's steps for it again")
    assert trained and generated and scored
    settings = settings_of(trained, generated)
    hypothesis, reference = _scored_files(folder, scored)
    hypothesis_path = _find(folder, *hypothesis)
    if hypothesis_path is None:
        raise UsageError(f"{folder}: {Path(hypothesis[0]).name} is not the translation that was scored; score it again")
    machine = _json(folder / "machine.json") or {}
    seed = int(settings.pop(SEED, 1))  # fairseq's own where none was given
    return Run(
        folder,
        seed,
        {key: value for key, value in settings.items() if not NO_SETTING.fullmatch(key)},
        {Path(name).name: sha256 for name, sha256 in trained["inputs"].items()},
        _find(folder, *reference),
        reference[1],
        read_lines(hypothesis_path),
        scores,
        read_curves(folder / "logs" / "train.log"),
        machine,
        (_json(folder / "memory.json") or {}).get("peak_resident_bytes"),
    )


def settings_of(trained: dict[str, Any], generated: dict[str, Any]) -> dict[str, Any]:
    """Dotted names and values that the stamps of training and decoding tell, overrides applied."""
    settings: dict[str, Any] = {}
    for stamp, command in ((trained, "train"), (generated, "generate")):
        overrides = [text for text in stamp["settings"] if ASSIGNMENT.fullmatch(text) and "." in text.split("=")[0]]
        told = flat_settings(stamp["settings_file"][command], overrides)
        if command == "generate":
            told = {key: value for key, value in told.items() if key.split(".")[0] in OF_DECODING}
            settings = {key: value for key, value in settings.items() if key.split(".")[0] != "task"}
        settings |= told
    return settings


def file_sha256(path: Path) -> str:
    """A file's SHA-256."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _scored_files(folder: Path, scored: dict[str, Any]) -> tuple[tuple[str, str], tuple[str, str]]:
    """Path and hash, as the stamp tells them, of the translation and of the reference."""
    files = list(scored["inputs"].items())
    translations = [file for file in files if Path(file[0]).parent.name == "decode"]
    references = [file for file in files if file not in translations]
    if len(translations) != 1 or len(references) != 1:
        raise UsageError(f"{folder}/steps/score.json does not tell of one translation and one reference; score again")
    return translations[0], references[0]


def _find(folder: Path, name: str, sha256: str) -> Path | None:
    """The file of that name, below the run or a folder above it, that has that content."""
    above = folder.resolve().parents
    places = [folder / Path(name).parent.name / Path(name).name, *(parent / name for parent in list(above)[:LEVELS_UP])]
    for path in places:
        if path.is_file() and file_sha256(path) == sha256:
            return path
    return None


def _json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file, or None where there is no such file.

    Raises:
        UsageError: the file holds something else.
    """
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path} is not readable as JSON ({error}); run the step that writes it again") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds no JSON object; run the step that writes it again")
    return content


def references_of(runs: Sequence[Run], named: Path | None = None) -> list[str]:
    """The references that runs of one test set were scored on.

    Raises:
        UsageError: they are no longer there, or the file named is another one.
    """
    first = runs[0]
    if named is not None:
        lines = read_lines(named)
        if file_sha256(named) != first.reference_hash:
            raise UsageError(f"{named} is not the reference that {first.folder} was scored on (another SHA-256)")
        return lines
    for run in runs:
        if run.reference is not None:
            return read_lines(run.reference)
    raise UsageError(f"{first.folder}: the reference it was scored on is not there any more; name it: --reference FILE")
