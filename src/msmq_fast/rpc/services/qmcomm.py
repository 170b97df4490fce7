"""The interface qmcomm (MS-MQMP 3.1.4).

Remote readers open queues and cursors by this interface, and then use them by qm2qm. Dependent clients do
everything by this interface except sending, receiving and opening cursors, see qmcomm2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.packet.names import NameKind
from msmq_fast.packet.text import encode_text
from msmq_fast.protocol.errors import (
    IllegalOperation,
    InvalidHandle,
    InvalidParameter,
    MSMQError,
    NoDirectory,
    RemoteMachineNotAvailable,
    SharingViolation,
    UnsupportedAccessMode,
    UnsupportedFormatNameOperation,
    code_of,
    error,
)
from msmq_fast.qm.access import Access, Share
from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.idl.mqmq import PROPVARIANT
from msmq_fast.rpc.idl.qmcomm import OBJECT_FORMAT, QMCOMM
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.services.deferring import when
from msmq_fast.rpc.services.dependent.objects import DependentObjects
from msmq_fast.rpc.services.dependent.properties import Variant
from msmq_fast.rpc.services.qm2qm import VERSION
from msmq_fast.rpc.services.queueformat import name_of, queue_format
from msmq_fast.rpc.stubs.qmcomm import (
    AbortTransactionArgs,
    CloseCursorArgs,
    CloseHandleArgs,
    CloseRemoteQueueContextArgs,
    CommitTransactionArgs,
    CreateObjectInternalArgs,
    CreateRemoteCursorArgs,
    DeleteObjectArgs,
    EnlistInternalTransactionArgs,
    EnlistTransactionArgs,
    GetObjectPropertiesArgs,
    GetObjectSecurityInternalArgs,
    GetRemoteQueueNameArgs,
    GetRtqmServerPortArgs,
    GetTmWhereaboutsArgs,
    HandleToFormatNameArgs,
    ObjectPathToObjectFormatArgs,
    OpenQueueInternalArgs,
    OpenRemoteQueueArgs,
    Opnum,
    PurgeQueueArgs,
    QueryQmRegistryInternalArgs,
    SetCursorPropertiesArgs,
    SetObjectPropertiesArgs,
    SetObjectSecurityInternalArgs,
)

if TYPE_CHECKING:
    from msmq_fast.packet.names import FormatName
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.rpc.call import Call
    from msmq_fast.rpc.services.dependent.server import SupportingServer
    from msmq_fast.rpc.services.openqueues import OpenQueues
    from msmq_fast.rpc.services.ports import RpcPorts
    from msmq_fast.rpc.services.reads import RemoteQueue
    from msmq_fast.security.token import Token

__all__ = ["QmCommService"]

REMOTE_QUEUE: Final = "PCTX_OPENREMOTE_HANDLE_TYPE"
STATUS_SHARING_VIOLATION: Final = 0xC0000043
ILLEGAL_OPERATION: Final = IllegalOperation.default_code

_REMOTE_ACCESS: Final = (Access.RECEIVE, Access.PEEK)
_LOCAL_ACCESS: Final = (Access.RECEIVE, Access.SEND, Access.PEEK, Access.RECEIVE_ADMIN, Access.PEEK_ADMIN)
_QUEUE_OBJECT: Final = 1  # dwObjectType
_WIDE: Final = 2  # bytes of a character


class QmCommService:
    """Serves qmcomm. `queues` has the queues that remote readers have opened, `server` those of dependent
    clients.
    """

    table = QMCOMM

    def __init__(
        self,
        manager: QueueManager,
        queues: OpenQueues,
        server: SupportingServer,
        ports: RpcPorts,
        policy: InterfacePolicy | None = None,
    ) -> None:
        """Every caller is accepted unless `policy` restricts this. The port method is open to every caller in
        any case.
        """
        self._manager = manager
        self._queues = queues
        self._server = server
        self._objects = DependentObjects(manager)
        self._ports = ports
        self.policy = policy or InterfacePolicy(
            exempt=frozenset((Opnum.GET_RTQM_SERVER_PORT,)), refuse_by_fault=True
        )

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        """Returns the results of a failed operation, with [out] parameters that are zero.

        Arrays have the size that the client requested. A context handle that was to be closed is NULL.
        """
        outs: dict[str, Any] = {}
        match call.opnum:
            case Opnum.CLOSE_REMOTE_QUEUE_CONTEXT:
                return self._results(call, args, pphContext=None)
            case Opnum.GET_OBJECT_SECURITY_INTERNAL:
                outs["pSecurityDescriptor"] = bytes(args.nLength)
            case Opnum.GET_TM_WHEREABOUTS:
                outs["pbWhereabouts"] = bytes(args.cbBufSize)
            case Opnum.COMMIT_TRANSACTION | Opnum.ABORT_TRANSACTION:
                outs["phIntXact"] = None
            case Opnum.OPEN_QUEUE_INTERNAL:
                outs["lplpRemoteQueueName"] = None
            case Opnum.CLOSE_HANDLE:
                outs["phQueue"] = None
        return self._results(call, args, result=hresult, **outs)

    def _results(self, call: Call, args: Any, **outs: Any) -> Any:
        return self.table.ops[call.opnum].results(args, **outs)

    # ---- remote readers

    def get_remote_queue_name(self, call: Call, args: GetRemoteQueueNameArgs) -> Any:
        """R_QMGetRemoteQueueName (3.1.4.1), which is obsolete."""
        raise RpcFault(ILLEGAL_OPERATION)

    def open_remote_queue(self, call: Call, args: OpenRemoteQueueArgs) -> Any:
        """R_QMOpenRemoteQueue (3.1.4.2). Ignores the process, the client GUID and the system category."""
        if args.pQueueFormat is None:
            raise InvalidParameter("the queue format is missing")
        access = _one_of(_REMOTE_ACCESS, args.dwDesiredAccess)
        name = name_of(args.pQueueFormat)
        if name.kind in (NameKind.DL, NameKind.MULTICAST):
            raise UnsupportedFormatNameOperation(f"{name} cannot be read from")
        try:
            remote = self._queues.open(str(name), access, _share(args.dwShareMode), call.caller)
        except SharingViolation as violation:
            raise MSMQError(violation.detail, code=STATUS_SHARING_VIOLATION) from None
        try:
            context = call.handles.create(REMOTE_QUEUE, remote, self._queues.release)
        except RpcFault:
            self._queues.close(remote)
            raise
        handle = remote.handle
        return self._results(
            call, args, pphContext=context, pdwContext=handle, dwpQueue=handle, phQueue=handle
        )

    def close_remote_queue_context(self, call: Call, args: CloseRemoteQueueContextArgs) -> Any:
        """R_QMCloseRemoteQueueContext (3.1.4.3): also closes the queue, unless it is already in use by
        qm2qm.
        """
        if args.pphContext is not None:
            remote: RemoteQueue = call.handles.close(args.pphContext, REMOTE_QUEUE)
            self._queues.release(remote)
        return self._results(call, args, pphContext=None)

    def create_remote_cursor(self, call: Call, args: CreateRemoteCursorArgs) -> Any:
        """R_QMCreateRemoteCursor (3.1.4.4). Ignores the transfer buffer."""
        remote = self._queues.find(args.hQueue)
        if remote is None:
            raise InvalidHandle("the queue is not open")
        return self._results(call, args, phCursor=self._queues.new_cursor(remote))

    def get_rtqm_server_port(self, call: Call, args: GetRtqmServerPortArgs) -> Any:
        """R_QMGetRTQMServerPort (3.1.4.24)."""
        return self._results(call, args, result=self._ports.of_type(args.fIP))

    # ---- queues as objects

    def create_object_internal(self, call: Call, args: CreateObjectInternalArgs) -> Any:
        """R_QMCreateObjectInternal (3.1.4.5)."""
        token = self._client(call)
        if args.dwObjectType != _QUEUE_OBJECT:
            raise InvalidParameter("only queues can be created")
        done = self._objects.create(
            token, args.lpwcsPathName, args.pSecurityDescriptor or None, _given(args.aProp, args.apVar)
        )
        return when(done, self.failed, call, args, self._results(call, args))

    def set_object_security_internal(self, call: Call, args: SetObjectSecurityInternalArgs) -> Any:
        """R_QMSetObjectSecurityInternal (3.1.4.6)."""
        token = self._client(call)
        done = self._objects.set_permissions(
            token, _object(args.pObjectFormat), args.SecurityInformation, args.pSecurityDescriptor
        )
        return when(done, self.failed, call, args, self._results(call, args))

    def get_object_security_internal(self, call: Call, args: GetObjectSecurityInternalArgs) -> Any:
        """R_QMGetObjectSecurityInternal (3.1.4.7)."""
        token = self._client(call)
        found = self._objects.permissions(token, _object(args.pObjectFormat), args.RequestedInformation)
        if len(found) > args.nLength:
            return self._results(
                call,
                args,
                pSecurityDescriptor=bytes(args.nLength),
                lpnLengthNeeded=len(found),
                result=code_of("MQ_ERROR_SECURITY_DESCRIPTOR_TOO_SMALL"),
            )
        return self._results(
            call,
            args,
            pSecurityDescriptor=found.ljust(args.nLength, b"\0"),
            lpnLengthNeeded=len(found),
        )

    def delete_object(self, call: Call, args: DeleteObjectArgs) -> Any:
        """R_QMDeleteObject (3.1.4.8)."""
        token = self._client(call)
        done = self._objects.delete(token, _object(args.pObjectFormat))
        return when(done, self.failed, call, args, self._results(call, args))

    def get_object_properties(self, call: Call, args: GetObjectPropertiesArgs) -> Any:
        """R_QMGetObjectProperties (3.1.4.9)."""
        token = self._client(call)
        asked = [(number, variant.vt) for number, variant in zip(args.aProp, args.apVar, strict=True)]
        found = self._objects.properties(token, _object(args.pObjectFormat), asked)
        values = [PROPVARIANT(variant.type, 0, 0, 0, variant.value) for variant in found]
        return self._results(call, args, apVar=values)

    def set_object_properties(self, call: Call, args: SetObjectPropertiesArgs) -> Any:
        """R_QMSetObjectProperties (3.1.4.10)."""
        token = self._client(call)
        given = _given(args.aProp, args.apVar)
        done = self._objects.set_properties(token, _object(args.pObjectFormat), given)
        return when(done, self.failed, call, args, self._results(call, args))

    def object_path_to_object_format(self, call: Call, args: ObjectPathToObjectFormatArgs) -> Any:
        """R_QMObjectPathToObjectFormat (3.1.4.11)."""
        self._client(call)
        given = args.pObjectFormat
        if given.ObjType != _QUEUE_OBJECT or given.pQueueFormat is None or given.pQueueFormat.m_qft:
            raise InvalidParameter("the buffer is too small for the name of a queue")
        name = self._objects.format_name(args.lpwcsPathName)
        return self._results(call, args, pObjectFormat=OBJECT_FORMAT(_QUEUE_OBJECT, queue_format(name)))

    # ---- transactions

    def get_tm_whereabouts(self, call: Call, args: GetTmWhereaboutsArgs) -> Any:
        """R_QMGetTmWhereabouts (3.1.4.12): fails, because this server has no transaction coordinator."""
        self._client(call)
        raise error("MQ_ERROR_DTC_CONNECT", "this server has no transaction coordinator")

    def enlist_transaction(self, call: Call, args: EnlistTransactionArgs) -> Any:
        """R_QMEnlistTransaction (3.1.4.13): accepts only a transaction that the client has already enlisted.

        This server has no transaction coordinator, so it cannot join other transactions.
        """
        self._client(call)
        if not self._server.transactions.knows(call, UUID(bytes_le=args.pUow)):
            raise error("MQ_ERROR_DTC_CONNECT", "this server has no transaction coordinator")
        return self._results(call, args)

    def enlist_internal_transaction(self, call: Call, args: EnlistInternalTransactionArgs) -> Any:
        """R_QMEnlistInternalTransaction (3.1.4.14)."""
        self._client(call)
        handle = self._server.transactions.enlist(call, UUID(bytes_le=args.pUow))
        return self._results(call, args, phIntXact=handle)

    def commit_transaction(self, call: Call, args: CommitTransactionArgs) -> Any:
        """R_QMCommitTransaction (3.1.4.15), answered when the commit is durable."""
        self._client(call)
        done = self._server.transactions.commit(call, _not_null(args.phIntXact))
        return when(done, self.failed, call, args, self._results(call, args, phIntXact=None))

    def abort_transaction(self, call: Call, args: AbortTransactionArgs) -> Any:
        """R_QMAbortTransaction (3.1.4.16)."""
        self._client(call)
        done = self._server.transactions.abort(call, _not_null(args.phIntXact))
        return when(done, self.failed, call, args, self._results(call, args, phIntXact=None))

    # ---- open queues

    def open_queue_internal(self, call: Call, args: OpenQueueInternalArgs) -> Any:
        """rpc_QMOpenQueueInternal (3.1.4.17).

        Ignores the client's identity and its route to other computers. Rejects reading from other computers,
        since this server would then connect to a host that the client chooses.
        """
        self._client(call)
        if args.hRemoteQueue:
            raise RemoteMachineNotAvailable(
                "this server does not read queues of other computers for dependent clients"
            )
        if args.dwpRemoteContext:
            raise InvalidParameter("dwpRemoteContext is not 0, although hRemoteQueue is NULL")
        access = _one_of(_LOCAL_ACCESS, args.dwDesiredAccess)
        queue, handle = self._server.queues.open(
            call, name_of(args.pQueueFormat), access, _share(args.dwShareMode)
        )
        return self._results(call, args, lplpRemoteQueueName=None, pdwQMContext=queue.context, phQueue=handle)

    def close_handle(self, call: Call, args: CloseHandleArgs) -> Any:
        """rpc_ACCloseHandle (3.1.4.18)."""
        self._client(call)
        self._server.queues.close(call, _not_null(args.phQueue))
        return self._results(call, args, phQueue=None)

    def close_cursor(self, call: Call, args: CloseCursorArgs) -> Any:
        """rpc_ACCloseCursor (3.1.4.19)."""
        self._client(call)
        self._server.queues.of_handle(call, args.hQueue).close_cursor(args.hCursor)
        return self._results(call, args)

    def set_cursor_properties(self, call: Call, args: SetCursorPropertiesArgs) -> Any:
        """rpc_ACSetCursorProperties (3.1.4.20), which is obsolete."""
        raise IllegalOperation

    def handle_to_format_name(self, call: Call, args: HandleToFormatNameArgs) -> Any:
        """rpc_ACHandleToFormatName (3.1.4.21)."""
        self._client(call)
        room = args.dwFormatNameRPCBufferLen
        if args.pdwLength != room or (args.lpwcsFormatName is None and room):
            raise InvalidParameter("the two sizes that the client gives for its buffer differ")
        name = self._server.queues.of_handle(call, args.hQueue).format_name
        needed = len(name) + 1
        written = None
        if args.lpwcsFormatName is not None:
            text = encode_text(name[: max(room - 1, 0)])
            written = text.ljust(_WIDE * room, b"\0")
        short = code_of("MQ_ERROR_FORMATNAME_BUFFER_TOO_SMALL") if needed > room else 0
        return self._results(call, args, lpwcsFormatName=written, pdwLength=needed, result=short)

    def purge_queue(self, call: Call, args: PurgeQueueArgs) -> Any:
        """rpc_ACPurgeQueue (3.1.4.22); answered once the purge is durable."""
        self._client(call)
        done = self._server.queues.of_handle(call, args.hQueue).purge()
        return when(done, self.failed, call, args, self._results(call, args))

    # ---- the rest

    def query_qm_registry_internal(self, call: Call, args: QueryQmRegistryInternalArgs) -> Any:
        """R_QMQueryQMRegistryInternal (3.1.4.23)."""
        self._client(call)
        match args.dwQueryType:
            case 0:
                text = ",".join(self._manager.directory.events.provider.directory_servers)
            case 1:
                text = str(self._manager.settings.long_lived)
            case 2:
                text = self._forest()
            case Opnum.CLOSE_REMOTE_QUEUE_CONTEXT:
                text = ".".join(map(str, VERSION))
            case 4:
                text = str(self._manager.guid)
            case _:
                raise InvalidParameter(f"unknown query type {args.dwQueryType}")
        return self._results(call, args, lplpMQISServer=text)

    def _forest(self) -> str:
        """Returns the GUID of the Enterprise in a domain, which is the same in the whole forest. Raises
        NoDirectory.
        """
        provider = self._manager.directory.events.provider
        answer = provider.read(ObjectType.ENTERPRISE)
        if not provider.is_authority or not answer.done or answer.exception() is not None:
            raise NoDirectory("this server is not in a forest, or does not know it yet")
        return str(answer.result().identifier)

    def _client(self, call: Call) -> Token:
        """Returns the token of a dependent client. Raises ILLEGAL_OPERATION if dependent clients are not
        served.
        """
        self._server.serving()
        return call.caller.token


def _one_of(allowed: tuple[Access, ...], given: int) -> Access:
    if given not in allowed:
        raise UnsupportedAccessMode(f"unknown access mode 0x{given:X}")
    return Access(given)


def _share(given: int) -> Share:
    if given not in tuple(Share):
        raise InvalidParameter(f"unknown share mode 0x{given:X}")
    return Share(given)


def _not_null(handle: bytes | None) -> bytes:
    if handle is None:
        raise InvalidHandle("the context handle is NULL")
    return handle


def _object(given: Any) -> FormatName:
    """Returns the name in an OBJECT_FORMAT."""
    if given.ObjType != _QUEUE_OBJECT or given.pQueueFormat is None:
        raise InvalidParameter("the name of the queue is missing")
    return name_of(given.pQueueFormat)


def _given(numbers: Any, variants: Any) -> list[tuple[int, Variant]]:
    return [
        (number, Variant(variant.vt, variant._varUnion))
        for number, variant in zip(numbers, variants, strict=True)
    ]
