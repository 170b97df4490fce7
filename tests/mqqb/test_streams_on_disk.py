"""A stream over a real store whose map is full for a moment: the native writer leaves no gap either."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from msmq_fast._native.instream import InStreams
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.lmdbstore import LmdbTables
from msmq_fast._native.lmdbthreads import LmdbReader, LmdbWriter
from msmq_fast._native.queue import QueueCore
from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.orderack import OrderAcks
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN
from tests.support.worlds.stores import commit

LARGE = 3 << 20


def tx(number: int, body: bytes = b"") -> bytes:
    place = struct.pack("<IIIII", 0, 1, 7, number, number - 1)
    return wire.message(number, queue="OS:h\\private$\\t", transaction=place, body=body)


class Disk:
    """A queue manager's worth of parts over a data file that holds 2 MiB."""

    def __init__(self, directory: Path) -> None:
        self.tables = LmdbTables(directory, map_size=2 << 20)
        self.writer = LmdbWriter(self.tables)
        ledger = Ledger(OWN.bytes_le, self.writer, LmdbReader(self.tables))
        ledger.reserved(1 << 40)
        ledger.tick(2_000 * 1_000_000)
        target = Destination(QueueCore(ledger, 7), transactional=True)
        acks = OrderAcks(OWN, ledger, InStreams(ledger), lambda *_: None, lambda: 100.0)
        self.session_context = SessionContext(OWN, ledger, lambda _kind, _name: target, order_acks=acks)

    def session(self) -> Session:
        session = Session(self.session_context, "127.0.0.9", 100.0, initiator=False)
        session.receive(wire.establish() + wire.parameters(), 100.0)
        return session

    def stored(self) -> tuple[list[int], list[int]]:
        """MessageIDs of what is stored, and how far the streams are by their records."""
        positions = [decode.position(value) for _, value in self.tables.scan(Table.POSITION, b"", None, 99)]
        streams = self.tables.scan(Table.SEQUENCE, b"I", b"J", 99)
        numbers = [decode.incoming_stream(key, value).sequence_number for key, value in streams]
        return [position.ordinal for position in positions], numbers


@pytest.mark.rule("QB-272", "DU-12", "KV-G3")
def test_what_follows_a_commit_that_found_no_room_fails_with_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    session = disk.session()
    session.receive(tx(1), 100.0)
    assert commit(disk.writer) == 0
    session.receive(tx(2, bytes(LARGE)), 100.0)
    session.receive(tx(3) + tx(4), 100.0)  # in a batch of their own, for which there would be room
    assert commit(disk.writer) != 0
    session.pump(101.0)
    assert session.reason is CloseReason.STORE_FAILED
    assert disk.stored() == ([1], [1])
    disk.session().receive(tx(2) + tx(3) + tx(4), 101.0)
    assert commit(disk.writer) == 0
    assert disk.stored() == ([1, 2, 3, 4], [4])
    disk.writer.close()
