"""The application API: `connect()` for asyncio, `msmq_fast.sync` for the rest."""

from msmq_fast.client.connection import Connection, connect
from msmq_fast.client.cursor import Cursor
from msmq_fast.client.errors import BatchRefused, ConnectionLost, Refusal
from msmq_fast.client.message import EXPRESS, RECOVERABLE, Message
from msmq_fast.client.queue import Queue
from msmq_fast.client.sender import Sender
from msmq_fast.client.subscription import Subscription
from msmq_fast.client.transaction import SINGLE_MESSAGE, Transaction
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.protocol.frames import Access, Lookup, Share

__all__ = [
    "EXPRESS",
    "RECOVERABLE",
    "SINGLE_MESSAGE",
    "Access",
    "BatchRefused",
    "Connection",
    "ConnectionLost",
    "Cursor",
    "Lookup",
    "MSMQError",
    "Message",
    "Queue",
    "Refusal",
    "Sender",
    "Share",
    "Subscription",
    "Transaction",
    "connect",
]
