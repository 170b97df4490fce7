"""msmq-fast: a queue manager for MSMQ applications, and its client API.

    async with msmq_fast.connect("/var/lib/msmq-fast/app.sock") as connection:
        async with connection.open("orders") as queue:
            await queue.send(msmq_fast.Message(b"hello", delivery=msmq_fast.RECOVERABLE))

`msmq_fast.sync` is the same API without asyncio. Each name is imported at its first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msmq_fast.client import (
        EXPRESS,
        RECOVERABLE,
        SINGLE_MESSAGE,
        Access,
        Acknowledge,
        Authentication,
        BatchRefused,
        CommitInDoubt,
        Connection,
        ConnectionLost,
        Cursor,
        Delivery,
        EncryptionAlgorithm,
        HashAlgorithm,
        Journal,
        Lookup,
        Message,
        MessageClass,
        MessageSizes,
        MSMQError,
        PrivacyLevel,
        Queue,
        ReceivedMessage,
        Reconnect,
        Refusal,
        Sender,
        SendInDoubt,
        Share,
        Subscription,
        Transaction,
        connect,
        sync,
    )
    from msmq_fast.protocol import errors

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
    "errors",
    "sync",
]

_MODULES = {"errors": "msmq_fast.protocol.errors", "sync": "msmq_fast.client.sync"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in __all__:
        return getattr(import_module("msmq_fast.client"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
