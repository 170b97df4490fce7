"""What a step costs, without what the garbage collector does beside it."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Spent:
    """Processor time of this thread, in seconds, after the `with` block has ended."""

    seconds = 0.0


@contextmanager
def processor_time() -> Iterator[Spent]:
    """Measure the processor time of a block. The collector is off in it, else it walks the objects of all
    tests that ran before in this process, which may take seconds.
    """
    spent = Spent()
    enabled = gc.isenabled()
    gc.disable()
    began = time.thread_time()
    try:
        yield spent
    finally:
        spent.seconds = time.thread_time() - began
        if enabled:
            gc.enable()
