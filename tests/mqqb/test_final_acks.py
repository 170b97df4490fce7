"""FinalAcks: what becomes of transactional messages in their queues, told to those who sent them."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.reasons import CloseReason, Refusal
from msmq_fast.mqqb.session import Session
from msmq_fast.packet.acks import FinalAck, OrderAck, order_queue
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.operator.showing import infos
from msmq_fast.qm.transactions.transacted import TransactedQueue
from tests.mqqb.destination import ADDRESS, NEGATIVE, ORDER_QUEUE, POSITIVE, Destination, tx
from tests.support.clocks import WALL
from tests.support.mqqb import wire
from tests.support.worlds.arrivals import Refusing
from tests.support.worlds.channels import context
from tests.support.worlds.hosts import sent
from tests.support.worlds.queue_manager import carry

FINAL = 2  # TransactionHeader.Flags.FA


def by_number(packet: bytes, number: int) -> bytes:
    """The same message to a private queue by its number."""
    direct = wire.direct("TCP:10.0.0.7\\private$\\orders")
    assert packet.count(direct) == 1
    changed = bytearray(packet.replace(direct, struct.pack("<I", number)))
    changed[8:12] = struct.pack("<I", len(changed))
    flags = struct.unpack_from("<I", changed, 60)[0] & ~(7 << 10) | 3 << 10
    changed[60:64] = struct.pack("<I", flags)
    return bytes(changed)


def receive(world: Destination) -> None:
    handle = world.reader("orders")
    request = handle.receive(0)
    world.finish(request.completion)
    handle.close()


def purge(world: Destination) -> None:
    world.finish(world.manager.purge(world.manager.find("orders")))
    world.advance(1)


def delete(world: Destination) -> None:
    world.finish(world.manager.delete_queue("orders"))
    world.advance(1)


def expire(world: Destination) -> None:
    world.advance(20)


def committed(world: Destination) -> None:
    transaction = world.manager.transactions.begin()
    handle = world.reader("orders")
    world.finish(TransactedQueue(handle, transaction).receive(0).completion)
    assert world.answers() == []
    world.finish(transaction.commit())
    handle.close()


def rejected(world: Destination) -> None:
    transaction = world.manager.transactions.begin()
    handle = world.reader("orders")
    inside = TransactedQueue(handle, transaction)
    inside.reject(world.finish(inside.receive(0).completion).lookup_id)
    world.finish(transaction.commit())
    handle.close()


ENDS = [
    (receive, MessageClass.ACK_RECEIVE),
    (committed, MessageClass.ACK_RECEIVE),
    (purge, MessageClass.NACK_Q_PURGED),
    (delete, MessageClass.NACK_Q_DELETED),
    (expire, MessageClass.NACK_RECEIVE_TIMEOUT),
    (rejected, MessageClass.NACK_RECEIVE_REJECTED),
]


@pytest.mark.rule("QB-051", "QB-056", "QB-057", "QB-058", "QB-361", "QB-397", "X-64", "DM-203")
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("end", "reason"), ENDS)
def test_the_end_of_a_journaled_message_is_told(end, reason: int, again: bool) -> None:  # type: ignore[no-untyped-def]
    world = Destination()
    world.create("orders", transactional=True)
    world.take(tx(3, previous=0, received=10))
    world.run()
    if again:
        world.crash()
    assert world.answers() == []
    end(world)
    assert world.answers() == [FinalAck(1, 7, 3, 0, wire.PEER, 103, reason)]
    assert world.bodies(r".\system$;deadxact") == []  # its sender keeps what failed


@pytest.mark.rule("QB-051", "QB-361")
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"journal": POSITIVE}, True),
        ({"journal": NEGATIVE}, True),
        ({"journal": 0, "flags": FINAL}, True),
        ({"journal": 0}, False),
    ],
)
@pytest.mark.parametrize("end", [receive, purge])
@pytest.mark.parametrize("again", [False, True])
def test_only_those_who_ask_hear_of_the_end(fields: dict[str, int], told: bool, end, again: bool) -> None:  # type: ignore[no-untyped-def]
    world = Destination()
    world.create("orders", transactional=True)
    world.take(tx(1, **fields))
    world.run()
    if again:
        world.crash()
    end(world)
    assert len(world.answers()) == told


def test_a_purge_that_a_crash_cut_short_still_tells_of_the_end() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    world.take(tx(1, journal=POSITIVE))
    world.run()
    done = world.manager.purge(world.manager.find("orders"))
    while not done.done:
        world.writer.submit()
        world.writer.complete_one()
    world.crash()
    world.advance(5)
    assert [answer.message_class for answer in world.answers()] == [MessageClass.NACK_Q_PURGED]


@pytest.mark.rule("QB-361")
def test_nobody_is_told_of_messages_that_are_not_transactional_or_were_sent_here() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    world.create("plain")
    world.take(wire.message(1, queue="OS:h\\private$\\plain", recoverable=True, sent_time=WALL))
    world.take(tx(1, source=world.manager.guid))
    world.run()
    receive(world)
    world.receive("plain")
    assert list(world.manager.outgoing()) == []


@pytest.mark.rule("QB-051", "QB-231", "QB-384")
@pytest.mark.parametrize("journal", [0, NEGATIVE])
def test_a_rejected_message_is_told_of_whatever_it_asks_for(journal: int) -> None:
    """Also while insecure administration nacks are off."""
    world = Destination()
    world.create("admin")
    world.take(tx(1, journal=journal, ack_flags=4, admin="TCP:10.0.0.7\\private$\\admin"))
    world.run()
    assert [answer.message_class for answer in world.answers()] == [MessageClass.NACK_BAD_DST_Q]
    assert world.bodies("admin") == []


@pytest.mark.rule("QB-283", "X-64")
def test_a_message_beyond_the_quota_is_told_of_and_is_no_dead_letter_here() -> None:
    world = Destination()
    world.create("orders", transactional=True, quota_kb=0)
    world.take(tx(1, journal=NEGATIVE))
    world.run()
    assert [answer.message_class for answer in world.answers()] == [MessageClass.NACK_Q_EXCEED_QUOTA]
    for name in (r".\system$;DEADLETTER", r".\system$;DEADXACT"):
        assert world.bodies(name) == []


@pytest.mark.rule("QB-399", "QB-054")
def test_by_number_the_answer_goes_to_the_queue_manager_that_sent_first() -> None:
    world = Destination()
    queue = world.create("orders", transactional=True)
    world.take(by_number(tx(1), queue.private_number))
    world.run()
    receive(world)
    assert len(world.answers(rf"PRIVATE={wire.PEER}\00000004")) == 1


@pytest.mark.rule("QB-052", "QB-053", "QB-055", "QB-394", "QB-395")
def test_the_packet_of_a_final_ack() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    world.take(tx(3, previous=0))
    world.run()
    receive(world)
    (received,) = world.manager.find(ORDER_QUEUE).core.take(9, 1 << 20, world.manager.ledger.new_owner())
    expected = bytearray(
        wire.message(
            wire.ordinal(received.packet),
            queue=f"TCP:{ADDRESS}\\PRIVATE$\\order_queue$",
            body=struct.pack("<IIII16sI", 1, 7, 3, 0, wire.PEER.bytes_le, 103),
            label="QM Ordering Ack",
            priority=0,
            recoverable=True,
            source=world.manager.guid,
            sent_time=WALL,
            message_class=0x4000,
        )
    )
    algorithms = expected.index(struct.pack("<II", 0x8004, 0x6801))
    expected[algorithms : algorithms + 8] = bytes(8)
    assert received.packet == bytes(expected)


@pytest.mark.rule("QB-286")
def test_management_sees_the_streams_of_a_queue() -> None:
    world = Destination()
    queue = world.create("orders", transactional=True)
    world.take(tx(1), tx(2), tx(9, previous=8))
    world.run()
    (info,) = infos([queue], world.manager.guid, world.manager.incoming.transfers(), lambda _: False)
    (transfer,) = info.as_map()["incoming"]
    assert transfer == {
        "format_name": r"DIRECT=TCP:10.0.0.7\private$\orders",
        "sender": str(wire.PEER),
        "sequence_id": 7 << 32 | 1,
        "sequence_number": 2,
        "last_access": WALL,
        "reject_count": 1,
    }


@pytest.mark.rule("QB-271")
def test_whatever_comes_of_a_stream_was_the_last_of_it() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    for passed, packet in ((0, tx(1)), (40, tx(2)), (60, tx(2)), (90, tx(9, previous=8))):
        world.advance(WALL + passed - world.clock.wall // 1_000_000)
        world.take(packet)
        world.run()
        (transfer,) = world.manager.incoming.transfers()
        assert transfer.last_access == WALL + passed
    world.crash()
    (transfer,) = world.manager.incoming.transfers()
    assert (transfer.sequence_number, transfer.last_access) == (2, WALL + 40)


@pytest.mark.rule("QB-400")
def test_what_cannot_be_put_into_the_outgoing_queue_is_discarded() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    world.take(tx(1), tx(2))
    world.run()
    receive(world)
    world.manager.find(ORDER_QUEUE).core.quota_bytes = 1
    receive(world)
    assert [answer.message_id for answer in world.answers()] == [101]
    assert world.manager.ack_policy.discarded == 1
    assert world.bodies() == []


@pytest.mark.rule("QB-400")
def test_what_has_no_outgoing_queue_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Destination()
    monkeypatch.setattr(world.manager.answer_queues, "open", lambda _name, _group: None)
    ack = OrderAck(1, 1, 1).message(order_queue(UUID(int=1)), world.manager.guid)
    assert world.manager.ack_policy.send_away(ack) is None
    assert world.manager.ack_policy.discarded == 1
    assert not list(world.manager.outgoing())


def test_acknowledgments_to_claimed_senders_open_no_more_queues_than_there_may_be() -> None:
    world = Destination()
    world.manager.answer_queues.most = 10
    send = world.manager.ack_policy.send_away
    tell = OrderAck(1, 1, 1).message
    for number in range(1, 1001):
        send(tell(order_queue(UUID(int=number)), world.manager.guid), None, f"10.1.{number % 7}.1")
        world.run()
    assert len(list(world.manager.outgoing())) == 10
    assert send(tell(order_queue(UUID(int=5000)), world.manager.guid), None, "10.0.0.200")  # always


def test_a_full_queue_manager_still_tells_of_the_end() -> None:
    """Without a FinalAck the message would stay with its sender for ever."""
    world = Destination()
    world.create("orders", transactional=True)
    world.take(tx(1), tx(2))
    world.run()
    world.manager.ledger.quota_bytes = 1
    receive(world)
    world.manager.ledger.throttled = True
    receive(world)
    assert [answer.message_id for answer in world.answers()] == [101, 102]


@pytest.mark.rule("QB-260", "QB-384", "QB-057")
def test_who_may_not_send_hears_of_it_by_a_final_ack_only() -> None:
    world = Destination(everybody=False)
    world.create("admin")
    world.create("orders", transactional=True)
    world.take(tx(1, ack_flags=4, admin="TCP:10.0.0.7\\private$\\admin"), tx(2))
    world.run()
    assert [(answer.message_class, answer.message_id) for answer in world.answers()] == [
        (MessageClass.NACK_ACCESS_DENIED, 101),
        (MessageClass.NACK_ACCESS_DENIED, 102),
    ]
    assert world.bodies("admin") == world.bodies() == []
    (transfer,) = world.session_context.streams
    assert transfer.durable_number == 2


@pytest.mark.rule("QB-057")
@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (Refusal.SIGNED, MessageClass.NACK_BAD_SIGNATURE),
        (Refusal.ENCRYPTED, MessageClass.NACK_BAD_ENCRYPTION),
        (Refusal.UNSUPPORTED_PROVIDER, MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER),
    ],
)
def test_a_message_that_is_not_opened_is_told_of_with_the_reason(
    refusal: Refusal, reason: MessageClass
) -> None:
    world = Destination(hooks=Hooks(protection=Refusing(refusal)))  # type: ignore[arg-type]
    world.create("orders", transactional=True, authenticated=True)
    world.take(tx(1))
    world.run()
    assert [answer.message_class for answer in world.answers()] == [reason]
    assert world.bodies() == []


@pytest.mark.rule("QB-057", "QB-232")
@pytest.mark.parametrize("wishes", [0, 4])
def test_a_transactional_message_for_another_kind_of_queue_is_told_of_twice(wishes: int) -> None:
    """By a FinalAck in any case, and by an acknowledgment where it asks for that."""
    world = Destination()
    world.create("admin")
    world.create("orders")
    world.take(tx(1, ack_flags=wishes, admin="TCP:10.0.0.7\\private$\\admin"))
    world.run()
    assert [answer.message_class for answer in world.answers()] == [MessageClass.NACK_NOT_TRANSACTIONAL_Q]
    assert world.manager.find("admin").messages == (wishes == 4)
    assert world.bodies() == []


@pytest.mark.rule("QB-227", "QB-398", "QB-399")
def test_each_stream_is_answered_by_the_form_of_its_own_name() -> None:
    world = Destination()
    queue = world.create("orders", transactional=True)
    world.take(tx(1), by_number(tx(1), queue.private_number), tx(2))
    world.run()
    for _ in range(3):
        receive(world)
    assert [answer.message_id for answer in world.answers()] == [101, 102]
    assert [answer.message_id for answer in world.answers(rf"PRIVATE={wire.PEER}\00000004")] == [101]


@pytest.mark.rule("QB-050", "QB-059", "QB-127")
def test_acknowledgments_travel_on_the_session_of_the_sender_and_count_there() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    world.session.close(CloseReason.DISCONNECTED, world.clock.seconds)
    connected: list[object] = []
    endpoint = Endpoint(world.session_context, connected.append, world.clock.seconds)
    session = endpoint.accept(ADDRESS, world.clock.seconds)
    world.session = session
    session.receive(wire.establish() + wire.parameters(), world.clock.seconds)
    session.data_to_send()
    of_channels = context(carrier=endpoint.transfer, monotonic=lambda: world.clock.seconds)
    carry(world.manager, lambda queue: OutgoingChannel(queue, of_channels))
    world.take(tx(1))
    world.run()
    receive(world)
    world.run()
    (final,) = [packet for packet in sent(session) if wire.kind(packet) == "MSG"]
    assert (session.sent.sent, session.sent.recoverable) == (1, 1)
    assert struct.unpack_from("<I", final, 60)[0] >> 5 & 3 == 1
    world.clock.advance(1)
    world.manager.tick()
    assert endpoint.next_deadline() is not None
    world.clock.advance(1)
    world.manager.tick()
    endpoint.expire(world.clock.seconds)
    world.run()
    (order,) = [packet for packet in sent(session) if wire.kind(packet) == "MSG"]
    assert b"QM Ordering Ack".decode().encode("utf-16-le") in order
    assert (session.sent.sent, session.sent.recoverable) == (2, 1)
    assert connected == []


def test_queue_managers_behind_one_address_are_answered_by_their_guids() -> None:
    world = Destination()
    world.create("orders", transactional=True)
    other = Session(world.session_context, ADDRESS, world.clock.seconds, initiator=False)
    other.receive(wire.establish(client=UUID(int=77)) + wire.parameters(), world.clock.seconds)
    world.take(tx(1))
    other.receive(tx(1, source=UUID(int=77)), world.clock.seconds)
    world.run()
    receive(world)
    other.close(CloseReason.DISCONNECTED, world.clock.seconds)
    receive(world)
    assert [answer.source for answer in world.answers(rf"PRIVATE={wire.PEER}\00000004")] == [wire.PEER]
    assert [answer.source for answer in world.answers(rf"PRIVATE={UUID(int=77)}\00000004")] == [UUID(int=77)]
    assert world.answers() == []
