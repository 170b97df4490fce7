"""What all connections of the application protocol share: the queue manager, the limits, the users."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from msmq_fast.app.auth import TokenTable
from msmq_fast.protocol import frames
from msmq_fast.qm.identity.signing import Signing
from msmq_fast.security.principals import Principals
from msmq_fast.security.sid import Sid
from msmq_fast.security.token import Token
from msmq_fast.security.users import Users

if TYPE_CHECKING:
    from msmq_fast.protocol.configuration import ConfigCheck, ConfigPage
    from msmq_fast.protocol.resources import ReaderInfo, SessionInfo, SessionPage
    from msmq_fast.qm.identity.certificates import Certificates
    from msmq_fast.qm.identity.keyring import Keyring
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.security.lastlogons import LastLogon
    from msmq_fast.store.snapshots import Snapshots


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one connection; the answer to the hello holds the first six fields."""

    max_frame: int = frames.MAX_FRAME
    max_batch: int = frames.MAX_BATCH
    max_credit: int = frames.MAX_CREDIT
    max_pending: int = frames.MAX_PENDING
    max_handles: int = frames.MAX_HANDLES
    max_transactions: int = frames.MAX_TRANSACTIONS
    max_sending: int = 4_194_304  # bytes of sent messages that wait for the disk, at which reading stops
    output_high: int = 4_194_304  # bytes waiting for the transport at which deliveries and requests stop


@dataclass(slots=True)
class Counters:
    """Counters of the application protocol since the server started, over all connections."""

    connections: int = 0
    frames: int = 0
    sent: int = 0
    delivered: int = 0
    refused: int = 0  # messages
    errors: int = 0  # requests answered with ERROR
    broken: int = 0  # connections closed because the peer broke the framing

    def as_dict(self) -> dict[str, int]:
        """Return the counters by name, for STATS and the metrics."""
        return {name: getattr(self, name) for name in self.__slots__}


class OpenSessions(Protocol):
    """The open connections of the server, over all its ports."""

    def page(self, kind: str, after: int, limit: int) -> SessionPage:
        """Return up to `limit` sessions of a kind ("": of all kinds) with numbers above `after`."""
        ...

    def find(self, number: int) -> SessionInfo | None:
        """Return the session with this number; None if there is none."""
        ...

    def end(self, number: int) -> None:
        """Close the connection, if it is still open, once pending replies are on their way."""
        ...


class Configuration(Protocol):
    """The configuration of the running server."""

    def page(self, offset: int, limit: int) -> ConfigPage:
        """Return up to `limit` settings after the first `offset` ones, without secrets."""
        ...

    def check(self, text: str) -> ConfigCheck:
        """Return what a reload would do if the file had the content `text`."""
        ...


def _nobody_else() -> Principals:
    """Return the principals of a server without a users file: root and the server's own Unix user are
    administrators.
    """
    users = Users(Sid.build(5, 21, 0, 0, 0))
    return Principals(lambda: users, os.geteuid())


@dataclass(slots=True)
class Service:
    """The state of the application protocol that all connections to one queue manager share."""

    manager: QueueManager
    software: str
    tokens: TokenTable | None = None  # None: connections bring their identity (Unix socket)
    statistics: Callable[[], Mapping[str, Any]] = dict  # added to the reply to STATS
    limits: Limits = field(default_factory=Limits)
    counters: Counters = field(default_factory=Counters)
    principals: Principals = field(default_factory=_nobody_else)
    certificates: Certificates | None = None
    keyring: Keyring | None = None
    signing: Signing | None = None  # for programs that ask for it
    snapshots: Snapshots | None = None
    reload: Callable[[Token], Mapping[str, Any]] | None = None  # for a caller; audits it; raises MSMQError
    sessions: OpenSessions | None = None
    readers: Callable[[], Iterable[ReaderInfo]] = tuple
    configuration: Configuration | None = None
    last_logons: Callable[[str], LastLogon | None] = lambda _: None  # of an account
