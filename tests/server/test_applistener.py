"""Connections of programs, as the event loop hands them over."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from msmq_fast.app.service import Service
from msmq_fast.qm.manager import QueueManager
from msmq_fast.server.applistener import AppListener


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No exception reaches the loop, which would write a traceback; nothing is counted as a connection."""
    refused: list[tuple[str, str, str]] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        factories: list[Callable[[], asyncio.BaseProtocol]] = []

        async def create_unix_server(factory: Callable[[], asyncio.BaseProtocol], **_: Any) -> asyncio.Server:
            factories.append(factory)
            return cast(asyncio.Server, None)

        monkeypatch.setattr(loop, "create_unix_server", create_unix_server)
        listener = AppListener(5, 1.0, lambda: None, lambda *refusal: refused.append(refusal))
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(tmp_path / "app.sock"))
            await listener.listen(listening, Service(cast(QueueManager, None), "test"))
        transport, protocol = Gone(), factories[0]()
        protocol.connection_made(transport)
        assert transport.aborted == 1
        assert listener.connections == 0
        protocol.connection_lost(None)
        listener.close()

    asyncio.run(run())
    assert refused == []
