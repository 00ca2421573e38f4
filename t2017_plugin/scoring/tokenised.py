"""The text that the paper's BLEU is computed on (the authors' get_ende_bleu.sh).

Moses tokens (tokenizer.perl with its default escaping) of hypothesis and reference, and for German every hyphen between
two characters that are not spaces set apart:

    s{(\\S)-(\\S)}{$1 ##AT##-##AT## $2}g

The substitution does not overlap: x-y-z becomes x ##AT##-##AT## y-z.
"""

from __future__ import annotations

import re

from t2017_plugin.text.pipeline import moses_tokenize, normalise_punctuation

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
