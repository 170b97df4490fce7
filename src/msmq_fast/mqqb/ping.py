"""The ping protocol over UDP, both sides (MS-MQQB 2.2.7, 3.1.7.6–3.1.7.9)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from msmq_fast.packet.session import Ping
from msmq_fast.qm.agenda import Agenda


def answer(request: bytes, own: UUID, would_refuse: bool) -> bytes | None:
    """The response to a ping request, or None for a datagram that is to be ignored."""
    ping = Ping.decode(request[: Ping.SIZE])
    if ping is None:
        return None
    return Ping(ping.cookie, own, client_class=ping.client_class, refused=would_refuse).encode()


class Pinger:
    """Outstanding requests of one queue manager; `done(request, good)` ends each of them.

    Cookies are unique and one is kept per request, so that pings to several hosts do not defeat
    each other (AMB-70).
    """

    def __init__(self, own: UUID, timeout: float, done: Callable[[int, bool, float], None]) -> None:
        self._own = own
        self._timeout = timeout
        self._done = done
        self._cookie = 0
        self._waiting: dict[int, int] = {}
        self._timers: Agenda[int] = Agenda()

    def send(self, request: int, now: float) -> bytes:
        """The datagram that asks for `request`; the answer is due within the Ping Response Timer."""
        self._cookie = (self._cookie + 1) & 0xFFFFFFFF
        self._waiting[self._cookie] = request
        self._timers.set(self._cookie, now + self._timeout)
        return Ping(self._cookie, self._own).encode()

    def receive(self, datagram: bytes, now: float) -> None:
        """A datagram arrived at the socket that sent the requests; what answers none of them is ignored."""
        ping = Ping.decode(datagram[: Ping.SIZE])
        if ping is None or ping.cookie not in self._waiting:
            return
        self._timers.set(ping.cookie, None)
        self._done(self._waiting.pop(ping.cookie), not ping.refused, now)

    @property
    def next_deadline(self) -> float | None:
        """When `handle_deadline` is to be called."""
        return self._timers.next_deadline

    def handle_deadline(self, now: float) -> None:
        """Requests without an answer in time have failed."""
        for cookie in self._timers.take(now):
            self._done(self._waiting.pop(cookie), False, now)
