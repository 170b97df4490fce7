"""qmcomm: its operations by name, and the types of their requests and results.

Made by tools/rpcstubs.py from rpc/idl/qmcomm.py; do not edit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msmq_fast.rpc.idl.qmcomm import QMCOMM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from dataclasses import dataclass
    from uuid import UUID

    from msmq_fast.rpc.ndr.record import Record

    @dataclass
    class GetRemoteQueueNameArgs:
        pQueue: int
        lplpRemoteQueueName: str | None

    @dataclass
    class GetRemoteQueueNameResults:
        pQueue: int | None = None
        lplpRemoteQueueName: str | None = None
        result: int = 0

    @dataclass
    class OpenRemoteQueueArgs:
        pQueueFormat: Record | None
        dwCallingProcessID: int
        dwDesiredAccess: int
        dwShareMode: int
        pLicGuid: UUID
        dwMQS: int

    @dataclass
    class OpenRemoteQueueResults:
        pQueueFormat: Record | None = None
        dwCallingProcessID: int | None = None
        dwDesiredAccess: int | None = None
        dwShareMode: int | None = None
        pLicGuid: UUID | None = None
        dwMQS: int | None = None
        pphContext: bytes | None = None
        pdwContext: int = 0
        dwpQueue: int = 0
        phQueue: int = 0
        result: int = 0

    @dataclass
    class CloseRemoteQueueContextArgs:
        pphContext: bytes | None

    @dataclass
    class CloseRemoteQueueContextResults:
        pphContext: bytes | None = None

    @dataclass
    class CreateRemoteCursorArgs:
        ptb1: Record
        hQueue: int

    @dataclass
    class CreateRemoteCursorResults:
        ptb1: Record | None = None
        hQueue: int | None = None
        phCursor: int = 0
        result: int = 0

    @dataclass
    class CreateObjectInternalArgs:
        dwObjectType: int
        lpwcsPathName: str
        SDSize: int
        pSecurityDescriptor: bytes | None
        cp: int
        aProp: Sequence[int]
        apVar: Sequence[Record]

    @dataclass
    class CreateObjectInternalResults:
        dwObjectType: int | None = None
        lpwcsPathName: str | None = None
        SDSize: int | None = None
        pSecurityDescriptor: bytes | None = None
        cp: int | None = None
        aProp: Sequence[int] | None = None
        apVar: Sequence[Record] | None = None
        result: int = 0

    @dataclass
    class SetObjectSecurityInternalArgs:
        pObjectFormat: Record
        SecurityInformation: int
        SDSize: int
        pSecurityDescriptor: bytes | None

    @dataclass
    class SetObjectSecurityInternalResults:
        pObjectFormat: Record | None = None
        SecurityInformation: int | None = None
        SDSize: int | None = None
        pSecurityDescriptor: bytes | None = None
        result: int = 0

    @dataclass
    class GetObjectSecurityInternalArgs:
        pObjectFormat: Record
        RequestedInformation: int
        nLength: int

    @dataclass
    class GetObjectSecurityInternalResults:
        pObjectFormat: Record | None = None
        RequestedInformation: int | None = None
        nLength: int | None = None
        pSecurityDescriptor: bytes = b""
        lpnLengthNeeded: int = 0
        result: int = 0

    @dataclass
    class DeleteObjectArgs:
        pObjectFormat: Record

    @dataclass
    class DeleteObjectResults:
        pObjectFormat: Record | None = None
        result: int = 0

    @dataclass
    class GetObjectPropertiesArgs:
        pObjectFormat: Record
        cp: int
        aProp: Sequence[int]
        apVar: Sequence[Record]

    @dataclass
    class GetObjectPropertiesResults:
        pObjectFormat: Record | None = None
        cp: int | None = None
        aProp: Sequence[int] | None = None
        apVar: Sequence[Record] = ()
        result: int = 0

    @dataclass
    class SetObjectPropertiesArgs:
        pObjectFormat: Record
        cp: int
        aProp: Sequence[int] | None
        apVar: Sequence[Record] | None

    @dataclass
    class SetObjectPropertiesResults:
        pObjectFormat: Record | None = None
        cp: int | None = None
        aProp: Sequence[int] | None = None
        apVar: Sequence[Record] | None = None
        result: int = 0

    @dataclass
    class ObjectPathToObjectFormatArgs:
        lpwcsPathName: str
        pObjectFormat: Record

    @dataclass
    class ObjectPathToObjectFormatResults:
        lpwcsPathName: str | None = None
        pObjectFormat: Record | None = None
        result: int = 0

    @dataclass
    class GetTmWhereaboutsArgs:
        cbBufSize: int

    @dataclass
    class GetTmWhereaboutsResults:
        cbBufSize: int | None = None
        pbWhereabouts: bytes = b""
        pcbWhereabouts: int = 0
        result: int = 0

    @dataclass
    class EnlistTransactionArgs:
        pUow: bytes
        cbCookie: int
        pbCookie: bytes

    @dataclass
    class EnlistTransactionResults:
        pUow: bytes | None = None
        cbCookie: int | None = None
        pbCookie: bytes | None = None
        result: int = 0

    @dataclass
    class EnlistInternalTransactionArgs:
        pUow: bytes

    @dataclass
    class EnlistInternalTransactionResults:
        pUow: bytes | None = None
        phIntXact: bytes | None = None
        result: int = 0

    @dataclass
    class CommitTransactionArgs:
        phIntXact: bytes | None

    @dataclass
    class CommitTransactionResults:
        phIntXact: bytes | None = None
        result: int = 0

    @dataclass
    class AbortTransactionArgs:
        phIntXact: bytes | None

    @dataclass
    class AbortTransactionResults:
        phIntXact: bytes | None = None
        result: int = 0

    @dataclass
    class OpenQueueInternalArgs:
        pQueueFormat: Record
        dwDesiredAccess: int
        dwShareMode: int
        hRemoteQueue: int
        lplpRemoteQueueName: str | None
        dwpQueue: int
        pLicGuid: UUID
        lpClientName: str
        dwRemoteProtocol: int
        dwpRemoteContext: int

    @dataclass
    class OpenQueueInternalResults:
        pQueueFormat: Record | None = None
        dwDesiredAccess: int | None = None
        dwShareMode: int | None = None
        hRemoteQueue: int | None = None
        lplpRemoteQueueName: str | None = None
        dwpQueue: int | None = None
        pLicGuid: UUID | None = None
        lpClientName: str | None = None
        dwRemoteProtocol: int | None = None
        dwpRemoteContext: int | None = None
        pdwQMContext: int = 0
        phQueue: bytes | None = None
        result: int = 0

    @dataclass
    class CloseHandleArgs:
        phQueue: bytes | None

    @dataclass
    class CloseHandleResults:
        phQueue: bytes | None = None
        result: int = 0

    @dataclass
    class CloseCursorArgs:
        hQueue: bytes | None
        hCursor: int

    @dataclass
    class CloseCursorResults:
        hQueue: bytes | None = None
        hCursor: int | None = None
        result: int = 0

    @dataclass
    class SetCursorPropertiesArgs:
        hProxy: bytes | None
        hCursor: int
        hRemoteCursor: int

    @dataclass
    class SetCursorPropertiesResults:
        hProxy: bytes | None = None
        hCursor: int | None = None
        hRemoteCursor: int | None = None
        result: int = 0

    @dataclass
    class HandleToFormatNameArgs:
        hQueue: bytes | None
        dwFormatNameRPCBufferLen: int
        lpwcsFormatName: bytes | None
        pdwLength: int

    @dataclass
    class HandleToFormatNameResults:
        hQueue: bytes | None = None
        dwFormatNameRPCBufferLen: int | None = None
        lpwcsFormatName: bytes | None = None
        pdwLength: int = 0
        result: int = 0

    @dataclass
    class PurgeQueueArgs:
        hQueue: bytes | None

    @dataclass
    class PurgeQueueResults:
        hQueue: bytes | None = None
        result: int = 0

    @dataclass
    class QueryQmRegistryInternalArgs:
        dwQueryType: int

    @dataclass
    class QueryQmRegistryInternalResults:
        dwQueryType: int | None = None
        lplpMQISServer: str | None = None
        result: int = 0

    @dataclass
    class GetRtqmServerPortArgs:
        fIP: int

    @dataclass
    class GetRtqmServerPortResults:
        fIP: int | None = None
        result: int = 0

else:
    GetRemoteQueueNameArgs = QMCOMM.op("get_remote_queue_name").Args
    GetRemoteQueueNameResults = QMCOMM.op("get_remote_queue_name").Results
    OpenRemoteQueueArgs = QMCOMM.op("open_remote_queue").Args
    OpenRemoteQueueResults = QMCOMM.op("open_remote_queue").Results
    CloseRemoteQueueContextArgs = QMCOMM.op("close_remote_queue_context").Args
    CloseRemoteQueueContextResults = QMCOMM.op("close_remote_queue_context").Results
    CreateRemoteCursorArgs = QMCOMM.op("create_remote_cursor").Args
    CreateRemoteCursorResults = QMCOMM.op("create_remote_cursor").Results
    CreateObjectInternalArgs = QMCOMM.op("create_object_internal").Args
    CreateObjectInternalResults = QMCOMM.op("create_object_internal").Results
    SetObjectSecurityInternalArgs = QMCOMM.op("set_object_security_internal").Args
    SetObjectSecurityInternalResults = QMCOMM.op("set_object_security_internal").Results
    GetObjectSecurityInternalArgs = QMCOMM.op("get_object_security_internal").Args
    GetObjectSecurityInternalResults = QMCOMM.op("get_object_security_internal").Results
    DeleteObjectArgs = QMCOMM.op("delete_object").Args
    DeleteObjectResults = QMCOMM.op("delete_object").Results
    GetObjectPropertiesArgs = QMCOMM.op("get_object_properties").Args
    GetObjectPropertiesResults = QMCOMM.op("get_object_properties").Results
    SetObjectPropertiesArgs = QMCOMM.op("set_object_properties").Args
    SetObjectPropertiesResults = QMCOMM.op("set_object_properties").Results
    ObjectPathToObjectFormatArgs = QMCOMM.op("object_path_to_object_format").Args
    ObjectPathToObjectFormatResults = QMCOMM.op("object_path_to_object_format").Results
    GetTmWhereaboutsArgs = QMCOMM.op("get_tm_whereabouts").Args
    GetTmWhereaboutsResults = QMCOMM.op("get_tm_whereabouts").Results
    EnlistTransactionArgs = QMCOMM.op("enlist_transaction").Args
    EnlistTransactionResults = QMCOMM.op("enlist_transaction").Results
    EnlistInternalTransactionArgs = QMCOMM.op("enlist_internal_transaction").Args
    EnlistInternalTransactionResults = QMCOMM.op("enlist_internal_transaction").Results
    CommitTransactionArgs = QMCOMM.op("commit_transaction").Args
    CommitTransactionResults = QMCOMM.op("commit_transaction").Results
    AbortTransactionArgs = QMCOMM.op("abort_transaction").Args
    AbortTransactionResults = QMCOMM.op("abort_transaction").Results
    OpenQueueInternalArgs = QMCOMM.op("open_queue_internal").Args
    OpenQueueInternalResults = QMCOMM.op("open_queue_internal").Results
    CloseHandleArgs = QMCOMM.op("close_handle").Args
    CloseHandleResults = QMCOMM.op("close_handle").Results
    CloseCursorArgs = QMCOMM.op("close_cursor").Args
    CloseCursorResults = QMCOMM.op("close_cursor").Results
    SetCursorPropertiesArgs = QMCOMM.op("set_cursor_properties").Args
    SetCursorPropertiesResults = QMCOMM.op("set_cursor_properties").Results
    HandleToFormatNameArgs = QMCOMM.op("handle_to_format_name").Args
    HandleToFormatNameResults = QMCOMM.op("handle_to_format_name").Results
    PurgeQueueArgs = QMCOMM.op("purge_queue").Args
    PurgeQueueResults = QMCOMM.op("purge_queue").Results
    QueryQmRegistryInternalArgs = QMCOMM.op("query_qm_registry_internal").Args
    QueryQmRegistryInternalResults = QMCOMM.op("query_qm_registry_internal").Results
    GetRtqmServerPortArgs = QMCOMM.op("get_rtqm_server_port").Args
    GetRtqmServerPortResults = QMCOMM.op("get_rtqm_server_port").Results


class Opnum(IntEnum):
    """The numbers of the operations."""

    GET_REMOTE_QUEUE_NAME = 1
    OPEN_REMOTE_QUEUE = 2
    CLOSE_REMOTE_QUEUE_CONTEXT = 3
    CREATE_REMOTE_CURSOR = 4
    CREATE_OBJECT_INTERNAL = 6
    SET_OBJECT_SECURITY_INTERNAL = 7
    GET_OBJECT_SECURITY_INTERNAL = 8
    DELETE_OBJECT = 9
    GET_OBJECT_PROPERTIES = 10
    SET_OBJECT_PROPERTIES = 11
    OBJECT_PATH_TO_OBJECT_FORMAT = 12
    GET_TM_WHEREABOUTS = 14
    ENLIST_TRANSACTION = 15
    ENLIST_INTERNAL_TRANSACTION = 16
    COMMIT_TRANSACTION = 17
    ABORT_TRANSACTION = 18
    OPEN_QUEUE_INTERNAL = 19
    CLOSE_HANDLE = 20
    CLOSE_CURSOR = 22
    SET_CURSOR_PROPERTIES = 23
    HANDLE_TO_FORMAT_NAME = 26
    PURGE_QUEUE = 27
    QUERY_QM_REGISTRY_INTERNAL = 28
    GET_RTQM_SERVER_PORT = 31


__all__ = [
    "AbortTransactionArgs",
    "AbortTransactionResults",
    "CloseCursorArgs",
    "CloseCursorResults",
    "CloseHandleArgs",
    "CloseHandleResults",
    "CloseRemoteQueueContextArgs",
    "CloseRemoteQueueContextResults",
    "CommitTransactionArgs",
    "CommitTransactionResults",
    "CreateObjectInternalArgs",
    "CreateObjectInternalResults",
    "CreateRemoteCursorArgs",
    "CreateRemoteCursorResults",
    "DeleteObjectArgs",
    "DeleteObjectResults",
    "EnlistInternalTransactionArgs",
    "EnlistInternalTransactionResults",
    "EnlistTransactionArgs",
    "EnlistTransactionResults",
    "GetObjectPropertiesArgs",
    "GetObjectPropertiesResults",
    "GetObjectSecurityInternalArgs",
    "GetObjectSecurityInternalResults",
    "GetRemoteQueueNameArgs",
    "GetRemoteQueueNameResults",
    "GetRtqmServerPortArgs",
    "GetRtqmServerPortResults",
    "GetTmWhereaboutsArgs",
    "GetTmWhereaboutsResults",
    "HandleToFormatNameArgs",
    "HandleToFormatNameResults",
    "ObjectPathToObjectFormatArgs",
    "ObjectPathToObjectFormatResults",
    "OpenQueueInternalArgs",
    "OpenQueueInternalResults",
    "OpenRemoteQueueArgs",
    "OpenRemoteQueueResults",
    "Opnum",
    "PurgeQueueArgs",
    "PurgeQueueResults",
    "QueryQmRegistryInternalArgs",
    "QueryQmRegistryInternalResults",
    "SetCursorPropertiesArgs",
    "SetCursorPropertiesResults",
    "SetObjectPropertiesArgs",
    "SetObjectPropertiesResults",
    "SetObjectSecurityInternalArgs",
    "SetObjectSecurityInternalResults",
]
