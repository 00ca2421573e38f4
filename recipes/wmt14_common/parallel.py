"""Work on portions of a stream in several processes: the order is kept, and no more is read than is being worked on."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any, TypeVar

Portion = TypeVar("Portion")
Result = TypeVar("Result")

PORTION = 2000  # lines that are handed to a process at once
PORTIONS_AHEAD = 4  # for each process, so that none waits and memory stays bounded
SECONDS_BETWEEN_LINES = 10


def _end_with(parent: int) -> None:
    """End this process when its parent is gone: a pool's processes would wait for work for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _prepare_worker(parent: int, prepare: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    _end_with(parent)
    if prepare is not None:
        prepare(*arguments)


def in_order(
    function: Callable[[Portion], Result],
    portions: Iterable[Portion],
    workers: int,
    prepare: Callable[..., None] | None = None,
    arguments: tuple[Any, ...] = (),
) -> Iterator[Result]:
    """Yield ``function(portion)`` for each portion, in their order.

    ``prepare(*arguments)`` is called once in each process before its first portion. One worker means this process.
    """
    if workers <= 1:
        if prepare is not None:
            prepare(*arguments)
        yield from map(function, portions)
        return
    waiting: deque[Future[Result]] = deque()
    with ProcessPoolExecutor(workers, initializer=_prepare_worker, initargs=(os.getpid(), prepare, arguments)) as pool:
        try:
            for portion in portions:
                waiting.append(pool.submit(function, portion))
                if len(waiting) >= workers * PORTIONS_AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class Progress:
    """Says every ten seconds how many lines are done, and at the end how fast it was."""

    def __init__(self, what: str, unit: str = "lines") -> None:
        self.what, self.unit = what, unit
        self.began = self.said = time.monotonic()
        self.done = 0

    def add(self, number: int) -> None:
        """Count ``number`` more."""
        self.done += number
        if time.monotonic() - self.said > SECONDS_BETWEEN_LINES:
            self.said = time.monotonic()
            self._say("so far, ")

    def end(self) -> float:
        """Say the total and return the number per second."""
        self._say("")
        return self.done / max(time.monotonic() - self.began, 1e-9)

    def _say(self, so_far: str) -> None:
        speed = self.done / max(time.monotonic() - self.began, 1e-9)
        print(f"{self.what}: {self.done:,} {self.unit} {so_far}{speed:,.0f} per second", flush=True)
