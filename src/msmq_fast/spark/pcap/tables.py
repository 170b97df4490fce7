"""Reads the tables of a capture as record batches. Each task processes its share of the connections in the
capture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from msmq_fast.packet.session import Ping
from msmq_fast.protocol.columns import Column
from msmq_fast.spark.columns import Gatherer
from msmq_fast.spark.pcap.captures import records, segments
from msmq_fast.spark.pcap.errors import CaptureError
from msmq_fast.spark.pcap.flows import Connection, Conversations, share_of
from msmq_fast.spark.pcap.frames import FrameGatherer, frame_columns
from msmq_fast.spark.pcap.framing import Frame, Framing, Kind
from msmq_fast.spark.pcap.layers import TCP, Segment
from msmq_fast.spark.pcap.packettable import PACKET_COLUMNS, packet_row
from msmq_fast.spark.pcap.sessions import SESSION_TABLE, SessionReader, session_row

PING_PORT: Final = 3527
TOTAL_LIMIT: Final = 16
"""The limit of waiting bytes of all directions together, as a multiple of the limit of one direction."""
_STRETCH: Final = 4096  # consecutive records of a packet table that belong to the same share


@dataclass(frozen=True)
class Scan:
    """The parameters with which a task reads a capture.

    `files` together form the capture, in this order. The connections of the capture are divided into `shares`
    subsets, numbered from 0; the task processes the subset with the number `share`.
    """

    table: str
    files: tuple[str, ...]
    ports: frozenset[int]
    flow_limit: int = 16 << 20
    body: bool = True
    raw: bool = False
    mode: str = "PERMISSIVE"
    share: int = 0
    shares: int = 1

    @property
    def name(self) -> str:
        """The name of the capture, which is the name of its first file."""
        return self.files[0]

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table."""
        if self.table == "frames":
            return frame_columns(body=self.body, raw=self.raw)
        if self.table == "sessions":
            return SESSION_TABLE
        return PACKET_COLUMNS if self.body else tuple(c for c in PACKET_COLUMNS if c.group != "body")

    def admits(self, malformed: str | None) -> bool:
        """Returns whether a row is included in the mode of the scan. `malformed` is the reason why the row is
        malformed, None if it is not. Raises CaptureError if the row is malformed and the mode is FAILFAST.
        """
        if malformed is None or self.mode == "PERMISSIVE":
            return True
        if self.mode == "FAILFAST":
            raise CaptureError(f"{self.name}: {malformed}")
        return False


def read(scan: Scan) -> Iterator[pa.RecordBatch]:
    """Yields the rows of the task's share, in batches. Raises CaptureError, only in the mode FAILFAST, if the
    capture is damaged.
    """
    if scan.table == "frames":
        yield from _frames(scan)
        return
    gatherer = Gatherer(scan.columns)
    for row, size in (_packets if scan.table == "packets" else _sessions)(scan):
        if gatherer.add(row, size):
            yield gatherer.take()
    yield from gatherer.rest()


Rows = Iterator[tuple[tuple[Any, ...], int]]


def _packets(scan: Scan) -> Rows:
    for index, record in enumerate(records(scan.files)):
        if index // _STRETCH % scan.shares != scan.share:
            continue
        row = packet_row(scan.name, record, scan.ports, body=scan.body)
        if row is not None and scan.admits(row[-1]):
            yield row, 200 + (len(row[-2] or b"") if scan.body else 0)


def _mine(scan: Scan) -> Iterator[Segment | CaptureError]:
    """Yields the segments of the selected ports whose connections belong to the task's share. Errors of the
    capture are yielded in the first share only.
    """
    ports, shares = scan.ports, scan.shares
    for segment in segments(records(scan.files)):
        if isinstance(segment, CaptureError):
            if scan.share == 0 and scan.admits(str(segment)):
                yield segment
        elif (segment.source_port in ports or segment.destination_port in ports) and (
            shares == 1 or share_of(segment, shares) == scan.share
        ):
            yield segment


def _frames(scan: Scan) -> Iterator[pa.RecordBatch]:
    made = FrameGatherer(scan.name, body=scan.body, raw=scan.raw)
    conversations: Conversations[Frame] = Conversations(
        lambda connection, side: Framing(),
        scan.ports,
        flow_limit=scan.flow_limit,
        total_limit=scan.flow_limit * TOTAL_LIMIT,
    )

    def gather(found: Iterator[tuple[Connection, int, Frame]]) -> Iterator[pa.RecordBatch]:
        for connection, side, frame in found:
            if frame.kind is not Kind.JUNK or scan.admits(frame.malformed):
                made.frame(connection, side, frame, connection.last_us)
                if made.full:
                    yield made.take()

    for segment in _mine(scan):
        if isinstance(segment, CaptureError):
            made.damage(str(segment))
        elif segment.protocol == TCP:
            yield from gather(conversations.add(segment))
        elif PING_PORT in (segment.source_port, segment.destination_port):
            ping = Ping.decode(segment.payload)
            if ping is not None:
                made.ping(segment, ping)
        if made.full:
            yield made.take()
    yield from gather(conversations.end())
    if len(made):
        yield made.take()


def _sessions(scan: Scan) -> Rows:
    readers: dict[Connection, list[SessionReader | None]] = {}
    ended: list[tuple[tuple[Any, ...], int]] = []

    def reader(connection: Connection, side: int) -> SessionReader:
        made = SessionReader()
        readers.setdefault(connection, [None, None])[side] = made
        return made

    def over(connection: Connection) -> None:
        first, second = readers.pop(connection, (None, None))
        ended.append((session_row(scan.name, connection, (first, second)), 1000))

    conversations: Conversations[None] = Conversations(
        reader,
        scan.ports,
        flow_limit=scan.flow_limit,
        total_limit=scan.flow_limit * TOTAL_LIMIT,
        ended=over,
    )
    for segment in _mine(scan):
        if isinstance(segment, Segment) and segment.protocol == TCP:
            for _ in conversations.add(segment):
                pass
            yield from ended
            ended.clear()
    for _ in conversations.end():
        pass
    yield from ended
