"""The table `frames`: one row for each MSMQ packet, and for each run of bytes between packets."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from msmq_fast.packet.session import (
    ConnectionParameters,
    EstablishConnection,
    Ping,
    SessionAck,
    SessionHeader,
)
from msmq_fast.protocol.arrow import arrow_schema
from msmq_fast.protocol.columns import MESSAGE_COLUMNS, Column
from msmq_fast.spark import packets
from msmq_fast.spark.columns import BATCH_BYTES, BATCH_ROWS, record_batch
from msmq_fast.spark.pcap.flows import Connection, endpoint_text
from msmq_fast.spark.pcap.framing import Frame, Kind
from msmq_fast.spark.pcap.layers import Segment
from msmq_fast.spark.pcap.messages import encoder

_SESSION: Final = 0x0010  # BaseHeader.Flags.SH

PLACE_COLUMNS: Final = (
    Column("time", "timestamp"),
    Column("capture", "string"),
    Column("connection", "string"),
    Column("direction", "string"),
    Column("packet_type", "string"),
    Column("stream_offset", "int64"),
    Column("packet_size", "int64"),
    Column("malformed", "string"),
    Column("malformed_bytes", "binary"),
)
SESSION_COLUMNS: Final = (
    Column("refused", "bool"),
    Column("client_guid", "string"),
    Column("server_guid", "string"),
    Column("operating_system", "int32"),
    Column("uptime_ms", "int64"),
    Column("recoverable_ack_ms", "int64"),
    Column("ack_ms", "int64"),
    Column("window_size", "int32"),
    Column("ack_sequence", "int32"),
    Column("recoverable_ack_sequence", "int32"),
    Column("recoverable_ack_flags", "int64"),
    Column("user_sequence", "int32"),
    Column("recoverable_sequence", "int32"),
)
_NOTHING: Final = (None,) * len(SESSION_COLUMNS)
TO_SERVER, TO_CLIENT = "to_server", "to_client"


RAW: Final = Column("raw_packet", "binary", "raw")
"""The column of the bytes on the wire, with any SessionHeader."""


def message_columns(*, body: bool) -> tuple[Column, ...]:
    """Returns the message columns that depend only on a packet, without those that a queue adds."""
    return tuple(
        column
        for column in MESSAGE_COLUMNS
        if column.name in packets.KNOWN and (body or column.group != "body")
    )


def frame_columns(*, body: bool, raw: bool) -> tuple[Column, ...]:
    """Returns the columns of the table `frames`."""
    return (*PLACE_COLUMNS, *SESSION_COLUMNS, *message_columns(body=body), *((RAW,) if raw else ()))


class FrameGatherer:
    """Gathers frames into record batches. It computes the session columns for each frame, and encodes the
    message columns of all frames of a batch at once.
    """

    def __init__(self, capture: str, *, body: bool = True, raw: bool = False) -> None:
        self._capture = capture
        self._places = (*PLACE_COLUMNS, *SESSION_COLUMNS)
        self._schema = arrow_schema(frame_columns(body=body, raw=raw))
        self._place_schema = arrow_schema(self._places)
        self._encode = encoder(message_columns(body=body))
        self._raw = raw
        self._clear()

    def _clear(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._messages: list[bytes] = []
        self._indices: list[int | None] = []  # for each row, its index among the messages
        self._packets: list[bytes | None] = []
        self._bytes = 0

    def frame(self, connection: Connection, side: int, frame: Frame, time_us: int) -> None:
        """Adds a frame in the direction `side` of a connection. It was complete at `time_us` (Unix
        microseconds).
        """
        user = frame.kind is Kind.USER
        self._rows.append(
            (
                time_us,
                self._capture,
                connection.name,
                TO_CLIENT if side else TO_SERVER,
                frame.kind.value,
                frame.offset,
                frame.size,
                frame.malformed,
                frame.data if frame.kind is Kind.JUNK else None,
                *(_header(frame.data) if user and frame.data[2] & _SESSION else _session(frame)),
            )
        )
        self._add(frame.data, frame.decoded if isinstance(frame.decoded, bytes) else None)

    def ping(self, segment: Segment, ping: Ping) -> None:
        """Adds a ping or the answer to a ping."""
        name = f"{endpoint_text((segment.source, segment.source_port))}->{_destination(segment)}"
        place = (segment.time_us, self._capture, name, None, Kind.PING.value, None, Ping.SIZE, None, None)
        self._rows.append((*place, ping.refused, str(ping.manager), *_NOTHING[2:]))
        self._add(segment.payload, None)

    def damage(self, reason: str) -> None:
        """Adds a row that reports a damaged part of the capture."""
        nothing = (None,) * (len(self._places) - 8)
        self._rows.append((None, self._capture, None, None, "damage", None, None, reason, *nothing))
        self._add(b"", None)

    def _add(self, data: bytes, message: bytes | None) -> None:
        self._bytes += 300 + len(data)
        if message is None:
            self._indices.append(None)
        else:
            self._indices.append(len(self._messages))
            self._messages.append(message)
        if self._raw:
            self._packets.append(data or None)

    @property
    def full(self) -> bool:
        """Whether the gathered frames fill a batch, so that the caller should call `take` now."""
        return len(self._rows) >= BATCH_ROWS or self._bytes >= BATCH_BYTES

    def __len__(self) -> int:
        return len(self._rows)

    def take(self) -> pa.RecordBatch:
        """Returns the frames gathered so far as one batch."""
        arrays = list(record_batch(self._place_schema, self._rows).columns)
        messages = self._encode(self._messages)
        if len(self._messages) < len(self._rows):
            messages = messages.take(pa.array(self._indices, pa.int64()))
        arrays += messages.columns
        if self._raw:
            arrays.append(pa.array(self._packets, pa.binary()))
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _destination(segment: Segment) -> str:
    return endpoint_text((segment.destination, segment.destination_port))


def _session(frame: Frame) -> tuple[Any, ...]:
    match frame.decoded:
        case EstablishConnection() as one:
            return (
                one.refused,
                str(one.client),
                str(one.server),
                one.operating_system,
                one.timestamp,
                *_NOTHING[5:],
            )
        case ConnectionParameters() as one:
            values = (one.recoverable_ack_timeout, one.ack_timeout, one.window_size)
            return (one.refused, None, None, None, None, *values, *_NOTHING[8:])
        case SessionAck():
            return _header(frame.data)
        case _:
            return _NOTHING


def _header(data: bytes) -> tuple[Any, ...]:
    """Returns the values of the session columns from the SessionHeader at the end of a packet."""
    header, _ = SessionHeader.decode(data, len(data) - SessionHeader.SIZE)
    return (
        *_NOTHING[:7],
        header.window_size,
        header.ack_sequence,
        header.recoverable_ack_sequence,
        header.recoverable_ack_flags,
        header.user_sequence,
        header.recoverable_sequence,
    )
