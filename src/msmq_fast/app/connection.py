"""What the session of a connection, and what belongs to it, need of the connection."""

from __future__ import annotations

from typing import Any, Protocol

from msmq_fast.app.service import Service
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import Frame

__all__ = ["Connection", "Output"]

Output = bytes | memoryview


class Connection(Protocol):
    """The way back to the client. The engine is one."""

    @property
    def service(self) -> Service:
        """The state that all connections share."""

    @property
    def congested(self) -> bool:
        """True while nothing more should be delivered."""

    def write(self, buffers: list[Output]) -> None:
        """Hand whole frames to the transport."""

    def reply(self, kind: Frame, request_id: int, payload: Any) -> None:
        """Write one frame. For frames that are not hot."""

    def fail(self, request_id: int, error: MSMQError) -> None:
        """Answer a request with an error."""

    def unblocked(self) -> None:
        """A request got its reply: reading may go on."""

    def relieved(self) -> None:
        """Less of what the peer sent waits for the disk: reading may go on, without a reply."""
