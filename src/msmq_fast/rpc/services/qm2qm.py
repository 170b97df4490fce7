"""The interface qm2qm (MS-MQQP): another queue manager reads queues of this one for its own programs.

That queue manager gets its handles from R_QMOpenRemoteQueue and R_QMCreateRemoteCursor of qmcomm.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.protocol.errors import (
    InsufficientResources,
    InvalidHandle,
    InvalidParameter,
    MessageLocked,
    MSMQError,
    TransactionUsage,
)
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.idl.qm2qm import MAX_PACKET, QM2QM
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.services.deferring import when
from msmq_fast.rpc.services.reads import (
    BEHIND_THE_LAST,
    LOOKUPS,
    SEQUENTIAL,
    STATUS_INVALID_PARAMETER,
    Action,
    RemoteRead,
    full_lookup_id,
)
from msmq_fast.rpc.stubs.qm2qm import (
    CancelReceiveArgs,
    CancelReceiveResults,
    CloseCursorArgs,
    CloseCursorResults,
    CloseQueueArgs,
    CloseQueueResults,
    EndReceiveArgs,
    EndReceiveResults,
    GetPortArgs,
    GetPortResults,
    GetVersionArgs,
    GetVersionResults,
    OpenQueueArgs,
    OpenQueueResults,
    Opnum,
    PurgeQueueArgs,
    PurgeQueueResults,
    StartReceive2Args,
    StartReceive2Results,
    StartReceiveArgs,
    StartReceiveByLookupIdArgs,
    StartReceiveByLookupIdResults,
    StartReceiveResults,
)

if TYPE_CHECKING:
    from msmq_fast._native.queuebase import Received
    from msmq_fast.rpc.call import Call, Pending
    from msmq_fast.rpc.contexts import ContextHandles
    from msmq_fast.rpc.services.openqueues import OpenQueues
    from msmq_fast.rpc.services.ports import RpcPorts
    from msmq_fast.rpc.services.reads import RemoteQueue

__all__ = ["Qm2QmService"]

SESSION: Final = "PCTX_RRSESSION_HANDLE_TYPE"
READ: Final = "PCTX_REMOTEREAD_HANDLE_TYPE"
REMOTE_CANCELED_BY_CLIENT: Final = 0x400E03E9
"""MQ_INFORMATION_REMOTE_CANCELED_BY_CLIENT: the result of a read that was cancelled."""
VERSION: Final = (6, 1, 7601)
"""Major, minor, build. If the server's version is at least (5, 1, 951), clients call
RemoteQMStartReceive2.
"""


_ACTIONS: Final = frozenset((Action.RECEIVE, Action.PEEK_CURRENT, Action.PEEK_NEXT))


class HandledRead(RemoteRead):
    """A read that the reader ends by its context handle."""

    __slots__ = ("_context", "_handles")

    def __init__(self, *read: Any) -> None:
        super().__init__(*read)
        self._handles: ContextHandles = self.call.handles
        self._context = b""

    def open(self) -> bytes:
        """Returns the context handle by which the reader ends the read. Raises RpcFault if the client has too
        many context handles.
        """
        self._context = self._handles.create(READ, self, HandledRead.put_back)
        return self._context

    def put_back(self) -> None:
        """Make the message available again and close the handle."""
        super().put_back()
        with suppress(RpcFault):
            self._handles.close(self._context, READ)


class Qm2QmService:
    """Serves qm2qm. The handles of queues and cursors belong to `queues`."""

    table = QM2QM

    def __init__(self, queues: OpenQueues, ports: RpcPorts, policy: InterfacePolicy | None = None) -> None:
        """Every caller is accepted unless `policy` restricts this (QP-007). The port method is open to every
        caller in any case.
        """
        self._queues = queues
        self._ports = ports
        self.policy = policy or InterfacePolicy(exempt=frozenset((Opnum.GET_PORT,)))

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        """Returns the results of a failed operation. Raises RpcFault for a failed purge, which Windows also
        reports as a fault (RA-24).
        """
        outs: dict[str, Any] = {"result": hresult}
        match call.opnum:
            case Opnum.PURGE_QUEUE:
                raise RpcFault(hresult)
            case Opnum.GET_PORT:
                outs["result"] = 0
            case Opnum.END_RECEIVE | Opnum.CLOSE_QUEUE:
                outs["pphContext"] = None
            case Opnum.START_RECEIVE:
                _empty(args.lpRemoteReadDesc)
            case Opnum.START_RECEIVE2 | Opnum.START_RECEIVE_BY_LOOKUP_ID:
                _empty(args.lpRemoteReadDesc2.pRemoteReadDesc)
        return QM2QM.ops[call.opnum].results(args, **outs)

    # ---- opening and closing

    def open_queue(self, call: Call, args: OpenQueueArgs) -> OpenQueueResults:
        """RemoteQMOpenQueue (3.1.4.3). Ignores hQueue and dwMQS."""
        if not args.pQueue or not args.dwpContext or args.pQueue != args.dwpContext:
            raise InvalidParameter("pQueue and dwpContext are different handles")
        remote = self._queues.take_over(args.dwpContext, call.association, args.pLicGuid)
        try:
            remote.context = call.handles.create(SESSION, remote, self._queues.close, order=1)
        except RpcFault:
            self._queues.close(remote)
            raise
        return OpenQueueResults(phContext=remote.context)

    def close_queue(self, call: Call, args: CloseQueueArgs) -> CloseQueueResults:
        """RemoteQMCloseQueue (3.1.4.4)."""
        if args.pphContext is None:
            raise InvalidHandle("the context handle is NULL")
        remote = call.handles.close(args.pphContext, SESSION)
        self._queues.close(remote, MSMQError("the queue was closed", code=REMOTE_CANCELED_BY_CLIENT))
        return CloseQueueResults()

    def close_cursor(self, call: Call, args: CloseCursorArgs) -> CloseCursorResults:
        """RemoteQMCloseCursor (3.1.4.5)."""
        self._queues.close_cursor(self._owned(call, args.hQueue), args.hCursor)
        return CloseCursorResults()

    def _owned(self, call: Call, handle: int) -> RemoteQueue:
        remote = self._queues.owned(handle, call.association)
        if remote is None:
            raise InvalidHandle("the queue is not open")
        return remote

    # ---- reading

    def start_receive(self, call: Call, args: StartReceiveArgs) -> Pending:
        """RemoteQMStartReceive (3.1.4.1)."""
        return self._start(call, args, args.lpRemoteReadDesc)

    def start_receive2(self, call: Call, args: StartReceive2Args) -> Pending:
        """RemoteQMStartReceive2 (3.1.4.10)."""
        return self._start(call, args, args.lpRemoteReadDesc2.pRemoteReadDesc)

    def _start(self, call: Call, args: Any, desc: Any) -> Pending:
        if desc is None:
            raise InvalidHandle("the REMOTEREADDESC is missing")
        handle, request_id, action = desc.hRemoteQueue, desc.dwRequestID, desc.ulAction
        remote = self._queues.owned(handle, call.association)
        self._check(remote, desc)
        if action not in _ACTIONS:
            raise InvalidParameter(f"unknown action 0x{action:08X}")
        if action == Action.PEEK_NEXT and not desc.hCursor:
            raise MSMQError("reading the next message needs a cursor", code=STATUS_INVALID_PARAMETER)
        if remote is None:
            raise InvalidParameter("the queue is not open")
        cursor = None
        if desc.hCursor:
            cursor = remote.cursor(desc.hCursor)
            if cursor is None:
                raise MSMQError("the queue has no cursor with this handle", code=STATUS_INVALID_PARAMETER)
        read = HandledRead(remote, call, args, action, request_id, desc.ulTimeout, self._answer, self._refuse)
        read.start(cursor)
        return read

    @staticmethod
    def _check(remote: RemoteQueue | None, desc: Any) -> None:
        if not desc.dwQueue or desc.dwQueue != desc.hRemoteQueue:
            raise InvalidParameter("dwQueue and hRemoteQueue must be the same handle")
        if remote is not None and desc.dwRequestID in remote.pending:
            raise InvalidParameter("another read with this request identifier is waiting")

    def start_receive_by_lookup_id(self, call: Call, args: StartReceiveByLookupIdArgs) -> None:
        """RemoteQMStartReceiveByLookupId (3.1.4.11), in two phases like the other reads (RA-04)."""
        desc = args.lpRemoteReadDesc2.pRemoteReadDesc
        if desc is None:
            raise InvalidHandle("the REMOTEREADDESC is missing")
        if not desc.hRemoteQueue or desc.ulTimeout or desc.hCursor:
            raise InvalidParameter("a lookup needs a queue and takes neither a cursor nor a time-out")
        found = LOOKUPS.get(desc.ulAction)
        if found is None:
            raise InvalidParameter(f"0x{desc.ulAction:08X} is not the action of a lookup")
        remote = self._queues.owned(desc.hRemoteQueue, call.association)
        if desc.dwQueue:  # RA-09
            self._check(remote, desc)
        operation, peek = found
        lookup_id = args.LookupId
        if operation is Lookup.CURRENT and not lookup_id:
            raise InvalidParameter("0 is not a lookup identifier")
        if remote is None:
            raise InvalidParameter("the queue is not open")
        if operation is Lookup.NEXT and not lookup_id:
            operation = Lookup.FIRST
        elif operation is Lookup.PREVIOUS and lookup_id == BEHIND_THE_LAST:
            operation = Lookup.LAST
        else:
            lookup_id = full_lookup_id(remote.opened.queue.core, lookup_id)
        read = HandledRead(remote, call, args, desc.ulAction, desc.dwRequestID, 0, self._answer, self._refuse)
        read.peek = peek
        try:
            read.look_up(lookup_id, operation)
        except MessageLocked as error:
            raise TransactionUsage(error.detail) from None

    def _answer(self, read: HandledRead, received: Received) -> None:
        call, args = read.call, read.args
        packet = received.packet
        size = len(packet)
        handle = None if read.peek else self._deliver(read, received)
        if handle is None and not read.peek:
            return
        if size > MAX_PACKET:
            if not read.peek:
                read.put_back()
            call.reply(self.failed(call, args, InsufficientResources.default_code))
            return
        opnum = call.opnum
        both = None if opnum == Opnum.START_RECEIVE else args.lpRemoteReadDesc2
        desc = args.lpRemoteReadDesc if both is None else both.pRemoteReadDesc
        desc.lpBuffer = packet
        desc.dwSize = size
        desc.dwArriveTime = received.arrived_time
        desc.Reserved = 1
        desc.eAckNack = 0
        results: object
        if both is None:
            results = StartReceiveResults(lpRemoteReadDesc=desc, pphContext=handle)
        else:
            both.SequentialId = received.lookup_id & SEQUENTIAL
            looked_up = opnum == Opnum.START_RECEIVE_BY_LOOKUP_ID
            made = StartReceiveByLookupIdResults if looked_up else StartReceive2Results
            results = made(lpRemoteReadDesc2=both, pphContext=handle)
        call.reply(results, None if handle is None else read.written)

    @staticmethod
    def _deliver(read: HandledRead, received: Received) -> bytes | None:
        """Returns the context handle by which the reader will end the read; None if the client has too many
        context handles.
        """
        call = read.call
        try:
            handle = read.open()
        except RpcFault as fault:
            read.deliver(b"", received.lookup_id)
            read.put_back()
            call.fault(fault.status)
            return None
        read.deliver(handle, received.lookup_id)
        return handle

    def _refuse(self, read: RemoteRead, error: MSMQError) -> None:
        read.call.reply(self.failed(read.call, read.args, error.code))

    def end_receive(self, call: Call, args: EndReceiveArgs) -> EndReceiveResults | None:
        """RemoteQMEndReceive (3.1.4.2). A call with RR_ACK is answered when the removal is durable."""
        if args.pphContext is None:
            raise InvalidHandle("the context handle is NULL")
        read: RemoteRead = call.handles.close(args.pphContext, READ)
        return when(read.end(args.dwAck), self.failed, call, args, EndReceiveResults())

    def cancel_receive(self, call: Call, args: CancelReceiveArgs) -> CancelReceiveResults:
        """RemoteQMCancelReceive (3.1.4.6)."""
        if not args.pQueue or args.pQueue != args.hQueue:
            raise InvalidParameter("pQueue and hQueue must be the same handle")
        remote = self._queues.owned(args.hQueue, call.association)
        if remote is None or not remote.pending:
            raise InvalidHandle("no read of this queue is waiting")
        read = remote.pending.get(args.dwRequestID)
        if read is None:
            raise MSMQError("no read with this request identifier is waiting")
        read.cancel(MSMQError("the client cancelled the read", code=REMOTE_CANCELED_BY_CLIENT))
        return CancelReceiveResults()

    def purge_queue(self, call: Call, args: PurgeQueueArgs) -> PurgeQueueResults | None:
        """RemoteQMPurgeQueue (3.1.4.7); answered once the purge is durable."""
        done = self._owned(call, args.hQueue).opened.purge()
        return when(done, self.failed, call, args, PurgeQueueResults())

    # ---- the rest

    def get_port(self, call: Call, args: GetPortArgs) -> GetPortResults:
        """RemoteQMGetQMQMServerPort (3.1.4.8)."""
        return GetPortResults(result=self._ports.of_type(args.dwPortType))

    def get_version(self, call: Call, args: GetVersionArgs) -> GetVersionResults:
        """RemoteQmGetVersion (3.1.4.9)."""
        return GetVersionResults(*VERSION)


def _empty(desc: Any) -> None:
    """Clear the REMOTEREADDESC of a read that returned no message (QP-080)."""
    if desc is not None:
        desc.dwSize = desc.eAckNack = 0
        desc.lpBuffer = None
        desc.Reserved = 1
