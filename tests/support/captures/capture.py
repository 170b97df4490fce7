"""Conversations as capture files: what two sides said, in IPv4 packets that never were on a wire."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

_RAW_IP = 101  # LINKTYPE_RAW
_SYN, _PUSH, _ACK = 0x02, 0x08, 0x10


class Capture:
    """A pcap file under construction; one packet a millisecond."""

    def __init__(self) -> None:
        self._data = bytearray(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, _RAW_IP))
        self.frames = 0

    def write(self, path: Path) -> Path:
        """Put the file where it is wanted."""
        path.write_bytes(self._data)
        return path

    def datagram(self, client: str, port: int, content: bytes, *, answer: bool = False) -> None:
        """A ping, or its answer."""
        ports = (3527, port) if answer else (port, 3527)
        self._packet(client, answer, 17, struct.pack(">HHHH", *ports, 8 + len(content), 0) + content)

    def stream(self, client: str = "127.0.0.9", port: int = 40_000, segment: int = 1400) -> Stream:
        """A TCP connection to port 1801, whose bytes come in segments of at most `segment`."""
        return Stream(self, client, port, segment)

    def _packet(self, client: str, answer: bool, protocol: int, content: bytes) -> None:
        hosts = ("127.0.0.1", client) if answer else (client, "127.0.0.1")
        addresses = b"".join(bytes(int(part) for part in host.split(".")) for host in hosts)
        header = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(content), 0, 0, 64, protocol, 0) + addresses
        packet = header + content
        seconds, rest = divmod(self.frames, 1000)
        self._data += struct.pack("<IIII", 1_700_000_000 + seconds, rest * 1000, len(packet), len(packet))
        self._data += packet
        self.frames += 1


class Stream:
    """One TCP connection; `client` and `server` append what a side says."""

    def __init__(self, capture: Capture, client: str, port: int, segment: int) -> None:
        self._capture = capture
        self._host = client
        self._port = port
        self._segment = segment
        self._next = [1000, 5000]
        self._say(False, b"", _SYN)
        self._say(True, b"", _SYN | _ACK)
        self._next = [1001, 5001]

    def client(self, content: bytes) -> None:
        """Bytes of the side that dialled."""
        self._talk(False, content)

    def server(self, content: bytes) -> None:
        """Bytes of the side that listens on port 1801."""
        self._talk(True, content)

    def _talk(self, answer: bool, content: bytes) -> None:
        for piece in _pieces(content, self._segment):
            self._say(answer, piece, _PUSH | _ACK)
            self._next[answer] += len(piece)

    def _say(self, answer: bool, content: bytes, flags: int) -> None:
        ports = (1801, self._port) if answer else (self._port, 1801)
        acknowledged = self._next[not answer] if flags & _ACK else 0
        header = struct.pack(
            ">HHIIBBHHH", *ports, self._next[answer], acknowledged, 0x50, flags, 0xFFFF, 0, 0
        )
        self._capture._packet(self._host, answer, 6, header + content)


def _pieces(content: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(content), size):
        yield content[at : at + size]
