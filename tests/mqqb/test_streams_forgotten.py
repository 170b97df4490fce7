"""How many streams are remembered and for how long, and which ones make room."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.mqqb.reasons import CloseReason, Refusal
from msmq_fast.store.schema import Table
from tests.mqqb.streams import host_with_queue, tx
from tests.mqqb.transfers import OTHER
from tests.support.mqqb import wire
from tests.support.mqqb.headers import header
from tests.support.worlds.hosts import Host


def test_a_stream_of_which_nothing_came_for_long_is_forgotten() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    host.advance(89 * 86_400)
    assert len(host.session_context.streams) == 1
    host.advance(2 * 86_400)
    host.commit()
    assert len(host.session_context.streams) == 0
    assert len(Host(tables=host.writer.crash()).session_context.streams) == 0


def test_there_are_no_more_streams_than_may_be() -> None:
    class Narrow(Host):
        streams_limit = 1

    host = Narrow()
    host.add("t", transactional=True)
    first, second = host.opened(), host.opened()
    first.receive(tx(1) + tx(2), 100.0)
    second.receive(wire.message(9, queue="OS:h\\private$\\t", transaction=header(1), source=OTHER), 100.0)
    host.commit()
    assert second.reason is CloseReason.QUOTA
    assert host.messages("t") == [101, 102]


def test_names_that_no_queue_can_have_are_not_remembered() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(wire.message(9, queue="OS:h\\private$\\" + "t" * 2000, transaction=header(1)), 100.0)
    host.commit()
    assert session.reason is None  # its sender would send the message again for ever
    assert [reason for reason, _ in host.refusals] == [Refusal.BAD_NAME]
    assert len(host.session_context.streams) == 0


def test_streams_that_no_queue_took_make_room() -> None:
    class Narrow(Host):
        streams_limit = 1

    host = Narrow()
    host.add("t", transactional=True)
    host.opened().receive(wire.message(9, queue="OS:h\\private$\\none", transaction=header(1)), 100.0)
    host.commit()
    host.advance(1)
    host.opened().receive(tx(1), 101.0)
    host.commit()
    assert host.messages("t") == [101]
    (stream,) = host.session_context.streams
    assert stream.queue == host["t"].ordinal


def test_streams_that_were_silent_for_a_day_make_room() -> None:
    """Or whoever claims to be many senders would keep others out for as long as streams are remembered."""

    class Narrow(Host):
        streams_limit = 2

    def arrive(source: UUID, message: int) -> CloseReason | None:
        session = host.opened(host.now)
        name = "OS:h\\private$\\t"
        session.receive(wire.message(message, queue=name, transaction=header(1), source=source), host.now)
        host.commit()
        host.advance(1)  # what was taken has been acknowledged
        return session.reason

    host = Narrow()
    host.add("t", transactional=True)
    strangers = [UUID(int=number) for number in range(1, 4)]
    assert arrive(strangers[0], 1) is None
    host.advance(3_600)
    assert arrive(strangers[1], 1) is None
    host.advance(82_000)
    assert arrive(strangers[2], 1) is CloseReason.QUOTA
    host.advance(1_000)
    assert arrive(strangers[2], 1) is None
    assert {UUID(bytes_le=stream.source) for stream in host.session_context.streams} == set(strangers[1:])
    assert len(host.tables.scan(Table.SEQUENCE, b"I", b"J", 10)) == 2
