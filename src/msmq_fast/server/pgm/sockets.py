"""Sockets for PGM: over IP protocol 113 (RFC 3208), or inside UDP for tests without the right to use raw
sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import struct
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from msmq_fast.config.sections import PgmConfig
from msmq_fast.logfields import logged
from msmq_fast.server.net.sockets import ListenError
from msmq_fast.server.pgm.interfaces import Interface, chosen_interfaces
from msmq_fast.srmp.pgm.model import Datagram

__all__ = ["PROTOCOL", "Arrived", "PgmSockets", "open_sockets"]

PROTOCOL: Final = 113
ROUTER_ALERT: Final = bytes.fromhex("94040000")
BURST: Final = 256  # packets that are read before others have their turn
_LARGEST: Final = 65_535
_WAITING: Final = 4096  # packets for which the system has no room yet; more are lost, and asked for again

# Not in the socket module of every Python.
_IP_TTL: Final = 2
_IP_RETOPTS: Final = 7
_IP_PKTINFO: Final = 8
_IP_MTU_DISCOVER: Final = 10
_IP_MULTICAST_ALL: Final = 49
_SO_SNDBUFFORCE: Final = 32
_SO_RCVBUFFORCE: Final = 33
_PMTUDISC_DONT: Final = 0

_NO_RIGHT = (
    "multicast is off: [pgm] is enabled, but IP protocol 113 (PGM) needs the capability CAP_NET_RAW, which "
    'this process lacks; give it with "AmbientCapabilities=CAP_NET_RAW" in the systemd unit, with '
    '"--cap-add NET_RAW" to a container, or start the server as root'
)

_log = logging.getLogger("msmq_fast.pgm")


class Arrived(NamedTuple):
    """One received PGM packet, without IP and UDP headers."""

    packet: bytes
    source: str
    destination: bytes
    """The destination address, 4 octets: a group, or an address of this machine."""


class PgmSockets(ABC):
    """Sends and receives PGM packets; joins multicast groups on all `interfaces`."""

    def __init__(self, interfaces: tuple[Interface, ...], ttl: int) -> None:
        self.interfaces = interfaces
        self.failures: Counter[str] = Counter()
        """Number of packets that could not be sent, by reason."""
        self._ttl = ttl
        self._waiting: deque[tuple[Datagram, Interface]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._buffer = bytearray(_LARGEST + 1)

    @property
    @abstractmethod
    def shown(self) -> str:
        """The text that describes the sockets in the ready line."""

    @property
    @abstractmethod
    def _sockets(self) -> list[socket.socket]:
        """The sockets that receive packets; the first one also sends packets and joins the groups."""

    @abstractmethod
    def _receive(self, readable: socket.socket) -> Arrived | None:
        """Return the next PGM packet; None if another kind of packet arrived. Raises BlockingIOError if no
        packet is left.
        """

    @property
    def _port(self) -> int:
        return 0

    # ---- groups

    def join(self, group: str) -> None:
        """Join a group on all interfaces. Raises OSError if no interface can join it."""
        errors = [error for each in self.interfaces if (error := self._change(group, each, leave=False))]
        if len(errors) == len(self.interfaces):
            raise errors[0]

    def leave(self, group: str) -> None:
        """Leave a group on all interfaces."""
        for each in self.interfaces:
            self._change(group, each, leave=True)

    def _change(self, group: str, interface: Interface, *, leave: bool) -> OSError | None:
        request = struct.pack(
            "=4s4si",
            socket.inet_aton(group),
            socket.inet_aton(interface.address) if interface.address else bytes(4),
            interface.index,
        )
        option = socket.IP_DROP_MEMBERSHIP if leave else socket.IP_ADD_MEMBERSHIP
        try:
            self._sockets[0].setsockopt(socket.IPPROTO_IP, option, request)
        except OSError as error:
            return None if error.errno == errno.EADDRINUSE else error  # is in it already
        return None

    # ---- receiving

    def watch(self, loop: asyncio.AbstractEventLoop, readable: Callable[[], None]) -> None:
        """Call `readable` whenever packets have arrived; the function must call `receive`."""
        self._loop = loop
        for each in self._sockets:
            loop.add_reader(each.fileno(), readable)

    def receive(self) -> list[Arrived]:
        """Return the received packets, at most `BURST` from each socket."""
        found = []
        for each in self._sockets:
            with contextlib.suppress(BlockingIOError):
                for _ in range(BURST):
                    arrived = self._receive(each)
                    if arrived is not None:
                        found.append(arrived)
        return found

    # ---- sending

    def send(self, datagrams: Iterable[Datagram], interface: Interface) -> None:
        """Send datagrams in this order. Failures are counted; receivers request repairs of the packets that
        they miss.
        """
        waiting = self._waiting
        for datagram in datagrams:
            if not waiting and self._sent(datagram, interface):
                continue
            if len(waiting) >= _WAITING:
                self.failures["no room"] += 1
                continue
            waiting.append((datagram, interface))
            if len(waiting) == 1 and self._loop is not None:
                self._loop.add_writer(self._sockets[0].fileno(), self._writable)

    def _writable(self) -> None:
        while self._waiting:
            if not self._sent(*self._waiting[0]):
                return
            self._waiting.popleft()
        if self._loop is not None:
            self._loop.remove_writer(self._sockets[0].fileno())

    def _sent(self, datagram: Datagram, interface: Interface) -> bool:
        """Send a datagram. Return False if the socket cannot send now: the caller must then try again."""
        payload, destination, ttl, alert = datagram
        to_group = 224 <= int(destination.partition(".")[0]) < 240
        options: list[tuple[int, int, bytes]] = []
        if to_group and interface.index:
            from_here = struct.pack("=i4s4s", interface.index, socket.inet_aton(interface.address), bytes(4))
            options.append((socket.IPPROTO_IP, _IP_PKTINFO, from_here))
        if ttl is not None or to_group:
            hops = self._ttl if ttl is None else ttl
            options.append((socket.IPPROTO_IP, _IP_TTL, struct.pack("=i", hops)))
        if alert:
            options.append((socket.IPPROTO_IP, _IP_RETOPTS, ROUTER_ALERT))
        try:
            self._sockets[0].sendmsg([payload], options, 0, (destination, self._port))
        except BlockingIOError:
            return False
        except OSError as error:
            reason = error.strerror or str(error)
            if not self.failures[reason]:
                _log.warning(
                    "a PGM packet to %s could not be sent: %s",
                    destination,
                    reason,
                    extra=logged(peer=destination),
                )
            self.failures[reason] += 1
        return True

    def close(self) -> None:
        """Close the sockets, which also leaves all groups."""
        for each in self._sockets:
            if self._loop is not None:
                self._loop.remove_reader(each.fileno())
                self._loop.remove_writer(each.fileno())
            each.close()


class _Raw(PgmSockets):
    def __init__(self, interfaces: tuple[Interface, ...], settings: PgmConfig) -> None:
        super().__init__(interfaces, settings.ttl)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_RAW, PROTOCOL)
        _prepare(self._socket, settings)

    @property
    def shown(self) -> str:
        return ",".join(each.name for each in self.interfaces)

    @property
    def _sockets(self) -> list[socket.socket]:
        return [self._socket]

    def _receive(self, readable: socket.socket) -> Arrived | None:
        buffer = self._buffer
        size, address = readable.recvfrom_into(buffer)
        begin = (buffer[0] & 0x0F) * 4
        if size <= begin:
            return None
        return Arrived(bytes(memoryview(buffer)[begin:size]), str(address[0]), bytes(buffer[16:20]))


class _Udp(PgmSockets):
    def __init__(self, interfaces: tuple[Interface, ...], settings: PgmConfig, port: int) -> None:
        super().__init__(interfaces, settings.ttl)
        self._number = port
        # Several servers of one machine share the port; what is sent to one of them goes to its address.
        self._open = [self._bound(each.address, settings) for each in interfaces if each.address]
        self._open.append(self._bound("", settings))

    def _bound(self, address: str, settings: PgmConfig) -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            _prepare(made, settings)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            made.bind((address, self._number))
        except OSError as error:
            made.close()
            raise ListenError(
                f"pgm.udp_port: port {self._number}: {error.strerror}", error.errno or 0
            ) from None
        return made

    @property
    def shown(self) -> str:
        return f"udp:{self._number}"

    @property
    def _sockets(self) -> list[socket.socket]:
        return self._open[::-1]

    @property
    def _port(self) -> int:
        return self._number

    def _receive(self, readable: socket.socket) -> Arrived | None:
        size, ancillary, _, address = readable.recvmsg_into([self._buffer], 64)
        for level, kind, data in ancillary:
            if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
                return Arrived(bytes(memoryview(self._buffer)[:size]), str(address[0]), bytes(data[8:12]))
        return None


def _prepare(made: socket.socket, settings: PgmConfig) -> None:
    made.setblocking(False)
    made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)  # programs of this machine hear it too
    made.setsockopt(
        socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0
    )  # without the groups that other sockets have joined
    made.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_DONT)
    for force, usual in ((_SO_RCVBUFFORCE, socket.SO_RCVBUF), (_SO_SNDBUFFORCE, socket.SO_SNDBUF)):
        try:
            made.setsockopt(socket.SOL_SOCKET, force, settings.buffer)
        except PermissionError:
            made.setsockopt(socket.SOL_SOCKET, usual, settings.buffer)


def open_sockets(settings: PgmConfig) -> PgmSockets | None:
    """Return the sockets; None if multicast is off, or if the system does not permit it, which is logged.
    Raises ListenError if the settings are wrong.
    """
    if not settings.enabled:
        return None
    interfaces = chosen_interfaces(settings.interfaces)
    if settings.udp_port is not None:
        return _Udp(interfaces, settings, settings.udp_port)
    try:
        return _Raw(interfaces, settings)
    except PermissionError:
        _log.warning(_NO_RIGHT)
        return None
    except OSError as error:
        raise ListenError(f"IP protocol {PROTOCOL} (PGM): {error.strerror}", error.errno or 0) from None
