"""Finds MSMQ packets in one direction of a connection, with the decoders of the server."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from msmq_fast.packet.base import VERSION, BaseHeader
from msmq_fast.packet.session import ConnectionParameters, EstablishConnection, SessionAck, SessionHeader
from msmq_fast.protocol.errors import PacketFault, PacketFaultCode
from msmq_fast.spark.packets import cut

_SIGNATURE: Final = b"LIOR"
_VERSION: Final = bytes((VERSION,))
_HEAD: Final = 4  # bytes of a packet before its signature
_INTERNAL: Final = 0x0008
_Internal = EstablishConnection | ConnectionParameters | SessionAck
SHOWN: Final = 1 << 16
"""The largest number of bytes that are kept of data that is not a packet."""


class Kind(Enum):
    """The kind of a frame, and its value in the column `packet_type`."""

    USER = "user"
    SESSION_ACK = "session_ack"
    ESTABLISH = "establish"
    PARAMETERS = "parameters"
    PING = "ping"
    GAP = "gap"  # bytes that are missing in the capture
    JUNK = "junk"  # bytes that are not a packet


class Frame(NamedTuple):
    """One packet, or the bytes between packets.

    `offset` counts from the first captured byte of the stream. `decoded` is the decoded packet; for a
    message, its packet as a store keeps it, that is without SessionHeader. `malformed` is the reason if the
    bytes are not a valid packet.
    """

    kind: Kind
    offset: int
    size: int
    data: bytes
    decoded: _Internal | bytes | None = None
    malformed: str | None = None


class _More(Exception):
    """Raised if a packet is incomplete: at least `wanted` bytes are needed, counted from its beginning."""

    def __init__(self, wanted: int) -> None:
        super().__init__(wanted)
        self.wanted = wanted


class Framing:
    """Converts the bytes of one direction of a connection to frames.

    After bytes that are not a packet, after a gap, and if the first bytes are not the beginning of the
    stream, it searches for the next valid packet by its signature.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._at = 0  # offset in the stream of the first byte held
        self._wanted = 0  # number of bytes that must be held before a search is useful
        self._hunting = False
        self._reason = ""  # why the skipped bytes are not a packet
        self._junk = bytearray()
        self._junk_at = 0
        self._junk_size = 0

    def begin(self, *, whole: bool) -> None:
        """Call this before the first call of `feed`. If `whole` is False, the first bytes may be inside a
        packet.
        """
        if not whole:
            self._lose("the capture begins inside the stream")

    def feed(self, data: bytes) -> list[Frame]:
        """Returns the frames that `data` completes."""
        self._held += data
        return self._cut(final=False) if len(self._held) >= self._wanted else []

    def gap(self, missing: int) -> list[Frame]:
        """Call this if the next `missing` bytes of the stream were not captured. Returns the frames before
        the gap, and a frame for the gap.
        """
        frames = self._cut(final=True)
        frames.append(Frame(Kind.GAP, self._at, missing, b"", malformed=f"{missing} bytes were not captured"))
        self._at += missing
        self._hunting = False  # the search continues with another reason
        self._lose("the packet begins inside a gap")
        return frames

    def end(self) -> list[Frame]:
        """Returns the remaining frames at the end of the stream."""
        return self._cut(final=True)

    def _cut(self, *, final: bool) -> list[Frame]:
        frames: list[Frame] = []
        held, at = self._held, 0
        self._wanted = 0
        while at < len(held):
            if self._hunting:
                found = _candidate(held, at, final=final)
                self._pass_over(held, at, found)
                at = found
            try:
                frame = _packet(held, at, self._at + at)
            except _More as more:
                if not final or at == len(held):
                    self._wanted = more.wanted
                    break
                self._lose(f"the packet is longer than the capture ({PacketFaultCode.TRUNCATED.label})")
                at = self._step(held, at)
            except PacketFault as fault:
                self._lose(str(fault))
                at = self._step(held, at)
            else:
                self._flush(frames)
                self._hunting = False
                frames.append(frame)
                at += frame.size
        del held[:at]
        self._at += at
        if final:
            self._flush(frames)
        return frames

    def _lose(self, reason: str) -> None:
        if not self._hunting:
            self._hunting, self._reason = True, reason

    def _step(self, held: bytearray, at: int) -> int:
        """Adds the byte at the index `at` to the bytes that are not part of a packet. Returns the index of
        the next byte.
        """
        self._pass_over(held, at, at + 1)
        return at + 1

    def _pass_over(self, held: bytearray, at: int, to: int) -> None:
        if to > at:
            if not self._junk_size:
                self._junk_at = self._at + at
            self._junk_size += to - at
            self._junk += held[at : min(to, at + SHOWN - len(self._junk))]

    def _flush(self, frames: list[Frame]) -> None:
        if self._junk_size:
            frames.append(
                Frame(Kind.JUNK, self._junk_at, self._junk_size, bytes(self._junk), malformed=self._reason)
            )
            self._junk, self._junk_size = bytearray(), 0


def _candidate(held: bytearray, at: int, *, final: bool) -> int:
    """Returns the first offset, from `at` on, at which a packet may begin, according to the signature of
    packets. `final`: no more bytes follow.
    """
    found = held.find(_SIGNATURE, at + _HEAD)
    if found >= 0:
        return found - _HEAD
    return len(held) if final else max(at, len(held) - _HEAD - len(_SIGNATURE) + 1)


def _packet(held: bytearray, at: int, offset: int) -> Frame:
    """Returns the packet that begins at the index `at` of the bytes `held`, as a frame with the stream offset
    `offset`. Raises _More if it is incomplete, PacketFault if it is invalid.
    """
    left = len(held) - at
    if left < BaseHeader.SIZE:
        raise _More(BaseHeader.SIZE)
    base = bytes(held[at : at + 20])
    if base[:1] != _VERSION or base[4:8] != _SIGNATURE:
        BaseHeader.decode(base)
    size = int.from_bytes(base[8:12], "little")
    if not base[2] & _INTERNAL:
        if left < size:
            BaseHeader.decode(base)
            raise _More(size)
        return _user(held, at, offset, size)
    if left < 20:
        BaseHeader.decode(base)
        raise _More(20)
    decoder, kind = _INTERNALS.get(base[18] & 0x0F, (SessionAck, Kind.SESSION_ACK))
    data = bytes(held[at : at + decoder.SIZE])
    try:
        return Frame(kind, offset, decoder.SIZE, data, decoder.decode(data))
    except PacketFault as fault:
        if fault.code is PacketFaultCode.TRUNCATED:
            raise _More(decoder.SIZE) from None
        raise


def _user(held: bytearray, at: int, offset: int, size: int) -> Frame:
    data = bytes(held[at : at + size + SessionHeader.SIZE])
    try:
        size, kept = cut(data)
    except PacketFault as fault:
        if fault.code is PacketFaultCode.TRUNCATED:  # the SessionHeader after the packet is missing
            raise _More(size + SessionHeader.SIZE) from None
        raise
    return Frame(Kind.USER, offset, size, data[:size], kept)


_INTERNALS: Final[dict[int, tuple[type[_Internal], Kind]]] = {
    1: (SessionAck, Kind.SESSION_ACK),
    2: (EstablishConnection, Kind.ESTABLISH),
    3: (ConnectionParameters, Kind.PARAMETERS),
}
