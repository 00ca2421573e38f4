"""From the archives to the units that fairseq-preprocess reads, in steps that are done once and resumed.

    archives.json -> words/CORPUS.{en,de}, corpus/{valid,test}.{en,de} -> text/codes -> text/SPLIT.bpe.{en,de}

Every file is written whole or not at all, and a step counts as done once its stamp in ``steps/`` is written, last.
After every step the two sides must have the same number of lines. What does the work is imported when there is work.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipes.stamps import Step
from recipes.step import take_the_lock
from recipes.wmt14_common import corpora, manifest
from recipes.wmt14_common.corpora import Limits
from t2017_plugin.files import write_text

SPLITS = ("train", "valid", "test")


@dataclass(frozen=True)
class Job:
    """One preparation: where, for which language, how."""

    run: Path
    target_lang: str
    limits: Limits
    vocabulary: int
    workers: int

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target language."""
        return corpora.SOURCE_LANG, self.target_lang

    def step(self, name: str, inputs: list[Path], settings: list[str], outputs: list[Path], work: Callable) -> None:
        """Do a step unless it is done: from the same inputs and settings, its outputs as it left them."""
        Step(name, self.run, self.run, inputs, outputs, {"settings": settings}).once(work)

    def sides(self, folder: str, stem: str) -> list[Path]:
        """Return the two files of a text."""
        return [self.run / folder / f"{stem}.{language}" for language in self.languages]


def prepare(job: Job) -> None:
    """Do all steps.

    Raises:
        SystemExit: an archive is not what it should be, or the sides of a text are not aligned.
        UsageError: a newstest cannot be read.
    """
    found = json.loads((job.run / "archives.json").read_text(encoding="utf-8"))
    for folder in ("corpus", "words", "text"):
        (job.run / folder).mkdir(parents=True, exist_ok=True)
        for leftover in (job.run / folder).glob(".*.part*"):  # of a call that was killed
            leftover.unlink()
    _words(job, found)
    training = [corpus.name for corpus in corpora.TRAINING[job.target_lang]]
    _codes(job, training)
    _units(job, training)
    manifest.write(job.run, job.languages, job.target_lang, manifest.settings_of(job.limits, job.vocabulary))


def _words(job: Job, found: dict[str, Any]) -> None:
    hashes = {archive["name"]: archive["sha256"] for archive in found["archives"]}
    for corpus in corpora.TRAINING[job.target_lang]:
        archive = Path(found["places"][corpus.archive.name])
        outputs = job.sides("words", corpus.name)

        def work(corpus: corpora.Corpus = corpus, archive: Path = archive, outputs: list[Path] = outputs) -> None:
            from recipes.wmt14_common import words

            words.training_corpus(corpus, archive, job.run / "words", job.languages, job.limits, job.workers)
            words.check_aligned(outputs)

        facts = [f"{corpus.archive.name}={hashes[corpus.archive.name]}", str(job.limits)]
        job.step(f"words-{corpus.name}", [], facts, [*outputs, job.run / "words" / f"{corpus.name}.json"], work)
    for split, corpus in (("valid", corpora.VALID[job.target_lang]), ("test", corpora.TEST[job.target_lang])):
        archive = Path(found["places"][corpus.archive.name])
        outputs = job.sides("corpus", split) + job.sides("words", split)

        def work(
            split: str = split, corpus: corpora.Corpus = corpus, archive: Path = archive, outputs: list[Path] = outputs
        ) -> None:
            from recipes.wmt14_common import words

            words.newstest(corpus, archive, job.run / "corpus", job.run / "words", split, job.languages)
            words.check_aligned(outputs)

        job.step(f"words-{split}", [], [f"{archive.name}={hashes[corpus.archive.name]}"], outputs, work)


def _codes(job: Job, training: list[str]) -> None:
    files = [job.run / "words" / f"{name}.{language}" for language in job.languages for name in training]

    def work() -> None:
        from recipes.wmt14_common import units
        from t2017_plugin.text.pipeline import TextSettings

        counted = units.count_words(files, job.workers)
        print(f"learning BPE from {len(counted):,} different words", flush=True)
        write_text(job.run / "text" / "codes", units.learn(counted, job.vocabulary))
        settings = TextSettings(*job.languages, normalise_punctuation=True, bpe_codes="codes")
        settings.save(job.run / "text")

    outputs = [job.run / "text" / "codes", job.run / "text" / "text_settings.json"]
    job.step("codes", files, [f"vocabulary={job.vocabulary}"], outputs, work)


def _units(job: Job, training: list[str]) -> None:
    codes = job.run / "text" / "codes"
    for split in SPLITS:
        stems = training if split == "train" else [split]
        outputs = job.sides("text", f"{split}.bpe")
        sources = [[job.run / "words" / f"{stem}.{language}" for stem in stems] for language in job.languages]

        def work(outputs: list[Path] = outputs, sources: list[list[Path]] = sources) -> None:
            from recipes.wmt14_common import units, words

            for files, output in zip(sources, outputs, strict=True):
                units.apply(codes, files, output, job.workers)
            words.check_aligned(outputs)

        job.step(f"units-{split}", [codes, *sources[0], *sources[1]], [], outputs, work)


def main(argv: list[str] | None = None) -> None:
    """Read the command line and prepare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="the run's folder, which holds archives.json")
    parser.add_argument("--target-lang", choices=corpora.TARGET_LANGS, required=True)
    parser.add_argument("--max-tokens", type=int, required=True, help="longest side of a training pair, Moses tokens")
    parser.add_argument("--max-ratio", type=float, required=True, help="longer side over shorter side, at most")
    parser.add_argument("--vocabulary", type=int, required=True, help="tokens of the joint vocabulary, about")
    parser.add_argument("--workers", type=int, required=True, help="processes")
    args = parser.parse_args(argv)
    limits = Limits(args.max_tokens, args.max_ratio)
    with take_the_lock(args.run):
        prepare(Job(args.run.resolve(), args.target_lang, limits, args.vocabulary, args.workers))


if __name__ == "__main__":
    main()
