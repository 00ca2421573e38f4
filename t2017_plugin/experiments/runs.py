"""Read a run as the recipes leave it: settings, log, translation, scores, versions, hashes of the data.

    RUN/logs/train.log           what fairseq-train logged
    RUN/steps/STEP.json          a stamp per finished step: settings, hashes of its files, its seconds
    RUN/checkpoints/, average.pt what was trained (an average that was made before is avg.pt)
    RUN/decode/generate.LANG     the translation of the test set, raw text
    RUN/bleu.json or scores.json what t2017 score found
    RUN/machine.json             versions and processor
    RUN/memory.json              peak memory of training, where it was measured

A job's folder holds one run or several and, in ``steps/`` and ``corpus/`` of its own, what they
share.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.logs import TrainingLog, read_losses
from t2017_plugin.experiments.settings_files import ASSIGNMENT, flat_settings
from t2017_plugin.files import file_sha256, read_lines

SEED = "common.seed"
# Decoding has its own say in these sections.
OF_DECODING = ("task", "generation", "common_eval")
# Where things are, and what is printed: no difference of the model or its training.
NO_SETTING = re.compile(r"(hydra|defaults)\..*|common\.(user_dir|seed|log_\w+)|task\.data|checkpoint\.save_dir")
AVERAGES = ("average.pt", "avg.pt")
LEVELS_UP = 5


@dataclass(frozen=True)
class Run:
    """A run's folder, each of whose files is read when it is first asked for.

    Attributes are empty, or None, where a file is not there; those that compare runs raise instead.
    """

    folder: Path

    @property
    def name(self) -> str:
        """The folder's name, or the name of the folder above where this one only names the seed."""
        name, above = self.folder.name, self.folder.parent.name
        return above if re.fullmatch(r"seed[-_]?\d+", name) and above else name

    def content(self, file: str) -> dict[str, Any] | None:
        """Return the object in one of the run's JSON files, or None where there is no such file.

        Raises:
            UsageError: the file holds something else.
        """
        return read_json(self.folder / file)

    def stamp(self, step: str) -> dict[str, Any] | None:
        """Return the stamp of a step, or None where it was not finished."""
        return self.content(f"steps/{step}.json")

    def seconds(self, steps: Iterable[str]) -> dict[str, int]:
        """Return the seconds that each of these steps took, of those that were finished."""
        stamps = {step: self.stamp(step) for step in steps}
        return {step: stamp["seconds"] for step, stamp in stamps.items() if stamp and "seconds" in stamp}

    @property
    def steps(self) -> list[str]:
        """The finished steps, by name."""
        return sorted(stamp.stem for stamp in (self.folder / "steps").glob("*.json"))

    @cached_property
    def log(self) -> TrainingLog:
        """The log of the training.

        Raises:
            UsageError: there is none, or it has no updates or no unsmoothed losses in it.
        """
        return read_losses(self.folder / "logs" / "train.log", self.name)

    @cached_property
    def scores(self) -> dict[str, Any]:
        """What ``t2017 score`` found; empty where the run was not scored."""
        return self.content("bleu.json") or self.content("scores.json") or {}

    @cached_property
    def machine(self) -> dict[str, Any]:
        """Versions, processor and devices that it was trained with; empty where they were not recorded."""
        return self.content("machine.json") or {}

    @property
    def memory(self) -> int | None:
        """Peak resident memory of training, in bytes, where it was measured."""
        return (self.content("memory.json") or {}).get("peak_resident_bytes")

    @property
    def differing_lines(self) -> int | None:
        """Lines that ``t2017 translate`` and ``fairseq-generate`` translate differently, where it was counted."""
        agreement = self.content("decode/agreement.json")
        return len(agreement["differing_lines"]) if agreement else None

    @property
    def average(self) -> Path | None:
        """The averaged checkpoint, under its name of now or of before."""
        return next((self.folder / name for name in AVERAGES if (self.folder / name).is_file()), None)

    @property
    def checkpoints(self) -> list[Path]:
        """Every checkpoint file there is, those of the training before an average."""
        places = [self.folder / place for place in ("checkpoints", ".", "../checkpoints")]
        return [path for place in places for path in sorted(place.glob("*.pt"))]

    @cached_property
    def all_settings(self) -> dict[str, Any]:
        """Dotted names and values that training and decoding had, overrides applied.

        Raises:
            UsageError: it was not trained, or its test set not translated.
        """
        settings: dict[str, Any] = {}
        for stamp, command in ((self._trained, "train"), (self._needed("generate"), "generate")):
            overrides = [text for text in stamp["settings"] if ASSIGNMENT.fullmatch(text) and "." in text.split("=")[0]]
            given = flat_settings(stamp["settings_file"][command], overrides)
            if command == "generate":
                given = {key: value for key, value in given.items() if key.split(".")[0] in OF_DECODING}
                settings = {key: value for key, value in settings.items() if key.split(".")[0] != "task"}
            settings |= given
        return settings

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that make a difference: without the seed and without places of files."""
        return {key: value for key, value in self.all_settings.items() if not NO_SETTING.fullmatch(key)}

    @property
    def seed(self) -> int:
        """The seed of the training; fairseq's own, 1, where none was given."""
        return int(self.all_settings.get(SEED, 1))

    @property
    def data(self) -> dict[str, str]:
        """The SHA-256 of each file of the data-bin, by the file's name."""
        return {Path(name).name: sha256 for name, sha256 in self._trained["inputs"].items()}

    @property
    def language(self) -> str:
        """The target language the scores were computed for."""
        return str(self.scores.get("target_lang") or self.all_settings.get("task.target_lang") or "")

    @property
    def reference_hash(self) -> str:
        """The SHA-256 of the reference it was scored on."""
        return self._scored_files[1][1]

    @cached_property
    def reference(self) -> Path | None:
        """The reference, or None when it is no longer where the run was scored."""
        return self._find(*self._scored_files[1])

    @cached_property
    def hypotheses(self) -> list[str]:
        """The translation that was scored, a line for each of the reference.

        Raises:
            UsageError: it was not scored, or the translation is another one now.
        """
        name, sha256 = self._scored_files[0]
        path = self._find(name, sha256)
        if path is None:
            raise UsageError(f"{self.folder}: {Path(name).name} is not the translation that was scored; score it again")
        return read_lines(path)

    @property
    def _trained(self) -> dict[str, Any]:
        return self.stamp("train") or self.stamp("training_began") or self._needed("train")

    def _needed(self, step: str) -> dict[str, Any]:
        if stamp := self.stamp(step):
            return stamp
        raise UsageError(f"{self.folder}: steps/{step}.json is not there; run the recipe's steps for it again")

    @cached_property
    def _scored_files(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Path and hash, as the stamp has them, of the translation and of the reference."""
        files = list(self._needed("score")["inputs"].items())
        translations = [file for file in files if Path(file[0]).parent.name == "decode"]
        references = [file for file in files if file not in translations]
        if len(translations) != 1 or len(references) != 1:
            raise UsageError(
                f"{self.folder}/steps/score.json does not name one translation and one reference; score again"
            )
        return translations[0], references[0]

    def _find(self, name: str, sha256: str) -> Path | None:
        """Return the file of that name, below the run or a folder above it, that has that content."""
        above = list(self.folder.resolve().parents)[:LEVELS_UP]
        places = [self.folder / Path(name).parent.name / Path(name).name, *(parent / name for parent in above)]
        return next((path for path in places if path.is_file() and file_sha256(path) == sha256), None)


def read_run(folder: str | Path) -> Run:
    """Read a run that was trained and scored, and check that its files belong together.

    Raises:
        UsageError: the folder is no run, was not scored, or its translation is not the one that was scored.
    """
    run = Run(Path(folder))
    if not run.folder.is_dir():
        raise UsageError(f"{folder} is no folder; name the folder of a run, such as runs/demo/t2017")
    if not (run.folder / "logs" / "train.log").is_file():
        arms = sorted(path.parent.parent for path in run.folder.glob("*/logs/train.log"))
        hint = f"; it holds {' and '.join(map(str, arms))}, name these" if arms else ""
        raise UsageError(f"{folder} is no run: it has no logs/train.log{hint}")
    if not {"sacrebleu", "paper_bleu"} <= run.scores.keys():
        raise UsageError(f"{folder} has no scores (bleu.json); translate and score it first, as steps 4 and 5 do")
    # Each of these raises where something is missing or is not what was scored.
    _ = run.all_settings, run.data, run.hypotheses, run.log
    return run


def references_of(runs: Sequence[Run], named: Path | None = None) -> list[str]:
    """Return the references that runs of one test set were scored on.

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


def read_json(path: Path) -> dict[str, Any] | None:
    """Read the object in a JSON file; None where there is no such file.

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
