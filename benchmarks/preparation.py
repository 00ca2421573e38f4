"""Measures the CPU time of each step of preparing WMT14, and computes the time of the whole from that.

    python -m benchmarks.preparation --text runs/demo/corpus/train --target-lang de

The text is any parallel text, ``PREFIX.en`` and ``PREFIX.de``, repeated if there are fewer lines than asked for. Times
are computed from words, because sentences of WMT14 are longer than those of most texts at hand. Learning BPE runs on
one core, and its time grows with the number of different words (their bookkeeping) and of merges (choosing each): both
are fitted to two measurements of ``MEASURED_MERGES`` merges, and the first is doubled for the merges after these, which
change fewer words than these do.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from recipes.wmt14_common import units
from recipes.wmt14_common.cleaning import Cleaner
from recipes.wmt14_common.corpora import Limits
from recipes.wmt14_common.parallel import PORTION
from t2017_plugin.files import read_lines

# Of each task, about: pairs, words between spaces a side, different words of both sides as tokens, merges.
JOBS = {"de": (4_500_000, 25, 1_600_000, 32_000), "fr": (36_000_000, 28, 4_000_000, 27_000)}
MEASURED_MERGES = 3000
CODES = 4000  # vocabulary that BPE is applied with here


def seconds_of(work: Callable[[], object]) -> float:
    """CPU seconds that a call takes, programs it starts included: other work on the machine matters less so."""
    began = _cpu_seconds()
    work()
    return _cpu_seconds() - began


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def preprocess(folder: Path, languages: tuple[str, str]) -> None:
    """Binarise ``train.bpe.*`` of a folder with one worker."""
    command = [str(Path(sys.executable).parent / "fairseq-preprocess"), "--source-lang", languages[0]]
    command += ["--target-lang", languages[1], "--trainpref", str(folder / "train.bpe"), "--joined-dictionary"]
    with tempfile.TemporaryDirectory(dir=folder) as output:
        subprocess.run([*command, "--destdir", output], check=True, capture_output=True)


def learning(words: Counter[str]) -> tuple[float, float]:
    """Seconds of learning BPE for each different word, and for each merge, fitted to all words and a third of them."""
    part = Counter(dict(list(words.items())[::3]))
    all_words, third = (seconds_of(lambda few=few: units.learn(few, MEASURED_MERGES)) for few in (words, part))
    a_word = max(all_words - third, 0.0) / (len(words) - len(part))
    return a_word, max(all_words - a_word * len(words), 0.0) / MEASURED_MERGES


def measure(prefix: str, target_lang: str, lines: int) -> tuple[dict[str, dict[str, float]], Counter[str]]:
    """Lines and words per second of each step, both sides of a pair counted; and the text's words."""
    languages = ("en", target_lang)
    sides = [read_lines(Path(f"{prefix}.{language}")) for language in languages]
    pairs = [(source.encode(), target.encode()) for source, target in zip(*sides, strict=True)]
    pairs = (pairs * (lines // (2 * len(pairs)) + 1))[: lines // 2]
    words = sum(len(side.split()) for pair in pairs for side in pair)
    cleaner = Cleaner(languages, Limits(250, 9))
    cleaner.clean(pairs[:100])  # tables are made
    cleaned = []
    times = {
        "clean, normalise, tokenise": seconds_of(
            lambda: cleaned.extend(cleaner.clean(pairs[n : n + PORTION]) for n in range(0, len(pairs), PORTION))
        )
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [folder / f"train.{language}" for language in languages]
        files[0].write_bytes(b"".join(portion.source for portion in cleaned))
        files[1].write_bytes(b"".join(portion.target for portion in cleaned))
        counted: list[Counter[str]] = []
        times["count words"] = seconds_of(lambda: counted.append(units.count_words(files, 1)))
        (folder / "codes").write_text(units.learn(counted[0], CODES), encoding="utf-8")
        times["apply BPE"] = seconds_of(
            lambda: [
                units.apply(folder / "codes", [file], folder / f"train.bpe.{language}", 1)
                for file, language in zip(files, languages, strict=True)
            ]
        )
        times["fairseq-preprocess"] = seconds_of(lambda: preprocess(folder, languages))
        for file in folder.glob("train.bpe.*"):  # starting the program costs seconds that are not of the text
            file.write_bytes(file.read_bytes().split(b"\n", 1)[0] + b"\n")
        times["fairseq-preprocess"] -= seconds_of(lambda: preprocess(folder, languages))
    speeds = {step: {"lines": 2 * len(pairs) / seconds, "words": words / seconds} for step, seconds in times.items()}
    return speeds, counted[0]


def table(speeds: dict[str, dict[str, float]], a_word: float, a_merge: float) -> list[str]:
    """Return the speeds and the times of both tasks on 8 and 32 cores as a Markdown table."""
    columns = [(task, cores) for task in JOBS for cores in (8, 32)]
    head = ["step", "lines/s", "words/s", *(f"{task}, {cores} cores" for task, cores in columns)]
    rows = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    minutes = {
        step: [2 * JOBS[task][0] * JOBS[task][1] / speed["words"] / cores / 60 for task, cores in columns]
        for step, speed in speeds.items()
    }
    minutes["learn BPE (one core)"] = [
        (2 * a_word * JOBS[task][2] + a_merge * JOBS[task][3]) / 60 for task, _ in columns
    ]
    for step, cells in minutes.items():
        speed = [f"{speeds[step][unit]:,.0f}" if step in speeds else "-" for unit in ("lines", "words")]
        rows.append(f"| {' | '.join([step, *speed, *(f'{cell:,.1f} min' for cell in cells)])} |")
    sums = [sum(cells) for cells in zip(*minutes.values(), strict=True)]
    return [*rows, f"| {' | '.join(['all', '-', '-', *(f'{total:,.0f} min' for total in sums)])} |"]


def main(argv: list[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", required=True, metavar="PREFIX", help="PREFIX.en and PREFIX.de are the text")
    parser.add_argument("--target-lang", default="de", choices=sorted(JOBS))
    parser.add_argument("--lines", type=int, default=40_000, help="lines to measure with, both sides together")
    args = parser.parse_args(argv)
    speeds, words = measure(args.text, args.target_lang, args.lines)
    a_word, a_merge = learning(words)
    print(
        f"{args.lines:,} lines, {len(words):,} different words; learning BPE: {a_word * 1000:.3f} ms a different word"
    )
    print(f"for {MEASURED_MERGES:,} merges, and {a_merge * 1000:.2f} ms a merge\n")
    print("\n".join(table(speeds, a_word, a_merge)))


if __name__ == "__main__":
    main()
