"""A queue manager in memory behind both RPC ports, in virtual time; what is open there can be seen."""

from __future__ import annotations

import logging
from contextlib import suppress
from random import Random
from typing import Any

from msmq_fast.protocol.errors import MSMQError
from msmq_fast.rpc.auth.acceptors import AcceptorPolicy, Acceptors
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.limits import Limits
from msmq_fast.rpc.requests import IncompleteBytes
from msmq_fast.rpc.server import RpcServer
from msmq_fast.rpc.services.epm import EndpointMapper, RegisteredEndpoint
from msmq_fast.rpc.services.mgmt import Management
from msmq_fast.rpc.services.qmmgmt import QmMgmtService
from msmq_fast.rpc.syntaxes import SyntaxId
from msmq_fast.security.principals import Principals
from msmq_fast.security.sddl import parse_sddl
from tests.support.clocks import WALL
from tests.support.rpc.dependents import DependentWorld
from tests.support.rpc.parties import HOST, accounts
from tests.support.worlds.queue_manager import World

EVERYBODY = "O:BAG:BAD:(A;;GA;;;WD)(A;;GA;;;AN)"
QUEUES = {"orders": {}, "ledger": {"transactional": True}}
LIMITS = Limits(
    calls=12,
    handles=12,
    security_contexts=3,
    incomplete=1 << 20,
    stub=1 << 18,
    presentation_contexts=8,
    output=1 << 16,
    connections=6,
)
_MESSAGES = 8


class Complaints(logging.Handler):
    """What the code logs as an error: exceptions that nobody foresaw."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.records.append(record)


class Scene:
    """Both endpoints, with all interfaces; everybody may do everything unless `strict`."""

    def __init__(self, seed: int, *, strict: bool = False, limits: Limits = LIMITS) -> None:
        self.remote = DependentWorld(World(seed=seed), security=parse_sddl(EVERYBODY))
        self.world = self.remote.world
        random = Random(seed)
        acceptors = Acceptors(
            AcceptorPolicy(anonymous=True),
            Principals(accounts, own_uid=0),
            HOST,
            lambda: float(WALL),
            random.randbytes,
        )
        remote = self.remote
        if not strict:
            remote.remote_read.policy = InterfacePolicy()
        mapped = [(table, port) for table, port in ((QMCOMM, 2103), (QMCOMM2, 2103), (QM2QM, 2105))]
        mapper = EndpointMapper(
            [
                RegisteredEndpoint(SyntaxId(table.uuid, *table.version), port, table.name)
                for table, port in (*mapped, (REMOTE_READ, 2103))
            ]
        )
        self.refused: list[tuple[str, str, str]] = []
        incomplete = IncompleteBytes(limits.incomplete)
        self.servers: list[RpcServer] = []
        for port, services in (
            ("2103", [remote.qmcomm, remote.qmcomm2, remote.remote_read, QmMgmtService(self.world.manager)]),
            ("2105", [remote.qm2qm, mapper]),
        ):
            server = RpcServer(
                port,
                acceptors=acceptors,
                random=random.randbytes,
                limits=limits,
                refuse=lambda *why, peer="": self.refused.append(why),
                incomplete=incomplete,
            )
            for service in services:
                server.register(service)  # type: ignore[arg-type]  # lists of different services
            server.register(Management([], lambda: (1, 2, 3, 4), {10: f"host/{HOST}"}))
            self.servers.append(server)
        self.refill()

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.world.clock.seconds

    def refill(self) -> None:
        """Have the queues and a few messages, whatever clients have done to them."""
        world = self.world
        for name, properties in QUEUES.items():
            with suppress(MSMQError):
                world.create(name, security=parse_sddl(EVERYBODY), **properties)
        for number in range(_MESSAGES - world.manager.find("orders").core.messages):
            with suppress(MSMQError):
                world.send(b"m%d" % number + bytes(number * 1000))

    def advance(self, seconds: float) -> None:
        """Let time pass; what is due is done."""
        self.world.advance(seconds)
        due = self.remote.remote_read.next_deadline()
        if due is not None and due <= self.now:
            self.remote.remote_read.expire(self.now)
        for server in self.servers:
            for connection in server.connections:
                deadline = connection.next_deadline()
                if deadline is not None and deadline <= self.now:
                    connection.expire(self.now)
        self.world.run()

    def left_behind(self) -> dict[str, Any]:
        """What is open, locked or waiting, and what surprised the code; nothing where all is well."""
        remote, manager = self.remote, self.world.manager
        found: dict[str, Any] = {
            "connections": sum(len(list(server.connections)) for server in self.servers),
            "associations": sum(len(server.associations) for server in self.servers),
            "incomplete bytes": self.servers[0].incomplete.held,
            "failures": sum(server.counters.failures for server in self.servers),
            "open queues": len(remote.queues),
            "queues of dependent clients": len(remote.server.queues),
            "transactions of dependent clients": len(remote.server.transactions),
            "transactions": len(manager.transactions),
            "timed reads": len(remote.remote_read._timed),
            "move contexts": len(remote.remote_read._moves),
        }
        for queue in manager.queues():
            positions = queue.core.positions
            found[f"locked in {queue.name}"] = positions.live - positions.available
            found[f"pending in {queue.name}"] = positions.pending
            found[f"open handles of {queue.name}"] = len(queue.descriptors)
            found[f"readers of {queue.name}"] = len(queue.readers)
        return {what: count for what, count in found.items() if count}
