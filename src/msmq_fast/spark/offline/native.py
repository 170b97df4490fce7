"""Encodes messages and events of a store as record batches, with the server's native encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from msmq_fast.protocol.arrow import arrow_schema, record_batch
from msmq_fast.protocol.columns import Column, copies
from msmq_fast.spark import packets
from msmq_fast.spark.columns import BATCH_BYTES, BATCH_ROWS
from msmq_fast.spark.offline.catalogue import Catalogue, Stretch
from msmq_fast.spark.offline.plain import constants_of
from msmq_fast.store.decode import EventKind, Transport

_HEADS_BYTES: Final = 16 << 20  # bytes of packets that are read for a batch without bodies
_KINDS: Final = {int(kind): kind.name.lower() for kind in EventKind}
_TRANSPORTS: Final = {int(transport): transport.name.lower() for transport in Transport}


def message_batches(
    tables: Any, catalogue: Catalogue, stretch: Stretch, columns: Sequence[Column]
) -> Iterator[tuple[pa.RecordBatch | None, list[bytes], int]]:
    """Yields, in queue order, tuples of three values: a batch, or None if it has no rows; the keys of the
    positions that cannot be decoded; and the number of messages whose packets are unreadable.

    If `columns` includes `_corrupt`, messages with unreadable packets are in the batch; otherwise they are
    left out.
    """
    from msmq_fast._native.columnmessages import MessageEncoder
    from msmq_fast._native.columnstore import Contents, stored

    schema = arrow_schema(columns)
    contents = Contents(tables)
    try:
        encoder = MessageEncoder(
            contents,
            [(column.name, column.kind) for column in columns],
            constants_of(catalogue, catalogue.queue(stretch.ordinal)),
            packets.CLASS_NAMES,
        )
        times = copies(columns)
        room = BATCH_BYTES // times if times else _HEADS_BYTES
        start, finished = stretch.start, False
        while not finished:
            rows = stored(tables, stretch.ordinal, start, stretch.stop, BATCH_ROWS, room)
            start, finished = rows.next, rows.finished
            encoded = encoder.encode(rows)
            batch = record_batch(schema, encoded) if encoded.rows else None
            yield batch, rows.damaged, encoded.damaged + encoded.gone
    finally:
        contents.close()


def event_batches(
    tables: Any, catalogue: Catalogue, stretch: Stretch, columns: Sequence[Column]
) -> Iterator[tuple[pa.RecordBatch | None, Stretch]]:
    """Yields (batch, part of the key range that the batch covers). The batch is None if a record in this part
    is damaged.
    """
    from msmq_fast._native.columnevents import EventEncoder
    from msmq_fast._native.columnstore import Contents

    schema = arrow_schema(columns)
    contents = Contents(tables)
    try:
        encoder = EventEncoder(
            contents,
            [(column.name, column.kind) for column in columns],
            {"qm_guid": catalogue.guid, "incarnation": catalogue.incarnation},
            packets.CLASS_NAMES,
            _KINDS,
            _TRANSPORTS,
            catalogue.resolve,
        )
        start, finished = stretch.start, False
        while not finished and start < stretch.stop:
            encoded = encoder.encode(start, stretch.stop, BATCH_ROWS)
            covered = Stretch(0, start, stretch.stop if encoded.finished else encoded.next)
            start, finished = encoded.next, encoded.finished
            yield None if encoded.damaged else record_batch(schema, encoded), covered
    finally:
        contents.close()
