"""One look at a message."""

from __future__ import annotations

from msmq_fast._native.queuebase import Received
from msmq_fast.qm.reading.lookup import Lookup
from tests.support.worlds.queue_manager import World


def peek(world: World, key: int) -> Received:
    received = world.finish(world.reader().lookup(key, Lookup.CURRENT, peek=True))
    assert isinstance(received, Received)
    return received
