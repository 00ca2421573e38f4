"""``t2017 score``: both BLEUs of a translation or of a run, each with its name."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from typing import Any

from sacremoses.corpus import NonbreakingPrefixes

from t2017_plugin.commands.arguments import add_device_arguments
from t2017_plugin.paper.config import AVERAGED, AVERAGED_BIG, TRANSLATION_SEARCH
from t2017_plugin.scoring.bleu import Bleu, authors_score, check_alignment, chrf_score, paper_score, sacrebleu_score
from t2017_plugin.scoring.run import find_parallel_text, load_averaged, translate_test_set
from t2017_plugin.scoring.texts import check_expected_lines, looks_tokenised, read_generate_log, read_text
from t2017_plugin.text.pipeline import TextPipeline, moses_detokenize
from t2017_plugin.text.translator import Translator

DESCRIPTION = """\
Score a translation against a reference, both as raw (detokenised) text, a sentence a line or WMT's .sgm. Printed are

  sacreBLEU     what the sacrebleu command prints, with its signature: the number to compare with papers since 2018;
  paper's BLEU  tokens of Moses' tokenizer.perl, compounds split at hyphens for German, cased, multi-bleu.perl:
                how the paper's 27.3 and 28.4 were computed;
  chrF2         of the raw text.

With CKPT (a run's folder or one checkpoint) and --data-bin, the last checkpoints are averaged, the test set is
translated by the paper's search and the result is scored.

The BLEU line that fairseq-generate prints is neither: with --remove-bpe it is BLEU on the tokens as they were
prepared, without the compound split; with --tokenizer it splits detokenised text at spaces; with --scoring
sacrebleu it is sacreBLEU of what its D and T lines hold, which is the real one only if those are raw text.
"""
EPILOG = """\
examples:
  t2017 score --target-lang de --hyp out.de --ref test.de
  t2017 score --target-lang de --hyp out.de --ref newstest2014-deen-ref.de.sgm --expect-lines 3003
  t2017 score --target-lang de --from-generate generate-test.txt --detokenize --ref test.de
  t2017 score checkpoints/ --data-bin data-bin --source test.en --ref test.de
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``t2017 score``."""
    parser.add_argument("checkpoints", nargs="?", metavar="CKPT", help="a run's folder, or a checkpoint, to score")
    text = parser.add_argument_group("to score a translation")
    hypothesis = text.add_mutually_exclusive_group()
    hypothesis.add_argument("--hyp", metavar="FILE", help="the translation")
    hypothesis.add_argument(
        "--from-generate", metavar="FILE", help="output of fairseq-generate; its D lines are put in order and counted"
    )
    text.add_argument("--ref", metavar="FILE", help="the reference, as raw text")
    text.add_argument("--target-lang", metavar="LANG", help="de, fr, ...: for tokens and compounds")
    text.add_argument(
        "--expect-lines", type=int, metavar="N", help="refuse another number of lines (newstest2014, full: 3003)"
    )
    text.add_argument("--detokenize", action="store_true", help="the translation is Moses tokens: join them first")
    a_run = parser.add_argument_group("to score a run")
    search = TRANSLATION_SEARCH
    a_run.add_argument("--data-bin", metavar="DIR", help="the binarised data it was trained on")
    a_run.add_argument(
        "--last", type=int, default=AVERAGED, metavar="N", help="average the last N (default: %(default)s)"
    )
    a_run.add_argument("--subset", default="test", metavar="NAME", help="what to translate (default: %(default)s)")
    a_run.add_argument(
        "--source", metavar="FILE", help="raw source; without it and --ref: DIR/raw, or what is binarised"
    )
    a_run.add_argument(
        "--beam",
        type=int,
        default=search.beam,
        metavar="N",
        help="width of the search (default: %(default)s)",
    )
    a_run.add_argument(
        "--alpha",
        type=float,
        default=search.alpha,
        metavar="A",
        help="length penalty (default: %(default)s)",
    )
    add_device_arguments(a_run)
    parser.add_argument(
        "--normalise-punctuation",
        action="store_true",
        help="also the paper's BLEU with the quotes and dashes of both sides made plain, as in text prepared so",
    )
    parser.add_argument(
        "--authors-reference",
        action="store_true",
        help="also the paper's BLEU against a reference whose quotation marks are all plain, as the authors' was",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(wrong_call=parser.error)


def run(args: argparse.Namespace) -> int:
    """Score what the call names."""
    if args.checkpoints is None:
        if not (args.hyp or args.from_generate) or not args.ref or not args.target_lang:
            args.wrong_call("name --hyp (or --from-generate), --ref and --target-lang, or CKPT and --data-bin")
        return score_texts(args)
    if not args.data_bin or args.hyp or args.from_generate or args.detokenize:
        args.wrong_call("CKPT is scored with --data-bin and without --hyp, --from-generate and --detokenize")
    return score_run(args)


def score_texts(args: argparse.Namespace) -> int:
    """Read, check and score a translation."""
    references = read_text(args.ref)
    check_expected_lines(references, args.ref, args.expect_lines)
    path = args.hyp or args.from_generate
    hypotheses = read_text(path) if args.hyp else read_generate_log(path, len(references))
    if args.detokenize:
        hypotheses = [moses_detokenize(line, args.target_lang) for line in hypotheses]
    check_alignment(hypotheses, references, (path, args.ref))
    for lines, name, advice in ((hypotheses, path, "; join the tokens with --detokenize"), (references, args.ref, "")):
        if looks_tokenised(lines):
            print(f"warning: {name} looks tokenised, and sacreBLEU is meant for raw text{advice}", file=sys.stderr)
    scores = scores_of(hypotheses, references, args.target_lang, args.normalise_punctuation, args.authors_reference)
    print_scores(scores, as_json=args.json)
    return 0


def score_run(args: argparse.Namespace) -> int:
    """Average, translate and score."""
    pipeline = TextPipeline.load(args.data_bin)
    test_set = find_parallel_text(args.data_bin, args.subset, pipeline, args.source, args.ref)
    check_expected_lines(test_set.references, test_set.origin, args.expect_lines)
    translator, model, averaged = load_averaged(
        args.checkpoints,
        args.last,
        lambda path: Translator.load(
            path,
            args.data_bin,
            args.beam,
            args.alpha,
            device="cpu" if args.cpu else None,
            precision=args.precision,
        ),
    )
    if averaged < 2 and (args.beam, args.alpha) == (TRANSLATION_SEARCH.beam, TRANSLATION_SEARCH.alpha):
        print(
            f"warning: {model} is not an average, and the paper's BLEU is of one: the last {AVERAGED} checkpoints for "
            f"base, {AVERAGED_BIG} for big (t2017 average, or name the run's folder)",
            file=sys.stderr,
        )
    hypotheses = translate_test_set(translator, test_set)
    target_lang = args.target_lang or pipeline.settings.target_lang
    facts = {"model": model, "averaged": averaged, "test_set": test_set.origin, "beam": args.beam, "alpha": args.alpha}
    more = (args.normalise_punctuation, args.authors_reference)
    scores = {**facts, **scores_of(hypotheses, test_set.references, target_lang, *more)}
    print_scores(scores, as_json=args.json)
    return 0


def scores_of(
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_lang: str,
    normalised_too: bool = False,
    authors_too: bool = False,
) -> dict[str, Any]:
    """Return all scores of raw texts as plain data, for JSON."""
    if target_lang not in NonbreakingPrefixes().available_langs.values():
        print(
            f"warning: Moses has no rules for {target_lang!r}: the paper's BLEU is of tokens made by English ones",
            file=sys.stderr,
        )
    chrf, chrf_signature = chrf_score(hypotheses, references)
    scores = {
        "sentences": len(references),
        "target_lang": target_lang,
        "sacrebleu": dataclasses.asdict(sacrebleu_score(hypotheses, references, target_lang)),
        "paper_bleu": dataclasses.asdict(paper_score(hypotheses, references, target_lang)),
        "chrf2": {"score": chrf, "signature": chrf_signature},
    }
    if normalised_too:
        normalised = paper_score(hypotheses, references, target_lang, normalise=True)
        scores["paper_bleu_normalised"] = dataclasses.asdict(normalised)
    if authors_too:
        scores["paper_bleu_authors_reference"] = dataclasses.asdict(authors_score(hypotheses, references, target_lang))
    return scores


def print_scores(scores: dict[str, Any], as_json: bool = False) -> None:
    """Print scores, a labelled line each with its signature below, or as JSON."""
    if as_json:
        print(json.dumps(scores, indent=2))
        return
    for name in ("model", "averaged", "test_set", "beam", "alpha"):
        if name in scores:
            print(f"{name.replace('_', ' '):13} {scores[name]}")
    print(f"sacreBLEU     {Bleu(**scores['sacrebleu'])}")
    print(f"              {scores['sacrebleu']['signature']}")
    print(f"paper's BLEU  {Bleu(**scores['paper_bleu'])}")
    print(f"              {scores['paper_bleu']['signature']}")
    if "paper_bleu_normalised" in scores:
        print(f"normalised    {Bleu(**scores['paper_bleu_normalised'])}")
        print(f"              {scores['paper_bleu_normalised']['signature']}")
    if "paper_bleu_authors_reference" in scores:
        print(f"authors' ref. {Bleu(**scores['paper_bleu_authors_reference'])}")
        print(f"              {scores['paper_bleu_authors_reference']['signature']}")
    print(f"chrF2         {scores['chrf2']['score']:.2f}")
    print(f"              {scores['chrf2']['signature']}")
