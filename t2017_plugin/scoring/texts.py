"""Reading what is to be scored, and refusing what would give a wrong number."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from t2017_plugin.errors import UsageError
from t2017_plugin.files import read_lines

BPE_MARK = re.compile(r"\S@@(?: |$)")
# SentencePiece marks the start of a word with U+2581.
SENTENCEPIECE_MARK = re.compile("(?:^| )\u2581(?:\\w|$| )")
GENERATE_LINE = re.compile(r"[STHDPA]-\d+\t")
SGML = re.compile(r"\s*<(?:\?xml|!DOCTYPE|srcset|refset|tstset|mteval|dataset)\b", re.IGNORECASE)
# What Moses writes for quotes, brackets and the like, or a full stop standing by itself at the end.
TOKENISED_LINE = re.compile(r"&(?:apos|quot|amp|lt|gt|#124|#91|#93);|@-@| [.!?]$")


def read_text(path: str | os.PathLike[str]) -> list[str]:
    """Read raw text to be scored, a sentence a line or a segment of an SGM test set.

    Raises:
        UsageError: the file is missing, empty, XML or SGML of another kind, holds BPE or SentencePiece marks, or is
            fairseq-generate's log.
    """
    lines = read_lines(path)
    if not lines:
        raise UsageError(f"{path} is empty; there is nothing to score")
    if Path(path).suffix.lower() in SUFFIXES:
        lines = read_sgm(lines, str(path))
    elif Path(path).suffix.lower() == ".xml" or SGML.match(lines[0]):
        raise UsageError(
            f"{path} is XML or SGML; scores need plain text, a sentence a line, or WMT's SGM in a file named .sgm "
            "(for a WMT test set: sacrebleu -t wmt14/full -l en-de --echo ref)"
        )
    if sum(bool(GENERATE_LINE.match(line)) for line in lines) * 2 > len(lines):
        raise UsageError(f"{path} is the output of fairseq-generate, not text; score it with --from-generate")
    refuse_marks(lines, path)
    return lines


def check_expected_lines(lines: Sequence[str], path: str | os.PathLike[str], expected: int | None) -> None:
    """Refuse a test set of another size than expected.

    Raises:
        UsageError: telling both numbers, and what a newstest2014 of 2,737 lines is.
    """
    if expected is None or len(lines) == expected:
        return
    hint = ""
    if (len(lines), expected) == (2737, 3003):
        hint = "; 2,737 lines are newstest2014 as filtered for the campaign, 3,003 are the full set (test-full.tgz)"
    raise UsageError(f"{path} has {len(lines):,} lines and {expected:,} are expected (--expect-lines){hint}")


def refuse_marks(lines: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Refuse text that is still cut into subword units.

    Raises:
        UsageError: naming the first line with a mark.
    """
    for number, line in enumerate(lines, start=1):
        if BPE_MARK.search(line):
            raise UsageError(
                f"{path}, line {number}: '@@' marks BPE units; join them first (fairseq-generate --remove-bpe)"
            )
        if SENTENCEPIECE_MARK.search(line):
            raise UsageError(f"{path}, line {number}: U+2581 marks SentencePiece units; join them first")


def looks_tokenised(lines: Sequence[str]) -> bool:
    """Whether most lines show signs of Moses tokenisation, which sacreBLEU's own tokenisation does not expect."""
    return sum(bool(TOKENISED_LINE.search(line)) for line in lines) * 2 > len(lines)


def read_generate_log(path: str | os.PathLike[str], sentences: int) -> list[str]:
    """Take the best hypothesis of each sentence from fairseq-generate's output, in the order of the test set.

    The D lines are read (detokenised if fairseq-generate was given --tokenizer). Their order in the log is by length.

    Args:
        sentences: how many sentences the test set has.

    Raises:
        UsageError: there are no such lines, sentences are missing, or units are not joined.
    """
    best: dict[int, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.startswith("D-"):
            continue
        fields = line.split("\t", 2)
        if len(fields) != 3 or not fields[0][2:].isdigit():
            raise UsageError(f"{path}, line {number}: a D line has three fields between tabs; was the log cut off?")
        best.setdefault(int(fields[0][2:]), fields[2])
    if not best:
        raise UsageError(f"{path} has no D lines, so it is not the output of fairseq-generate")
    missing = [sentence for sentence in range(sentences) if sentence not in best]
    if missing:
        raise UsageError(
            f"{path} has no hypothesis for {len(missing)} of {sentences} sentences (the first is number {missing[0]}, "
            "from 0); fairseq-generate drops some without --task t2017_translation or --required-batch-size-multiple 1"
        )
    if len(best) > sentences:
        raise UsageError(f"{path} has hypotheses for {len(best)} sentences, the reference has {sentences}")
    hypotheses = [best[sentence] for sentence in range(sentences)]
    refuse_marks(hypotheses, path)
    return hypotheses


# --- SGM ----------------------------------------------------------------------------------------
#
# The SGM files of WMT's test sets, read as sacreBLEU reads them.
#
#     <refset ...><doc ...><p><seg id="1">First sentence.</seg> ...
#
# The format looks like XML and is none: ampersands stand bare, so nothing is unescaped. White space
# is reduced to single spaces.

TAG = re.compile(r"<(/?)seg\b[^>]*>", re.IGNORECASE)
TRANSLATOR = re.compile(r"<doc\b[^>]*\bsysid=\"([^\"]*)\"", re.IGNORECASE)
SUFFIXES = (".sgm", ".sgml")


def read_sgm(lines: Sequence[str], name: str) -> list[str]:
    """Take the segments out of the lines of an SGM file, in their order.

    Raises:
        UsageError: there are none, one does not end (its line is named), or there are several translations of one text.
    """
    text = "\n".join(lines)
    translators = sorted(set(TRANSLATOR.findall(text)))
    if len(translators) > 1:
        raise UsageError(f"{name} holds translations by {', '.join(translators)}; scores here are of one reference")
    segments: list[str] = []
    opened: re.Match[str] | None = None
    wrong: re.Match[str] | None = None
    for tag in TAG.finditer(text):
        ends = bool(tag[1])
        if ends != (opened is not None):
            wrong = opened or tag
            break
        if opened is not None:
            segments.append(" ".join(text[opened.end() : tag.start()].split()))
        opened = None if ends else tag
    wrong = wrong or opened
    if wrong is not None:
        line = text.count("\n", 0, wrong.start()) + 1
        raise UsageError(f"{name}, line {line}: a <seg> without its </seg>, or the reverse; was the file cut off?")
    if not segments:
        raise UsageError(f"{name} has no <seg> ... </seg>, so it is not an SGM test set; give plain text or SGM")
    return segments
