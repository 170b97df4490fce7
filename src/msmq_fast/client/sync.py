"""The client without asyncio: the same names, calls that block. See `msmq_fast.client.blocking`.

Made by tools/syncclient.py of the modules beside it: do not edit.
"""

from __future__ import annotations

import ssl
from typing import Any
from uuid import UUID

from msmq_fast.client import connection as _connection
from msmq_fast.client.blocking import ClosingWrapper, on_loop, run
from msmq_fast.client.channel import Reconnect
from msmq_fast.client.connection import Instrumentation
from msmq_fast.client.syncadmin import Admin as Admin
from msmq_fast.client.syncadmin import DirectoryAdmin as DirectoryAdmin
from msmq_fast.client.syncadmin import OutgoingAdmin as OutgoingAdmin
from msmq_fast.client.syncadmin import QueueAdmin as QueueAdmin
from msmq_fast.client.syncadmin import SessionAdmin as SessionAdmin
from msmq_fast.client.syncadmin import TransactionAdmin as TransactionAdmin
from msmq_fast.client.syncparts import AccessAdmin as AccessAdmin
from msmq_fast.client.syncparts import AuditAdmin as AuditAdmin
from msmq_fast.client.syncparts import CertificateAdmin as CertificateAdmin
from msmq_fast.client.syncparts import ConfigAdmin as ConfigAdmin
from msmq_fast.client.syncparts import DefinitionAdmin as DefinitionAdmin
from msmq_fast.client.syncparts import Import as Import
from msmq_fast.client.syncparts import KeyAdmin as KeyAdmin
from msmq_fast.client.syncparts import MessageAdmin as MessageAdmin
from msmq_fast.client.syncparts import UserAdmin as UserAdmin
from msmq_fast.client.syncqueue import Cursor as Cursor
from msmq_fast.client.syncqueue import Queue as Queue
from msmq_fast.client.syncqueue import Sender as Sender
from msmq_fast.client.syncqueue import Subscription as Subscription
from msmq_fast.client.syncqueue import Transaction as Transaction
from msmq_fast.client.transaction import SINGLE_MESSAGE as SINGLE_MESSAGE
from msmq_fast.protocol.frames import Access, Frame, Share


class Connection(ClosingWrapper[_connection.Connection]):
    """A connection to a queue manager; its requests are pipelined. Made by `connect()`, closed by `close()`
    or `with`.

    `admin` holds the requests of operators. Calls that are pending when the connection is lost raise
    ConnectionLost. The argument `reconnect` of `connect()` decides whether the client connects again.
    """

    @property
    def admin(self) -> Admin:
        """The requests of operators, grouped by what they concern: see Admin."""
        return Admin(self._inner.admin)

    @property
    def connected(self) -> bool:
        """Whether the connection is established; False from its loss until the client has connected again."""
        return self._inner.connected

    @property
    def computer_name(self) -> str:
        """Name of the queue manager's computer."""
        return self._inner.computer_name

    @property
    def guid(self) -> UUID:
        """GUID of the queue manager."""
        return self._inner.guid

    def close(self) -> None:
        """Close the connection and all its queues; pending calls raise ConnectionLost."""
        run(self._inner.close())

    def request(self, kind: Frame, payload: Any) -> Any:
        """Make one request for which the client has no method; returns the payload of the reply."""
        return run(self._inner.request(kind, payload))

    def ping(self) -> None:
        """Make one round trip to the server."""
        run(self._inner.ping())

    def open(
        self, name: str, access: Access = Access.SEND | Access.RECEIVE, share: Share = Share.DENY_NONE
    ) -> Queue:
        """Open a queue by name: `connection.open(…)`, or `with connection.open(…) as queue`.

        The name is a path (`.\\private$\\orders`, `orders`) or a format name
        (`DIRECT=TCP:10.0.0.7\\private$\\orders`). For sending, it may also be several names separated by
        commas, or a distribution list: each message then goes to all of the queues.

        Raises QueueNotFound, IllegalFormatName, SharingViolation, AccessDenied, UnsupportedAccessMode.
        """
        return Queue(run(self._inner.open(name, access, share)))

    def transaction(self) -> Transaction:
        """Return a transaction: its sends and receives take effect together or not at all. See
        Transaction.
        """
        return Transaction(on_loop(lambda: self._inner.transaction()))


def connect(
    endpoint: str | None = None,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    timeout: float = 10.0,
    client: str = "",
    reconnect: bool | Reconnect = False,
    telemetry: Instrumentation | None = None,
) -> Connection:
    """Connect to a queue manager: `connect(…)`, or `with connect(…) as connection`.

    `endpoint` is the path of a Unix socket, `unix:/path`, `tcp://host:port` or `tls://host:port`; None: the
    value of the variable MSMQ_FAST_ENDPOINT. `timeout` is in seconds and limits connecting and the hello
    together. `client` is the name of the program in traces; default: the name of its script. Raises
    ValueError for an invalid endpoint, ConnectionLost, AccessDenied for a wrong token.

    With `reconnect`, the client connects again when the connection is lost, with the pauses of `Reconnect`.
    Queues, senders and subscriptions continue; new calls wait for the new connection, and pending calls that
    change nothing are repeated. Of the other pending calls, a send raises SendInDoubt, a commit raises
    CommitInDoubt, and the rest raise ConnectionLost; open transactions are aborted, and cursors are closed.
    The default is off, since only the program can decide what to do with a message in doubt.

    `telemetry` makes spans and metrics of OpenTelemetry for this connection: see
    `msmq_fast.client.telemetry.Telemetry`.
    """
    inner = run(
        _connection.connect(
            endpoint,
            token=token,
            tls=tls,
            timeout=timeout,
            client=client,
            reconnect=reconnect,
            telemetry=telemetry,
        )
    )
    return Connection(inner)
