"""A queue manager that is full: it takes nothing in, but what it has itself goes on leaving."""

from __future__ import annotations

from array import array
from uuid import UUID

import pytest

from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.mqqb.timers import Timers
from msmq_fast.mqqb.transfer import Connect
from msmq_fast.packet.acks import OrderAck
from msmq_fast.protocol.classes import MessageClass
from tests.mqqb.destination import ORDER_QUEUE, Destination, tx
from tests.mqqb.transfers import Bench
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, Source, sent

TIMERS = Timers(retry_connect=5.0)


def full(host: Host, mine: int = 3, window: int = 64) -> tuple[Session, Source]:
    """A session of a full queue manager that has messages on the way, and was sent one."""
    source = host.outgoing([wire.message(n, source=OWN, recoverable=True) for n in range(1, mine + 1)])
    session = host.opened(window=window)
    session.attach(source)
    session.pump(100.0)
    sent(session)
    host.ledger.quota_bytes = 0
    session.receive(wire.message(50) + wire.message(51), 100.0)
    return session, source


def acknowledged(count: int, *, sent: int = 0, window: int = 64) -> bytes:
    """A SessionAck for so many recoverable messages, of a peer that has sent `sent` express ones."""
    return wire.session_ack(ack=count, base_ack=1, flags=(1 << count) - 1, sent=sent, window=window)


def test_it_waits_for_the_acknowledgment_of_what_is_under_way() -> None:
    """The messages that fill it may be these: on the next session they would be as far as on this one."""
    host = Host(timers=TIMERS)
    session, source = full(host)
    assert session.state is SessionState.LINGERING
    session.receive(acknowledged(2, sent=2), 101.0)
    assert (session.alive, source.core.messages) == (True, 1)
    session.receive(acknowledged(3, sent=2), 102.0)
    assert (session.reason, source.core.messages) == (CloseReason.QUOTA, 0)
    assert "\\50" in session.detail


def test_nothing_that_comes_is_taken_or_acknowledged_any_more_even_if_there_is_room_again() -> None:
    host = Host(timers=TIMERS)
    session, _ = full(host)
    host.ledger.quota_bytes = 1 << 30
    session.receive(wire.message(52) + wire.message(53, recoverable=True), 101.0)
    host.commit()
    session.pump(101.0)
    session.pause()
    session.expire(104.0)
    assert (host.messages(), sent(session)) == ([], [])
    assert session.window.received == 1  # what it was refused for


def test_what_waits_leaves_for_one_retry_interval() -> None:
    host = Host(timers=TIMERS)
    session, source = full(host, mine=6, window=2)
    session.receive(acknowledged(2, sent=2, window=2), 101.0)
    assert [wire.ordinal(packet) for packet in sent(session)] == [3, 4]
    session.receive(acknowledged(4, sent=2, window=2), 105.5)
    assert sent(session) == []
    assert (session.reason, source.core.messages) == (CloseReason.QUOTA, 2)


def test_a_peer_that_does_not_acknowledge_is_not_waited_for_longer_than_elsewhere() -> None:
    host = Host(timers=TIMERS)
    session, source = full(host)
    deadline = 100.0 + 5.0 + 2 * 20.0  # a direct name doubles AckWaitTimeout
    for now in (110.0, 130.0, deadline - 0.1):
        session.receive(wire.message(60), now)  # it is heard
        session.expire(now)
        assert session.alive
    assert session.next_deadline() is not None
    session.expire(deadline)
    assert session.reason is CloseReason.QUOTA
    assert source.head()[1] == 3  # to be sent again


def test_without_anything_under_way_it_ends_at_once() -> None:
    host = Host(timers=TIMERS)
    session = host.opened()
    host.ledger.quota_bytes = 0
    session.receive(wire.message(50), 100.0)
    assert session.reason is CloseReason.QUOTA


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (wire.session_ack(ack=9), CloseReason.ACK_UNSENT),
        (wire.message(52, session=wire.header(ack=9)), CloseReason.ACK_UNSENT),
        (wire.establish(), CloseReason.OUT_OF_STATE),
        (wire.parameters(), CloseReason.OUT_OF_STATE),
        (b"\xff" * 64, CloseReason.MALFORMED),
    ],
)
def test_what_ends_every_session_ends_one_that_lingers(packet: bytes, reason: CloseReason) -> None:
    session, _ = full(Host(timers=TIMERS))
    session.receive(packet, 101.0)
    assert session.reason is reason


def test_a_header_in_a_message_that_is_skipped_counts() -> None:
    host = Host(timers=TIMERS)
    session, source = full(host)
    header = wire.header(ack=3, base_ack=1, flags=7, sent=2)
    session.receive(wire.message(52, session=header), 101.0)
    assert (session.reason, source.core.messages) == (CloseReason.QUOTA, 0)
    assert host.messages() == []


def order_ack(number: int) -> bytes:
    return wire.message(
        900,
        queue="TCP:10.0.0.7\\private$\\order_queue$",
        label="QM Ordering Ack",
        body=OrderAck(1, 7, number).encode_body(),
        message_class=MessageClass.ORDER_ACK,
    )


def test_order_acks_that_come_meanwhile_are_heard_again_and_again() -> None:
    """They make room, and are never acknowledged: their sender repeats them on the next session."""

    class Sequences:
        def __init__(self) -> None:
            self.heard: list[int] = []

        def order_ack(self, ack: OrderAck, now: float, messenger: object) -> None:
            self.heard.append(ack.sequence_number)

    sequences = Sequences()
    host = Host(timers=TIMERS, hooks=Hooks(sequences=sequences))  # type: ignore[arg-type]
    session, _ = full(host)
    session.receive(order_ack(4) + order_ack(4), 101.0)
    session.receive(wire.message(53, message_class=MessageClass.NACK_BAD_DST_Q), 101.0)
    assert sequences.heard == [4, 4]
    assert session.window.received == 1


def test_no_other_queue_is_sent_on_a_session_that_lingers() -> None:
    bench = Bench(timers=TIMERS)
    first = bench.queue("10.0.0.7", recoverable=True)
    bench.transfer.submit(first, 10.0)
    session = bench.connect(10.0)
    sent(session)
    bench.host.ledger.quota_bytes = 0
    session.receive(wire.message(50), 10.0)
    assert session.state is SessionState.LINGERING
    bench.host.ledger.quota_bytes = 1 << 30
    bench.transfer.submit(bench.queue("10.0.0.8", guid=wire.PEER), 11.0)
    assert bench.take() == [Connect(2, "10.0.0.8")]


@pytest.mark.parametrize(("lived", "at_once"), [(4.9, False), (5.0, True)])
def test_a_session_of_the_peer_that_was_short_is_not_dialled_again_at_once(
    lived: float, at_once: bool
) -> None:
    bench = Bench(timers=TIMERS)
    session = bench.accepted("10.0.0.7", 5.0)
    bench.transfer.submit(bench.queue("10.0.0.7", recoverable=True), 6.0)
    sent(session)
    session.close(CloseReason.DISCONNECTED, 5.0 + lived)
    assert bench.take() == ([Connect(1, "10.0.0.7")] if at_once else [])
    bench.endpoint.expire(10.0 + lived)
    assert bench.take() == ([] if at_once else [Connect(1, "10.0.0.7")])


# ---- OrderAcks that wait


def waiting(world: Destination, name: str = ORDER_QUEUE) -> list[int]:
    """Numbers of the OrderAcks in an outgoing queue."""
    acks = [message for message in world.leaving(name) if message.message_class == MessageClass.ORDER_ACK]
    return [OrderAck.decode_body(ack.body).sequence_number for ack in acks]


def acknowledge(world: Destination, *packets: bytes) -> None:
    """Messages of streams arrive, and the time of their OrderAck comes."""
    world.take(*packets)
    world.run()
    acks = world.session_context.order_acks
    assert acks is not None
    assert acks.next_deadline() is not None
    world.advance(1)
    acks.expire(world.clock.seconds)
    world.run()


def test_an_order_ack_takes_the_place_of_one_that_has_not_left() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    for number in range(1, 6):
        acknowledge(world, tx(number, journal=0))
        assert waiting(world) == [number]


def test_each_stream_has_an_order_ack_of_its_own() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    acknowledge(world, tx(1, journal=0), tx(1, journal=0, source=UUID(int=5)))
    acknowledge(world, tx(2, journal=0))
    assert waiting(world) == [2]
    assert waiting(world, f"PRIVATE={wire.PEER}\\00000004") == [1]  # by the peer that brought it


def test_order_acks_that_are_under_way_stay_until_they_come_back() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    acknowledge(world, tx(1, journal=0))
    core = world.manager.find(ORDER_QUEUE).core
    owner = world.manager.ledger.new_owner()
    (taken,) = core.take(10, 1 << 20, owner)
    acknowledge(world, tx(2, journal=0))
    acknowledge(world, tx(3, journal=0))
    assert waiting(world) == [1, 3]
    core.release(array("Q", [taken.lookup_id]), owner)
    acknowledge(world, tx(4, journal=0))
    assert waiting(world) == [4]


def test_of_several_links_that_a_session_serves_the_one_with_order_acks_is_first() -> None:
    """Whatever the window of the peer is: a full peer takes nothing else."""
    bench = Bench(timers=TIMERS)
    first = bench.queue("10.0.0.7", range(1, 4), recoverable=True)
    second = bench.queue("10.0.0.7", range(9, 10), guid=wire.PEER)
    second.base_priority = 1 << 16
    for queue in (first, second):
        bench.transfer.submit(queue, 10.0)
    bench.take()
    session = bench.endpoint.accept("10.0.0.7", 11.0)
    session.receive(wire.establish() + wire.parameters(500, 20_000, window=1), 11.0)
    assert [wire.ordinal(packet) for packet in sent(session) if wire.kind(packet) == "MSG"] == [9]
