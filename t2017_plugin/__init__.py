"""t2017_plugin: "Attention Is All You Need" (2017), exactly, as a fairseq plugin.

Use it with ``--user-dir "$(t2017 user-dir)"``. Importing the package registers the model, its architectures, the loss,
the schedule, the optimiser and the tasks, and does nothing else.
"""

from typing import Any

from t2017_plugin.requirements import require_fairseq

require_fairseq()

from t2017_plugin.checkpoints.safe_globals import allow_safe_globals  # noqa: E402
from t2017_plugin.criterions import label_smoothing  # noqa: E402, F401
from t2017_plugin.models import architectures, transformer_2017  # noqa: E402, F401
from t2017_plugin.optim import adam, noam  # noqa: E402, F401
from t2017_plugin.tasks import parsing_2017, translation_2017  # noqa: E402, F401
from t2017_plugin.version import __version__  # noqa: E402, F401

allow_safe_globals()


def __getattr__(name: str) -> Any:
    """``from t2017_plugin import Translator, T2017Transformer``, loaded when first asked for."""
    if name == "Translator":
        from t2017_plugin.translator import Translator

        return Translator
    if name == "T2017Transformer":
        return transformer_2017.T2017Transformer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
