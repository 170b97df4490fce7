"""Reports the state of the server to the service manager (systemd, podman) by the protocol of sd_notify(3).

1. The service manager names a datagram socket in `$NOTIFY_SOCKET`. Without the variable, nothing is sent.
2. `READY=1` follows when every listener accepts. Until then `systemctl start` waits.
3. The commit loop calls `expire`, so a loop that hangs sends no `WATCHDOG=1`, and the service manager ends
   the process after `$WATCHDOG_USEC`.
4. A datagram that the socket has no room for is sent later: the loop never waits for the service manager.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from collections import deque
from collections.abc import Callable, MutableMapping
from typing import Final

__all__ = ["ServiceManager"]

_log = logging.getLogger("msmq_fast.server")

_INTERVAL: Final = 5.0  # seconds between two looks at the status, if the watchdog does not ask for less
_AGAIN: Final = 0.1  # seconds after which a datagram is sent again that the socket had no room for
_KEPT: Final = 16  # datagrams that wait for room; the oldest ones are dropped
_NO_ROOM: Final = (errno.EAGAIN, errno.ENOBUFS)


class ServiceManager:
    """The link to the service manager; it is a `Timed` of the commit loop once the server is ready."""

    def __init__(
        self,
        environment: MutableMapping[str, str],
        monotonic: Callable[[], float],
        why_not_ready: Callable[[], str | None],
    ) -> None:
        """Take the variables of the protocol out of `environment`, so that no child process inherits them.
        `why_not_ready` returns the reason that `/readyz` gives, or None.
        """
        self._monotonic = monotonic
        self._socket: socket.socket | None = None
        self._unsent: deque[bytes] = deque(maxlen=_KEPT)
        self._why_not_ready = why_not_ready
        self._status = ""
        self._due: float | None = None
        address = environment.pop("NOTIFY_SOCKET", "")
        interval, process = (environment.pop(name, "") for name in ("WATCHDOG_USEC", "WATCHDOG_PID"))
        self._watchdog = interval.isdecimal() and int(interval) > 0 and process in ("", str(os.getpid()))
        # Half of the time, as sd_watchdog_enabled(3) recommends.
        self._interval = min(_INTERVAL, int(interval) / 2_000_000) if self._watchdog else _INTERVAL
        if address:
            self._connect(address)

    def _connect(self, address: str) -> None:
        try:
            if address[0] not in "/@":
                raise OSError(errno.EINVAL, "expected a path or an abstract socket")
            link = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            self._socket = link
            link.connect("\0" + address[1:] if address[0] == "@" else address)
        except OSError as error:
            self.close()
            _log.warning("cannot notify the service manager at %s: %s", address, error.strerror or error)

    def starting(self) -> None:
        """Report that the store is being opened, which may take minutes after a crash."""
        self._send("STATUS=opening the store")

    def ready(self) -> None:
        """Report that every listener accepts, and begin to send the watchdog's signal."""
        self._send("READY=1", *self._changed_status())
        if self._socket is not None:
            self._due = self._monotonic()

    def reload(self, reload: Callable[[], object]) -> None:
        """Call `reload`, and report its beginning and its end."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
        try:
            reload()
        finally:
            self._send("READY=1")

    def stopping(self) -> None:
        """Report that the server drains."""
        self._status = "draining"
        self._send("STOPPING=1", f"STATUS={self._status}")

    def next_deadline(self) -> float | None:
        """Return the time at which the next report is due; None before the server is ready, and without a
        service manager.
        """
        return self._due

    def expire(self, now: float) -> None:
        """Report that the loop runs, and why the server is not ready."""
        self._due = now + self._interval
        self._send(*(["WATCHDOG=1"] if self._watchdog else []), *self._changed_status())

    def close(self) -> None:
        """Send nothing from now on."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._due = None

    def _changed_status(self) -> list[str]:
        status = self._why_not_ready() or "ready"
        if status == self._status:
            return []
        self._status = status
        return [f"STATUS={' '.join(status.split())}"]

    def _send(self, *lines: str) -> None:
        if self._socket is None:
            return
        if lines:
            self._unsent.append("\n".join(lines).encode(errors="replace"))
        try:
            while self._unsent:
                self._socket.send(self._unsent[0])
                self._unsent.popleft()
        except OSError as error:
            if error.errno not in _NO_ROOM:
                _log.warning("cannot notify the service manager: %s", error.strerror or error)
                self.close()
            elif self._due is not None:
                self._due = min(self._due, self._monotonic() + _AGAIN)
