"""fairseq's own programs on a task of ten words: translate a sentence of digits into the same digits backwards."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import logging
import os
import random
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from fairseq import checkpoint_utils
from sacremoses import MosesTokenizer
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "t2017_plugin"
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
# Neither the test set nor any other is a multiple of 8, fairseq's default for what a last batch must be.
SENTENCES = {"train": 300, "valid": 19, "test": 21}

TINY = (
    *("--arch", "t2017_transformer", "--layers", "2", "--d-model", "32", "--d-ff", "64"),
    *("--heads", "4", "--d-k", "8", "--d-v", "8"),
)
TASK = ("--user-dir", str(PLUGIN), "--task", "t2017_translation")
PAPER = (
    *("--optimizer", "t2017_adam", "--lr-scheduler", "t2017_noam", "--warmup-updates", "30", "--noam-scale", "0.2"),
    *("--criterion", "t2017_label_smoothing"),
)
QUIET = ("--cpu", "--seed", "3", "--num-workers", "0", "--log-format", "json", "--log-interval", "1")


@dataclass(frozen=True)
class Outcome:
    """What a program left: exit status, what it printed, its log, its error output."""

    status: int
    output: str
    log: str
    error: str

    def logged(self, name: str) -> list[dict[str, Any]]:
        """Read the entries of fairseq's JSON log under ``train_inner``, ``train`` or ``valid``, numbers as numbers."""
        # Two layouts: who configures Python's logging first decides.
        lines = re.findall(rf"(?:\| {name} \| |:{name}:)(\{{.*\}})", self.log)
        return [{key: as_number(value) for key, value in json.loads(line).items()} for line in lines]

    def lines(self, letter: str) -> dict[int, str]:
        """Read what fairseq-generate prints under S, T, H, D or P, by the sentence's number (of several, the last)."""
        found = re.findall(rf"^{letter}-(\d+)\t(.*)$", self.output, flags=re.MULTILINE)
        return {int(number): text for number, text in found}

    def texts(self, letter: str) -> dict[int, str]:
        """Read H and D lines in the same way, without the score in front."""
        return {number: line.split("\t", 1)[1] for number, line in self.lines(letter).items()}

    def scores(self) -> dict[int, float]:
        """Scores of the H lines, in bits."""
        return {number: float(line.split("\t")[0]) for number, line in self.lines("H").items()}


def as_number(value: Any) -> Any:
    """fairseq logs numbers as text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return value


def run_here(program: str, *arguments: object, stdin: str = "") -> Outcome:
    """Call ``fairseq-<program>`` in this process, which saves its five seconds of imports.

    A refusal (``SystemExit``) becomes a status and its line; any other exception is an error of the test.
    """
    module = importlib.import_module(f"fairseq_cli.{program}")
    # fairseq remembers the best loss on this function, across runs.
    vars(checkpoint_utils.save_checkpoint).pop("best", None)
    output, log, error = io.StringIO(), io.StringIO(), io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(logging.Formatter("%(levelname)s | %(name)s | %(message)s"))
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    status = 0
    try:
        with (
            mock.patch.object(sys, "argv", [f"fairseq-{program}", *map(str, arguments)]),
            mock.patch.object(sys, "stdin", io.StringIO(stdin)),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(error),
        ):
            module.cli_main()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
        if status == 1:
            error.write(str(stop.code))
    finally:
        # Some of fairseq's modules add one of their own.
        root.handlers[:] = handlers
        root.setLevel(level)
    return Outcome(status, output.getvalue(), log.getvalue(), error.getvalue())


def environment(**variables: str) -> dict[str, str]:
    """Return that of this process without what a launcher or the tests put there: a user-dir is found by its path."""
    drop = ("PYTHONPATH", "WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    kept = {name: value for name, value in os.environ.items() if name not in drop and not name.startswith("SLURM_")}
    return {**kept, "OMP_NUM_THREADS": "1", **variables}


def start(
    call: Sequence[object], cwd: Path | None = None, variables: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a program of this Python's environment (``fairseq-train``, ``torchrun``, ``python``)."""
    program, *arguments = map(str, call)
    path = Path(sys.executable).with_name(program)
    return subprocess.Popen(
        [str(path), *arguments],
        cwd=cwd,
        env=environment(**(variables or {})),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str], seconds: float = 600.0) -> Outcome:
    """Wait for the end; a program that hangs is ended and fails the test."""
    try:
        output, error = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    # fairseq-train logs on stdout, other programs on stderr.
    return Outcome(process.returncode, output, output + error, error)


def finish_all(processes: Sequence[subprocess.Popen[str]], seconds: float = 600.0) -> list[Outcome]:
    """Wait for all of them; where one hangs, none is left behind."""
    try:
        return [finish(process, seconds) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


def run(*call: object, cwd: Path | None = None, variables: Mapping[str, str] | None = None) -> Outcome:
    """Run a program in a process of its own, to its end."""
    return finish(start(call, cwd, variables))


def training(data: Path, save_dir: Path, *more: object, paper: Sequence[str] = PAPER) -> list[object]:
    """Arguments of fairseq-train for the tiny model; ``more`` comes last and wins."""
    return [data, *TASK, *TINY, *paper, "--max-tokens", "400", "--save-dir", save_dir, *QUIET, *more]


def generation(data: Path, checkpoint: Path, *more: object) -> list[object]:
    """Arguments of fairseq-generate and fairseq-interactive."""
    return [data, *TASK, "--path", checkpoint, "--cpu", *more]


def text_flags(corpus: Corpus) -> tuple[object, ...]:
    """Return the flags that make raw text of the output, as fairseq's users ask for it; Moses wants both languages."""
    languages = ("--source-lang", "en", "--target-lang", "de")
    return (*languages, "--tokenizer", "moses", "--bpe", "subword_nmt", "--bpe-codes", corpus.codes)


def sentences(split: str) -> list[tuple[str, str]]:
    """Raw pairs of a split: one to eight digits and a full stop; the same whenever it is called."""
    chooser = random.Random(split)
    pairs = []
    for _ in range(SENTENCES[split]):
        digits = chooser.choices(WORDS, k=chooser.randint(1, 8))
        pairs.append((" ".join(digits) + ".", " ".join(reversed(digits)) + "."))
    return pairs


@dataclass(frozen=True)
class Corpus:
    """A binarised corpus; ``raw`` holds the text (``test.en``), ``codes`` the BPE merges, ``data_bin`` the rest."""

    raw: Path
    codes: Path
    data_bin: Path


def make_corpus(folder: Path) -> Corpus:
    """Moses tokens, BPE with few merges (so that words are split), a joined dictionary."""
    raw, units = folder / "raw", folder / "bpe"
    raw.mkdir(parents=True)
    units.mkdir()
    moses = MosesTokenizer(lang="en")

    def tokens(line: str) -> str:
        return str(moses.tokenize(line, aggressive_dash_splits=False, return_str=True, escape=True))

    text = [line for pair in sentences("train") for line in pair]
    codes = folder / "codes"
    with open(codes, "w", encoding="utf-8") as file:
        learn_bpe(io.StringIO("\n".join(map(tokens, text))), file, num_symbols=24)
    with open(codes, encoding="utf-8") as file:
        bpe = BPE(file)
    for split in SENTENCES:
        for side, language in enumerate(("en", "de")):
            lines = [pair[side] for pair in sentences(split)]
            (raw / f"{split}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
            lines = [bpe.process_line(tokens(line)) for line in lines]
            (units / f"{split}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data_bin = folder / "data-bin"
    outcome = run_here(
        "preprocess",
        *("--source-lang", "en", "--target-lang", "de", "--joined-dictionary", "--workers", "1"),
        *("--trainpref", units / "train", "--validpref", units / "valid", "--testpref", units / "test"),
        *("--destdir", data_bin),
    )
    assert outcome.status == 0, outcome.error
    return Corpus(raw, codes, data_bin)
