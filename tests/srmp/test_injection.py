"""Fault injection with messages over HTTP: the sender repeats what was not answered, and it is there once."""

from __future__ import annotations

import pytest

from msmq_fast.qm.faults import Faults
from tests.support.clocks import WALL
from tests.support.srmp.station import SINK, Station, envelope, services, stream
from tests.support.worlds.injection import Operation, failing, lines
from tests.support.worlds.queue_manager import World

PLAIN, ORDERED = (f"http://host/msmq/private$/{name}" for name in ("plain", "ordered"))
DURABLE = services(durable=True, delivery=SINK)


def station() -> Station:
    made = Station(faults=Faults, receipts_to=("sender.example",))
    made.make("plain", journaling=True)
    made.make("ordered", transactional=True)
    return made


def message(made: World) -> None:
    assert isinstance(made, Station)
    made.post(envelope(PLAIN, ordinal=1, headers=DURABLE, now=WALL), b"x")


def ordered(made: World) -> None:
    assert isinstance(made, Station)
    for number in (1, 2):
        headers = stream(1, number, previous=number - 1 if number > 1 else None)
        made.post(envelope(ORDERED, ordinal=number, headers=headers, now=WALL), b"%d" % number)
    made.advance(3)


def repeated(made: World) -> str:
    assert isinstance(made, Station)
    message(made)
    return "" if made.taken("plain") == [b"x"] else f"arrived: {made.taken('plain')}"


def repeated_stream(made: World) -> str:
    assert isinstance(made, Station)
    ordered(made)
    return "" if made.taken("ordered") == [b"1", b"2"] else f"arrived: {made.taken('ordered')}"


OPERATIONS = (
    Operation("a message over HTTP", station, message, stored=False, after=repeated),
    Operation("a stream over HTTP", station, ordered, stored=False, after=repeated_stream),
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_fault_at_each_site(operation: Operation) -> None:
    found = failing(operation, everywhere=False)
    assert not found, lines(found)
