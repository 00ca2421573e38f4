"""The training step of a recipe: fairseq-train on the devices there are, resumed after an interruption.

fairseq-train itself is called with the flags of the script. What the devices change is appended and
printed: the share of the batch that each process gets, float32 where there is no GPU, and how
several processes on CPUs find each other.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from recipes.stamps import Step, say
from recipes.step import ROOT, Command, lines_of, wait

UPDATE_CHECKPOINT = re.compile(r"checkpoint_\d+_(\d+)\.pt")


def train(step: Step, command: Sequence[str], processes: int | None) -> None:
    """Run fairseq-train to its end, from the newest whole checkpoint if it began with the same data and settings.

    Raises:
        SystemExit: the training failed, or there are fewer GPUs than processes asked for.
    """
    checkpoints, log = step.folder / "checkpoints", step.folder / "logs" / "train.log"
    if checkpoints.exists() and step.begins_as_before() is not True:
        aside = checkpoints.with_name(f"{checkpoints.name}.{time.strftime('%Y%m%d-%H%M%S')}")
        say(f"the data or settings are not those that training began with; its checkpoints are now in {aside}")
        os.replace(checkpoints, aside)
        (step.folder / "steps" / "training_began.json").unlink()
    if not checkpoints.exists() and log.exists():
        os.replace(log, log.with_name(log.name + ".before"))
    checkpoints.mkdir(parents=True, exist_ok=True)
    step.begins_as_before()
    if resumed := newest_whole_checkpoint(checkpoints):
        say(f"training resumes from {resumed}")
    gpus = int(output_of("recipes.common.machine", "--output", step.folder / "machine.json", "--root", ROOT))
    processes = processes or max(gpus, 1)
    say(f"training with {processes} process(es) on {f'{gpus} GPU(s)' if gpus else 'CPUs'}; the log is {log}")
    if gpus and processes > gpus:
        raise SystemExit(f"--processes {processes}, but there are {gpus} GPUs")
    words = [*command, *share_of_the_batch(command, processes)]
    if not gpus and "--fp16" in words:
        say("no GPU: training in float32, without --fp16")
        words.remove("--fp16")
    show_the_batch(words, processes, step.folder / "logs" / "batch.txt")
    if gpus:
        # fairseq starts the processes itself.
        Command([*words, "--distributed-world-size", str(processes)], log).run()
    elif processes == 1:
        Command(words, log).run()
    else:
        train_on_cpus(words, processes, log)


def is_whole(checkpoint: Path) -> bool:
    """Tell whether a checkpoint is a complete archive whose parts have the checksums they were written with."""
    try:
        with zipfile.ZipFile(checkpoint) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def newest_whole_checkpoint(folder: Path) -> str | None:
    """Make ``checkpoint_last.pt`` whole and return the checkpoint it is a copy of; None where training begins.

    A checkpoint that another program wrote, or a disk that was full, may have left half a file, on
    which fairseq would stop for good: the newest whole one takes its place.
    """

    def updates(checkpoint: Path) -> int:
        match = UPDATE_CHECKPOINT.fullmatch(checkpoint.name)
        return int(match[1]) if match else -1

    last = folder / "checkpoint_last.pt"
    for leftover in folder.glob("*.pt.tmp"):
        leftover.unlink()
    if is_whole(last):
        return last.name
    last.unlink(missing_ok=True)
    for checkpoint in sorted(folder.glob("checkpoint_*_*.pt"), key=updates, reverse=True):
        if is_whole(checkpoint):
            partial = last.with_name(f".{last.name}.partial")
            shutil.copyfile(checkpoint, partial)
            os.replace(partial, last)
            return checkpoint.name
        checkpoint.unlink()
    return None


def value_of(flag: str, command: Sequence[str], default: str = "") -> str:
    """Return the value of a flag, the last one where it stands twice."""
    values = [line.partition(" ")[2] for line in lines_of(command) if line.split(" ")[0] == flag]
    return values[-1] if values else default


def share_of_the_batch(command: Sequence[str], processes: int) -> list[str]:
    """Return the flags that keep the tokens per update when other processes share them than the settings name.

    Settings are written for ``--distributed-world-size`` processes, or one. Each process takes as
    many batches per update as are needed, smaller ones where the number does not divide.
    """
    written_for = int(value_of("--distributed-world-size", command, "1"))
    if processes == written_for:
        return []
    batches = written_for * int(value_of("--update-freq", command, "1"))
    each = -(-batches // processes)
    share = ["--update-freq", str(each)]
    if batches % processes:
        tokens = int(value_of("--max-tokens", command))
        share += ["--max-tokens", str(batches * tokens // (processes * each))]
    say(f"for the same tokens per update as {written_for} process(es) have, each of {processes} gets {' '.join(share)}")
    return [*share, "--distributed-world-size", str(processes)]


def show_the_batch(command: Sequence[str], processes: int, file: Path) -> None:
    """Print what an update will hold, counted over the data as fairseq makes its batches; it is kept in a file."""
    words = ["t2017", "batch", "--gpus", str(processes)]
    for flag, default in {"--max-tokens": "", "--update-freq": "1", "--required-batch-size-multiple": "8"}.items():
        words += [flag, value_of(flag, command, default)]
    source, target = (value_of(flag, command) for flag in ("--source-lang", "--target-lang"))
    words += ["--data-bin", command[1], "-s", source, "-t", target]
    Command(words, stdout=file).run()
    sys.stdout.write(file.read_text(encoding="utf-8"))
    sys.stdout.flush()


def output_of(module: str, *arguments: object) -> str:
    """Return what one of the recipes' modules prints; a process of its own, as it may import torch.

    Raises:
        SystemExit: it failed.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(1)
    return done.stdout.strip()


def train_on_cpus(command: Sequence[str], processes: int, log: Path) -> None:
    """Train with several processes on CPUs; when one fails the others are ended.

    fairseq takes the number of processes on a machine from its GPUs, so here each process is given
    its rank; and it gives torch's own gradient exchange a GPU, so fairseq's is taken.

    Raises:
        SystemExit: a process failed.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    words = [*command, "--cpu", "--distributed-world-size", str(processes), "--distributed-init-method", address]
    words += ["--distributed-backend", "gloo", "--distributed-no-spawn", "--ddp-backend", "legacy_ddp"]
    logs = [log, *(log.with_name(f"{log.name}.rank{rank}") for rank in range(1, processes))]
    commands = [Command([*words, "--distributed-rank", str(rank)], own) for rank, own in enumerate(logs)]
    started = [each.start() for each in commands]
    try:
        while any(process.poll() is None for process in started) and not any(process.poll() for process in started):
            time.sleep(0.2)
        for each, process in zip(commands, started, strict=True):
            if process.poll():
                each.failed(process.returncode)
    finally:
        for process in started:
            if process.poll() is None:
                process.terminate()
            wait(process)
