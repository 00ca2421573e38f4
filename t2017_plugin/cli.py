"""The command ``t2017``: finds the commands, parses the call, and turns every failure into one line.

Exit status: 0 success, 1 failure, 2 a wrong call, 130 interrupted from the keyboard, 141 the reader of the output
went away, 143 told to terminate.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from types import FrameType, ModuleType

from t2017_plugin import commands
from t2017_plugin.errors import UsageError

DESCRIPTION = "Tools around the Transformer of 2017 for fairseq: each command has its own --help."


def command_names() -> list[str]:
    """Names of the commands that exist, in alphabetical order."""
    modules = pkgutil.iter_modules(commands.__path__)
    return sorted(module.name.replace("_", "-") for module in modules if not module.name.startswith("_"))


def load_command(name: str) -> ModuleType:
    """Import the module of one command."""
    return importlib.import_module(f"{commands.__name__}.{name.replace('-', '_')}")


class ShowVersion(argparse.Action):
    """Print the versions of the plugin and of what it stands on, when asked and not before."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: object) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print versions and exit")

    def __call__(self, parser: argparse.ArgumentParser, *unused: object) -> None:
        """Print one line and exit with status 0."""
        from importlib.metadata import version

        import fairseq
        import torch

        import t2017_plugin

        own = getattr(t2017_plugin, "__version__", None) or version("t2017-plugin")
        python = ".".join(str(part) for part in sys.version_info[:3])
        print(f"t2017 {own} (fairseq {fairseq.__version__}, torch {torch.__version__}, Python {python})")
        parser.exit()


def build_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Build the parser, with only the called command imported when the call names one."""
    parser = argparse.ArgumentParser(prog="t2017", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action=ShowVersion)
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, title="commands")
    names = command_names()
    called = [arguments[0]] if arguments and arguments[0] in names else names
    for name in called:
        module = load_command(name)
        subparser = subparsers.add_parser(
            name,
            help=module.SUMMARY,
            description=getattr(module, "DESCRIPTION", module.SUMMARY),
            epilog=getattr(module, "EPILOG", None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add_arguments(subparser)
        subparser.set_defaults(run=module.run)
    return parser


def one_line(error: BaseException) -> str:
    """What an error says, on one line."""
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
