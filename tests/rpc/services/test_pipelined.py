"""A client that asks for many messages before it takes the first: what is under way for it is bounded, and
what it says of other reads is heard.
"""

from __future__ import annotations

import struct

import pytest

from msmq_fast.qm.handles.handle import OpenQueue
from msmq_fast.store.completion import Completion
from tests.rpc.services.lines import Endpoint, Line
from tests.rpc.services.qm2qm import INFINITE, NULL_CONTEXT, desc, desc2, open_queue
from tests.support.rpc import wire

LOOKUP_PEEK_NEXT = 0x40000011
ACK, PEEK = 2, 0x80000000


def looking(handle: int, request: int) -> bytes:
    """RemoteQMStartReceiveByLookupId of the first message."""
    parameters = struct.pack("<QI4xQ", 0, 0x20000, 0)
    return parameters + desc(handle, LOOKUP_PEEK_NEXT, request=request)


def test_look_ups_that_wait_for_the_disk_are_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint("qm2qm")
    key = endpoint.remote.world.send(b"body")
    handle = endpoint.remote.opened()
    line = Line(endpoint)
    open_queue(line, handle)
    under_way: list[Completion[object]] = []

    def lookup(*_: object, **options: object) -> Completion[object]:
        under_way.append(Completion())
        return under_way[-1]

    monkeypatch.setattr(OpenQueue, "lookup", lookup)
    count = 100
    said = [wire.request(10 + number, 10, looking(handle, number + 1)) for number in range(count)]
    line.engine.receive(b"".join(said[:20]), 0.0)
    assert 8 <= len(under_way) <= 16
    assert not line.engine.reading
    found: list[object] = []
    endpoint.remote.world.manager.find("orders").core.peek(key, lambda message, _: found.append(message))
    answers: list[wire.Answer] = []
    rest = said[20:]
    while under_way:
        assert len(under_way) <= 16
        before = line.wakes
        under_way.pop(0).resolve(found[0])
        assert line.wakes > before, "the adapter looks again"
        line.engine.go_on()
        answers += line.heard()
        while rest and line.engine.reading:
            line.engine.receive(rest.pop(0), 0.0)
    assert sorted(answer.call_id for answer in answers) == list(range(10, 10 + count))
    assert {answer.type for answer in answers} == {wire.RESPONSE}


def test_reads_that_wait_hold_up_no_acknowledgment() -> None:
    endpoint = Endpoint("qm2qm")
    world = endpoint.remote.world
    world.send(b"one")
    handle = endpoint.remote.opened()
    line = Line(endpoint)
    open_queue(line, handle)
    context = line.call(9, desc2(handle)).stub[:20]
    for number in range(2, 66):
        assert line.start(9, desc2(handle, timeout=INFINITE, request=number)) == []
    assert line.engine.reading
    assert line.call(1, context + struct.pack("<I", ACK)).stub == NULL_CONTEXT + bytes(4)
    assert world.bodies() == []
