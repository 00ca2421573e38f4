"""Read a settings file in fairseq's Hydra layout: sections such as ``model``, and a setting on each line.

    model:
      _name: t2017_transformer
      d_model: 128

``???`` marks a setting that the caller must give, ``${oc.env:NAME}`` takes an environment variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from t2017_plugin.errors import UsageError

LEFT_OPEN = "???"
ASSIGNMENT = re.compile(r"([\w.]+)=(.*)", re.DOTALL)


@dataclass(frozen=True)
class Setting:
    """One setting: its section, its name (dotted where sections nest), its value and where it was given."""

    section: str
    name: str
    value: Any
    where: str

    @property
    def key(self) -> str:
        """Section and name, as one writes it after ``--set``."""
        return f"{self.section}.{self.name}"


def read_settings(path: Path, overrides: Sequence[str] = ()) -> list[Setting]:
    """Read a settings file and put ``section.name=value`` overrides in place of, or after, what it says.

    Raises:
        UsageError: the file is missing or no YAML, a key stands twice or holds no section, an override is malformed.
    """
    tree, lines = _load(path)
    where = {key: f"{path}, line {line}" for key, line in lines.items()}
    where |= {key: f"--set {override}" for key, override in _override(tree, overrides)}
    try:
        content = OmegaConf.to_container(tree, resolve=True)
    except OmegaConfBaseException as error:
        raise UsageError(f"{path}: {' '.join(str(error).split())}") from error
    assert isinstance(content, dict)
    settings = []
    for section, values in content.items():
        if not isinstance(values, dict):
            raise UsageError(f"{where.get(section, path)}: {section} is no section; indent settings under a section")
        for name, value in _flat(values):
            settings.append(Setting(section, name, value, where.get(f"{section}.{name}", str(path))))
    return settings


def flat_settings(content: dict[str, Any], overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return dotted names and values of settings that were read before, with overrides, environment variables as named.

    Raises:
        UsageError: an override is malformed.
    """
    tree = OmegaConf.create(content)
    _override(tree, overrides)
    plain = OmegaConf.to_container(tree, resolve=False)
    assert isinstance(plain, dict)
    return dict(_flat(plain))


def _override(tree: Any, overrides: Sequence[str]) -> list[tuple[str, str]]:
    """Put overrides into a tree; each is returned with its dotted name."""
    done = []
    for override in overrides:
        if not (match := ASSIGNMENT.fullmatch(override)) or "." not in match[1]:
            raise UsageError(f"--set {override}: write section.name=value, for instance optimization.max_update=100")
        OmegaConf.update(tree, match[1], _scalar(match[2]), force_add=True)
        done.append((match[1], override))
    return done


def _load(path: Path) -> tuple[Any, dict[str, int]]:
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        lines = dict(_lines(node, path))
        return OmegaConf.create(text), lines
    except OSError as error:
        raise UsageError(f"{path}: {(error.strerror or str(error)).lower()}; name a file of configs/") from error
    except (yaml.YAMLError, OmegaConfBaseException, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not readable as YAML: {' '.join(str(error).split())}") from error


def _lines(node: Any, path: Path, prefix: str = "") -> Iterator[tuple[str, int]]:
    """Yield every dotted key with the line (from 1) it stands on."""
    if not isinstance(node, yaml.MappingNode):
        raise UsageError(f"{path}: sections with settings are expected, such as 'model:' and under it 'd_model: 512'")
    seen = set()
    for key, value in node.value:
        name, line = prefix + str(key.value), key.start_mark.line + 1
        if name in seen:
            raise UsageError(f"{path}, line {line}: {name} stands twice; keep one")
        seen.add(name)
        yield name, line
        if isinstance(value, yaml.MappingNode):
            yield from _lines(value, path, f"{name}.")


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _scalar(text: str) -> Any:
    """Return a number, truth value, list of numbers or null where the text is one, else the text, such as a path."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    if isinstance(value, list) and all(isinstance(item, int | float) for item in value):
        return value
    return value if value is None and text in ("null", "~") or isinstance(value, bool | int | float) else text
