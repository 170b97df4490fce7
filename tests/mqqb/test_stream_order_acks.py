"""OrderAcks for streams that arrive: when they leave, what they state; acknowledgments that arrive."""

from __future__ import annotations

import struct

import pytest

from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.packet.acks import FinalAck, OrderAck
from msmq_fast.qm.outgoing.resending import Messenger
from tests.mqqb.streams import acknowledged, host_with_queue, tx
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent


@pytest.mark.rule("QB-122", "QB-146", "QB-147", "QB-314", "QB-315")
def test_a_stream_that_does_not_pause_is_acknowledged_every_ten_seconds() -> None:
    host = host_with_queue()
    session = host.opened()
    times = []
    for number in range(1, 251):
        session.receive(tx(number), host.now)
        host.commit()
        session.data_to_send()
        host.advance(0.1)
        times += [host.now] * len(acknowledged(host))
    last = host.now
    host.advance(2)
    assert acknowledged(host) == [(7, 1, 250)]
    assert len(times) == 2  # the first one ten seconds after the stream was first heard
    gaps = [later - earlier for earlier, later in zip([100.0, *times], [*times, last + 0.5], strict=True)]
    assert max(gaps) <= 10.7
    assert min(gaps[:2]) >= 10.0
    assert session.state is SessionState.OPEN


def test_an_order_ack_says_only_what_is_durable() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    session.receive(tx(2), 100.0)
    host.advance(5)
    assert acknowledged(host) == [(7, 1, 1)]
    host.commit()
    host.advance(1)
    assert acknowledged(host) == [(7, 1, 2)]


@pytest.mark.rule("QB-041", "QB-042", "QB-044", "QB-045", "QB-047", "QB-048", "QB-049", "QB-396", "QB-398")
def test_the_packet_of_an_order_ack() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1) + tx(2), 100.0)
    host.commit()
    host.advance(1)
    (ack,) = host.acks
    body = struct.pack("<IIII", 1, 7, 2, 1) + bytes(20)
    expected = wire.message(
        0,
        queue="TCP:127.0.0.9\\PRIVATE$\\order_queue$",
        body=body,
        label="QM Ordering Ack",
        priority=0,
        source=OWN,
        sent_time=0,
        message_class=0xFF,
    )
    mask = bytearray(expected)
    algorithms = expected.index(struct.pack("<II", 0x8004, 0x6801))
    mask[algorithms : algorithms + 8] = bytes(8)
    assert ack.to_packet() == bytes(mask)


@pytest.mark.rule("QB-158", "QB-159", "QB-160", "QB-220")
@pytest.mark.parametrize("queue", ["TCP:127.0.0.1\\PRIVATE$\\order_queue$", "OS:h\\private$\\ORDER_QUEUE$"])
def test_acknowledgments_of_what_was_sent_are_handed_over_counted_and_acknowledged(queue: str) -> None:
    heard: list[object] = []

    class Sequences:
        def order_ack(self, ack: OrderAck, now: float, messenger: Messenger) -> None:
            heard.append((ack, now))

        def final_ack(self, ack: FinalAck, now: float, messenger: Messenger) -> None:
            heard.append((ack, now))

    host = Host(hooks=Hooks(sequences=Sequences()))  # type: ignore[arg-type]
    session = host.opened()
    order = struct.pack("<IIII", 3, 9, 12, 11) + b"junk" * 5
    final = struct.pack("<IIII16sI", 3, 9, 12, 11, OWN.bytes_le, 55)
    label = "QM Ordering Ack"
    session.receive(wire.message(1, queue=queue, body=order, label=label, message_class=0xFF), 101.0)
    session.receive(
        wire.message(2, queue=queue, body=final, label=label, message_class=0x4000, recoverable=True), 102.0
    )
    session.receive(
        wire.message(3, queue=queue, body=final, label=label, message_class=0xC001, recoverable=True), 102.0
    )
    assert heard == [
        (OrderAck(3, 9, 12), 101.0),
        (FinalAck(3, 9, 12, 11, OWN, 55, 0x4000), 102.0),
        (FinalAck(3, 9, 12, 11, OWN, 55, 0xC001), 102.0),
    ]
    session.pump(102.0)
    assert sent(session) == []
    host.commit()
    session.pump(102.0)
    assert sent(session) == [wire.session_ack(ack=3, base_ack=1, flags=3)]
    assert (host.session_context.counts.order_acks, host.session_context.counts.final_acks) == (1, 2)
    assert host.refusals == []


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"label": "QM Ordering Ack", "body": b"short", "message_class": 0xFF}, "malformed acknowledgment"),
        ({"label": "another", "body": bytes(36), "message_class": 0xFF}, "unknown queue"),
        ({"label": "QM Ordering Ack", "body": bytes(36), "message_class": 2}, "unknown queue"),
    ],
)
def test_what_is_no_acknowledgment_does_not_enter_the_order_queue(
    fields: dict[str, object], refusal: str
) -> None:
    host = Host()
    session = host.opened()
    session.receive(wire.message(1, queue="OS:h\\private$\\order_queue$", **fields), 101.0)  # type: ignore[arg-type]
    assert [reason for reason, _ in host.refusals] == [refusal]
    assert session.state is SessionState.OPEN


def test_a_stream_of_which_nothing_is_kept_is_not_acknowledged() -> None:
    host = host_with_queue()
    host.opened().receive(tx(5), 100.0)
    host.commit()
    host.advance(20)
    assert host.acks == []
    assert [reason for reason, _ in host.refusals] == ["out of order"]
