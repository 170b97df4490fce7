"""Connections to interfaces in memory, through the whole runtime: requests and replies are bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msmq_fast.rpc.connection import ServerConnection
from msmq_fast.rpc.server import RpcServer
from tests.support.rpc import wire
from tests.support.rpc.peers import RemoteWorld
from tests.support.rpc.world import Acceptors


class Endpoint:
    """An endpoint that serves one interface of a queue manager in memory."""

    def __init__(self, interface: str) -> None:
        self.remote = RemoteWorld()
        self.service: Any = getattr(self.remote, interface)
        self.server = RpcServer("2105", acceptors=Acceptors(), random=self.remote.random.randbytes)
        self.server.register(self.service)


class Line:
    """One connection of a client, which overlaps its calls."""

    def __init__(self, endpoint: Endpoint, group: int = 0, syntax: wire.Syntax = wire.NDR) -> None:
        self.endpoint = endpoint
        self.wakes = 0
        connection = endpoint.server.open_connection("192.0.2.1", 0.0, self._woken)
        assert connection is not None
        self.engine: ServerConnection = connection
        self._call = 1
        flags = wire.WHOLE | wire.MPX
        table = endpoint.service.table
        interface = (str(table.uuid), *table.version)
        (ack,) = self.say(wire.bind([(0, interface, [syntax])], 1, group=group, flags=flags))
        assert ack.type == wire.BIND_ACK
        assert ack.results[0][0] == 0
        assert ack.flags & wire.MPX
        self.group = ack.group

    def _woken(self) -> None:
        self.wakes += 1

    def say(self, data: bytes) -> list[wire.Answer]:
        """Send; what comes back at once."""
        self.engine.receive(data, 0.0)
        self.endpoint.remote.world.run()
        return list(self.heard())

    def heard(self) -> Iterator[wire.Answer]:
        """What has come."""
        while data := self.engine.data_to_send():
            for raw in wire.split(b"".join(bytes(piece) for piece in data)):
                yield wire.read(raw)

    def call(self, opnum: int, stub: bytes) -> wire.Answer:
        """A call that ends at once."""
        (answer,) = self.start(opnum, stub)
        return answer

    def start(self, opnum: int, stub: bytes) -> list[wire.Answer]:
        """A call that may wait; what comes back at once."""
        self._call += 1
        return self.say(b"".join(wire.fragmented(self._call, opnum, stub, 4000)))
