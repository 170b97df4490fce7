"""The application API: `connect()` for asyncio programs, `msmq_fast.sync` for blocking ones.

Each name is imported at its first use, so that the bulk client does not load modules that it does not need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msmq_fast.client.channel import Reconnect
    from msmq_fast.client.connection import Connection, connect
    from msmq_fast.client.cursor import Cursor
    from msmq_fast.client.errors import BatchRefused, CommitInDoubt, ConnectionLost, Refusal, SendInDoubt
    from msmq_fast.client.message import EXPRESS, RECOVERABLE, Message, ReceivedMessage
    from msmq_fast.client.queue import Queue
    from msmq_fast.client.sender import Sender
    from msmq_fast.client.subscription import Subscription
    from msmq_fast.client.transaction import SINGLE_MESSAGE, Transaction
    from msmq_fast.protocol.classes import MessageClass
    from msmq_fast.protocol.errors import MSMQError
    from msmq_fast.protocol.frames import Access, Lookup, MessageSizes, Share
    from msmq_fast.protocol.properties import (
        Acknowledge,
        Authentication,
        Delivery,
        EncryptionAlgorithm,
        HashAlgorithm,
        Journal,
        PrivacyLevel,
    )

__all__ = [
    "EXPRESS",
    "RECOVERABLE",
    "SINGLE_MESSAGE",
    "Access",
    "Acknowledge",
    "Authentication",
    "BatchRefused",
    "CommitInDoubt",
    "Connection",
    "ConnectionLost",
    "Cursor",
    "Delivery",
    "EncryptionAlgorithm",
    "HashAlgorithm",
    "Journal",
    "Lookup",
    "MSMQError",
    "Message",
    "MessageClass",
    "MessageSizes",
    "PrivacyLevel",
    "Queue",
    "ReceivedMessage",
    "Reconnect",
    "Refusal",
    "SendInDoubt",
    "Sender",
    "Share",
    "Subscription",
    "Transaction",
    "connect",
]

_MODULES = {
    "Connection": "msmq_fast.client.connection",
    "connect": "msmq_fast.client.connection",
    "Cursor": "msmq_fast.client.cursor",
    "BatchRefused": "msmq_fast.client.errors",
    "ConnectionLost": "msmq_fast.client.errors",
    "Refusal": "msmq_fast.client.errors",
    "SendInDoubt": "msmq_fast.client.errors",
    "CommitInDoubt": "msmq_fast.client.errors",
    "Reconnect": "msmq_fast.client.channel",
    "EXPRESS": "msmq_fast.client.message",
    "RECOVERABLE": "msmq_fast.client.message",
    "Message": "msmq_fast.client.message",
    "ReceivedMessage": "msmq_fast.client.message",
    "Queue": "msmq_fast.client.queue",
    "Sender": "msmq_fast.client.sender",
    "Subscription": "msmq_fast.client.subscription",
    "SINGLE_MESSAGE": "msmq_fast.client.transaction",
    "Transaction": "msmq_fast.client.transaction",
    "MessageClass": "msmq_fast.protocol.classes",
    "MSMQError": "msmq_fast.protocol.errors",
    "Access": "msmq_fast.protocol.frames",
    "Lookup": "msmq_fast.protocol.frames",
    "MessageSizes": "msmq_fast.protocol.frames",
    "Share": "msmq_fast.protocol.frames",
    "Acknowledge": "msmq_fast.protocol.properties",
    "Authentication": "msmq_fast.protocol.properties",
    "Delivery": "msmq_fast.protocol.properties",
    "EncryptionAlgorithm": "msmq_fast.protocol.properties",
    "HashAlgorithm": "msmq_fast.protocol.properties",
    "Journal": "msmq_fast.protocol.properties",
    "PrivacyLevel": "msmq_fast.protocol.properties",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
