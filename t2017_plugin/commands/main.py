"""The command ``t2017``: finds the commands, parses the call, and turns every failure into one line.

Exit status: 0 success, 1 failure, 2 a wrong call, 130 interrupted from the keyboard, 141 the reader of the output
went away, 143 told to terminate.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import logging
import os
import platform
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType, ModuleType

from t2017_plugin import commands
from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.registration import register
from t2017_plugin.version import __version__

DESCRIPTION = "Tools around the Transformer of 2017 for fairseq: each command has its own --help."


# The commands and what `t2017 --help` says of each; a command is the module of its name.
COMMANDS = {
    "audit": "measure paper, plugin and stock fairseq side by side: a row a difference, with numbers",
    "average": "average the last checkpoints of a run, or named ones (paper, 6.1: the last 5 for base, 20 for big)",
    "batch": "max-tokens and update-freq for about 25,000 source and target tokens per update (paper, 5.1)",
    "compare": "put runs side by side: curves, speed, memory, both BLEUs with paired bootstrap, settings that differ",
    "cost": "operations of a training: by the paper's rule (Table 2) and by counting multiply-adds",
    "import-t2t": "turn a Tensor2Tensor model (TensorFlow checkpoint or .npz) into a fairseq checkpoint",
    "params": "count the parameters of an architecture, by the paper's equations and in the built model",
    "parse": "parse sentences from stdin to bracketed trees on stdout, a line for a line",
    "plot": "draw loss, learning rate, gradient norm and tokens per second of runs into a PNG",
    "score": "print both BLEUs of a translation or a run: sacreBLEU, and the paper's on split tokens",
    "translate": "translate raw text from stdin to raw text on stdout, a line for a line",
    "trees": "linearise, rebuild, score and show constituency trees",
    "user-dir": 'print the path of the plugin: fairseq-train --user-dir "$(t2017 user-dir)"',
}


# These need neither torch nor fairseq.
LIGHT = ("compare", "plot", "trees", "user-dir")


def load_command(name: str) -> ModuleType:
    """Import the module of one command, and with it what it needs.

    Raises:
        UsageError: torch or fairseq cannot be imported.
    """
    if name not in LIGHT:
        register()
    return importlib.import_module(f"{commands.__name__}.{name.replace('-', '_')}")


# What the plugin stands on, by the name of its package.
PARTS = {"fairseq": "fairseq-fixed", "torch": "torch"}


def installed_version(package: str) -> str:
    """Version of a package by its record, without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


class ShowVersion(argparse.Action):
    """Print the versions of the plugin and of what it stands on, when asked and not before."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print versions and exit")

    def __call__(self, parser: argparse.ArgumentParser, *unused: object) -> None:
        """Print one line and exit with status 0."""
        found = {name: installed_version(package) for name, package in PARTS.items()}
        parts = ", ".join(f"{name} {version}" for name, version in found.items())
        print(f"t2017 {__version__} ({parts}, Python {platform.python_version()})")
        parser.exit()


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser, with only the called command imported when the call names one."""
    parser = argparse.ArgumentParser(prog="t2017", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action=ShowVersion)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    called = arguments[0] if arguments else ""
    for name, summary in COMMANDS.items():
        module = load_command(name) if name == called else None
        subparser = subparsers.add_parser(
            name,
            help=summary,
            description=getattr(module, "DESCRIPTION", summary),
            epilog=getattr(module, "EPILOG", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        if module is not None:
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def one_line(error: BaseException) -> str:
    """Return what an error says, on one line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror.lower()}"
    return " ".join(str(error).split()) or type(error).__name__


def _terminate(signal_number: int, frame: FrameType | None) -> None:
    """Leave through the ``finally`` blocks, so that no half-written file stays behind."""
    raise SystemExit(128 + signal_number)


@contextlib.contextmanager
def _as_a_command() -> Iterator[None]:
    """While a command runs: end well on SIGTERM, and show warnings but not what libraries tell about their set-up."""
    logger = logging.getLogger()  # one of fairseq's modules sets it to show everything
    level = logger.level
    logger.setLevel(logging.WARNING)
    handled = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _terminate) if handled else None
    try:
        yield
    finally:
        logger.setLevel(level)
        if handled:
            signal.signal(signal.SIGTERM, before)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = "t2017"
    try:
        args = build_parser(arguments).parse_args(arguments)
        name = f"t2017 {args.command}"
        with _as_a_command():
            status = int(args.run(args))
            sys.stdout.flush()
        return status
    except UsageError as error:
        print(f"{name}: {one_line(error)}", file=sys.stderr)
        return 1
    except SystemExit as end:  # help, a wrong call, or told to terminate
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BrokenPipeError:
        # Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (OSError, MemoryError) as error:
        print(f"{name}: {one_line(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 128 + signal.SIGINT
