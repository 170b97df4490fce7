"""What a session does with hostile input, by the rules of MS-MQQB 3.1.5 and the reference parser.

Independent of the server's code, so that a run against a server can be checked packet by packet.
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from uuid import UUID

from msmq_fast.mqqb.reasons import CloseReason
from tests.support.packet.reference import LIMIT, Refused, reference

NULL = bytes(16)


class Position(Enum):
    """How far the session has come when the hostile bytes arrive."""

    NEW = "before EstablishConnection"
    GREETED = "before ConnectionParameters"
    OPEN = "in an open session"


@dataclass
class Expected:
    """`reason` is None for a session that goes on; `waits`: inside a packet that is not complete."""

    reason: CloseReason | None = None
    waits: bool = False
    open: bool = False
    received: int = 0
    recoverable: int = 0
    handled: int = 0  # messages that were delivered, or dropped and counted


@dataclass
class Model:
    """One accepted session of the queue manager `own`; nothing was sent on it by that side."""

    own: UUID
    position: Position
    result: Expected = field(default_factory=Expected)

    def feed(self, stream: bytes) -> Expected:
        """What has become of the session when it has read the whole of `stream`."""
        at = 0
        while at < len(stream) and self.result.reason is None and not self.result.waits:
            size = int.from_bytes(stream[at + 8 : at + 12], "little")
            at += self._packet(stream[at : at + max(size, 20) + 16])  # no more can belong to this packet
        self.result.open = self.position is Position.OPEN and self.result.reason is None
        return self.result

    def _packet(self, stream: bytes) -> int:
        if len(stream) < 16:
            self.result.waits = True
            return 0
        version, _, flags, magic, size, _ = struct.unpack("<BBH4sII", stream[:16])
        if version != 16 or magic != b"LIOR" or not 20 <= size <= LIMIT:
            return self._close(CloseReason.MALFORMED)
        if flags & 8:
            return self._internal(stream, flags, size)
        try:
            fields = reference(stream)
        except Refused as refused:
            if refused.args[0] != "TRUNCATED":
                return self._close(CloseReason.MALFORMED)
            self.result.waits = True
            return 0
        if self.position is not Position.OPEN:
            return self._close(CloseReason.OUT_OF_STATE)
        self._message(stream, fields)
        return fields["wire_size"]

    def _close(self, reason: CloseReason) -> int:
        self.result.reason = self.result.reason or reason
        return 0

    def _internal(self, stream: bytes, flags: int, size: int) -> int:
        if len(stream) < 20:
            self.result.waits = True
            return 0
        kind = stream[18] & 15
        right = {1: 36, 2: 572, 3: 32}.get(kind)
        if size != right or (kind == 1 and not flags & 0x10):
            return self._close(CloseReason.MALFORMED)
        if len(stream) < size:
            self.result.waits = True
        elif kind == 1:
            self._session_ack(stream[20:36])
        elif kind == 2:
            self._establish(stream)
        else:
            self._parameters(stream)
        return size

    def _establish(self, packet: bytes) -> None:
        if self.position is not Position.NEW:
            self._close(CloseReason.OUT_OF_STATE)
        elif packet[36:52] not in (NULL, self.own.bytes_le):
            self._close(CloseReason.WRONG_SERVER)
        elif packet[20:36] == self.own.bytes_le:
            self._close(CloseReason.OWN_GUID)
        self.position = Position.GREETED

    def _parameters(self, packet: bytes) -> None:
        recoverable, ack = struct.unpack_from("<II", packet, 20)
        if self.position is not Position.GREETED:
            self._close(CloseReason.OUT_OF_STATE)
        elif not (500 <= recoverable <= 120_000 and 20_000 <= ack <= 120_000):
            self._close(CloseReason.BAD_PARAMETERS)
        self.position = Position.OPEN

    def _session_ack(self, header: bytes) -> None:
        if self.position is not Position.OPEN:
            self._close(CloseReason.OUT_OF_STATE)
        else:
            self._header(header)

    def _header(self, header: bytes) -> None:
        ack, base, _, sent, recoverable = struct.unpack("<HHIHH", header[:12])
        if ack or base:
            self._close(CloseReason.ACK_UNSENT)
        elif (sent, recoverable) != (self.result.received & 0xFFFF, self.result.recoverable & 0xFFFF):
            self._close(CloseReason.COUNT_MISMATCH)

    def _message(self, stream: bytes, fields: dict[str, int]) -> None:
        self.result.received += 1
        self.result.recoverable += fields["delivery"] != 0
        if stream[32:48] not in (NULL, self.own.bytes_le):
            self._close(CloseReason.NOT_LOCAL)
        else:
            self.result.handled += 1
        if at := fields.get("session_offset"):
            self._header(stream[at : at + 16])


def totals(results: list[Expected]) -> Counter[str]:
    """How many sessions end for each reason."""
    return Counter(str(result.reason) for result in results if result.reason is not None)
