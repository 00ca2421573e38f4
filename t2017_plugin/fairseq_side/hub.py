"""``T2017Transformer.from_pretrained``: a trained model in Python, as fairseq's hub interface gives it.

Only the defaults differ: fairseq's are beam 5 and length penalty 1, ours the paper's 4 and 0.6 (section 6.1).
"""

from pathlib import Path
from typing import Any

from fairseq import hub_utils
from torch import Tensor

from t2017_plugin.errors import UsageError
from t2017_plugin.fairseq_side.settings import TRANSLATION_GENERATION


class TranslationHubInterface(hub_utils.GeneratorHubInterface):
    """``translate(["Hello ."])`` with the paper's search; ``beam`` and ``lenpen`` (alpha) may be given each time."""

    def translate(self, sentences: Any, beam: int | None = None, verbose: bool = False, **kwargs: Any) -> Any:
        """Translate one sentence or a list of them, by beam search."""
        return self.sample(sentences, beam or self.cfg.generation.beam, verbose, **kwargs)

    def generate(
        self, tokenized_sentences: Any, beam: int | None = None, verbose: bool = False, **kwargs: Any
    ) -> list[list[dict[str, Tensor]]]:
        """Return hypotheses of already encoded sentences, best first, with normalised scores in nats.

        Shape:
            tokenized_sentences: a list of (S,)
        """
        return super().generate(tokenized_sentences, beam or self.cfg.generation.beam, verbose, **kwargs)


def load_hub_interface(path: str, checkpoint_file: str, data: str, **overrides: Any) -> TranslationHubInterface:
    """Load checkpoint, dictionaries and text settings.

    Raises:
        UsageError: there is no such checkpoint.
    """
    for name in checkpoint_file.split(":"):
        if not (Path(path) / name).is_file():
            raise UsageError(f"{Path(path) / name}: no such checkpoint; give its folder, then its file name")
    loaded = hub_utils.from_pretrained(path, checkpoint_file, data, **{**TRANSLATION_GENERATION, **overrides})
    return TranslationHubInterface(loaded["args"], loaded["task"], loaded["models"])
