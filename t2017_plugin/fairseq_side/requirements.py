"""Says in one line what is missing, and what to install, when PyTorch or fairseq cannot be imported."""

from __future__ import annotations

import importlib
import logging
import sys

from t2017_plugin.errors import UsageError

SUPPORTED_FAIRSEQ = "0.12.3.1"
INSTALL = {
    "torch": "pip install torch==2.13.0, or another PyTorch from 2.6 on",
    "fairseq": (
        "pip install -r requirements/build.txt -r requirements/fairseq.txt and then "
        "pip install --no-deps --no-build-isolation -r requirements/fairseq-fixed.txt"
        f" (fairseq-fixed {SUPPORTED_FAIRSEQ})"
    ),
}
SET_UP = "in the plugin's checkout, 'make venv' makes an environment with everything; to mend this one"


def require_fairseq() -> None:
    """Import torch and fairseq, or end with one line that names the missing one and the commands that install it.

    Raises:
        UsageError: one of them is not there, is hidden by a folder of that name, or cannot be imported by this Python.
    """
    if sys.version_info < (3, 11):  # noqa: UP036 (pip checks this, --user-dir does not)
        version = ".".join(str(part) for part in sys.version_info[:3])
        raise UsageError(f"t2017_plugin needs Python 3.11 or later, and {sys.executable} is {version}")
    # fairseq notes on import that tensorboardX is missing, which would stand beside every error message.
    logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
    for name in ("torch", "fairseq"):
        problem = _problem_with(name)
        if problem:
            raise UsageError(f"t2017_plugin needs {name}, {problem}: {SET_UP}, {INSTALL[name]}")


def _problem_with(name: str) -> str:
    """What is wrong with a library in one phrase; empty when it imports."""
    try:
        module = importlib.import_module(name)
    except Exception as error:  # a broken build raises anything: OSError for a missing library, RuntimeError, ...
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            return f"which is not installed for {sys.executable}"
        # fairseq 0.12.2 comes here with "ValueError: mutable default ... use default_factory".
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return f"and the one that is there cannot be imported by {sys.executable} ({said})"
    if getattr(module, "__file__", None) is None:
        del sys.modules[name]
        folder = list(module.__path__)[0]
        return f"and the folder {folder} hides it or there is none (starting in another directory may do)"
    return ""
