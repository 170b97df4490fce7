"""The receive path of a session with the store in memory: everything but sockets and the disk."""

from __future__ import annotations

import struct
from typing import Any
from uuid import UUID

import pytest

from bench.micro import MESSAGES
from bench.packets import connection_parameters, establish_connection, user_message
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.memorystore import MemoryReader, MemoryTables, MemoryWriter
from msmq_fast._native.queue import QueueCore
from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.mqqb.sessionstate import SessionState

pytestmark = pytest.mark.benchmark(group=f"receive, {MESSAGES} messages")

OWN, PEER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc"), UUID("557358d1-9150-9595-4997-b6e611ea26c6")
MESSAGE_ID = 56
HEADER = struct.pack("<IIIII", 0, 1, 7, 0, 0)


@pytest.mark.parametrize("kind", ["express", "recoverable", "transactional"])
def test_session(benchmark: Any, kind: str) -> None:
    stamped = kind == "transactional"
    writer = MemoryWriter()
    ledger = Ledger(OWN.bytes_le, writer, MemoryReader(MemoryTables()))
    ledger.reserved(1 << 40)
    ledger.tick(2_000 * 1_000_000)
    core = QueueCore(ledger, 1)
    context = SessionContext(OWN, ledger, lambda kind, name: Destination(core, transactional=stamped))
    session = Session(context, "127.0.0.9", 100.0, initiator=False)
    session.receive(establish_connection(PEER, OWN, 1), 100.0)
    session.receive(connection_parameters(500, 20_000), 100.0)
    assert session.state is SessionState.OPEN
    session.data_to_send()
    packet = user_message(
        "TCP:127.0.0.1\\private$\\bench",
        bytes(1024),
        recoverable=kind != "express",
        source=PEER,
        transaction=HEADER if stamped else b"",
    )
    place = packet.find(HEADER) + 12
    stream = bytearray(packet * MESSAGES)
    ids = 0

    def one_window() -> list[bytes]:
        nonlocal ids
        for number in range(MESSAGES):
            ids += 1
            struct.pack_into("<I", stream, number * len(packet) + MESSAGE_ID, ids)
            if stamped:
                struct.pack_into("<II", stream, number * len(packet) + place, ids, ids - 1)
        session.receive(bytes(stream), 100.0)
        writer.submit()
        writer.complete_all()
        core.receive_bulk(MESSAGES, 1 << 30, lambda messages, status: None)
        writer.submit()
        writer.complete_all()
        return session.data_to_send()

    assert benchmark(one_window)
    assert session.state is SessionState.OPEN
    assert core.arrived_total == ids
