"""What the management API needs of the server that it runs in."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msmq_fast.client.connection import Connection
from msmq_fast.security.callers import Caller

__all__ = ["Gateway"]


class Gateway(Protocol):
    """Opens connections of the application protocol to the queue manager of this process.

    So an operation has the rights, the audit lines and the vocabulary that its caller would have as a
    program.
    """

    def client(self, caller: Caller) -> AbstractAsyncContextManager[Connection]:
        """Return a connection with the identity of `caller`, which other calls of the same caller may share.
        Raises ServiceNotAvailable while the server stops.
        """
