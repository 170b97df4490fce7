"""One connection of a client, without IO."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msmq_fast.rpc.association import Association
    from msmq_fast.rpc.call import Call

__all__ = ["ServerConnection"]


class ServerConnection:
    """The server's side of one connection."""

    association: Association | None = None

    def respond(
        self, call: Call, stub: bytes | bytearray | memoryview, written: Callable[[bool], None] | None
    ) -> None:
        """Queue the response of a call."""
        raise NotImplementedError

    def fail(self, call: Call, status: int) -> None:
        """Queue the fault of a call."""
        raise NotImplementedError
