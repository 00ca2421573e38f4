"""Steps that are done once: a step is not done again while its inputs, settings and outputs are what they were.

A stamp, ``steps/NAME.json``, has the SHA-256 of every input and output of a step, the command and
settings it was done with, and the seconds it took. Paths below the run are written from there, so
that a run can be moved. This module imports nothing heavy: a step that is done costs no time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from t2017_plugin.files import file_sha256, write_text

# A longer run is the same run, resumed.
LENGTH_OF_RUN = ("optimization", "max_update")
# Decoding reads these sections and training does not.
OF_DECODING = ("generation", "common_eval")
READ_BY_DECODING = (*OF_DECODING, "task", "common", "dataset")


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def settings_of(file: Path, command: str) -> dict[str, Any]:
    """Return what a settings file says to "train" or "generate", comments and layout aside."""
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    if command == "generate":
        return {section: content[section] for section in READ_BY_DECODING if section in content}
    return {name: value for name, value in content.items() if name not in (*OF_DECODING, "hydra")}


def without_length(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a training without how long it is: what must be the same for it to be resumed."""
    section, name = LENGTH_OF_RUN
    flag = "--" + name.replace("_", "-")
    kept = dict(facts, settings=[text for text in facts["settings"] if not text.startswith(f"{section}.{name}=")])
    kept["settings_file"] = {
        command: {
            key: {inner: each for inner, each in value.items() if inner != name} if key == section else value
            for key, value in content.items()
        }
        for command, content in facts["settings_file"].items()
    }
    kept["command"] = [text for text in facts["command"] if not text.startswith(f"{flag} ")]
    return kept


@dataclass
class Step:
    """One step of a run, before or after it is done.

    Attributes:
        name: what the step and its stamp are called.
        run: the folder that paths are told from.
        folder: where the stamp is kept, in ``steps/``: the run, or the folder of one arm of it.
        inputs: the files it reads; a folder stands for the files in it.
        outputs: the files it makes, likewise.
        facts: what else its outputs depend on.
    """

    name: str
    run: Path
    folder: Path
    inputs: list[Path] = field(default_factory=list)
    outputs: list[Path] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def stamp(self) -> Path:
        """The file that says that it was done."""
        return self.folder / "steps" / f"{self.name}.json"

    def hashes(self, paths: Iterable[Path]) -> dict[str, str]:
        """Return the hash of each file by its path, from the run where it lies below. Logs in a folder do not count.

        Raises:
            FileNotFoundError: a file is not there.
        """
        result = {}
        for path in paths:
            if not path.exists():
                raise FileNotFoundError(2, "missing", str(path))
            inside = sorted(path.glob("[!.]*")) if path.is_dir() else [path]
            for file in inside:
                if file.is_file() and (file == path or file.suffix != ".log"):
                    relative = file.relative_to(self.run) if file.is_relative_to(self.run) else file
                    result[str(relative)] = file_sha256(file)
        return result

    def current(self) -> dict[str, Any]:
        """Return what decides the outputs, as it is now.

        Raises:
            SystemExit: an input is not there.
        """
        try:
            return {"inputs": self.hashes(self.inputs), **self.facts}
        except FileNotFoundError as error:
            raise SystemExit(
                f"{error.filename} is not there, though an earlier step should have made it; run the steps in order"
            ) from error

    def reason(self) -> str | None:
        """Return why the step must be done, or None when it is done.

        Raises:
            SystemExit: an input is not there.
        """
        current = self.current()
        if not self.stamp.exists():
            return "to be done"
        stored = json.loads(self.stamp.read_text(encoding="utf-8"))
        for kind, now in current.items():
            if stored.get(kind) != now:
                return f"{kind.replace('_', ' ')} changed, to be done again"
        made = [self.run / name for name in stored["outputs"]]
        try:
            if self.hashes(made) != stored["outputs"]:
                return "outputs are not as the step left them, to be done again"
            self.hashes(self.outputs)
        except FileNotFoundError as error:
            return f"{error.filename} is gone, to be done again"
        return None

    def once(self, work: Callable[[], None]) -> bool:
        """Do the step unless it is done, and return whether it was.

        Raises:
            SystemExit: an input is not there, or the work did not make an output.
        """
        reason = self.reason()
        if reason is None:
            say(f"{self.name}: done before, nothing has changed")
            return False
        say(f"{self.name}: {reason}")
        began = time.monotonic()
        work()
        self.finish(round(time.monotonic() - began))
        return True

    def finish(self, seconds: int) -> None:
        """Write the stamp.

        Raises:
            SystemExit: an input or an output is not there.
        """
        try:
            outputs = self.hashes(self.outputs)
        except FileNotFoundError as error:
            raise SystemExit(f"{self.name}: {error.filename} was not made") from error
        content = {**self.current(), "outputs": outputs, "seconds": seconds}
        write_text(self.stamp, json.dumps(content, indent=2) + "\n")
        say(f"{self.name}: done in {seconds} s")

    def begins_as_before(self) -> bool | None:
        """Say whether an unfinished training began with the same facts, its length aside; None: it begins now."""
        record = self.folder / "steps" / "training_began.json"
        now = without_length(self.current())
        if record.exists():
            return bool(json.loads(record.read_text(encoding="utf-8")) == now)
        write_text(record, json.dumps(now, indent=2) + "\n")
        return None
