"""Measures the CPU time of each step of preparing WMT14, and computes the time of the whole from that.

    python -m recipes.wmt14_common.throughput --text runs/demo/corpus/train --target-lang de

The text is any parallel text, ``PREFIX.en`` and ``PREFIX.de``, repeated if there are fewer lines than asked for. Times
are computed from words, because sentences of WMT14 are longer than those of most texts at hand. Learning BPE depends on
the number of different words, which small texts do not have: it is measured on compounds of two of the text's words,
counted by Zipf's law, and computed for --types different words in proportion.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from recipes.common.files import read_lines
from recipes.wmt14_common import units
from recipes.wmt14_common.cleaning import Cleaner
from recipes.wmt14_common.corpora import Limits
from recipes.wmt14_common.parallel import PORTION

# Pairs of each task and words between spaces a side: WMT14's, about.
JOBS = {"de": (4_500_000, 25), "fr": (40_800_000, 28)}
# How often WMT14's most frequent word stands in the text, about: learning is slow where pairs have become rare.
MOST_FREQUENT = 12_000_000
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


def invented_words(known: Counter[str], types: int) -> Counter[str]:
    """The words of a text and compounds of two of them; the word of rank r is counted MOST_FREQUENT / r times."""
    state, parts = random.Random(1), list(known)
    words = dict.fromkeys(parts[:types], 1)
    while len(words) < types:
        words["".join(state.choices(parts, k=2))] = 1
    return Counter({word: max(1, MOST_FREQUENT // rank) for rank, word in enumerate(words, start=1)})


def measure(prefix: str, target_lang: str, lines: int) -> tuple[dict[str, dict[str, float]], Counter[str]]:
    """Lines and words a second of each step, both sides of a pair counted; and the text's words."""
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


def table(speeds: dict[str, dict[str, float]], learning: dict[int, float], types: dict[str, int]) -> list[str]:
    """The speeds and the hours of both tasks on 8 and 32 cores as a Markdown table."""
    head = ["step", "lines/s", "words/s", *(f"{task}, {cores} cores" for task in JOBS for cores in (8, 32))]
    rows = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    sums: dict[tuple[str, int], float] = {}
    for step, speed in speeds.items():
        cells = [f"{speed['lines']:,.0f}", f"{speed['words']:,.0f}"]
        for task, (pairs, words_a_side) in JOBS.items():
            for cores in (8, 32):
                minutes = 2 * pairs * words_a_side / speed["words"] / cores / 60
                sums[task, cores] = sums.get((task, cores), 0.0) + minutes
                cells.append(f"{minutes:,.1f} min")
        rows.append(f"| {step} | {' | '.join(cells)} |")
    cells = []
    for task in JOBS:
        nearest = min(learning, key=lambda known: abs(known - types[task]))
        minutes = learning[nearest] * types[task] / nearest / 60
        for cores in (8, 32):
            sums[task, cores] += minutes
            cells.append(f"{minutes:,.1f} min")
    rows.append(f"| learn BPE (one core) | - | - | {' | '.join(cells)} |")
    rows.append("| all | - | - | " + " | ".join(f"{minutes / 60:,.2f} h" for minutes in sums.values()) + " |")
    return rows


def main(argv: list[str] | None = None) -> None:
    """Measure and print the table; --json prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", required=True, metavar="PREFIX", help="PREFIX.en and PREFIX.de are the text")
    parser.add_argument("--target-lang", default="de", choices=sorted(JOBS))
    parser.add_argument("--lines", type=int, default=40_000, help="lines to measure with, both sides together")
    parser.add_argument("--learn-types", type=int, nargs="*", default=[50_000], help="different words to learn from")
    parser.add_argument("--merges", type=int, default=37_000, help="vocabulary to learn")
    parser.add_argument("--types", type=int, nargs=2, default=[1_600_000, 4_000_000], help="different words, de and fr")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    speeds, known = measure(args.text, args.target_lang, args.lines)
    learning = {}
    for types in args.learn_types:
        words = invented_words(known, types)
        learning[types] = seconds_of(lambda words=words: units.learn(words, args.merges))
    if args.json:
        print(json.dumps({"speeds": speeds, "learning": learning}, indent=2))
    else:
        for types, seconds in learning.items():
            print(f"learning {args.merges:,} tokens from {types:,} different words: {seconds:.1f} s")
        print("\n".join(table(speeds, learning, dict(zip(JOBS, args.types, strict=True)))))


if __name__ == "__main__":
    main()
