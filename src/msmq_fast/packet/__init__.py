"""The structures of MS-MQMQ and MS-MQQB 2.2: names, headers, packets, message classes, error codes.

`Message` is imported on first use: it is the only name here that needs native code, which a worker of an
analytics cluster may not have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msmq_fast.packet.names import FormatName, PathName
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import MSMQError, PacketFault

if TYPE_CHECKING:
    from msmq_fast.packet.message import Message

__all__ = ["FormatName", "MSMQError", "Message", "MessageClass", "PacketFault", "PathName"]


def __getattr__(name: str) -> Any:
    if name == "Message":
        from msmq_fast.packet.message import Message

        return Message
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
