"""Messages of a stream that are rejected or cannot be stored: their numbers, FinalAcks, full disks."""

from __future__ import annotations

from errno import ENOSPC

import pytest

from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.packet.acks import FinalAck
from msmq_fast.protocol.classes import MessageClass
from tests.mqqb.streams import Telling, acknowledged, host_with_queue, tx
from tests.support.mqqb import wire
from tests.support.mqqb.headers import header
from tests.support.worlds.hosts import Host, sent


def finals(host: Host) -> list[tuple[int, int]]:
    """(class, MessageID) of the FinalAcks since the last call; OrderAcks are forgotten too."""
    found = [
        FinalAck.decode_body(ack.body, ack.message_class) for ack in host.acks if ack.message_class != 0xFF
    ]
    host.acks.clear()
    return [(ack.message_class, ack.message_id) for ack in found]


@pytest.mark.rule("QB-274", "QB-051", "QB-231", "QB-057")
@pytest.mark.parametrize("told", [True, False])
def test_what_is_rejected_in_order_uses_up_its_number(told: bool) -> None:
    """Also where there is no room to tell its sender."""
    host = Telling() if told else Host(nack=lambda packet, reason: False)
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.add("t", transactional=True)
    session.receive(tx(2), 100.0)
    host.commit()
    assert finals(host) == [(MessageClass.NACK_BAD_DST_Q, 101)] * told
    assert host.messages("t") == [102]
    host.advance(1)
    assert acknowledged(host) == [(7, 1, 2)]
    session.pump(101.0)
    assert sent(session) == [wire.session_ack(ack=2, base_ack=1, flags=3)]


@pytest.mark.rule("QB-232", "QB-233")
def test_transactional_and_other_messages_go_to_their_kind_of_queue_only() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(wire.message(1, queue="OS:h\\private$\\t"), 100.0)
    session.receive(wire.message(2, queue="OS:h\\private$\\q", transaction=header(1)), 100.0)
    host.commit()
    assert [reason for reason, _ in host.refusals] == ["not transactional", "transactional"]
    assert finals(host) == [(MessageClass.NACK_NOT_TRANSACTIONAL_Q, 2)]
    assert host.messages("t") == host.messages() == []


@pytest.mark.rule("QB-265", "QB-285")
def test_what_expired_on_its_way_uses_up_its_number() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1) + tx(2, reach=5), 100.0)
    session.receive(tx(3), 100.0)
    host.commit()
    assert finals(host) == [(MessageClass.NACK_REACH_QUEUE_TIMEOUT, 102)]
    assert host.messages("t") == [101, 103]


@pytest.mark.rule("QB-283", "X-37")
def test_a_full_queue_rejects_and_the_stream_goes_on() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    host["t"].quota_bytes = 1
    session.receive(tx(2), 100.0)
    host["t"].quota_bytes = 1 << 20
    session.receive(tx(3), 100.0)
    host.commit()
    assert finals(host) == [(MessageClass.NACK_Q_EXCEED_QUOTA, 102)]
    assert host.messages("t") == [101, 103]


@pytest.mark.rule("QB-284", "X-37")
def test_a_full_queue_manager_closes_and_takes_the_message_later() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    host.ledger.quota_bytes = 1
    session.receive(tx(2), 100.0)
    assert session.reason is CloseReason.QUOTA
    host.ledger.quota_bytes = 1 << 30
    second = host.opened()
    second.receive(tx(2), 101.0)
    host.commit()
    assert host.messages("t") == [101, 102]


@pytest.mark.rule("QB-272")
@pytest.mark.parametrize("sealed", [False, True])
def test_a_commit_that_fails_leaves_no_gap(sealed: bool) -> None:
    """The next batch has a later message of the stream: gathered, or on its way, when the disk is full."""
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1), 100.0)
    host.commit()
    host.writer.fail_commit(1, ENOSPC)
    session.receive(tx(2), 100.0)
    host.writer.submit()
    session.receive(tx(3, body=bytes(2 << 20) if sealed else b""), 100.0)
    if sealed:
        session.receive(tx(4), 100.0)
    other = host.opened()
    host.commit()
    session.pump(100.5)
    assert session.reason is CloseReason.STORE_FAILED
    assert host.messages("t") == [101]
    (stream,) = host.session_context.streams
    assert (stream.number, stream.durable_number) == (1, 1)
    other.receive(tx(2) + tx(3), 101.0)
    host.commit()
    assert host.messages("t") == [101, 102, 103]
    again = Host(tables=host.writer.crash())
    (stream,) = again.session_context.streams
    assert stream.number == 3


def test_other_batches_are_kept_when_one_with_a_stream_fails() -> None:
    host = host_with_queue()
    first, second = host.opened(), host.opened()
    host.writer.fail_commit(1, ENOSPC)
    first.receive(tx(1), 100.0)
    host.writer.submit()
    second.receive(wire.message(7, recoverable=True), 100.0)
    host.commit()
    assert host.messages() == [7]
    assert host.messages("t") == []
    assert second.state is SessionState.OPEN
