"""One error type for everything a user can put right."""

try:
    from hydra.errors import CompactHydraException
except ImportError:  # what is missing is told elsewhere
    CompactHydraException = Exception


class UsageError(SystemExit, ValueError, CompactHydraException):
    """A wrong call, file or setting, told in one line: what, where, and what to do.

    It is both a ``SystemExit`` and a ``ValueError``. Left alone, it ends any command (``fairseq-train`` too) with
    its one line on stderr and exit status 1, without a traceback; a caller in Python can catch it as a ``ValueError``.
    Hydra, which would show a traceback of any other error, shows the line of one that is of its compact kind.
    """

    def __str__(self) -> str:
        return str(self.code)
