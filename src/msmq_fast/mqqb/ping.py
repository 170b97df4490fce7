"""The ping protocol over UDP, both sides (MS-MQQB 2.2.7, 3.1.7.6–3.1.7.9)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from msmq_fast.packet.session import Ping
from msmq_fast.qm.deadlines import Deadlines
from msmq_fast.qm.faults import for_each
from msmq_fast.security.allowance import Allowance

PORT = 3527
"""The default UDP port on which queue managers answer pings (2.1.2)."""

IN_ALL = 2000
"""Maximum number of answers per second over all addresses; each has 24 bytes."""

_FIRST_UNPRIVILEGED = 1024


class Responder:
    """Answers ping requests, but not the answers of other responders.

    A request and its answer have the same format (2.2.7). So two responders would answer each other without
    end once a datagram with the ping port as its forged source port reached one of them. Therefore:

    1. A datagram from a ping port is not answered. Initiators send from another port and listen there
       (2.1.2); so do all versions of Windows.
    2. A datagram from a port below 1024 is not answered: services there (echo, chargen, time) answer any
       datagram.
    3. The number of answers per second is limited, for each address group and in all. A sender that gets no
       answer only loses time: it connects without a ping when it retries (3.1.5.2.2).
    """

    def __init__(self, own: UUID, ports: frozenset[int], rate: int) -> None:
        """`own` is the GUID of this queue manager. `ports` has the UDP ports of other responders, besides the
        default port; `rate` is the maximum number of answers per second to one address group.
        """
        self._own = own
        self._ports = ports | {PORT}
        self._each = Allowance(rate, 1.0)
        self._all = Allowance(IN_ALL, 1.0)

    def set_rate(self, rate: int) -> None:
        """Set the maximum number of answers per second to one address group."""
        self._each = Allowance(rate, 1.0)

    def answer(
        self, request: bytes, address: str, port: int, own_port: int, now: float, *, would_refuse: bool
    ) -> bytes | None:
        """Returns the response to a datagram from `address` and `port`; None if it must be ignored.

        The response says whether a session would be refused: `would_refuse`.
        """
        ping = Ping.decode(request[: Ping.SIZE])
        if ping is None or port < _FIRST_UNPRIVILEGED or port == own_port or port in self._ports:
            return None
        if not self._each.take(address, 1, now) or not self._all.take("", 1, now):
            return None
        return Ping(ping.cookie, self._own, client_class=ping.client_class, refused=would_refuse).encode()


class Inquirer:
    """Asks addresses which queue manager is there.

    `cookie` returns 32 random bits: a host that guessed them could forge the answer.
    """

    def __init__(self, own: UUID, timeout: float, cookie: Callable[[], int]) -> None:
        self._own = own
        self._timeout = timeout
        self._cookie = cookie
        self._waiting: dict[int, Callable[[UUID | None, float], None]] = {}
        self._timers: Deadlines[int] = Deadlines()

    def ask(self, done: Callable[[UUID | None, float], None], now: float) -> bytes:
        """Returns the datagram to send. `done(guid, now)` is called once, with the GUID in the answer, or
        with None if no answer arrives in time.
        """
        cookie = self._cookie()
        while cookie in self._waiting:
            cookie = (cookie + 1) & 0xFFFFFFFF
        self._waiting[cookie] = done
        self._timers.set(cookie, now + self._timeout)
        return Ping(cookie, self._own).encode()

    def receive(self, datagram: bytes, now: float) -> None:
        """Process a datagram that arrived at the socket that sent the requests; ignores all but answers."""
        ping = Ping.decode(datagram[: Ping.SIZE])
        if ping is not None and ping.cookie in self._waiting:
            self._timers.set(ping.cookie, None)
            self._waiting.pop(ping.cookie)(ping.manager, now)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        return self._timers.next_deadline()

    def expire(self, now: float) -> None:
        """End the requests that were not answered in time."""
        for_each(self._timers.take(now), lambda cookie: self._waiting.pop(cookie)(None, now))


class Pinger:
    """The pending ping requests of one queue manager; each ends with a call of `done(request, good, now)`.

    `request` is the number that was passed to `send`. `good`: the peer has answered, and would accept a
    session.

    Each request has a unique cookie, so that pings to several hosts do not interfere with each other
    (AMB-70).
    """

    def __init__(self, own: UUID, timeout: float, done: Callable[[int, bool, float], None]) -> None:
        self._own = own
        self._timeout = timeout
        self._done = done
        self._cookie = 0
        self._waiting: dict[int, int] = {}
        self._timers: Deadlines[int] = Deadlines()

    def send(self, request: int, now: float) -> bytes:
        """Returns the datagram to send for `request`; the answer must come within the Ping Response Timer."""
        self._cookie = (self._cookie + 1) & 0xFFFFFFFF
        self._waiting[self._cookie] = request
        self._timers.set(self._cookie, now + self._timeout)
        return Ping(self._cookie, self._own).encode()

    def receive(self, datagram: bytes, now: float) -> None:
        """Process a datagram that arrived at the socket that sent the requests; ignores all but answers."""
        ping = Ping.decode(datagram[: Ping.SIZE])
        if ping is None or ping.cookie not in self._waiting:
            return
        self._timers.set(ping.cookie, None)
        self._done(self._waiting.pop(ping.cookie), not ping.refused, now)

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        return self._timers.next_deadline()

    def expire(self, now: float) -> None:
        """End, as failed, the requests that were not answered in time."""
        for_each(self._timers.take(now), lambda cookie: self._done(self._waiting.pop(cookie), False, now))
