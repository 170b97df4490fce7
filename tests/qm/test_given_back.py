"""A message whose reader is gone when its removal is durable: it is back, and nothing has followed (I8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.qm.reading.lookup import Lookup
from tests.qm.acknowledgments import classes
from tests.support.worlds.queue_manager import World

JOURNAL = r".\private$\orders;JOURNAL"
RECEIPT: dict[str, Any] = {
    "acknowledge": Acknowledge.POSITIVE_RECEIVE | Acknowledge.NEGATIVE_RECEIVE,
    "admin_queue": parse_format_name(r"DIRECT=OS:HOST\private$\admin"),
}

Begin = Callable[[OpenQueue, int], object]


@pytest.fixture
def world() -> World:
    world = World()
    world.create("admin")
    world.create(journaling=True)
    return world


READS: dict[str, Begin] = {
    "receive": lambda handle, _: handle.receive(None),
    "lookup": lambda handle, key: handle.lookup(key, Lookup.CURRENT),
    "subscribe": lambda handle, _: handle.subscribe(lambda _: None, 10, acknowledge=False),
}


@pytest.mark.rule("DM-119", "X-60", "X-67", "X-69", "DU-03")
@pytest.mark.parametrize("read", READS)
def test_nothing_follows_from_a_receive_whose_reader_is_gone(world: World, read: str) -> None:
    key = world.send(b"back", **RECEIPT)
    handle = world.reader()
    READS[read](handle, key)
    world.manager.before_submit()
    world.writer.submit()
    handle.close()
    world.run()
    assert world.bodies() == [b"back"]
    assert classes(world) == []
    assert world.bodies(JOURNAL) == []
    world.crash()
    assert world.bodies() == [b"back"]
    assert classes(world) == []
    assert world.bodies(JOURNAL) == []
    assert world.receive() == b"back"
    assert classes(world) == [MessageClass.ACK_RECEIVE]
    assert world.bodies(JOURNAL) == [b"back"]
    left = [world.manager.find(name).core.bytes for name in ("orders", "admin", JOURNAL)]
    assert world.manager.ledger.bytes == sum(left)


@pytest.mark.rule("DM-119", "X-67")
def test_a_reader_of_acknowledgments_that_waits_gets_none_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits at the administration queue is not served before it is known that the reader is gone."""
    world.send(b"back", **RECEIPT)
    told = world.reader("admin").receive(None)
    handle = world.reader()
    handle.receive(None)
    # Nothing is taken before it is durable.
    monkeypatch.setattr(world.manager, "before_submit", lambda: None)
    world.manager.ledger.serve()
    world.writer.submit()
    handle.close()
    world.writer.complete_all()
    assert not told.completion.done
    assert world.bodies() == [b"back"]


@pytest.mark.rule("X-67")
def test_an_acknowledgment_that_somebody_has_got_is_the_only_one(world: World) -> None:
    """It was received with the very commit that brought it: it cannot come back."""
    world.send(b"back", **RECEIPT)
    told = world.reader("admin").receive(None)
    handle = world.reader()
    handle.receive(None)
    world.manager.before_submit()
    world.writer.submit()
    handle.close()
    world.run()
    assert told.completion.done
    assert world.bodies() == [b"back"]
    world.crash()
    assert world.receive() == b"back"
    assert classes(world) == []


@pytest.mark.rule("DM-119", "X-60")
def test_nothing_follows_from_express_messages_either(world: World) -> None:
    """They are handed over behind a recoverable one whose removal is under way."""
    world.send(b"1", **RECEIPT)
    world.send(b"2", **RECEIPT, delivery=0)
    handle = world.reader()
    handle.subscribe(lambda _: None, 1, acknowledge=False).grant(1)
    world.manager.before_submit()
    world.writer.submit()
    handle.close()
    world.run()
    assert world.bodies() == [b"1", b"2"]
    assert classes(world) == []
    assert world.bodies(JOURNAL) == []
