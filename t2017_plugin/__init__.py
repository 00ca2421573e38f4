"""t2017_plugin: "Attention Is All You Need" (2017), exactly, as a fairseq plugin.

Use it with ``--user-dir "$(t2017 user-dir)"``. The paper itself is in ``t2017_plugin.paper`` and
needs torch alone. Importing the package is light: it loads neither torch nor fairseq. What it has
for fairseq is registered when fairseq is there already, as it is under ``--user-dir``, and else by
what needs it (``t2017_plugin.fairseq_side.registration``).
"""

import logging
import sys
from typing import Any

from t2017_plugin.version import __version__

__all__ = ["T2017Transformer", "Translator", "__version__"]

# One of fairseq's tasks asks for tensorboardX at every import of fairseq: no line of ours.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)


def __getattr__(name: str) -> Any:
    """Load ``Translator`` or ``T2017Transformer`` when it is first asked for."""
    if name in ("Translator", "T2017Transformer"):
        from t2017_plugin.fairseq_side.registration import register

        transformer = register()
        if name == "T2017Transformer":
            return transformer
        from t2017_plugin.text.translator import Translator

        return Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


if "fairseq" in sys.modules:
    from t2017_plugin.fairseq_side.registration import register

    register()
