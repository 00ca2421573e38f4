"""Reads what fairseq-train logged: speed, batch, updates, size of the model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

FIELD = re.compile(r"(\w+)=([-\w.+]+)")
STOPPED = re.compile(r"Stopping training due to num_updates: (\d+) >= max_update")
PARAMETERS = re.compile(r"num\. shared model params: ([\d,]+)")


def summary(log: Sequence[str]) -> dict[str, Any]:
    """Return the facts of a whole training, sessions after an interruption included.

    ``target_tokens_an_update`` is fairseq's wpb, the mean over intervals weighted by their updates; tokens are
    BPE units with EOS. ``training_seconds`` is fairseq's train_wall: time in updates, not in saving or starting.
    ``nll_bits_a_token`` is the unsmoothed loss of the last interval on training batches.

    Raises:
        SystemExit: no update was logged.
    """
    intervals: dict[int, dict[str, float]] = {}
    parameters, stopped = None, 0
    for line in log:
        if match := PARAMETERS.search(line):
            parameters = int(match[1].replace(",", ""))
        elif match := STOPPED.search(line):
            stopped = int(match[1])
        elif "| train_inner |" in line:
            fields = {name: float(value) for name, value in FIELD.findall(line.split("| train_inner |", 1)[1])}
            # Updates after the last checkpoint before an interruption are done, and logged, again.
            intervals = {updates: known for updates, known in intervals.items() if updates < fields["num_updates"]}
            intervals[int(fields["num_updates"])] = fields
    if not intervals:
        raise SystemExit("the training log tells of no update; run 2_train.sh first")
    updates, seconds, tokens = 0, 0.0, 0.0
    for end, fields in sorted(intervals.items()):
        tokens += fields["wpb"] * (end - updates)
        seconds += fields["train_wall"]
        updates = end
    return {
        # The last updates are not logged when they do not fill an interval.
        "updates": max(updates, stopped),
        "parameters": parameters,
        "target_tokens_an_update": tokens / updates,
        "target_tokens_a_second": tokens / seconds if seconds else None,
        "training_seconds": seconds,
        "nll_bits_a_token": intervals[updates]["nll_loss"],
    }
