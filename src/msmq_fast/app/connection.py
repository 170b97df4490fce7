"""The interface of a connection that its session and the objects of the session use."""

from __future__ import annotations

from typing import Any, Protocol

from msmq_fast.app.service import Service
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import Frame

__all__ = ["Connection", "Output"]

Output = bytes | memoryview


class Connection(Protocol):
    """Sends frames to the client. The engine implements it."""

    @property
    def service(self) -> Service:
        """The state that all connections share."""

    @property
    def congested(self) -> bool:
        """Whether the output is so full that no more messages should be delivered."""

    def write(self, buffers: list[Output]) -> None:
        """Pass complete frames to the transport."""

    def reply(self, kind: Frame, request_id: int, payload: Any) -> None:
        """Encode and write one frame. The frequent frames, such as MESSAGE, are encoded natively and passed
        to `write`.
        """

    def fail(self, request_id: int, error: MSMQError) -> None:
        """Answer a request with an error."""

    def unblocked(self) -> None:
        """Resume reading after a request got its reply."""

    def relieved(self) -> None:
        """Resume reading after an event that writes no reply, such as when messages of an open transaction
        have reached the disk.
        """
