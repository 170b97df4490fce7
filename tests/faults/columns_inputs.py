"""Damaged packets and events for `fuzz_columns.py`, and what the columns of them must be."""

from __future__ import annotations

import random
import time

from msmq_fast._native.columnmessages import MessageEncoder
from msmq_fast._native.columnstore import Contents, stored
from msmq_fast._native.memorystore import MemoryTables
from msmq_fast.bulk.reader import CLASSES
from msmq_fast.packet.soap import CompoundMessageHeader, SRMPEnvelopeHeader
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.errors import PacketFault
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.support.bulk import events as feed
from tests.support.bulk import model
from tests.support.bulk.packets import plain
from tests.support.hostile.mutation import mutate
from tests.support.packet import samples
from tests.support.worlds.cores import NOW_US, OF_MESSAGES, dicts

KEY = 3 << 56 | 7
MESSAGE, EVENT = b"\0", b"\1"
ENVELOPES = (
    "<?xml?><a:E x='>'><!-- < --><Header><x/></Header><a:Body ><![CDATA[]>]]></a:Body ></a:E><!---->",
    '\ufeff<E><Body a = "</" b=\'"\'/><?x ?><b:Header><c><c></c></c>é\U0001f600</b:Header>\n</E> ',
)
"""With everything that the search for their parts knows."""


def seeds() -> list[bytes]:
    """A packet or a record of events, behind a byte that says which."""
    events = [feed.packed([feed.event(1)] * 3, size) for size in (56, 72, 80)]
    packets = [packet for _, packet in samples.seeds()]
    packets.append(plain(b"body", label="label"))
    packets += [
        samples.build(envelope=SRMPEnvelopeHeader(xml), compound=CompoundMessageHeader()).encode()
        for xml in ENVELOPES
    ]
    return [MESSAGE + packet for packet in packets] + [EVENT + record for record in events]


def _position(size: int) -> bytes:
    """The record of a recoverable message with a packet of `size` bytes."""
    fields = dict.fromkeys(decode.Position._fields[:-2], 0)
    fields |= {"flags": 1, "content_id": 7, "content_bytes": size, "arrived_us": NOW_US, "abort_count": 2}
    return decode.POSITION.pack(decode.RECORD_VERSION, *(fields | {"source": bytes(16)}).values())


def one_packet(packet: bytes) -> None:
    """As it stands in a store."""
    tables = MemoryTables()
    tables.tables[Table.POSITION][decode.POSITION_KEY.pack(20, KEY)] = _position(len(packet))
    tables.tables[Table.CONTENT][decode.CONTENT_KEY.pack(7, 0)] = b"\1" + packet
    pairs = [(column.name, column.kind) for column in OF_MESSAGES]
    encoder = MessageEncoder(Contents(tables), pairs, {}, CLASSES)
    encoded = encoder.encode(stored(tables, 20, 0, (1 << 64) - 1, 10, 1 << 20))
    try:
        found, size = UserMessagePacket.decode(packet)
        sound = size == len(packet) and found.session is None
    except PacketFault:
        sound = False
    if sound:
        assert dicts(OF_MESSAGES, encoded) == [model.row(KEY, packet, arrived_us=NOW_US, abort_count=2)]
    else:
        assert (encoded.rows, encoded.damaged) == (0, 1)


def one_record(value: bytes) -> None:
    """A record of the feed."""
    tables = MemoryTables()
    key = (9).to_bytes(8, "big")
    tables.tables[Table.FEED][key] = value
    encoded = feed.encoder(Contents(tables)).encode(1, feed.EVER, 50)
    try:
        events = decode.feed(key, value)[:50]
    except decode.DecodeError:
        assert (encoded.rows, encoded.damaged) == (0, 1)
        return
    numbers = [event.number for event in events]
    assert (encoded.rows, encoded.damaged, encoded.finished) == (len(events), 0, len(events) < 50)
    assert encoded.next == (numbers[-1] + 1 if numbers else 1)


def one_input(data: bytes) -> None:
    """What a fuzzer calls."""
    if data[:1] == EVENT:
        one_record(data[1:])
    else:
        one_packet(data[1:])


def run_random(seconds: float, seed: int) -> int:
    """Mutates until the time is over; returns the number of inputs."""
    rng, corpus = random.Random(seed), seeds()
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for _ in range(50):
            one_input(mutate(rng, rng.choice(corpus)))
        count += 50
    return count
