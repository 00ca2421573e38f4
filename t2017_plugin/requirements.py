"""Says in one line what is missing when fairseq or torch cannot be imported."""

import importlib

INSTALL = (
    "bash recipes/setup_environment.sh in the plugin's checkout does it; by hand: pip install torch==2.13.0, then "
    "pip install -r requirements/fairseq.txt, then pip install --no-deps --no-build-isolation fairseq-fixed==0.12.3.1"
)


def require_fairseq() -> None:
    """Imports torch and fairseq.

    Raises:
        ImportError: one of them is not there or cannot be imported by this Python, with the command that installs it.
    """
    for name in ("torch", "fairseq"):
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise ImportError(f"t2017_plugin needs {name}, which cannot be imported ({error}): {INSTALL}") from None
        except ValueError as error:
            # fairseq 0.12.2 from the index: "mutable default ... use default_factory" on Python 3.11 and later.
            raise ImportError(
                f"t2017_plugin needs a {name} that this Python can import, not the installed one ({error}): {INSTALL}"
            ) from None
