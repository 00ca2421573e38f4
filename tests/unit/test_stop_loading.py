"""The thread that loads batches ends before the program does, wherever training stops."""

import threading
import time
from collections.abc import Iterator

import pytest
from fairseq.data.iterators import BackgroundConsumer, BufferedIterator

from t2017_plugin.fairseq_side.patches import stop_loading

pytestmark = pytest.mark.unit


class Batches:
    """A thousand batches, each of which takes a while to load."""

    def __len__(self) -> int:
        return 1000

    def __iter__(self) -> Iterator[int]:
        for number in range(1000):
            time.sleep(0.002)
            yield number


def loading() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if isinstance(thread, BackgroundConsumer)]


@pytest.mark.parametrize("seconds", [0.0, 0.1])
def test_a_thread_that_loads_is_stopped(seconds: float) -> None:
    """While it loads, and when it waits because its queue is full."""
    batches = BufferedIterator(10, Batches())
    assert next(batches) == 0
    time.sleep(seconds)
    assert loading()
    began = time.monotonic()
    stop_loading()
    assert not loading()
    # It did not load the other 990 first.
    assert time.monotonic() - began < 1.0
