"""Tokenises a parallel corpus, learns one set of BPE merges from both sides of train, and cuts everything into units.

Reads ``{train,valid,test}.{source,target language}``, writes ``*.bpe.*`` and ``codes``. The text goes through the
plugin's own pipeline, the one that ``t2017 translate`` uses, so training and translation cannot differ.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path

from subword_nmt.learn_bpe import learn_bpe

from recipes.common.parallel_corpus import SPLITS
from t2017_plugin.files import read_lines, write_text
from t2017_plugin.text.pipeline import SubwordUnits, TextPipeline, TextSettings

# subword-nmt can neither learn nor read a file without merges; this one joins a character that no text has.
NO_MERGES = "#version: 0.2\n\ue000 \ue000</w>\n"


def learn_joint_codes(lines: list[str], merges: int) -> str:
    """Return the codes of BPE learned from tokenised lines of both languages, at most ``merges`` merges."""
    if not any(len(word) > 1 for line in lines for word in line.split()):
        return NO_MERGES
    codes = io.StringIO()
    learn_bpe(io.StringIO("".join(f"{line}\n" for line in lines)), codes, merges)
    return codes.getvalue()


def prepare(corpus: Path, output: Path, languages: tuple[str, str], merges: int) -> None:
    """Tokenise and cut every split; print lines, words and units of each file, the two sides of a split aligned.

    Raises:
        SystemExit: a file is missing, or the sides of a split differ in their number of lines.
    """
    words = TextPipeline(TextSettings(*languages, bpe="none"), corpus)
    tokenized = {}
    for split in SPLITS:
        for language in languages:
            lines = read_lines(corpus / f"{split}.{language}")
            tokenized[split, language] = [words.encode(line, language) for line in lines]
        source, target = (len(tokenized[split, language]) for language in languages)
        if source != target:
            raise SystemExit(f"{corpus}: {split} has {source} lines of {languages[0]}, {target} of {languages[1]}")
    codes = learn_joint_codes([line for language in languages for line in tokenized["train", language]], merges)
    write_text(output / "codes", codes)
    units = SubwordUnits(output / "codes")
    for (split, language), lines in tokenized.items():
        cut = [units.apply(line) for line in lines]
        write_text(output / f"{split}.bpe.{language}", "".join(f"{line}\n" for line in cut))
        print(
            f"{split}.{language}: {len(lines)} lines, {sum(len(line.split()) for line in lines)} words, "
            f"{sum(len(line.split()) for line in cut)} BPE units"
        )


def main(argv: list[str] | None = None) -> None:
    """Read the command line and prepare the text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--source-lang", required=True)
    parser.add_argument("--target-lang", required=True)
    parser.add_argument("--merges", type=int, required=True, help="BPE merges, learned from both languages together")
    args = parser.parse_args(argv)
    prepare(args.corpus, args.output, (args.source_lang, args.target_lang), args.merges)


if __name__ == "__main__":
    main()
