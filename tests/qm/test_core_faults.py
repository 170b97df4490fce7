"""What one queue or listener does wrong does not harm the others; and what taking costs."""

from __future__ import annotations

import pytest

from msmq_fast._native.ledger import Ledger
from msmq_fast._native.memorystore import MemoryReader, MemoryTables, MemoryWriter
from msmq_fast._native.packetbuild import build_user_message
from msmq_fast._native.queue import QueueCore

NAME = b"\x04\x00a\x00\x00\x00\x00\x00"


@pytest.fixture
def ledger() -> Ledger:
    tables = MemoryTables()
    ledger = Ledger(bytes(16), MemoryWriter(tables), MemoryReader(tables))
    ledger.reserved(1 << 40)
    ledger.tick(2_000_000_000)
    return ledger


def test_a_reader_that_raises_does_not_keep_the_others_waiting(ledger: Ledger) -> None:
    first, second = QueueCore(ledger, 1), QueueCore(ledger, 2)
    called: list[int] = []

    def bad() -> None:
        raise ZeroDivisionError

    first.ready, second.ready = bad, lambda: called.append(2)
    first.interested = second.interested = True
    first.nudge()
    second.nudge()
    with pytest.raises(ZeroDivisionError):
        ledger.serve()
    assert called == [2]
    second.nudge()
    first.ready = None
    ledger.serve()
    assert called == [2, 2]


def test_taking_express_messages_one_by_one_does_not_look_for_bodies_on_disk(ledger: Ledger) -> None:
    """The store is asked for bodies when one is missing, and now and then; not for each message."""
    core = QueueCore(ledger, 1)
    core.enqueue_packets([build_user_message(NAME, body=b"x", sent_time=1_900)] * 3)
    core.enqueue_packets([build_user_message(NAME, body=b"y", sent_time=1_900, delivery=1)])
    ledger.cache_limit = 0
    writer, reader = ledger.writer, ledger.reader
    assert isinstance(writer, MemoryWriter)
    writer.complete_all()
    core.receive_bulk(1, 1 << 40, lambda _messages, _status: None)
    reader.complete()
    assert ledger.cached_bytes == 0
