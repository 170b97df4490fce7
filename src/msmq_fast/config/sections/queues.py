"""Tables [[queues]]: queues that exist after every start."""

from __future__ import annotations

from dataclasses import dataclass

from msmq_fast.config import kinds, name_kinds
from msmq_fast.config.kinds import key

__all__ = ["QueueDeclaration"]


@dataclass(slots=True)
class QueueDeclaration:
    """Tables [[queues]]: queues that exist after every start.

    The server creates a declared queue that does not exist. An existing queue keeps its messages, and its
    label, quota and journal are set to the values in the file. `transactional` cannot change: the server does
    not start if it differs from the stored queue.
    """

    name: str = key(name_kinds.QUEUE, "", "path of the queue")
    label: str = key(kinds.TEXT, "", "label, up to 124 characters")
    transactional: bool = key(kinds.FLAG, False, "accept transactional messages only")
    journal: bool = key(kinds.FLAG, False, "keep copies of received messages")
    quota: int = key(kinds.quota(), 2**32 - 1, "maximum size of all messages in the queue together")  # KB
    authenticated: bool = key(kinds.FLAG, False, "accept signed messages only")
    multicast_address: str = key(
        name_kinds.GROUP,
        "",
        "multicast group and port, such as 234.1.1.1:8001, that the queue receives from; empty: "
        "an existing queue keeps its own",
    )
