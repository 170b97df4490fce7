"""The table `frames`: one row for each MSMQ packet, and for what stands between packets."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.bulk.schema import MESSAGE_COLUMNS, Column
from msmq_fast.packet.session import (
    ConnectionParameters,
    EstablishConnection,
    Ping,
    SessionAck,
    SessionHeader,
)
from msmq_fast.packet.user_message import UserMessagePacket
from msmq_fast.spark import packets
from msmq_fast.spark.pcap.flows import Connection, endpoint_text
from msmq_fast.spark.pcap.framing import Frame, Kind
from msmq_fast.spark.pcap.layers import Segment

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


def message_columns(*, body: bool, raw: bool) -> tuple[Column, ...]:
    """The message columns that a packet on its way has: those of a queue are missing."""
    return tuple(
        column
        for column in MESSAGE_COLUMNS
        if column.name in packets.KNOWN
        and (body or column.group != "body")
        and (raw or column.group != "raw")
    )


class FrameRows:
    """Makes the rows of frames. `columns` are those of the table, in its order."""

    def __init__(self, capture: str, *, body: bool = True, raw: bool = False) -> None:
        self._capture = capture
        self._message = message_columns(body=body, raw=raw)
        self._names = tuple(column.name for column in self._message)
        self._empty = (None,) * len(self._names)
        self._raw = raw
        self.columns = (*PLACE_COLUMNS, *SESSION_COLUMNS, *self._message)

    def row(self, connection: Connection, side: int, frame: Frame, time_us: int) -> tuple[Any, ...]:
        """The row of a frame that was complete at `time_us`."""
        junk = frame.data if frame.kind is Kind.JUNK else None
        place = (
            time_us,
            self._capture,
            connection.name,
            TO_CLIENT if side else TO_SERVER,
            frame.kind.value,
            frame.offset,
            frame.size,
            frame.malformed,
            junk,
        )
        if frame.kind is Kind.USER:
            session = _header(frame.data) if frame.data[2] & _SESSION else _NOTHING
            return place + session + self._values(frame.data)
        return place + _session(frame) + self._without_message(frame.data)

    def ping(self, segment: Segment, ping: Ping) -> tuple[Any, ...]:
        """The row of a ping or of its answer."""
        name = f"{endpoint_text((segment.source, segment.source_port))}->{_destination(segment)}"
        place = (segment.time_us, self._capture, name, None, Kind.PING.value, None, Ping.SIZE, None, None)
        session = (ping.refused, str(ping.manager), *_NOTHING[2:])
        return place + session + self._without_message(segment.payload)

    def damage(self, reason: str) -> tuple[Any, ...]:
        """The row that tells where a capture cannot be read on."""
        nothing = (None,) * (len(self.columns) - 8)
        return (None, self._capture, None, None, "damage", None, None, reason, *nothing)

    def _values(self, data: bytes) -> tuple[Any, ...]:
        packet, _ = UserMessagePacket.decode(data)
        found = packets.values(packet, self._names, data)
        return tuple(found[name] for name in self._names)

    def _without_message(self, data: bytes) -> tuple[Any, ...]:
        return (*self._empty[:-1], data or None) if self._raw else self._empty


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
    """The SessionHeader is what a packet ends with."""
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
