"""One line when training diverges: what is left of the traceback that fairseq would show."""

import sys

from fairseq.logging import metrics

from t2017_plugin.errors import UsageError


def stop_if_diverged(update: int) -> None:
    """Ends a run whose gradients are no longer finite, or whose loss scale has reached its floor.

    fairseq handles both by going through the batch once more, to find the module that failed, while the error is being
    handled; here that second pass is where the run ends. It has written ``crash.pt`` by then.

    Raises:
        UsageError: an error of that kind is being handled.
    """
    error = sys.exc_info()[1]
    if isinstance(error, FloatingPointError):
        raise UsageError(
            f"training diverged at update {update + 1} ({str(error).splitlines()[0]}); {last_finite(update)}; go on "
            "from an earlier checkpoint with a smaller --noam-scale or more --warmup-updates, with --clip-norm 1, or "
            "with --bf16 where it was --fp16"
        )


def last_finite(update: int) -> str:
    """Loss (bits a token) and gradient norm of the last update that was logged; the end of an epoch forgets nothing."""
    found = {name: metrics.get_meter("default", name) for name in ("loss", "gnorm")}
    known = [f"{name} {float(meter.val):.4g}" for name, meter in found.items() if meter and meter.count]
    if not known:
        return "no update before it was finite"
    return f"update {update}, the last finite one, had {' and '.join(known)}"
