"""Remote readers without a network: calls of services as the runtime makes them, through NDR."""

from __future__ import annotations

from random import Random
from typing import Any
from uuid import UUID

from msmq_fast.packet import Message
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.access import Access, Share
from msmq_fast.rpc.association import Association, AssociationTable
from msmq_fast.rpc.auth.context import AuthLevel, AuthType, Caller
from msmq_fast.rpc.call import Pending
from msmq_fast.rpc.contexts import ContextHandles
from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.idl.qm2qm import REMOTEREADDESC, REMOTEREADDESC2
from msmq_fast.rpc.services.openqueues import OpenQueues
from msmq_fast.rpc.services.ports import RpcPorts
from msmq_fast.rpc.services.qm2qm import Qm2QmService
from msmq_fast.rpc.services.remoteread import RemoteReadService
from msmq_fast.security.sid import ADMINISTRATORS, EVERYONE, Sid, sid
from msmq_fast.security.token import Token
from tests.support.worlds.queue_manager import World

ALICE = sid("S-1-5-21-1-2-3-1001")
CLIENT = UUID("11111111-2222-3333-4444-555555555555")


def caller(*groups: Sid, name: str = "HOST\\alice") -> Caller:
    """Somebody who has authenticated."""
    token = Token(ALICE, frozenset((ALICE, EVERYONE, *groups)), name)
    return Caller(name, token, AuthType.NTLM, AuthLevel.PRIVACY, "192.0.2.1")


ADMIN = caller(ADMINISTRATORS)


class MadeCall:
    """One call: what a Call is to a service, and what came of it to a test."""

    def __init__(self, peer: Peer, codec: Any, args: Any, ndr64: bool) -> None:
        self.association = peer.association
        self.caller = peer.caller
        self.codec = codec
        self.args = args
        self.opnum = codec.opnum
        self.ndr64 = ndr64
        self.alive = True
        self.pending: Pending | None = None
        self.fault_status: int | None = None
        self.results: Any = None
        self.written: Any = None
        self.reply_budget = None

    @property
    def handles(self) -> ContextHandles:
        return self.association.handles

    @property
    def done(self) -> bool:
        return self.results is not None or self.fault_status is not None

    def reply(self, results: Any, written: Any = None) -> None:
        self.reply_stub(self.codec.encode_response(results, ndr64=self.ndr64), written)

    def reply_stub(self, stub: bytes, written: Any = None) -> None:
        if not self.alive or not self.association.connections:
            if written is not None:
                written(False)
            return
        self.alive = False
        self.results = self.codec.decode_response(stub, self.args, ndr64=self.ndr64)
        self.written = written

    def fault(self, status: int) -> None:
        if self.alive:
            self.alive = False
            self.fault_status = status

    def abandon(self) -> None:
        """The connection of the call is lost, or the call was cancelled."""
        if self.alive:
            self.alive = False
            if self.pending is not None:
                self.pending.abandon()

    def deliver(self, whole: bool = True) -> None:
        """The transport took the reply, or could not."""
        if self.written is not None:
            self.written(whole)


class Peer:
    """A client process: one association with one connection."""

    def __init__(self, remote: RemoteWorld, service: Any, who: Caller) -> None:
        self.remote = remote
        self.service = service
        self.caller = who
        joined = remote.associations.join(0, who.address)
        assert joined is not None
        self.association: Association = joined
        self.calls: list[MadeCall] = []

    def begin(self, name: str, **values: Any) -> MadeCall:
        """Make a call and let the server work; it may wait."""
        codec = self.service.table.op(name)
        ndr64 = self.remote.ndr64
        args = codec.decode_request(codec.encode_request(codec.Args(**values), ndr64=ndr64), ndr64=ndr64)
        call = MadeCall(self, codec, args, ndr64)
        self.calls.append(call)
        try:
            try:
                results = getattr(self.service, name)(call, args)
            except MSMQError as error:
                results = self.service.failed(call, args, error.code)
        except RpcFault as fault:
            call.fault(fault.status)
        else:
            if isinstance(results, Pending):
                call.pending = results
            elif results is not None:
                call.reply(results)
        self.remote.world.run()
        return call

    def call(self, name: str, **values: Any) -> Any:
        """Make a call that ends at once; its results. Raises RpcFault."""
        call = self.begin(name, **values)
        if call.fault_status is not None:
            raise RpcFault(call.fault_status)
        assert call.results is not None, "the call waits"
        call.deliver()
        return call.results

    def lose(self) -> None:
        """The last connection is lost: its calls are abandoned, and its context handles run down."""
        for call in self.calls:
            call.abandon()
        self.remote.associations.leave(self.association)
        self.remote.world.run()


class RemoteWorld:
    """A queue manager with a queue `orders`, and who reads it from elsewhere."""

    def __init__(self, world: World | None = None, *, ndr64: bool = False, **properties: object) -> None:
        self.world = world or World()
        self.ndr64 = ndr64
        self.random = Random(3)
        self.associations = AssociationTable(self.random.randbytes, 10_000)
        self.world.create(**properties)
        self.begin()

    def begin(self) -> None:
        """The services of the queue manager as it is now."""
        self.queues = OpenQueues(self.world.manager)
        self.ports = RpcPorts(2103, 2105, 2103)
        self.qm2qm = Qm2QmService(self.queues, self.ports)
        self.remote_read = RemoteReadService(self.world.manager, self.queues, self.ports)

    def peer(self, who: Caller = ADMIN) -> Peer:
        """A queue manager that reads by qm2qm."""
        return Peer(self, self.qm2qm, who)

    def opened(
        self, access: Access = Access.RECEIVE, share: Share = Share.DENY_NONE, name: str = "orders"
    ) -> int:
        """What R_QMOpenRemoteQueue gives: the handle of a queue."""
        return self.queues.open(name, access, share, ADMIN).handle

    def reader(self, access: Access = Access.RECEIVE, name: str = "orders") -> Reader:
        """A peer with an open queue."""
        return Reader(self, self.peer(), self.opened(access, name=name))


class Reader:
    """One open queue of a peer."""

    def __init__(self, remote: RemoteWorld, peer: Peer, handle: int) -> None:
        self.remote = remote
        self.peer = peer
        self.handle = handle
        self.session = peer.call(
            "open_queue", pLicGuid=CLIENT, dwMQS=0, hQueue=handle, pQueue=handle, dwpContext=handle
        ).phContext
        assert self.session is not None

    def cursor(self) -> int:
        """What R_QMCreateRemoteCursor gives."""
        remote = self.remote.queues.find(self.handle)
        assert remote is not None
        return self.remote.queues.new_cursor(remote)

    def start(self, action: int = 0, *, request: int = 1, timeout: int = 0, **desc: Any) -> MadeCall:
        """RemoteQMStartReceive2."""
        return self.peer.begin(
            "start_receive2", lpRemoteReadDesc2=self.desc2(action, request, timeout, **desc)
        )

    def start0(self, action: int = 0, *, request: int = 1, timeout: int = 0, **desc: Any) -> MadeCall:
        """RemoteQMStartReceive."""
        return self.peer.begin("start_receive", lpRemoteReadDesc=self.desc(action, request, timeout, **desc))

    def look_up(self, action: int, lookup_id: int, *, request: int = 1, **desc: int) -> MadeCall:
        """RemoteQMStartReceiveByLookupId."""
        return self.peer.begin(
            "start_receive_by_lookup_id",
            LookupId=lookup_id,
            lpRemoteReadDesc2=self.desc2(action, request, 0, **desc),
        )

    def end(self, context: bytes | None, ack: int = 2) -> int:
        """RemoteQMEndReceive; the result."""
        results = self.peer.call("end_receive", pphContext=context, dwAck=ack)
        assert results.pphContext is None
        return int(results.result)

    def cancel(self, request: int = 1) -> int:
        """RemoteQMCancelReceive; the result."""
        handle = self.handle
        return int(self.peer.call("cancel_receive", hQueue=handle, pQueue=handle, dwRequestID=request).result)

    def close(self) -> int:
        """RemoteQMCloseQueue; the result."""
        results = self.peer.call("close_queue", pphContext=self.session)
        assert results.pphContext is None
        return int(results.result)

    def desc(self, action: int, request: int, timeout: int, **values: Any) -> Any:
        fields = {
            "hRemoteQueue": self.handle,
            "dwQueue": self.handle,
            "ulAction": action,
            "ulTimeout": timeout,
            "dwRequestID": request,
        }
        return REMOTEREADDESC(**(fields | values))

    def desc2(self, action: int, request: int, timeout: int, **values: Any) -> Any:
        return REMOTEREADDESC2(self.desc(action, request, timeout, **values), 0)


def received(call: MadeCall) -> Any:
    """The descriptor of a read that got a message."""
    assert call.results is not None
    assert call.results.result == 0, call.results
    both = getattr(call.results, "lpRemoteReadDesc2", None)
    return call.results.lpRemoteReadDesc if both is None else both.pRemoteReadDesc


def text(call: MadeCall) -> bytes:
    """The body of the message that a read got."""
    return Message.from_packet(bytes(received(call).lpBuffer)).body


def result(call: MadeCall) -> int:
    """The HRESULT of a call that has ended."""
    return int(call.results.result)
