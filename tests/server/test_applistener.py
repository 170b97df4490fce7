"""Connections of programs, as the event loop hands them over."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any, cast

from msmq_fast.app.service import Service
from msmq_fast.qm.manager import QueueManager
from msmq_fast.server.app.listener import AppListener
from msmq_fast.server.net.accepting import Acceptors, Factory
from msmq_fast.server.net.connections import ConnectionTable, Share
from msmq_fast.server.runtime.descriptors import ConnectionLimits, ConnectionScale


class Gone(asyncio.Transport):
    """A transport whose socket was closed before the loop announced the connection."""

    def __init__(self) -> None:
        mine, other = socket.socketpair()
        mine.close()
        other.close()
        super().__init__({"socket": mine})
        self.aborted = 0

    def abort(self) -> None:
        self.aborted += 1


def test_a_program_that_hung_up_before_it_was_announced_ends_quietly(
    tmp_path: Path,
) -> None:
    """No exception reaches the loop, which would write a traceback; nothing is counted as a connection."""
    refused: list[tuple[str, str, str]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        factories: list[Factory] = []

        class Ports(Acceptors):
            """Accepts nothing."""

            def accept(self, listener: socket.socket, share: Share, factory: Factory, **_: Any) -> Any:
                factories.append(factory)
                return lambda: None

        limits = ConnectionLimits(5, 5, 5, 5, 5)
        table = ConnectionTable(limits, ConnectionScale(), 10.0, lambda *_, peer: None, loop.time)
        listener = AppListener(
            Ports(loop, loop.time, table), 1.0, lambda: None, lambda *refusal: refused.append(refusal)
        )
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(tmp_path / "app.sock"))
            listener.listen(listening, Service(cast(QueueManager, None), "test"))
        slot = table.programs.share("app connection", 5).enter("")
        assert slot is not None
        transport, protocol = Gone(), factories[0](slot)
        protocol.connection_made(transport)
        assert transport.aborted == 1
        assert listener.connections == 0
        protocol.connection_lost(None)
        listener.close()

    asyncio.run(run())
    assert refused == []
