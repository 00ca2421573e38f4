"""Turn a settings file into the flags of fairseq-train or fairseq-generate: settings are written once, in configs/.

    python -m t2017_plugin.experiments.command_line configs/demo.yaml train --set task.data=DATA_BIN

fairseq's own parser is the judge: it is built for the model, task, loss, schedule and optimiser
that the file names, every setting must be one of its flags, and it must accept every value. Hydra,
given the same file, needs no flags.
"""

from __future__ import annotations

import argparse
import difflib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from t2017_plugin.errors import UsageError
from t2017_plugin.experiments.settings_files import LEFT_OPEN, Setting, read_settings

# The sections that choose one of several registered things by _name, and the flag that says which.
CHOICES = {
    "task": "--task",
    "model": "--arch",
    "criterion": "--criterion",
    "optimizer": "--optimizer",
    "lr_scheduler": "--lr-scheduler",
    "tokenizer": "--tokenizer",
    "bpe": "--bpe",
    "scoring": "--scoring",
}
# In the order in which the flags are grouped: what is trained, how, on what, and then where.
SECTIONS = {
    "train": (
        "task model criterion optimizer lr_scheduler optimization dataset checkpoint distributed_training common ema "
        "tokenizer bpe scoring"
    ).split(),
    # Not distributed_training: fairseq-generate would translate one part of the sentences for each of its processes.
    "generate": "task generation dataset common common_eval tokenizer bpe scoring".split(),
}
# What training alone has a use for, in sections that both commands read.
OF_DATASET_FOR_GENERATION = ("gen_subset", "max_tokens", "batch_size", "num_workers", "required_batch_size_multiple")
OF_NO_COMMAND = ("hydra", "defaults")


def command_line(path: Path, command: str, overrides: Sequence[str] = ()) -> list[str]:
    """Return the arguments of fairseq-train ("train") or fairseq-generate ("generate") for a settings file.

    Raises:
        UsageError: fairseq's parser does not know a setting or refuses its value, or ``task.data`` is left open.
    """
    return [flag for _, flags in grouped_flags(path, command, overrides) for flag in flags]


def grouped_flags(path: Path, command: str, overrides: Sequence[str] = ()) -> list[tuple[str, list[str]]]:
    """Return the same arguments by section of the settings file: each section that has some, with its arguments.

    The first group is ``task``, and its first argument is the folder of the data. A flag and its
    value are two arguments; ``in_lines`` puts them on one line.

    Raises:
        UsageError: as ``command_line`` does.
    """
    settings = read_settings(path, overrides)
    known = {*SECTIONS["train"], *SECTIONS["generate"], *OF_NO_COMMAND}
    for setting in settings:
        if setting.section not in known:
            hint = _suggestion(setting.section, sorted(known))
            raise UsageError(f"{setting.where}: fairseq has no section {setting.section!r}{hint}")
    settings = [setting for setting in settings if _is_for(setting, command)]
    data = [setting.value for setting in settings if setting.key == "task.data"]
    if not data or data[0] in (None, LEFT_OPEN):
        raise UsageError(f"{path}: task.data is left open; say where the binarised data is: --set task.data=FOLDER")
    groups = {section: _choice(settings, section, str(path)) for section in SECTIONS[command]}
    groups["task"].insert(0, str(data[0]))
    parser = _fairseq_parser(command, [flag for flags in groups.values() for flag in flags])
    given = [setting for setting in settings if setting.name != "_name" and setting.key != "task.data"]
    if command == "train" and groups["model"] and (architecture := _architecture(given, groups["model"][1])):
        groups["model"] = [CHOICES["model"], architecture]
        given = [setting for setting in given if setting.section != "model"]
    for setting in given:
        groups[setting.section] += _flag(parser, setting)
    try:
        parser.parse_args([flag for flags in groups.values() for flag in flags])
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    return [(section, flags) for section, flags in groups.items() if flags]


def in_lines(flags: Sequence[str]) -> list[str]:
    """Return arguments quoted for a shell, a flag and its value on one line."""
    lines: list[str] = []
    for flag in flags:
        if flag.startswith("--") or not lines or " " in lines[-1]:
            lines.append(shlex.quote(flag))
        else:
            lines[-1] += f" {shlex.quote(flag)}"
    return lines


def _architecture(settings: list[Setting], model: str) -> str | None:
    """Name the architecture whose settings are exactly those of section model, if there is one.

    Hydra does not apply architectures, so the file lists the settings; a command line is clearer
    with the name.
    """
    from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_INV_REGISTRY

    wanted = {setting.name: setting.value for setting in settings if setting.section == "model"}
    for name in ARCH_MODEL_INV_REGISTRY.get(model, []):
        preset = argparse.Namespace()
        ARCH_CONFIG_REGISTRY[name](preset)
        if {key: str(value) for key, value in vars(preset).items()} == {k: str(v) for k, v in wanted.items()}:
            return name
    return None


def _is_for(setting: Setting, command: str) -> bool:
    if command == "generate" and setting.section == "dataset":
        return setting.name in OF_DATASET_FOR_GENERATION
    return setting.section in SECTIONS[command]


def _choice(settings: list[Setting], section: str, path: str) -> list[str]:
    of_section = [setting for setting in settings if setting.section == section]
    names = [str(setting.value) for setting in of_section if setting.name == "_name"]
    if section in CHOICES and of_section and not names:
        raise UsageError(f"{path}: section {section} has no _name, which says what its settings are of")
    return [CHOICES[section], names[0]] if names else []


def _fairseq_parser(command: str, choices: list[str]) -> argparse.ArgumentParser:
    """Return fairseq's parser with the flags of the chosen model, task and so on added."""
    # Here, not above: the recipes import this module to list their runs too, and fairseq takes seconds.
    from t2017_plugin.fairseq_side.registration import register

    register()
    from fairseq import options

    parser = options.get_training_parser() if command == "train" else options.get_generation_parser()
    parser.error = _refuse
    options.parse_args_and_arch(parser, choices)
    return parser


def _refuse(message: str) -> NoReturn:
    raise UsageError(f"fairseq's parser says: {message}")


def _flag(parser: argparse.ArgumentParser, setting: Setting) -> list[str]:
    actions = {option: action for action in parser._actions for option in action.option_strings}
    flag = "--" + setting.name.replace(".", "-").replace("_", "-")
    action = actions.get(flag) or actions.get("--" + setting.name)
    if action is None:
        names = [option[2:].replace("-", "_") for option in actions if option.startswith("--")]
        hint = _suggestion(setting.name, names)
        raise UsageError(f"{setting.where}: fairseq has no setting {setting.key}, no flag {flag}{hint}")
    if setting.value == LEFT_OPEN:
        raise UsageError(f"{setting.where}: {setting.key} is left open; give it: --set {setting.key}=VALUE")
    if setting.key == "common.user_dir" and setting.value:
        # The package that was asked, wherever Hydra would look from.
        return [flag, str(Path(__file__).resolve().parent.parent)]
    if action.nargs == 0:
        if not isinstance(setting.value, bool):
            raise UsageError(f"{setting.where}: {setting.key} is {setting.value!r}; it can be true or false")
        return [flag] if setting.value is action.const else []
    if setting.value is None:
        return []
    if isinstance(setting.value, list):
        return [flag, ",".join(str(item) for item in setting.value)]
    value = str(setting.value)
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def _suggestion(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the flags, quoted for a shell, a flag and its value on a line; with --null as they are, ended by NUL."""
    parser = argparse.ArgumentParser(
        prog="python -m t2017_plugin.experiments.command_line",
        description="Print the flags of fairseq-train or fairseq-generate that a settings file stands for.",
    )
    parser.add_argument("file", type=Path, help="a file of configs/")
    parser.add_argument("command", choices=sorted(SECTIONS))
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.NAME=VALUE", help="another value")
    parser.add_argument("--null", action="store_true", help="end each argument with NUL, for mapfile -d ''")
    args = parser.parse_args(argv)
    flags = command_line(args.file, args.command, args.set)
    if args.null:
        sys.stdout.write("".join(f"{flag}\0" for flag in flags))
    else:
        print(" \\\n".join(in_lines(flags)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
