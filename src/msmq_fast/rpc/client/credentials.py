"""The account with which this queue manager logs on to the computers whose queues it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msmq_fast.rpc.auth import initiators
from msmq_fast.rpc.auth.context import AuthError, AuthFailure, AuthLevel, AuthType, SecurityContext
from msmq_fast.rpc.auth.mechanism import AuthCounters

__all__ = ["Logon"]


@dataclass(frozen=True, slots=True)
class Logon:
    """The account, and how it logs on (implements connection.Credentials).

    `service` is the first part of a server's SPN (`service/host`).
    """

    auth_type: AuthType
    level: AuthLevel
    credentials: initiators.Credentials
    now: Callable[[], float]  # seconds since 1970
    random_bytes: Callable[[int], bytes]
    service: str = "host"
    counters: AuthCounters = field(default_factory=AuthCounters)

    def initiate(self, host: str) -> SecurityContext:
        """Return a new security context with a server. Raises AuthError."""
        try:
            return initiators.initiate(
                self.auth_type,
                self.level,
                f"{self.service}/{host}",
                self.credentials,
                self.counters,
                self.now,
                self.random_bytes,
            )
        except ImportError:
            raise AuthError(
                AuthFailure.TYPE, "Kerberos needs an extra package; run: pip install 'msmq-fast[kerberos]'"
            ) from None
