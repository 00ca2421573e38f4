"""Both BLEUs of a test set, each with a name that says how it was computed.

    BLEU = BP * exp( 1/4 * sum_{n=1..4} ln p_n ),   BP = exp(min(0, 1 - reference length / hypothesis length))

They differ by about one point for German, so a number without its name says little: papers of 2017 print the one on
split tokens, later ones sacreBLEU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.bleu import BLEUScore

from t2017_plugin.errors import UsageError
from t2017_plugin.text.pipeline import moses_tokenize, normalise_punctuation, replace_unicode_punctuation


@dataclass(frozen=True)
class Bleu:
    """A corpus BLEU (0 to 100) and how it was computed; lengths are in the tokens that were counted."""

    score: float
    signature: str
    precisions: list[float]
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int

    def __str__(self) -> str:
        precisions = "/".join(f"{precision:.1f}" for precision in self.precisions)
        ratio = self.hypothesis_length / self.reference_length if self.reference_length else 0.0
        return (
            f"{self.score:.2f} {precisions} (BP {self.brevity_penalty:.3f}, ratio {ratio:.3f}, "
            f"{self.hypothesis_length} hypothesis and {self.reference_length} reference tokens)"
        )


def _bleu(score: BLEUScore, signature: str) -> Bleu:
    return Bleu(score.score, signature, list(score.precisions), score.bp, score.sys_len, score.ref_len)


def check_alignment(hypotheses: Sequence[str], references: Sequence[str], names: tuple[str, str]) -> None:
    """Refuse texts that cannot be compared line by line.

    Raises:
        UsageError: one is empty, or they have different numbers of lines; both numbers are told.
    """
    for lines, name in zip((hypotheses, references), names, strict=True):
        if not lines:
            raise UsageError(f"{name} is empty; there is nothing to score")
    if len(hypotheses) != len(references):
        raise UsageError(
            f"{names[0]} has {len(hypotheses)} lines and {names[1]} has {len(references)}; "
            "line n of one must be the translation of line n of the other"
        )


def sacrebleu_score(hypotheses: Sequence[str], references: Sequence[str], target_lang: str = "") -> Bleu:
    """SacreBLEU of detokenised hypotheses against the raw references, as the ``sacrebleu`` command computes it."""
    # What sacrebleu says of tokenised text names an option of its own; `t2017 score` warns itself.
    metric = BLEU(trg_lang=target_lang, force=True)
    score = metric.corpus_score(list(hypotheses), [list(references)])
    return _bleu(score, str(metric.get_signature()))


def multi_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> BLEUScore:
    """Cased BLEU on tokens between spaces without smoothing, as multi-bleu.perl computes it."""
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    return metric.corpus_score(list(hypotheses), [list(references)])


def paper_score(
    hypotheses: Sequence[str], references: Sequence[str], target_lang: str, normalise: bool = False
) -> Bleu:
    """Return the paper's BLEU of the same raw texts: Moses tokens, compounds split for German, cased, multi-bleu.perl.

    With ``normalise`` the punctuation of both sides is made plain first, as normalize-punctuation.perl does.
    """
    from sacremoses import __version__ as version

    score = multi_bleu(
        [paper_tokens(line, target_lang, normalise) for line in hypotheses],
        [paper_tokens(line, target_lang, normalise) for line in references],
    )
    split = "split" if target_lang in SPLIT_LANGUAGES else "whole"
    quotes = "|punctuation:normalised" if normalise else ""
    tokens = f"tok:moses-{target_lang}-sacremoses-{version}{quotes}"
    return _bleu(score, f"case:mixed|{tokens}|compounds:{split}|smooth:none|multi-bleu")


def authors_score(hypotheses: Sequence[str], references: Sequence[str], target_lang: str) -> Bleu:
    """Return the paper's BLEU against the reference that the authors scored against, by their script.

    Their reference differs from the raw one in its quotation marks alone, which are all ``"``
    (Tensor2Tensor's issue 317); their script, get_ende_bleu.sh, makes the punctuation of the
    translation plain with replace-unicode-punctuation.perl, which leaves lower quotation marks.
    """
    score = paper_score(
        [replace_unicode_punctuation(line) for line in hypotheses],
        [QUOTATION_MARKS.sub('"', line) for line in references],
        target_lang,
    )
    return replace(score, signature=f"{score.signature}|reference:authors")


def chrf_score(hypotheses: Sequence[str], references: Sequence[str]) -> tuple[float, str]:
    """ChrF2 of the raw texts, and its signature."""
    metric = CHRF()
    return metric.corpus_score(list(hypotheses), [list(references)]).score, str(metric.get_signature())


# --- The paper's tokens -------------------------------------------------------------------------
#
# The text that the paper's BLEU is computed on (the authors' get_ende_bleu.sh).
#
# Moses tokens (tokenizer.perl with its default escaping) of hypothesis and reference, and for
# German every hyphen between two characters that are not spaces set apart:
#
#     s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g
#
# The substitution does not overlap: x-y-z becomes x ##AT##-##AT## y-z.

QUOTATION_MARKS = re.compile("[„“”‟«»]")
HYPHEN_IN_WORD = re.compile(r"(\S)-(\S)")
# English-German only: the authors' script is for that pair, and nothing is split for French.
SPLIT_LANGUAGES = ("de",)


def split_compounds(tokens: str) -> str:
    """Set the hyphens inside words apart, as get_ende_bleu.sh does."""
    return HYPHEN_IN_WORD.sub(r"\1 ##AT##-##AT## \2", tokens)


def paper_tokens(line: str, language: str, normalise: bool = False) -> str:
    """Turn a raw line into what the paper's BLEU counts, with ``normalise`` after making its punctuation plain."""
    tokens = moses_tokenize(normalise_punctuation(line, language) if normalise else line, language)
    return split_compounds(tokens) if language in SPLIT_LANGUAGES else tokens
