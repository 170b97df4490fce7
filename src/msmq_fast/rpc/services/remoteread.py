"""The interface RemoteRead (MS-MQRR): other queue managers read queues of this one, also in transactions.

This server has no transaction coordinator, so a client can enlist only in transactions that this queue
manager already knows. For a receive in an unknown transaction, a transaction of this queue manager is begun,
as 3.1.4.13 requires. The client then calls only R_EndTransactionalReceive, which commits or aborts this
transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from msmq_fast._native.remoteread import whole_answer
from msmq_fast._native.seek import holds
from msmq_fast.packet.names import NameKind
from msmq_fast.protocol.errors import (
    IllegalFormatName,
    InvalidHandle,
    InvalidParameter,
    MessageNotFound,
    MSMQError,
    TransactionSequence,
    TransactionUsage,
)
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.handles.moving import check_move
from msmq_fast.qm.reading.lookup import Lookup
from msmq_fast.qm.transactions.transacted import TransactedQueue, check_usage
from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.idl.remoteread import REMOTE_READ, SECTION_BUFFER
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.services.deferring import when
from msmq_fast.rpc.services.queueformat import name_of
from msmq_fast.rpc.services.reads import (
    BEHIND_THE_LAST,
    LOOKUPS,
    SEQUENTIAL,
    STATUS_ACCESS_DENIED,
    STATUS_INVALID_HANDLE,
    STATUS_INVALID_PARAMETER,
    STATUS_NOT_FOUND,
    Action,
    RemoteRead,
    full_lookup_id,
)
from msmq_fast.rpc.services.remotereadpacket import extension_headers, message_packet, sections
from msmq_fast.rpc.stubs.remoteread import (
    CancelReceiveArgs,
    CancelReceiveResults,
    CloseCursorArgs,
    CloseCursorResults,
    CloseQueueArgs,
    CloseQueueResults,
    CreateCursorArgs,
    CreateCursorResults,
    EndReceiveArgs,
    EndReceiveResults,
    EndTransactionalReceiveArgs,
    EndTransactionalReceiveResults,
    EnlistRemoteTransactionArgs,
    EnlistRemoteTransactionResults,
    GetServerPortArgs,
    GetServerPortResults,
    MoveMessageArgs,
    MoveMessageResults,
    OpenQueueArgs,
    OpenQueueForMoveArgs,
    OpenQueueForMoveResults,
    OpenQueueResults,
    Opnum,
    PurgeQueueArgs,
    PurgeQueueResults,
    SetUserAcknowledgementClassArgs,
    SetUserAcknowledgementClassResults,
    StartReceiveArgs,
    StartReceiveResults,
    StartTransactionalReceiveArgs,
    StartTransactionalReceiveResults,
)

if TYPE_CHECKING:
    from msmq_fast._native.queuebase import Received
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.reading.cursor import Cursor
    from msmq_fast.qm.transactions.transaction import Transaction
    from msmq_fast.rpc.call import Call, Pending
    from msmq_fast.rpc.services.openqueues import OpenQueues
    from msmq_fast.rpc.services.ports import RpcPorts
    from msmq_fast.rpc.services.reads import RemoteQueue
    from msmq_fast.store.completion import Completion

__all__ = ["CLEANUP", "RemoteReadService"]

R = TypeVar("R")

QUEUE: Final = "QUEUE_CONTEXT_HANDLE"
CLEANUP: Final = 300.0
"""Seconds that a reader may take to end a read (3.1.2.2)."""
PRIVACY: Final = 6
RECEIVE_REJECTED: Final = 0xC004
"""MQMSG_CLASS_NACK_RECEIVE_REJECTED."""
DTC_CONNECT: Final = 0xC00E004C
"""MQ_ERROR_DTC_CONNECT: there is no transaction coordinator."""

_SECTION: Final = SECTION_BUFFER.record

_PEEKS: Final = frozenset((Action.PEEK_CURRENT, Action.PEEK_NEXT))
_ACTIONS: Final = _PEEKS | {Action.RECEIVE}
_KINDS: Final = frozenset(
    (NameKind.PUBLIC, NameKind.PRIVATE, NameKind.DIRECT, NameKind.MACHINE, NameKind.SUBQUEUE)
)
_ENDED: Final = bytes(4)
"""The encoded results of a successful end, in either syntax: the result 0."""
_NO_TRANSACTION: Final = bytes(16)


class EntryRead(RemoteRead):
    """A read that the reader must end by its request identifier before a time-out (PendingRequestEntry)."""

    __slots__ = ("_timed",)

    def __init__(self, timed: dict[EntryRead, float], *read: Any) -> None:
        """`timed` is the collection of reads that are ended if their time-out expires."""
        super().__init__(*read)
        self._timed = timed

    def end(self, ack: int) -> Completion[None]:
        """Stops the Pending Request Cleanup Timer of the read, and ends the read (see RemoteRead.end)."""
        self._timed.pop(self, None)
        return super().end(ack)


class RemoteReadService:
    """Serves RemoteRead. Call `expire` at the time that `next_deadline` returns."""

    table = REMOTE_READ

    def __init__(
        self,
        manager: QueueManager,
        queues: OpenQueues,
        ports: RpcPorts,
        policy: InterfacePolicy | None = None,
        cleanup: float = CLEANUP,
    ) -> None:
        """Calls must be encrypted, as on Windows (<19>), unless `policy` allows a lower authentication
        level.
        """
        self._manager = manager
        self._queues = queues
        self._ports = ports
        self._cleanup = cleanup
        self._timed: dict[EntryRead, float] = {}  # the time-out of each delivered read, the next one first
        self._moves: dict[int, RemoteQueue] = {}
        self.policy = policy or InterfacePolicy(
            PRIVACY, exempt=frozenset((Opnum.GET_SERVER_PORT,)), refuse_by_fault=True
        )

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        """Returns the results of a failed operation. Raises RpcFault if the operation is to open a queue."""
        opnum = call.opnum
        if opnum in (Opnum.OPEN_QUEUE, Opnum.OPEN_QUEUE_FOR_MOVE):
            raise RpcFault(hresult)
        result = 0 if opnum == Opnum.GET_SERVER_PORT else hresult
        return REMOTE_READ.ops[opnum].results(args, result=result)

    # ---- time

    def next_deadline(self) -> float | None:
        """Returns the time, in monotonic seconds, at which `expire` is due; None if no time-out runs."""
        return next(iter(self._timed.values()), None)

    def expire(self, now: float) -> None:
        """Handles the Pending Request Cleanup Timer Event (3.1.5.1): if the reader has not ended a read in
        time, makes its message available again.

        The time of a read begins when its message is delivered, since a read that waits has no message yet.
        """
        for read, due in list(self._timed.items()):
            if due > now:
                return
            try:
                read.put_back()
            except Exception as error:
                self._timed.pop(read, None)
                self._manager.faults.note("a remote read that timed out", error)

    # ---- opening and closing

    def get_server_port(self, call: Call, args: GetServerPortArgs) -> GetServerPortResults:
        """R_GetServerPort (3.1.4.1)."""
        return GetServerPortResults(result=self._ports.remote_read)

    def open_queue(self, call: Call, args: OpenQueueArgs) -> OpenQueueResults:
        """R_OpenQueue (3.1.4.2)."""
        if args.dwAccess not in (Access.RECEIVE, Access.PEEK):
            raise InvalidParameter(f"unknown access mode 0x{args.dwAccess:X}")
        return OpenQueueResults(pphContext=self._open(call, args, Access(args.dwAccess)).context)

    def open_queue_for_move(self, call: Call, args: OpenQueueForMoveArgs) -> OpenQueueForMoveResults:
        """R_OpenQueueForMove (3.1.4.11)."""
        if args.dwAccess != Access.MOVE:
            raise InvalidParameter("the queue must be opened with the access for moving")
        remote = self._open(call, args, Access.MOVE)
        number = 0
        while not number or number in self._moves:
            number = int.from_bytes(self._manager.random_bytes(8), "little")
        remote.move_context = number
        self._moves[number] = remote
        return OpenQueueForMoveResults(pMoveContext=number, pphContext=remote.context)

    def _open(self, call: Call, args: Any, access: Access) -> RemoteQueue:
        if args.dwShareMode not in (Share.DENY_NONE, Share.DENY_RECEIVE):
            raise InvalidParameter(f"unknown share mode 0x{args.dwShareMode:X}")
        try:
            name = name_of(args.pQueueFormat)
        except IllegalFormatName as error:
            raise InvalidParameter(error.detail) from None
        if name.kind not in _KINDS:
            raise InvalidParameter(f"{name} cannot be read")
        queues = self._queues
        remote = queues.open(str(name), access, Share(args.dwShareMode), call.caller)
        queues.take_over(remote.handle, call.association, args.pClientId)
        try:
            remote.context = call.handles.create(QUEUE, remote, self._close)
        except RpcFault:
            queues.close(remote)
            raise
        return remote

    def _close(self, remote: RemoteQueue) -> None:
        self._moves.pop(remote.move_context, None)
        self._queues.close(remote)

    def close_queue(self, call: Call, args: CloseQueueArgs) -> CloseQueueResults:
        """R_CloseQueue (3.1.4.3)."""
        if args.pphContext is None:
            raise InvalidHandle("the context handle is NULL")
        self._close(call.handles.close(args.pphContext, QUEUE))
        return CloseQueueResults()

    def create_cursor(self, call: Call, args: CreateCursorArgs) -> CreateCursorResults:
        """R_CreateCursor (3.1.4.4)."""
        return CreateCursorResults(phCursor=self._queues.new_cursor(call.handles.get(args.phContext, QUEUE)))

    def close_cursor(self, call: Call, args: CloseCursorArgs) -> CloseCursorResults:
        """R_CloseCursor (3.1.4.5)."""
        self._queues.close_cursor(call.handles.get(args.phContext, QUEUE), args.hCursor)
        return CloseCursorResults()

    def purge_queue(self, call: Call, args: PurgeQueueArgs) -> PurgeQueueResults | None:
        """R_PurgeQueue (3.1.4.6); answered once the purge is durable."""
        remote: RemoteQueue = call.handles.get(args.phContext, QUEUE)
        if not remote.opened.access.receives:
            raise MSMQError("the queue is not open for receiving", code=STATUS_ACCESS_DENIED)
        return when(remote.opened.purge(), self.failed, call, args, PurgeQueueResults())

    # ---- reading

    def start_receive(self, call: Call, args: StartReceiveArgs) -> Pending:
        """R_StartReceive (3.1.4.7)."""
        read, cursor = self._read(call, args)
        self._run(read, cursor)
        return read

    def start_transactional_receive(self, call: Call, args: StartTransactionalReceiveArgs) -> Pending:
        """R_StartTransactionalReceive (3.1.4.13). If the client names no transaction, the call has the effect
        of R_StartReceive.
        """
        read, cursor = self._read(call, args)
        identifier = bytes(args.pTransactionId)
        own = None if identifier == _NO_TRANSACTION else self._join(read, UUID(bytes_le=identifier))
        try:
            self._run(read, cursor)
        except MSMQError:
            if own is not None:
                own.leave()
            raise
        if own is not None and read.request is not None:
            self._manager.transactions.rest(own)  # while the read waits
        return read

    def _read(self, call: Call, args: Any) -> tuple[EntryRead, Cursor | None]:
        """Checks all arguments of the client. Returns (read that the call starts, its cursor or None)."""
        action, lookup_id = args.ulAction, args.LookupId
        lookup = LOOKUPS.get(action)
        if lookup is None:
            good = action in _ACTIONS and not lookup_id and (action != Action.PEEK_NEXT or args.hCursor)
        else:
            good = lookup_id and not args.hCursor and not args.ulTimeout
        if not good:
            raise InvalidParameter(
                f"invalid arguments for a read: action 0x{action:08X}, lookup identifier {lookup_id}"
            )
        remote: RemoteQueue = call.handles.get(args.phContext, QUEUE)
        request_id = args.dwRequestId
        if request_id in remote.pending or request_id in remote.delivered:
            raise InvalidParameter("another read already has this request identifier")
        cursor = None
        if args.hCursor:
            cursor = remote.cursor(args.hCursor)
            if cursor is None:
                raise MSMQError("the queue has no cursor with this handle", code=STATUS_INVALID_HANDLE)
        asked = (remote, call, args, action, request_id, args.ulTimeout)
        read = EntryRead(self._timed, *asked, self._answer, self._refuse)
        read.peek = action in _PEEKS if lookup is None else lookup[1]
        return read, cursor

    @staticmethod
    def _run(read: EntryRead, cursor: Cursor | None) -> None:
        lookup_id = read.args.LookupId
        if lookup_id:
            core = read.remote.opened.queue.core
            operation = LOOKUPS[Action(read.action)][0]
            if operation is Lookup.PREVIOUS and lookup_id == BEHIND_THE_LAST:
                operation = Lookup.LAST
            read.look_up(full_lookup_id(core, lookup_id), operation)
        else:
            read.start(cursor)

    def _join(self, read: EntryRead, identifier: UUID) -> Transaction | None:
        """Enlist the read in the transaction `identifier`. Returns the transaction if this method began it,
        otherwise None.
        """
        check_usage(read.remote.opened.queue)
        if read.peek:
            raise TransactionUsage(
                "a transaction cannot peek; receive the message, or peek without the transaction"
            )
        transactions = self._manager.transactions
        try:
            read.transaction = transactions.find(identifier)
        except TransactionSequence:
            read.transaction = transactions.begin(read.call.caller.name)
            read.own_transaction = True
            return read.transaction
        return None

    def _answer(self, read: EntryRead, received: Received) -> None:
        call, args = read.call, read.args
        if not read.peek and read.request_id in read.remote.delivered:
            # While this read waited for the disk, another one was delivered under the same identifier.
            read.deliver(b"", received.lookup_id)
            read.put_back()
            call.reply(self.failed(call, args, InvalidParameter.default_code))
            return
        written = None
        if not read.peek:
            read.deliver(read.request_id, received.lookup_id)
            self._timed[read] = self._manager.monotonic() + self._cleanup
            written = read.written
        sequence = received.lookup_id & SEQUENTIAL
        stored, queue = received.packet, read.remote.queue
        tail = extension_headers(received, queue, self._path_of)
        wanted = args.dwMaxBodySize, args.dwMaxCompoundMessageSize
        if len(stored) + len(tail) <= min(
            wanted
        ):  # the section has the whole message, whichever limit applies
            stub = whole_answer(stored, tail, received.arrived_time, sequence, call.ndr64)
            call.reply_stub(stub, written)
            return
        buffers = [
            _SECTION(section.kind, section.allocated, len(section.data), section.data)
            for section in sections(stored, message_packet(received, queue, self._path_of), *wanted)
        ]
        transactional = call.opnum == Opnum.START_TRANSACTIONAL_RECEIVE
        results = (StartTransactionalReceiveResults if transactional else StartReceiveResults)(
            pdwArriveTime=received.arrived_time,
            pSequenceId=sequence,
            pdwNumberOfSections=len(buffers),
            ppPacketSections=buffers,
        )
        call.reply(results, written)

    def _refuse(self, read: RemoteRead, error: MSMQError) -> None:
        read.call.reply(self.failed(read.call, read.args, error.code))

    def _path_of(self, ordinal: int) -> str:
        return next((queue.name for queue in self._manager.queues() if queue.ordinal == ordinal), "")

    def cancel_receive(self, call: Call, args: CancelReceiveArgs) -> CancelReceiveResults:
        """R_CancelReceive (3.1.4.8)."""
        remote: RemoteQueue = call.handles.get(args.phContext, QUEUE)
        read = remote.pending.get(args.dwRequestId)
        if read is None:
            raise MSMQError("no read with this request identifier is waiting", code=STATUS_NOT_FOUND)
        read.cancel()
        return CancelReceiveResults()

    def end_receive(self, call: Call, args: EndReceiveArgs) -> EndReceiveResults | None:
        """R_EndReceive (3.1.4.9). A call with RR_ACK is answered when the removal is durable."""
        return self._end(call, args, False, EndReceiveResults())

    def end_transactional_receive(
        self, call: Call, args: EndTransactionalReceiveArgs
    ) -> EndTransactionalReceiveResults | None:
        """R_EndTransactionalReceive (3.1.4.15)."""
        return self._end(call, args, True, EndTransactionalReceiveResults())

    def _end(
        self,
        call: Call,
        args: EndReceiveArgs | EndTransactionalReceiveArgs,
        transactional: bool,
        results: R,
    ) -> R | None:
        remote: RemoteQueue = call.handles.get(args.phContext, QUEUE)
        if not remote.delivered and not remote.pending:
            raise InvalidHandle("no read of this queue is waiting to be ended")
        read = remote.delivered.get(args.dwRequestId)
        if read is None and args.dwRequestId in remote.pending:
            raise MessageNotFound("the read is still waiting for a message")
        if read is None or (read.transaction is not None and not transactional):
            raise InvalidParameter("no read with this request identifier can be ended in this way")
        return when(read.end(args.dwAck), self.failed, call, args, results, _ENDED)

    # ---- transactions

    def enlist_remote_transaction(
        self, call: Call, args: EnlistRemoteTransactionArgs
    ) -> EnlistRemoteTransactionResults:
        """R_QMEnlistRemoteTransaction (3.1.4.12).

        The call succeeds only for a transaction that this queue manager already knows. To join any other one,
        this server would need a transaction coordinator; therefore it ignores the client's propagation token.
        """
        try:
            self._manager.transactions.find(UUID(bytes_le=bytes(args.pTransactionId)))
        except TransactionSequence:
            raise MSMQError("this server has no transaction coordinator", code=DTC_CONNECT) from None
        return EnlistRemoteTransactionResults()

    def set_user_acknowledgement_class(
        self, call: Call, args: SetUserAcknowledgementClassArgs
    ) -> SetUserAcknowledgementClassResults:
        """R_SetUserAcknowledgementClass (3.1.4.14)."""
        if args.usClass not in (0, RECEIVE_REJECTED):
            raise InvalidParameter(
                f"0x{args.usClass:04X} is not an acknowledgement class that an application may set"
            )
        remote: RemoteQueue = call.handles.get(args.phContext, QUEUE)
        core = remote.opened.queue.core
        key = full_lookup_id(core, args.LookupId)
        if not core.positions.state(key):
            raise MessageNotFound(f"no message has the lookup identifier {args.LookupId}")
        transaction: Transaction | None = next(
            (item for item in self._manager.transactions if holds(core, key, item.owner)), None
        )
        if transaction is None:
            raise TransactionUsage("the message was not received in a transaction")
        if args.usClass:
            TransactedQueue(remote.opened, transaction).reject(key)
        return SetUserAcknowledgementClassResults()

    # ---- moving

    def move_message(self, call: Call, args: MoveMessageArgs) -> MoveMessageResults | None:
        """R_MoveMessage (3.1.4.10). Without a transaction, the call is answered when the move is durable."""
        remote: RemoteQueue = call.handles.get(args.phContextFrom, QUEUE)
        source = remote.opened.queue
        to = self._moves.get(args.ullContextTo)
        if to is None or self._queues.owned(to.handle, call.association) is None:
            raise InvalidHandle("no queue with this context is open for moving")
        if to.opened.queue.family is not source.family:
            raise MSMQError("the two queues are not a queue and its subqueue", code=STATUS_INVALID_PARAMETER)
        lookup_id = full_lookup_id(source.core, args.LookupId)
        identifier = bytes(args.pTransactionId)
        if identifier == _NO_TRANSACTION:
            done = remote.opened.move(lookup_id, to.opened)
            return when(done, self.failed, call, args, MoveMessageResults())
        check_move(source, lookup_id, to.opened.access, to.opened.queue, transactional=True)
        transaction = self._manager.transactions.find(UUID(bytes_le=identifier))
        TransactedQueue(remote.opened, transaction).move(lookup_id, to.opened)
        return MoveMessageResults()
