"""Captures of traffic that never was: known bytes, segments repeated, out of order, left out."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from uuid import UUID

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.session import (
    ConnectionParameters,
    EstablishConnection,
    SessionAck,
    SessionHeader,
)
from msmq_fast.packet.user_message import UserMessagePacket

FIN, SYN, RST, PUSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
ETHERNET, NULL, RAW, SLL, SLL2 = 1, 0, 101, 113, 276
CLIENT, SERVER = UUID(int=0xC11E), UUID(int=0x5E4E)


def message(number: int, body: bytes, *, session: bool = False, counted: bool = False) -> bytes:
    """A UserMessage packet; with a SessionHeader behind it if `session`, which PacketSize may count."""
    packet = Message(
        body=body,
        label=f"number {number}",
        destination=parse_format_name(r"DIRECT=TCP:10.0.0.2\private$\orders"),
        source_machine=CLIENT,
        message_id=number,
        sent_time=1_700_000_000 + number,
        app_specific=number,
    ).to_packet()
    if not session:
        return packet
    decoded, _ = UserMessagePacket.decode(packet)
    decoded.session = SessionHeader(ack_sequence=number & 0xFFFF, user_sequence=number & 0xFFFF)
    return decoded.encode(count_session=counted)


def opening() -> tuple[bytes, bytes]:
    """What both sides say before the first message."""
    asks = EstablishConnection(CLIENT, SERVER, timestamp=77).encode()
    asks += ConnectionParameters(1000, 2000, 64).encode()
    answers = EstablishConnection(CLIENT, SERVER, timestamp=77).encode()
    return asks, answers + ConnectionParameters(1500, 2500, 32).encode()


def acknowledgment(number: int) -> bytes:
    return SessionAck(SessionHeader(ack_sequence=number, recoverable_ack_sequence=1)).encode()


@dataclass
class Packet:
    """One captured IP packet of a TCP segment."""

    source: tuple[str, int]
    destination: tuple[str, int]
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes = b""

    def ip(self) -> bytes:
        tcp = struct.pack(
            ">HHIIBBHHH",
            self.source[1],
            self.destination[1],
            self.sequence % 2**32,
            self.acknowledged % 2**32,
            5 << 4,
            self.flags,
            65535,
            0,
            0,
        )
        return ip_packet(self.source[0], self.destination[0], 6, tcp + self.payload)


def ip_packet(source: str, destination: str, protocol: int, content: bytes) -> bytes:
    if ":" in source:
        head = struct.pack(">IHBB", 6 << 28, len(content), protocol, 64)
        return head + IPv6Address(source).packed + IPv6Address(destination).packed + content
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(content), 0, 0, 64, protocol, 0)
    return head + IPv4Address(source).packed + IPv4Address(destination).packed + content


def datagram(source: tuple[str, int], destination: tuple[str, int], content: bytes) -> bytes:
    udp = struct.pack(">HHHH", source[1], destination[1], 8 + len(content), 0)
    return ip_packet(source[0], destination[0], 17, udp + content)


@dataclass
class Talk:
    """A connection whose packets come out in the order in which they were said."""

    client: tuple[str, int] = ("10.0.0.1", 40_000)
    server: tuple[str, int] = ("10.0.0.2", 1801)
    segment: int = 1400
    starts: tuple[int, int] = (1_000, 9_000)
    packets: list[Packet] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.numbers = list(self.starts)

    def _add(self, side: int, flags: int, payload: bytes = b"", *, counted: int = 0) -> None:
        ends = (self.client, self.server) if side == 0 else (self.server, self.client)
        self.packets.append(Packet(*ends, self.numbers[side], self.numbers[1 - side], flags, payload))
        self.numbers[side] += len(payload) + counted

    def open(self) -> Talk:
        self._add(0, SYN, counted=1)
        self._add(1, SYN | ACK, counted=1)
        self._add(0, ACK)
        return self

    def say(self, data: bytes, side: int = 0) -> Talk:
        for at in range(0, len(data), self.segment):
            self._add(side, PUSH | ACK, data[at : at + self.segment])
        return self

    def close(self) -> Talk:
        self._add(0, FIN | ACK, counted=1)
        self._add(1, FIN | ACK, counted=1)
        self._add(0, ACK)
        return self

    def reset(self) -> Talk:
        self._add(1, RST | ACK)
        return self


def framed(link: int, packet: bytes, *, vlan: bool = False) -> bytes:
    """An IP packet in a frame of a link type."""
    six = packet[0] >> 4 == 6
    kind = b"\x86\xdd" if six else b"\x08\x00"
    if link == ETHERNET:
        return bytes(12) + (b"\x81\x00\x00\x07" if vlan else b"") + kind + packet
    if link == SLL:
        return bytes(14) + kind + packet
    if link == SLL2:
        return kind + bytes(18) + packet
    if link == NULL:
        return struct.pack("<I", 24 if six else 2) + packet
    return packet


def pcap(
    packets: list[bytes], *, link: int = RAW, order: str = "<", nano: bool = False, snap: int = 1 << 18
) -> bytes:
    """A pcap file; one packet a millisecond from 1,700,000,000 on."""
    parts = [struct.pack(order + "IHHiIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snap, link)]
    for index, packet in enumerate(packets):
        seconds, milli = divmod(index, 1000)
        fraction = milli * (1_000_000 if nano else 1000)
        kept = packet[:snap]
        parts.append(struct.pack(order + "IIII", 1_700_000_000 + seconds, fraction, len(kept), len(packet)))
        parts.append(kept)
    return b"".join(parts)


def _block(kind: int, content: bytes, order: str) -> bytes:
    content += bytes(-len(content) % 4)
    size = struct.pack(order + "I", len(content) + 12)
    return struct.pack(order + "I", kind) + size + content + size


def pcapng(packets: list[bytes], *, link: int = ETHERNET, order: str = "<", resolution: int = 6) -> bytes:
    """The same as pcapng, times in 10^-resolution seconds."""
    parts = [_block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)]
    option = struct.pack(order + "HHB3xHH", 9, 1, resolution, 0, 0)
    parts.append(_block(1, struct.pack(order + "HHI", link, 0, 0) + option, order))
    parts.append(_block(0x0BAD, b"of no interest", order))
    for index, packet in enumerate(packets):
        units = (1_700_000_000_000 + index) * 10 ** (resolution - 3)
        head = struct.pack(order + "IIIII", 0, units >> 32, units & 0xFFFFFFFF, len(packet), len(packet))
        parts.append(_block(6, head + packet, order))
    return b"".join(parts)


def disturbed(
    packets: list[Packet], seed: int, *, repeated: float = 0.01, swapped: float = 0.01
) -> list[Packet]:
    """Some segments come again later, some a few places too late."""
    rng = random.Random(seed)
    found: list[tuple[float, Packet]] = []
    for place, packet in enumerate(packets):
        late = rng.randrange(1, 6) + 0.5 if packet.payload and rng.random() < swapped else 0
        found.append((place + late, packet))
        if packet.payload and rng.random() < repeated:
            found.append((place + rng.randrange(1, 40) + 0.25, packet))
    return [packet for _, packet in sorted(found, key=lambda pair: pair[0])]


def write(path: Path, packets: list[Packet], link: int = RAW) -> Path:
    """A pcap file of TCP segments."""
    path.write_bytes(pcap([framed(link, packet.ip()) for packet in packets], link=link))
    return path
