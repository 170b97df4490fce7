"""The stored state of a stream: what survives a restart, what management sees, damage."""

from __future__ import annotations

import pytest

from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.mqqb.streams import acknowledged, host_with_queue, tx
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host


@pytest.mark.rule("QB-095", "QB-096", "QB-272", "QB-286", "KV-10", "REC-09")
def test_the_state_of_a_stream_survives_with_its_messages() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1) + tx(2), 100.0)
    host.commit()
    host.opened().receive(tx(3), 100.0)  # dies before it is durable
    again = Host(tables=host.writer.crash())
    again.add("t", transactional=True)
    (stream,) = again.session_context.streams
    assert (stream.identifier, stream.number, stream.source) == (7 << 32 | 1, 2, wire.PEER.bytes_le)
    assert stream.address == "127.0.0.9"
    session = again.opened()
    session.receive(tx(2) + tx(4) + tx(3), 100.0)
    again.commit()
    assert again.messages("t") == [103]
    again.advance(1)
    assert acknowledged(again) == [(7, 1, 3)]


@pytest.mark.rule("QB-267")
def test_after_a_restart_the_repetition_of_what_is_kept_brings_the_order_ack() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1) + tx(2), 100.0)
    host.commit()
    again = Host(tables=host.writer.crash())
    again.add("t", transactional=True)
    again.advance(30)
    assert again.acks == []
    again.opened().receive(tx(1) + tx(2), 130.0)
    again.commit()
    again.advance(1)
    assert acknowledged(again) == [(7, 1, 2)]


@pytest.mark.rule("KV-10")
def test_the_record_of_a_stream_says_what_management_sees() -> None:
    host = host_with_queue()
    session = host.opened()
    session.receive(tx(1) + tx(2) + tx(9, 8), 100.0)
    host.commit()
    host.advance(1)
    host.commit()
    ((key, value),) = host.tables.scan(Table.SEQUENCE, b"I", b"J", 10)
    assert decode.incoming_stream(key, value) == decode.IncomingStream(
        source=wire.PEER.bytes_le,
        dest_type=7,
        name=wire.direct("OS:h\\private$\\t"),
        address="127.0.0.9",
        queue=host["t"].ordinal,
        sequence_id=7 << 32 | 1,
        sequence_number=2,
        rejects=1,
        accessed_s=2_000,
    )
    for size in range(len(value) - len(wire.direct("OS:h\\private$\\t"))):
        with pytest.raises(decode.DecodeError):
            decode.incoming_stream(key, value[:size])


def test_a_stream_without_an_identifier_leaves_no_record_behind() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1, 0, ordinal=0, stamp=0), 100.0)
    host.commit()
    host.advance(1)
    assert len(host.tables.scan(Table.SEQUENCE, b"I", b"J", 9)) == 1
    assert host.order_acks.streams.forget(0xFFFFFFFF) == 1
    host.commit()
    assert host.tables.scan(Table.SEQUENCE, b"I", b"J", 9) == []


@pytest.mark.rule("QB-097")
def test_the_number_of_messages_out_of_order_survives() -> None:
    host = host_with_queue()
    host.opened().receive(tx(1) + tx(3, 2) + tx(4, 3), 100.0)
    host.commit()
    host.advance(1)
    host.commit()
    again = Host(tables=host.writer.crash())
    (stream,) = again.session_context.streams
    assert (stream.number, stream.rejects) == (1, 2)
    again.add("t", transactional=True)
    again.opened().receive(tx(2), 101.0)
    again.commit()
    assert stream.rejects == 0


@pytest.mark.parametrize("cut", [1, 20, 27])
def test_a_damaged_record_is_set_aside(cut: int) -> None:
    host = host_with_queue()
    host.opened().receive(tx(1), 100.0)
    host.commit()
    table = host.writer.crash()
    (key,) = table.tables[8]
    table.tables[8][key] = table.tables[8][key][:cut]
    again = Host(tables=table)
    assert len(again.damage) == 1
    assert len(again.session_context.streams) == 0
