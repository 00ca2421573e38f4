"""``t2017 score``: both BLEUs of a translation, each with its name."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

SUMMARY = "print both BLEUs of a translation: sacreBLEU, and the paper's on split tokens"
DESCRIPTION = """\
Score a translation against a reference, both as raw (detokenised) text, a sentence a line. Printed are

  sacreBLEU     what the sacrebleu command prints, with its signature: the number to compare with papers since 2018;
  paper's BLEU  tokens of Moses' tokenizer.perl, compounds split at hyphens for German, cased, multi-bleu.perl:
                how the paper's 27.3 and 28.4 were computed;
  chrF2         of the raw text.

The BLEU line that fairseq-generate prints is neither: with --remove-bpe it is BLEU on the tokens as they were
prepared, without the compound split; with --tokenizer it splits detokenised text at spaces; with --scoring
sacrebleu it is sacreBLEU of what its D and T lines hold, which is the real one only if those are raw text.
"""
EPILOG = """\
examples:
  t2017 score --target-lang de --hyp out.de --ref test.de
  t2017 score --target-lang de --from-generate generate-test.txt --detokenize --ref test.de
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 score``."""
    hypothesis = parser.add_mutually_exclusive_group(required=True)
    hypothesis.add_argument("--hyp", metavar="FILE", help="the translation")
    hypothesis.add_argument(
        "--from-generate",
        metavar="FILE",
        help="the output of fairseq-generate; its D lines are put in order and counted",
    )
    parser.add_argument("--ref", required=True, metavar="FILE", help="the reference, as raw text")
    parser.add_argument("--target-lang", required=True, metavar="LANG", help="de, fr, ...: for tokens and compounds")
    parser.add_argument("--detokenize", action="store_true", help="the translation is Moses tokens: join them first")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Read, check and score."""
    from t2017_plugin.scoring.bleu import check_alignment
    from t2017_plugin.scoring.texts import looks_tokenised, read_generate_log, read_text
    from t2017_plugin.text_pipeline import moses_detokenize

    references = read_text(args.ref)
    path = args.hyp or args.from_generate
    hypotheses = read_text(path) if args.hyp else read_generate_log(path, len(references))
    if args.detokenize:
        hypotheses = [moses_detokenize(line, args.target_lang) for line in hypotheses]
    check_alignment(hypotheses, references, (path, args.ref))
    for lines, name, advice in ((hypotheses, path, "; join the tokens with --detokenize"), (references, args.ref, "")):
        if looks_tokenised(lines):
            print(f"warning: {name} looks tokenised, and sacreBLEU is meant for raw text{advice}", file=sys.stderr)
    print_scores(scores_of(hypotheses, references, args.target_lang), as_json=args.json)
    return 0


def scores_of(hypotheses: Sequence[str], references: Sequence[str], target_lang: str) -> dict[str, Any]:
    """All scores of raw texts as plain data, for JSON."""
    import dataclasses

    from t2017_plugin.scoring.bleu import chrf_score, paper_score, sacrebleu_score

    chrf, chrf_signature = chrf_score(hypotheses, references)
    return {
        "sentences": len(references),
        "target_lang": target_lang,
        "sacrebleu": dataclasses.asdict(sacrebleu_score(hypotheses, references, target_lang)),
        "paper_bleu": dataclasses.asdict(paper_score(hypotheses, references, target_lang)),
        "chrf2": {"score": chrf, "signature": chrf_signature},
    }


def print_scores(scores: dict[str, Any], as_json: bool = False) -> None:
    """Print scores, a labelled line each with its signature below, or as JSON."""
    from t2017_plugin.scoring.bleu import Bleu

    if as_json:
        print(json.dumps(scores, indent=2))
        return
    print(f"sacreBLEU     {Bleu(**scores['sacrebleu'])}")
    print(f"              {scores['sacrebleu']['signature']}")
    print(f"paper's BLEU  {Bleu(**scores['paper_bleu'])}")
    print(f"              {scores['paper_bleu']['signature']}")
    print(f"chrF2         {scores['chrf2']['score']:.2f}")
    print(f"              {scores['chrf2']['signature']}")
