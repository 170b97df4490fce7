"""Clients of qmcomm and qmcomm2 without a network; see peers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.auth.context import AuthLevel, AuthType, Caller
from msmq_fast.rpc.idl.mqmq import OBJECTID
from msmq_fast.rpc.idl.qmcomm import (
    CREATE_REMOTE_CURSOR,
    OBJECT_FORMAT,
    TRANSFER_BUFFER_V1,
    TRANSFER_RECEIVE,
    TRANSFER_SEND,
)
from msmq_fast.rpc.idl.qmcomm2 import TRANSFER_BUFFER_V2
from msmq_fast.rpc.services.dependent.server import DependentPolicy, SupportingServer
from msmq_fast.rpc.services.qmcomm import QmCommService
from msmq_fast.rpc.services.qmcomm2 import QmComm2Service
from msmq_fast.rpc.services.queueformat import queue_format
from msmq_fast.security.token import ANONYMOUS_TOKEN
from tests.support.rpc.peers import ADMIN, MadeCall, Peer, RemoteWorld
from tests.support.worlds.queue_manager import World

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
        self.qmcomm2 = QmComm2Service(manager, self.server)

    def dependent(self, who: Caller = ADMIN) -> Dependent:
        """A dependent client."""
        return Dependent(self, who)

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


def queue_object(text: str = ORDERS) -> Any:
    """The OBJECT_FORMAT of a format name."""
    return OBJECT_FORMAT(1, named(text))


def sent(body: bytes | None = b"hello", **values: Any) -> Any:
    """The buffer of a send: nothing but a body unless said otherwise."""
    send = TRANSFER_SEND(values.pop("admin", None), values.pop("response", None))
    size = 0 if body is None else len(body)
    fields = {
        "uTransferType": 0,
        "transfer": send,
        "ppBody": body,
        "ulBodyBufferSizeInBytes": size,
        "ulAllocBodyBufferInBytes": size,
        "ulRelativeTimeToLive": 0xFFFFFFFF,
    }
    return TRANSFER_BUFFER_V2(old=TRANSFER_BUFFER_V1(**(fields | values)))


def wanted(
    action: int = 0, *, timeout: int = 0, cursor: int = 0, body: int | None = 100, **values: Any
) -> Any:
    """The buffer of a receive: nothing but a body of so many bytes unless said otherwise."""
    names = {key: values.pop(key) for key in list(values) if "FormatName" in key}
    receive = TRANSFER_RECEIVE(RequestTimeout=timeout, Action=action, Cursor=cursor, **names)
    fields: dict[str, Any] = {"uTransferType": 1, "transfer": receive}
    if body is not None:
        fields |= {
            "ppBody": bytes(body),
            "ulBodyBufferSizeInBytes": body,
            "ulAllocBodyBufferInBytes": body,
            "pBodySize": 0,
        }
    return TRANSFER_BUFFER_V2(old=TRANSFER_BUFFER_V1(**(fields | values)))


class Dependent:
    """A process of a dependent client: its calls of both interfaces share an association."""

    def __init__(self, remote: DependentWorld, who: Caller) -> None:
        self.remote = remote
        self.qmcomm = Peer(remote, remote.qmcomm, who)
        self.qmcomm2 = Peer(remote, remote.qmcomm2, who)
        remote.associations.leave(self.qmcomm2.association)
        self.qmcomm2.association = self.qmcomm.association

    def call(self, name: str, **values: Any) -> Any:
        """A call of qmcomm that ends at once."""
        return self.qmcomm.call(name, **values)

    def open(self, text: str = ORDERS, access: int = 1, share: int = 0, **values: Any) -> Any:
        """rpc_QMOpenQueueInternal."""
        given = {
            "pQueueFormat": named(text),
            "dwDesiredAccess": access,
            "dwShareMode": share,
            "hRemoteQueue": 0,
            "lplpRemoteQueueName": None,
            "dwpQueue": 0,
            "pLicGuid": CLIENT,
            "lpClientName": "DEPENDENT",
            "dwRemoteProtocol": 0,
            "dwpRemoteContext": 0,
        }
        return self.call("open_queue_internal", **(given | values))

    def opened(self, text: str = ORDERS, access: int = 1, share: int = 0) -> Any:
        """As `open`, which succeeds."""
        results = self.open(text, access, share)
        assert results.result == 0, hex(results.result)
        return results

    def send(self, queue: Any, buffer: Any, *, identified: bool = True) -> Any:
        """rpc_ACSendMessageEx to an open queue."""
        place = OBJECTID(UUID(int=0), 0) if identified else None
        return self.qmcomm2.call("send_message_ex", hQueue=queue.phQueue, ptb=buffer, pMessageID=place)

    def begin_receive(self, queue: Any, buffer: Any) -> MadeCall:
        """rpc_ACReceiveMessageEx, which may wait."""
        return self.qmcomm2.begin("receive_message_ex", hQMContext=queue.pdwQMContext, ptb=buffer)

    def receive(self, queue: Any, buffer: Any | None = None) -> Any:
        """rpc_ACReceiveMessageEx."""
        call = self.begin_receive(queue, wanted() if buffer is None else buffer)
        assert call.results is not None, "the call waits"
        return call.results

    def body(self, queue: Any, action: int = 0, **values: Any) -> bytes:
        """The body of what is received."""
        results = self.receive(queue, wanted(action, **values))
        assert results.result == 0, hex(results.result)
        old = results.ptb.old
        return bytes(old.ppBody[: old.pBodySize])

    def cursor(self, queue: Any) -> int:
        """rpc_ACCreateCursorEx."""
        results = self.qmcomm2.call("create_cursor_ex", hQueue=queue.phQueue, pcc=CREATE_REMOTE_CURSOR())
        assert results.result == 0, hex(results.result)
        return int(results.pcc.hCursor)

    def enlist(self, uow: bytes = bytes(range(16))) -> Any:
        """R_QMEnlistInternalTransaction."""
        return self.call("enlist_internal_transaction", pUow=uow)

    def lose(self) -> None:
        """The process dies."""
        self.qmcomm.calls += self.qmcomm2.calls
        self.qmcomm.lose()
