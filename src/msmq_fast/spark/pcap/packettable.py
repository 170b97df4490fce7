"""The table `packets`: one row for each TCP segment or UDP datagram of the selected ports."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.protocol.columns import Column
from msmq_fast.spark.pcap.errors import CaptureError
from msmq_fast.spark.pcap.layers import TCP, BadRecord, Segment, address_text, segment_of
from msmq_fast.spark.pcap.records import Record

PACKET_COLUMNS: Final = (
    Column("time", "timestamp"),
    Column("capture", "string"),
    Column("number", "int64"),
    Column("protocol", "string"),
    Column("source", "string"),
    Column("source_port", "int32"),
    Column("destination", "string"),
    Column("destination_port", "int32"),
    Column("sequence", "int64"),
    Column("acknowledged", "int64"),
    Column("flags", "string"),
    Column("payload_size", "int64"),
    Column("payload", "binary", "body"),
    Column("malformed", "string"),
)
_FLAGS: Final = ((0x02, "SYN"), (0x01, "FIN"), (0x04, "RST"), (0x08, "PSH"), (0x10, "ACK"), (0x20, "URG"))
_FLAG_TEXTS: Final = tuple(
    "|".join(name for bit, name in _FLAGS if flags & bit) or None for flags in range(64)
)


def packet_row(
    capture: str, record: Record | CaptureError, ports: frozenset[int], *, body: bool
) -> tuple[Any, ...] | None:
    """Returns the row for a record; None if neither of its ports is in `ports`. An error yields a row that
    reports it.
    """
    if isinstance(record, CaptureError):
        return _malformed(None, capture, None, str(record), body)
    try:
        segment = segment_of(record)
    except BadRecord as error:
        return _malformed(record.time_us, capture, record.number, str(error), body)
    if segment is None or (segment.source_port not in ports and segment.destination_port not in ports):
        return None
    row = (segment.time_us, capture, segment.number, *_head(segment), segment.length)
    return (*row, segment.payload, None) if body else (*row, None)


def _head(segment: Segment) -> tuple[Any, ...]:
    tcp = segment.protocol == TCP
    return (
        "tcp" if tcp else "udp",
        address_text(segment.source),
        segment.source_port,
        address_text(segment.destination),
        segment.destination_port,
        segment.sequence if tcp else None,
        segment.acknowledged if tcp else None,
        _FLAG_TEXTS[segment.flags & 0x3F] if tcp else None,
    )


def _malformed(
    time_us: int | None, capture: str, number: int | None, reason: str, body: bool
) -> tuple[Any, ...]:
    return (time_us, capture, number, *(None,) * (10 if body else 9), reason)
