"""Sentences in, trees out: a trained parsing model with the search of section 6.3.

    from t2017_plugin.parsing.parser import Parser
    Parser.load("average.pt", data_bin="data-bin").parse(["The cat sat ."])

Every sentence gives exactly one tree with its words, in order; one without words gives None.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from nltk.tokenize.treebank import TreebankWordTokenizer
from nltk.tree import Tree

from t2017_plugin.errors import UsageError
from t2017_plugin.paper.config import PARSING_SEARCH
from t2017_plugin.parsing.linearisation import Repairs, rebuild
from t2017_plugin.parsing.symbols import FORMS, form_of
from t2017_plugin.parsing.trees import escape
from t2017_plugin.text.translator import Translator

TOKENIZER = TreebankWordTokenizer()
# Words stand between spaces, as Python and the reader of trees count spaces.
words_of = str.split


def treebank_tokens(sentence: str) -> str:
    """Cut raw text into the Penn Treebank's tokens, which nltk's tokeniser finds.

    ``He didn't (say).`` becomes ``He did n't -LRB- say -RRB- .``; only the last full stop is cut off.
    """
    return " ".join(TOKENIZER.tokenize(sentence, convert_parentheses=True))


class Parser:
    """Parses sentences, whose words stand between spaces, with one model.

    Args:
        translator: a model of task ``t2017_parsing`` with its text pipeline.
        form: the form of linearised tree that it was trained to write.
    """

    def __init__(self, translator: Translator, form: str = FORMS[0]) -> None:
        self.translator, self.form = translator, form

    @classmethod
    def load(
        cls,
        checkpoint: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        data_bin: str | os.PathLike[str],
        beam: int = PARSING_SEARCH.beam,
        alpha: float = PARSING_SEARCH.alpha,
        max_tokens: int = 1000,
        device: str | None = None,
        precision: str = "fp32",
    ) -> Parser:
        """Load a checkpoint with the dictionaries of the data-bin it was trained on; beam and alpha are the paper's.

        Raises:
            UsageError: a file is missing or damaged, or checkpoint and data-bin do not belong together.
        """
        translator = Translator.load(checkpoint, data_bin, beam, alpha, max_tokens, device, precision)
        form = form_of(translator.task.target_dictionary.symbols)
        if form is None:
            raise UsageError(f"{data_bin}: its target side is no trees, so its models are no parsers: t2017 translate")
        return cls(translator, form)

    def symbols(self, sentences: Sequence[str], progress: Callable[[int], None] | None = None) -> list[str]:
        """Return what the model writes for each sentence, as it is: a linearised tree, well-formed or not."""
        escaped = [" ".join(map(escape, words_of(sentence))) for sentence in sentences]
        return [found[0].words for found in self.translator.hypotheses(escaped, progress=progress)]

    def parse(self, sentences: Sequence[str], progress: Callable[[int], None] | None = None) -> list[Tree | None]:
        """Return one tree for each sentence, in order, with exactly its words (round brackets in them escaped)."""
        return [tree for tree, _ in self.parse_with_repairs(sentences, progress)]

    def parse_with_repairs(
        self, sentences: Sequence[str], progress: Callable[[int], None] | None = None
    ) -> list[tuple[Tree | None, Repairs]]:
        """Parse as :meth:`parse` does, each tree with what had to be repaired."""
        written = self.symbols(sentences, progress)
        return [
            rebuild(symbols.split(), words_of(sentence), self.form)
            for symbols, sentence in zip(written, sentences, strict=True)
        ]
