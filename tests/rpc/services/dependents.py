"""Clients of qmcomm and qmcomm2 without a network; see peers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.auth.context import AuthLevel, AuthType, Caller
from msmq_fast.rpc.services.dependent import DependentPolicy, SupportingServer
from msmq_fast.rpc.services.qmcomm import QmCommService
from msmq_fast.rpc.services.queueformat import queue_format
from msmq_fast.security.token import ANONYMOUS_TOKEN

from ...qm.world import World
from .peers import ADMIN, Peer, RemoteWorld

NOBODY = Caller("", ANONYMOUS_TOKEN, AuthType.NONE, AuthLevel.NONE, "192.0.2.2")
CLIENT = UUID("11111111-2222-3333-4444-555555555555")
ORDERS = r"DIRECT=OS:HOST\private$\orders"


def named(text: str) -> Any:
    """The QUEUE_FORMAT of a format name."""
    return queue_format(parse_format_name(text))


class DependentWorld(RemoteWorld):
    """A queue manager with a queue `orders` that serves remote readers and dependent clients."""

    def __init__(
        self,
        world: World | None = None,
        *,
        policy: DependentPolicy | None = None,
        ndr64: bool = False,
        **properties: object,
    ) -> None:
        self.policy = policy or DependentPolicy()
        super().__init__(world, ndr64=ndr64, **properties)

    def begin(self) -> None:
        super().begin()
        manager = self.world.manager
        self.server = SupportingServer(manager, self.policy)
        self.qmcomm = QmCommService(manager, self.queues, self.server, self.ports)

    def client(self, who: Caller = ADMIN) -> Peer:
        """Somebody who calls qmcomm."""
        return Peer(self, self.qmcomm, who)


def open_remote(peer: Peer, text: str = ORDERS, access: int = 1, share: int = 0, **values: Any) -> Any:
    """R_QMOpenRemoteQueue."""
    given = {
        "pQueueFormat": named(text) if text else None,
        "dwCallingProcessID": 4711,
        "dwDesiredAccess": access,
        "dwShareMode": share,
        "pLicGuid": CLIENT,
        "dwMQS": 0x400,
    }
    return peer.call("open_remote_queue", **(given | values))
