"""Runs one step of a recipe: its commands are printed and run, once, with a log and a stamp.

    python -m recipes.step text --run runs/demo --needs corpus/train.en --makes text/codes \\
        --log logs/text.log -- COMMAND ... --then COMMAND ...

The step is skipped while its inputs, command and settings are those it was done with and its
outputs are as it left them. Paths are told from the run. What ends in ``/`` is a folder: one that
a step makes is written as FOLDER.partial and named FOLDER when it is whole. One step at a time
works in a run. A script of recipes/ calls this as ``step`` (recipes/common.sh).
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any

from recipes.stamps import Step, say, settings_of
from t2017_plugin.files import write_text

ROOT = Path(__file__).resolve().parents[1]
SECONDS_TO_WAIT = 10
LINES_SHOWN = 15
# Flags that do not change what comes out.
NO_FACTS = ("--workers",)


class Command:
    """A command with its places for input and output, which are files or this program's own."""

    def __init__(
        self, words: Sequence[str], log: Path | None = None, stdin: Path | None = None, stdout: Path | None = None
    ) -> None:
        self.words, self.log, self.stdin, self.stdout = list(words), log, stdin, stdout

    def __str__(self) -> str:
        """Return the command as one would type it."""
        text = "+ " + shlex.join(self.words)
        if self.words[:2] == ["python", "-m"] and self.words[2].startswith("recipes."):
            text = text.replace("+ ", f"+ PYTHONPATH={shlex.quote(str(ROOT))} ", 1)
        text += f" <{shlex.quote(str(self.stdin))}" if self.stdin else ""
        text += f" >{shlex.quote(str(self.stdout))}" if self.stdout else ""
        if self.log:
            text += f" 2>>{shlex.quote(str(self.log))}" if self.stdout else f" >>{shlex.quote(str(self.log))} 2>&1"
        return text

    def start(self) -> subprocess.Popen[bytes]:
        """Print it and start it; its standard output, if it has a file, is not yet under its name."""
        say(str(self))
        out: IO[bytes] | None = None
        error: IO[bytes] | None = None
        if self.log:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            out = error = self.log.open("ab")
        if self.stdout:
            self.stdout.parent.mkdir(parents=True, exist_ok=True)
            out = partial_of(self.stdout).open("wb")
        source = self.stdin.open("rb") if self.stdin else None
        try:
            return subprocess.Popen(self.words, stdin=source, stdout=out, stderr=error, close_fds=False)
        except FileNotFoundError as problem:
            raise SystemExit(f"the program {self.words[0]} is not there; run make venv") from problem
        finally:
            for stream in (source, out, error):
                if stream:
                    stream.close()

    def run(self) -> None:
        """Run it to its end.

        Raises:
            SystemExit: it failed; the end of its log is shown.
        """
        process = self.start()
        status = wait(process)
        if status:
            if self.stdout:
                partial_of(self.stdout).unlink(missing_ok=True)
            self.failed(status)
        if self.stdout:
            os.replace(partial_of(self.stdout), self.stdout)

    def failed(self, status: int) -> None:
        """Show the end of the log and raise SystemExit; without a log the command has said itself what was wrong."""
        if not self.log:
            raise SystemExit(status)
        tail = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES_SHOWN:]
        sys.stderr.write("".join(f"{line}\n" for line in tail))
        raise SystemExit(f"that command ended with status {status}; its whole output is in {self.log}")


def wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process, passing on a request to end; return its status, 128 + the signal's number for a signal."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def partial_of(path: Path) -> Path:
    """Return where a file or folder is written before it is whole."""
    return path.with_name(path.name + ".partial")


def take_the_lock(run: Path) -> IO[str]:
    """Take the run's lock, which lasts while this program or a command it started is alive.

    Raises:
        SystemExit: another step is at work in the run, and was not just ending; or the run cannot be written.
    """
    try:
        run.mkdir(parents=True, exist_ok=True)
        lock = (run / ".lock").open("w")  # a context manager itself, for the caller
    except OSError as error:
        raise SystemExit(f"{run} cannot be written ({error.strerror}); take another folder: --run") from error
    os.set_inheritable(lock.fileno(), True)
    deadline = time.monotonic() + SECONDS_TO_WAIT
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                lock.close()
                raise SystemExit(
                    f"another script, or a command it left running, is at work in {run}; wait for it or stop it"
                ) from None
            time.sleep(0.1)
        else:
            return lock


def write_down_memory(file: Path) -> None:
    """Write the most bytes that a command, or one of its processes, had resident; a larger number stays.

    A training may take several calls, hence the larger one.
    """
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024  # Linux counts in KiB
    if file.exists():
        peak = max(peak, json.loads(file.read_text(encoding="utf-8"))["peak_resident_bytes"])
    write_text(file, json.dumps({"peak_resident_bytes": peak}) + "\n")


def flags_of(args: argparse.Namespace, run: Path, folder: Path, written: list[str]) -> list[str]:
    """Return the flags of the settings file with what --set says; what differs from the script's flags is printed.

    The flags and the settings file are kept beside the logs.

    Raises:
        SystemExit: fairseq refuses a setting, or the script is not what was written from its settings file.
    """
    file, kind = args.settings
    overrides = [f"task.data={run / 'data-bin'}"]
    if kind == "train":
        overrides.append(f"checkpoint.save_dir={folder / 'checkpoints'}")
    asked = ["python", "-m", "t2017_plugin.experiments.command_line", file, kind, "--null"]
    for override in [*overrides, *args.written_from[1:], *args.set]:
        asked += ["--set", override]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip().splitlines()[-1])
    flags = done.stdout.split("\0")[:-1]
    given, wanted = lines_of(written), lines_of(flags)
    if given != wanted:
        more = [line for line in wanted if line not in given]
        changed = {line.split(" ")[0] for line in more}
        less = [line for line in given if line not in wanted and line.split(" ")[0] not in changed]
        if not args.set and args.written_from[:1] == [file]:
            raise SystemExit(
                f"{file} says {' '.join(more) or 'nothing of ' + ' '.join(less)}, which is not what the script has; "
                "change the settings file and run: python -m recipes.write_flags"
            )
        say(f"other flags than the script's: {' '.join(more)}{' without ' + ' '.join(less) if less else ''}")
    folder.joinpath("settings").mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, folder / "settings" / "settings.yaml")
    write_text(folder / "settings" / f"{kind}.flags", "".join(f"{shlex.quote(flag)}\n" for flag in flags))
    return flags


def lines_of(flags: Sequence[str]) -> list[str]:
    """Return flags with their values, a text each."""
    lines: list[str] = []
    for word in flags:
        if word.startswith("--") or not lines:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return lines


def facts_of(args: argparse.Namespace, commands: list[list[str]], run: Path) -> dict[str, Any]:
    """Return what a step's outputs depend on beside its inputs: settings and commands, places of files aside."""

    def portable(word: str) -> str:
        return word.replace(str(run), "RUN").replace(str(ROOT), "CHECKOUT")

    facts: dict[str, Any] = {"settings": sorted([*args.written_from[1:], *args.set]), "settings_file": {}}
    if args.settings:
        facts["settings_file"] = {args.settings[1]: settings_of(Path(args.settings[0]), args.settings[1])}
    lines = [[portable(line) for line in lines_of(words) if line.split(" ")[0] not in NO_FACTS] for words in commands]
    # The order of flags means nothing.
    facts["command"] = [line for words in lines for line in (words[0], *sorted(words[1:]))]
    return facts


def split(argv: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return this program's own arguments and the commands after ``--``, which ``--then`` stands between."""
    if "--" not in argv:
        return list(argv), []
    place = list(argv).index("--")
    commands: list[list[str]] = [[]]
    for word in argv[place + 1 :]:
        if word == "--then":
            commands.append([])
        else:
            commands[-1].append(word)
    return list(argv[:place]), commands


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read this program's own arguments."""
    parser = argparse.ArgumentParser(
        prog="python -m recipes.step", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name")
    parser.add_argument("--run", type=Path, required=True, help="the folder that paths are told from")
    parser.add_argument("--folder", type=Path, help="where the stamp is kept: the folder of an arm; default: the run")
    parser.add_argument("--needs", nargs="+", default=[], metavar="FILE")
    parser.add_argument("--makes", nargs="+", default=[], metavar="FILE")
    parser.add_argument("--log", help="for the first command and fairseq's; its end is shown when one fails")
    parser.add_argument("--stdin", help="what the first command reads")
    parser.add_argument("--stdout", help="what the first command writes; one of the files it makes")
    parser.add_argument("--settings", nargs=2, metavar=("FILE", "train|generate"), help="whose flags come first")
    parser.add_argument(
        "--written-from", nargs="+", default=[], metavar=("FILE", "SECTION.NAME=VALUE"), help="of the script's flags"
    )
    parser.add_argument("--flags", type=int, default=0, help="how many words after the program are the settings' flags")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.NAME=VALUE")
    parser.add_argument("--training", action="store_true", help="resume what was begun, on the devices there are")
    parser.add_argument("--processes", type=int, help="of the training; default: one for each GPU")
    parser.add_argument("--memory", help="JSON file for the most memory that a command had resident, in bytes")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a step unless it is done.

    Raises:
        SystemExit: an input is missing, a setting is refused, or a command failed; one line says what to do.
    """
    own, commands = split(sys.argv[1:] if argv is None else argv)
    args = arguments(own)
    if not commands:
        raise SystemExit("python -m recipes.step: name a command after --")
    run = args.run.resolve()
    folder = run / (args.folder or ".")
    # So that what a training has started is ended with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    made_folders = [run / name.rstrip("/") for name in args.makes if name.endswith("/")]
    step = Step(
        args.name,
        run,
        folder.resolve(),
        inputs=[run / name for name in args.needs],
        outputs=[run / name for name in args.makes],
        facts=facts_of(args, commands, run),
    )

    def work() -> None:
        if args.settings:
            program, *words = commands[0]
            commands[0] = [program, *flags_of(args, run, step.folder, words[: args.flags]), *words[args.flags :]]
        if args.training:
            from recipes.training import train

            train(step, commands[0], args.processes)
        else:
            for made in made_folders:
                shutil.rmtree(partial_of(made), ignore_errors=True)
            if args.log:
                (run / args.log).unlink(missing_ok=True)
            places = [run / name if name else None for name in (args.log, args.stdin, args.stdout)]
            Command(commands[0], *places).run()
            for words in commands[1:]:
                Command(words, places[0] if words[0].startswith("fairseq-") else None).run()
            for made in made_folders:
                shutil.rmtree(made, ignore_errors=True)
                os.replace(partial_of(made), made)
        if args.memory:
            write_down_memory(run / args.memory)

    with take_the_lock(run):
        step.once(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
