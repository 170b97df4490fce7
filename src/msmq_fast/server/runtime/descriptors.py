"""File descriptors of this process: raises the soft limit, and scales the connection limits to fit it."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import resource
from dataclasses import dataclass
from typing import Final

from msmq_fast.config.sections import Config

__all__ = [
    "LEAST",
    "RESERVE",
    "ConnectionLimits",
    "ConnectionScale",
    "SpareDescriptors",
    "connection_limits",
    "divide",
    "raise_limit",
]

_log = logging.getLogger("msmq_fast.server")

_OWN: Final = 128
"""Number of descriptors that the server itself needs: for the store, the event loop, listening sockets, name
resolution, snapshots.
"""

RESERVE: Final = 64
"""Number of descriptors that are never used for connections, as a reserve."""

_LOCAL: Final = 16
"""Number of connections that programs always get, and that the admin port always gets."""

_PLENTY: Final = 1 << 30

LEAST: Final = 256
"""Below this number of descriptors the server does not start."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The maximum numbers of connections of each kind."""

    network: int
    network_per_address: int
    programs: int
    admin: int
    outgoing: int

    @classmethod
    def configured(cls, config: Config) -> ConnectionLimits:
        """Return the limits that the configuration sets."""
        limits, listen = config.limits, config.listen
        return cls(
            limits.network_connections,
            limits.network_per_address,
            listen.app.max_connections,
            listen.admin.max_connections,
            limits.outgoing_connections,
        )

    @property
    def total(self) -> int:
        """The sum of all limits."""
        return self.network + self.programs + self.admin + self.outgoing


@dataclass(frozen=True, slots=True)
class ConnectionScale:
    """The fraction of each limit that the descriptors of the process allow, from 0 to 1."""

    network: float = 1.0
    programs: float = 1.0
    admin: float = 1.0
    outgoing: float = 1.0


def raise_limit() -> int:
    """Raise the soft limit of open files to the hard limit. Return the number of descriptors that the process
    may now open.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):  # some sandboxes forbid it
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
    return _PLENTY if soft == resource.RLIM_INFINITY else soft


def divide(wanted: ConnectionLimits, descriptors: int) -> ConnectionScale:
    """Return the fraction of each limit that fits into `descriptors`.

    All kinds get the same fraction, but programs and the admin port get at least `_LOCAL` connections each,
    so that operators can always reach the server. Raises ValueError, with one line for people, if there are
    too few descriptors.
    """
    if descriptors < LEAST:
        raise ValueError(
            f"{descriptors} open files (RLIMIT_NOFILE) are too few: at least {LEAST} are needed; raise the "
            "hard limit (LimitNOFILE= of systemd, --ulimit nofile= of a container, ulimit -Hn of a shell)"
        )
    room = descriptors - _OWN - RESERVE
    if wanted.total <= room:
        return ConnectionScale()
    part = room / wanted.total
    programs = max(min(_LOCAL, wanted.programs), math.floor(wanted.programs * part))
    admin = max(min(_LOCAL, wanted.admin), math.floor(wanted.admin * part))
    part = (room - programs - admin) / (wanted.network + wanted.outgoing)
    return ConnectionScale(part, programs / wanted.programs, admin / wanted.admin, part)


def connection_limits(config: Config) -> tuple[ConnectionLimits, ConnectionScale]:
    """Return (limits of a configuration, fraction of each that the descriptors of this process allow). Logs a
    warning if a limit must be reduced. Raises ValueError, with one line for people, if there are too few
    descriptors.
    """
    limits = ConnectionLimits.configured(config)
    descriptors = raise_limit()
    scale = divide(limits, descriptors)
    if scale != ConnectionScale():
        _log.warning(
            "%d open files (RLIMIT_NOFILE) do not suffice for %d connections: the limits are lowered to "
            "%.0f %% (for the command line %.0f %%, for the admin port %.0f %%); raise the hard limit, "
            "or lower limits.network_connections and limits.outgoing_connections",
            descriptors,
            limits.total,
            scale.network * 100,
            scale.programs * 100,
            scale.admin * 100,
        )
    return limits, scale


class SpareDescriptors:
    """A reserve of open descriptors. When the system has no descriptor left, one of them is closed and can be
    used.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._held: list[int] = []
        self.refill()

    def give(self) -> bool:
        """Close one spare descriptor. Return False if none is left."""
        if not self._held:
            return False
        os.close(self._held.pop())
        return True

    def refill(self) -> None:
        """Open spare descriptors again, as many as the system allows."""
        with contextlib.suppress(OSError):
            while len(self._held) < self._count:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def close(self) -> None:
        """Close all spare descriptors."""
        self._count = 0
        while self.give():
            pass
