"""Messages that are read by their lookup identifiers."""

from __future__ import annotations

from array import array

import pytest

from msmq_fast.protocol import errors
from msmq_fast.qm.reading.lookup import Lookup
from tests.support.worlds.queue_manager import World, body

pytestmark = pytest.mark.smoke


@pytest.mark.rule("DM-225", "DM-226", "DM-227", "DM-228", "DM-128", "DM-129")
def test_lookup_finds_by_place(world: World) -> None:
    keys = [world.send(b"%d" % number, priority=priority) for number, priority in enumerate([3, 3, 7, 0])]
    reader = world.reader()

    def peek(key: int, operation: Lookup) -> bytes:
        return body(world.finish(reader.lookup(key, operation, peek=True)))

    assert [peek(key, Lookup.CURRENT) for key in keys] == [b"0", b"1", b"2", b"3"]
    assert [peek(0, Lookup.FIRST), peek(123, Lookup.LAST)] == [b"2", b"3"]
    assert [peek(keys[2], Lookup.NEXT), peek(keys[0], Lookup.NEXT), peek(keys[1], Lookup.NEXT)] == [
        b"0",
        b"1",
        b"3",
    ]
    assert [peek(keys[3], Lookup.PREVIOUS), peek(keys[0], Lookup.PREVIOUS)] == [b"1", b"2"]
    for key, operation in (
        (keys[3], Lookup.NEXT),
        (keys[2], Lookup.PREVIOUS),
        (99, Lookup.CURRENT),
        (99, Lookup.NEXT),
    ):
        with pytest.raises(errors.MessageNotFound):
            reader.lookup(key, operation, peek=True)
    assert world.manager.find("orders").messages == 4


@pytest.mark.rule("DM-131")
def test_receive_by_lookup_removes_durably(world: World) -> None:
    keys = [world.send(b"%d" % number) for number in range(3)]
    received = world.reader().lookup(keys[1], Lookup.CURRENT)
    assert not received.done
    assert body(world.finish(received)) == b"1"
    world.crash()
    assert world.bodies() == [b"0", b"2"]
    assert body(world.finish(world.reader().lookup(keys[0], Lookup.NEXT))) == b"2"
    assert body(world.finish(world.reader().lookup(0, Lookup.LAST))) == b"0"
    with pytest.raises(errors.MessageNotFound):
        world.reader().lookup(0, Lookup.FIRST)


@pytest.mark.rule("DM-229", "DM-230", "DM-223")
def test_lookup_of_a_locked_message(world: World) -> None:
    keys = [world.send(b"%d" % number) for number in range(3)]
    core = world.manager.find("orders").core
    assert core.claim(keys[1], 50)
    assert not core.claim(keys[1], 51)
    reader = world.reader()
    with pytest.raises(errors.TransactionUsage):
        reader.lookup(keys[1], Lookup.CURRENT, peek=True)
    with pytest.raises(errors.MessageLocked):
        reader.lookup(keys[1], Lookup.CURRENT)
    assert body(world.finish(reader.lookup(keys[0], Lookup.NEXT, peek=True))) == b"2"
    assert body(world.finish(reader.lookup(keys[1], Lookup.PREVIOUS, peek=True))) == b"0"
    assert core.release(array("Q", keys), 51) == 0
    assert core.release(array("Q", keys), 50) == 1
