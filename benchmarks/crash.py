"""Kills a training run again and again and checks that it ends as the run that nobody killed, bit for bit.

    python -m benchmarks.crash --data-bin DATA --folder /tmp/crash
    python -m benchmarks.crash --data-bin DATA --folder /tmp/crash --kills 30 --max-update 400

Every second kill hits the middle of writing a checkpoint: half of its bytes written, written but without its name, half
of the copy to checkpoint_last.pt. The others come at a random time, SIGKILL and SIGTERM in turn. After each kill
checkpoint_last.pt, if there is one, must load whole; the next start goes on from it. Float32 on a CPU, dropout on.
"""

import argparse
import contextlib
import io
import itertools
import json
import logging
import os
import random
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from fairseq_cli import train as fairseq_train

from t2017_plugin import files
from t2017_plugin.checkpoints.loading import load_checkpoint, num_updates
from t2017_plugin.fairseq_side import patches

PLUGIN = Path(__file__).resolve().parents[1] / "t2017_plugin"
STAGES = ("half of a checkpoint written", "written, not yet named", "half of the copy to checkpoint_last.pt")


def arguments(data_bin: Path, folder: Path, updates: int, every: int) -> list[str]:
    """Of fairseq-train, for a small model with dropout."""
    small = "--layers 1 --d-model 64 --d-ff 128 --heads 2 --d-k 32 --d-v 32 --dropout 0.1 --max-tokens 300"
    paper = "--optimizer t2017_adam --lr-scheduler t2017_noam --warmup-updates 50 --criterion t2017_label_smoothing"
    saving = f"--max-update {updates} --save-interval-updates {every} --keep-interval-updates 3 --no-epoch-checkpoints"
    quiet = "--cpu --seed 1 --num-workers 0 --disable-validation --log-format simple --log-interval 10"
    words = f"--task t2017_translation --arch t2017_transformer {small} {paper} {saving} {quiet}".split()
    return [str(data_bin), "--user-dir", str(PLUGIN), *words, "--save-dir", str(folder)]


def die() -> None:
    """As by kill -9: nothing is flushed, no handler runs."""
    os.kill(os.getpid(), signal.SIGKILL)


def half_written(content: Any, file: Any) -> None:
    """In place of ``torch.save``: half of the bytes, then the end."""
    whole = io.BytesIO()
    torch.serialization.save(content, whole)
    file.write(whole.getvalue()[: len(whole.getvalue()) // 2])
    file.flush()
    die()


def half_copied(source: Any, file: Any, length: int = 0) -> None:
    """In place of ``shutil.copyfileobj``: half of the bytes, then the end."""
    content = source.read()
    file.write(content[: len(content) // 2])
    file.flush()
    die()


def trap(stage: str, after: int) -> Any:
    """Make a write of a checkpoint the last thing that the process does, after ``after`` that go well."""
    module, name, deadly = {
        STAGES[0]: (patches.torch, "save", half_written),
        STAGES[1]: (files.os, "replace", lambda *unused: die()),
        STAGES[2]: (patches.shutil, "copyfileobj", half_copied),
    }[stage]
    usual, calls = getattr(module, name), itertools.count()

    def write(*arguments: Any, **settings: Any) -> Any:
        return (usual if next(calls) < after else deadly)(*arguments, **settings)

    return mock.patch.object(module, name, write)


def start(call: list[str], log: Path, stage: str = "", after: int = 0) -> int:
    """fairseq-train in a fork of this process, which saves its seconds of imports; returns the process's number."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="| %(name)s | %(message)s", force=True)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.argv = ["fairseq-train", *call]
        with trap(stage, after) if stage else contextlib.nullcontext():
            fairseq_train.cli_main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
        print(end)
    finally:
        sys.stdout.flush()
        os._exit(status)


def same(one: Any, other: Any) -> bool:
    """Bit for bit, however deep."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return torch.equal(one, other) if isinstance(one, torch.Tensor) else bool(one == other)


def updates_on_disk(folder: Path) -> int:
    """Read the updates of checkpoint_last.pt, 0 without one. Raises UsageError when it is not whole."""
    last = folder / "checkpoint_last.pt"
    return num_updates(load_checkpoint(last)) if last.exists() else 0


def wait_for(process: int, last: Path, written: int, seconds: float) -> int | None:
    """Wait until ``last`` was written so many times, then so long; return the process's status if it ended before."""
    seen, deadline = modified(last), time.monotonic() + 600.0
    while time.monotonic() < deadline:
        if written and modified(last) != seen:
            seen, written = modified(last), written - 1
        if not written:
            deadline, written = time.monotonic() + seconds, -1
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.005)
    return None


def modified(path: Path) -> int:
    """When a file was written, 0 for none."""
    return path.stat().st_mtime_ns if path.exists() else 0


def crash_again_and_again(
    call: Callable[[Path], list[str]], folder: Path, kills: int, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Start, kill and look, at most ``kills`` times, then let the run end; return a row for each kill."""
    chooser, rows = random.Random(1), []
    run, log = folder / "killed", folder / "killed.log"
    last = run / "checkpoint_last.pt"
    for number in range(1, kills + 1):
        before = updates_on_disk(run)
        stage = "" if number % 2 else STAGES[number // 2 % 3]
        written, seconds = chooser.randint(0, 2), chooser.uniform(0.0, 0.3)
        name = "SIGKILL" if stage or number % 4 == 1 else "SIGTERM"
        process = start(call(run), log, stage, after=2)
        status = wait_for(process, last, -1 if stage else written, seconds)
        if status is None:
            os.kill(process, getattr(signal, name))
            os.waitpid(process, 0)
        elif os.WIFEXITED(status):
            if os.WEXITSTATUS(status):
                raise SystemExit(f"session {number} failed with status {os.WEXITSTATUS(status)}; see {log}")
            return rows  # it came to its end
        row = {
            "kill": number,
            "signal": name,
            "when": stage or f"{seconds:.2f} s after {written} checkpoints",
            "went on from": before,
            "whole after it": updates_on_disk(run),
            "half-written": ", ".join(sorted(path.name for path in run.glob(".*.part"))) or "-",
        }
        rows.append(row)
        progress = f"{before:5} -> {row['whole after it']:5}"
        say(f"{number:3}  {name}  {row['when']:38} {progress}   {row['half-written']}")
    _, status = os.waitpid(start(call(run), log), 0)
    if status:
        raise SystemExit(f"the last session failed; see {log}")
    return rows


def losses(log: Path) -> dict[int, tuple[str, str]]:
    """Loss and gradient norm of every logged interval, the last one where updates were made again."""
    text = log.read_text(encoding="utf-8")
    found = re.findall(r"train_inner \| .*? loss=([\d.]+).*? num_updates=(\d+), .*?gnorm=([\d.]+)", text)
    return {int(updates): (loss, norm) for loss, updates, norm in found}


def main(argv: list[str] | None = None) -> int:
    """Run, kill, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-bin", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="for the two runs; emptied")
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--max-update", type=int, default=300)
    parser.add_argument("--save-every", type=int, default=10, help="updates (default: 10)")
    parser.add_argument("--output", type=Path, help="write the rows as JSON as well")
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    shutil.rmtree(args.folder, ignore_errors=True)
    args.folder.mkdir(parents=True)

    def call(folder: Path) -> list[str]:
        return arguments(args.data_bin, folder, args.max_update, args.save_every)

    straight, log = args.folder / "straight", args.folder / "straight.log"
    if os.waitpid(start(call(straight), log), 0)[1]:
        raise SystemExit(f"the run without a kill failed; see {log}")
    print(f"without a kill: {args.max_update} updates, a checkpoint every {args.save_every}")
    rows = crash_again_and_again(call, args.folder, args.kills, print)
    states = [load_checkpoint(args.folder / name / "checkpoint_last.pt") for name in ("straight", "killed")]
    verdict = {part: same(states[0][part], states[1][part]) for part in ("model", "last_optimizer_state")}
    verdict["updates"] = num_updates(states[0]) == num_updates(states[1]) == args.max_update
    verdict["place in the data"] = same(*(state["extra_state"]["train_iterator"] for state in states))
    # The log shows what the parameters prove, interval by interval; one that a kill cut short is logged as a part.
    both = [losses(args.folder / f"{name}.log") for name in ("straight", "killed")]
    verdict["last logged loss"] = both[0][args.max_update] == both[1][args.max_update]
    print(f"after {len(rows)} kills, equal bit for bit to the run without one: {verdict}")
    if args.output:
        args.output.write_text(json.dumps({"rows": rows, "equal": verdict}, indent=2) + "\n")
    return 0 if all(verdict.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
