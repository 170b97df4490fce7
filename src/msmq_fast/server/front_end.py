"""The interface of all front ends, and the objects that they share.

To add a front end:

1. Give it a package in `server/` with one class that derives from `FrontEnd` and takes a `Runtime`.
2. Bind its sockets in `Assembly._bind`: the start must fail before the store is opened if a port is in use.
3. Put it into the list in `Assembly._front_ends_of`, which has the order in which front ends stop.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from msmq_fast.admin.view import Labelled
from msmq_fast.app.auth import TokenTable
from msmq_fast.config.sections import Config
from msmq_fast.qm.manager import QueueManager
from msmq_fast.server.access import AccessControl
from msmq_fast.server.credentials import TlsFiles
from msmq_fast.server.message_security import MessageSecurity
from msmq_fast.server.net.accepting import Acceptors
from msmq_fast.server.runtime.clock import SystemClock
from msmq_fast.server.runtime.loop import CommitLoop
from msmq_fast.server.runtime.refusals import RefusalCounters
from msmq_fast.server.tracing.tracer import Tracer
from msmq_fast.store.snapshots import Snapshots
from msmq_fast.store.store import Store

__all__ = ["Bound", "FrontEnd", "Runtime"]

Bound = Mapping[str, list[socket.socket]]
"""Bound sockets by the name that their port has in the ready line."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The objects that the front ends of one server share."""

    config: Config
    loop: asyncio.AbstractEventLoop
    clock: SystemClock
    random: random.Random
    store: Store
    manager: QueueManager
    commit_loop: CommitLoop
    refusals: RefusalCounters
    acceptors: Acceptors
    access: AccessControl
    security: MessageSecurity
    tokens: TokenTable
    tls: TlsFiles
    snapshots: Snapshots
    tracer: Tracer | None
    """Makes spans of messages; None if tracing is off."""


class FrontEnd:
    """A part of the server that communicates by one protocol. The methods are called in the order of their
    definition; a front end overrides those that it needs.
    """

    async def listen(self, bound: Bound) -> None:
        """Accept connections on the bound sockets of this front end."""

    def set_limits(self, config: Config) -> None:
        """Apply the limits of a reloaded configuration."""

    def labelled(self) -> Iterable[Labelled]:
        """Return the metrics of this front end with their labels."""
        return ()

    async def stop(self) -> None:
        """Accept no more work, and end sessions and requests that can end now. The store still accepts
        writes.
        """

    async def close(self) -> None:
        """Close the connections once pending answers are sent. All writes to the store that this causes are
        durable before the next front end is closed.
        """
