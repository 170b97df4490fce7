"""The table `sessions`: one row for each connection to the selected ports."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.packet.session import ConnectionParameters, EstablishConnection, SessionHeader
from msmq_fast.protocol.columns import Column
from msmq_fast.spark.pcap.flows import Connection, endpoint_text
from msmq_fast.spark.pcap.framing import Frame, Framing, Kind

_SESSION: Final = 0x0010  # BaseHeader.Flags.SH
_SIDES: Final = ("to_server", "to_client")

SESSION_TABLE: Final = (
    Column("capture", "string"),
    Column("connection", "string"),
    Column("client", "string"),
    Column("server", "string"),
    Column("first_time", "timestamp"),
    Column("last_time", "timestamp"),
    Column("handshake_seen", "bool"),
    Column("close_reason", "string"),
    Column("client_guid", "string"),
    Column("server_guid", "string"),
    Column("established", "bool"),
    Column("refused", "bool"),
    Column("recoverable_ack_ms", "int64"),
    Column("ack_ms", "int64"),
    Column("window_size", "int32"),
    Column("segments", "int64"),
    *(
        Column(f"{name}_{side}", "int64")
        for side in _SIDES
        for name in (
            "bytes",
            "missing_bytes",
            "repeated_segments",
            "reordered_segments",
            "messages",
            "session_acks",
            "malformed",
            "last_ack",
        )
    ),
)


class SessionReader:
    """Counts the packets in one direction of a connection, and keeps the packets that establish a session."""

    def __init__(self) -> None:
        self._framing = Framing()
        self.establish: EstablishConnection | None = None
        self.parameters: ConnectionParameters | None = None
        self.counts = dict.fromkeys(Kind, 0)
        self.last_ack: int | None = None

    def begin(self, *, whole: bool) -> None:
        """Implements `Reader.begin`. `whole`: the bytes of the first call of `feed` are the beginning of the
        stream.
        """
        self._framing.begin(whole=whole)

    def feed(self, data: bytes) -> list[None]:
        """Counts the packets that the bytes complete. Returns an empty list."""
        return self._count(self._framing.feed(data))

    def gap(self, missing: int) -> list[None]:
        """Counts the packets before a gap of `missing` bytes that were not captured, and the gap. Returns an
        empty list.
        """
        return self._count(self._framing.gap(missing))

    def end(self) -> list[None]:
        """Counts the remaining packets at the end of the stream. Returns an empty list."""
        return self._count(self._framing.end())

    def _count(self, frames: list[Frame]) -> list[None]:
        for frame in frames:
            self.counts[frame.kind] += 1
            if isinstance(frame.decoded, EstablishConnection):
                self.establish = frame.decoded
            elif isinstance(frame.decoded, ConnectionParameters):
                self.parameters = frame.decoded
            if frame.kind in (Kind.USER, Kind.SESSION_ACK) and frame.data[2] & _SESSION:
                header, _ = SessionHeader.decode(frame.data, len(frame.data) - SessionHeader.SIZE)
                self.last_ack = header.ack_sequence
        return []


def session_row(
    capture: str, connection: Connection, readers: tuple[SessionReader | None, SessionReader | None]
) -> tuple[Any, ...]:
    """Returns the row for a connection that has ended. `readers` are those of the directions to the server
    and to the client. The negotiated values are taken from the server's answer if it was captured, otherwise
    from the client's request.
    """
    asked, answered = (reader.establish if reader else None for reader in readers)
    wished, granted = (reader.parameters if reader else None for reader in readers)
    parameters = granted or wished
    hosts = answered or asked
    return (
        capture,
        connection.name,
        endpoint_text(connection.client),
        endpoint_text(connection.server),
        connection.first_us,
        connection.last_us,
        connection.handshake,
        connection.closed,
        str(hosts.client) if hosts else None,
        str(hosts.server) if hosts else None,
        bool(asked and answered and wished and granted) and not _refused(answered, granted),
        _refused(answered, granted),
        parameters and parameters.recoverable_ack_timeout,
        parameters and parameters.ack_timeout,
        parameters and parameters.window_size,
        connection.segments,
        *(value for side, reader in enumerate(readers) for value in _direction(connection, side, reader)),
    )


def _refused(answered: EstablishConnection | None, granted: ConnectionParameters | None) -> bool:
    return bool((answered and answered.refused) or (granted and granted.refused))


def _direction(connection: Connection, side: int, reader: SessionReader | None) -> tuple[Any, ...]:
    direction = connection.directions[side]
    counts = reader.counts if reader else dict.fromkeys(Kind, 0)
    return (
        connection.bytes[side],
        connection.missing[side],
        direction.duplicates,
        direction.reordered,
        counts[Kind.USER],
        counts[Kind.SESSION_ACK],
        counts[Kind.JUNK],
        reader.last_ack if reader else None,
    )
