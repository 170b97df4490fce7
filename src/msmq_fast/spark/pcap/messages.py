"""Encodes the message columns of many packets, with the native encoder if it is built, otherwise with the
Python codec.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.protocol.arrow import arrow_schema, record_batch
from msmq_fast.protocol.columns import Column
from msmq_fast.spark import columns as rows
from msmq_fast.spark import packets

Encode = Callable[[list[bytes]], pa.RecordBatch]


def encoder(columns: Sequence[Column]) -> Encode:
    """Returns a function that encodes a list of packets as a record batch of `columns`, with one row per
    packet. Each packet must be one that `packets.cut` returned.
    """
    try:
        return native_encoder(columns)
    except ImportError:
        return plain_encoder(columns)


def native_encoder(columns: Sequence[Column]) -> Encode:
    """Returns the same function as `encoder`, with the server's native encoder. Raises ImportError if it is
    not built.
    """
    from msmq_fast._native.columnmessages import MessageEncoder
    from msmq_fast._native.columnrows import packets as native_rows
    from msmq_fast._native.columnstore import Contents
    from msmq_fast._native.memorystore import MemoryTables

    schema = arrow_schema(columns)
    pairs = [(column.name, column.kind) for column in columns]
    made = MessageEncoder(Contents(MemoryTables()), pairs, {}, packets.CLASS_NAMES)

    def encode(found: list[bytes]) -> pa.RecordBatch:
        return record_batch(schema, made.encode(native_rows(found)))

    return encode


def plain_encoder(columns: Sequence[Column]) -> Encode:
    """Returns the same function as `encoder`, with the Python codec of `packet/`."""
    schema = arrow_schema(columns)
    names = [column.name for column in columns]

    def encode(found: list[bytes]) -> pa.RecordBatch:
        values = [packets.values(UserMessagePacket.decode(one)[0], names) for one in found]
        return rows.record_batch(schema, [tuple(map(value.get, names)) for value in values])

    return encode
