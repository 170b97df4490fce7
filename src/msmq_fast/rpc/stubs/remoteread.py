"""RemoteRead: its operations by name, and the types of their requests and results.

Made by tools/rpcstubs.py from rpc/idl/remoteread.py; do not edit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msmq_fast.rpc.idl.remoteread import REMOTE_READ

if TYPE_CHECKING:
    from collections.abc import Sequence
    from dataclasses import dataclass
    from uuid import UUID

    from msmq_fast.rpc.ndr.record import Record

    @dataclass
    class GetServerPortArgs:
        pass

    @dataclass
    class GetServerPortResults:
        result: int = 0

    @dataclass
    class OpenQueueArgs:
        pQueueFormat: Record
        dwAccess: int
        dwShareMode: int
        pClientId: UUID
        fNonRoutingServer: int
        Major: int
        Minor: int
        BuildNumber: int
        fWorkgroup: int

    @dataclass
    class OpenQueueResults:
        pQueueFormat: Record | None = None
        dwAccess: int | None = None
        dwShareMode: int | None = None
        pClientId: UUID | None = None
        fNonRoutingServer: int | None = None
        Major: int | None = None
        Minor: int | None = None
        BuildNumber: int | None = None
        fWorkgroup: int | None = None
        pphContext: bytes | None = None

    @dataclass
    class CloseQueueArgs:
        pphContext: bytes | None

    @dataclass
    class CloseQueueResults:
        pphContext: bytes | None = None
        result: int = 0

    @dataclass
    class CreateCursorArgs:
        phContext: bytes | None

    @dataclass
    class CreateCursorResults:
        phContext: bytes | None = None
        phCursor: int = 0
        result: int = 0

    @dataclass
    class CloseCursorArgs:
        phContext: bytes | None
        hCursor: int

    @dataclass
    class CloseCursorResults:
        phContext: bytes | None = None
        hCursor: int | None = None
        result: int = 0

    @dataclass
    class PurgeQueueArgs:
        phContext: bytes | None

    @dataclass
    class PurgeQueueResults:
        phContext: bytes | None = None
        result: int = 0

    @dataclass
    class StartReceiveArgs:
        phContext: bytes | None
        LookupId: int
        hCursor: int
        ulAction: int
        ulTimeout: int
        dwRequestId: int
        dwMaxBodySize: int
        dwMaxCompoundMessageSize: int

    @dataclass
    class StartReceiveResults:
        phContext: bytes | None = None
        LookupId: int | None = None
        hCursor: int | None = None
        ulAction: int | None = None
        ulTimeout: int | None = None
        dwRequestId: int | None = None
        dwMaxBodySize: int | None = None
        dwMaxCompoundMessageSize: int | None = None
        pdwArriveTime: int = 0
        pSequenceId: int = 0
        pdwNumberOfSections: int = 0
        ppPacketSections: Sequence[Record] | None = None
        result: int = 0

    @dataclass
    class CancelReceiveArgs:
        phContext: bytes | None
        dwRequestId: int

    @dataclass
    class CancelReceiveResults:
        phContext: bytes | None = None
        dwRequestId: int | None = None
        result: int = 0

    @dataclass
    class EndReceiveArgs:
        phContext: bytes | None
        dwAck: int
        dwRequestId: int

    @dataclass
    class EndReceiveResults:
        phContext: bytes | None = None
        dwAck: int | None = None
        dwRequestId: int | None = None
        result: int = 0

    @dataclass
    class MoveMessageArgs:
        phContextFrom: bytes | None
        ullContextTo: int
        LookupId: int
        pTransactionId: bytes

    @dataclass
    class MoveMessageResults:
        phContextFrom: bytes | None = None
        ullContextTo: int | None = None
        LookupId: int | None = None
        pTransactionId: bytes | None = None
        result: int = 0

    @dataclass
    class OpenQueueForMoveArgs:
        pQueueFormat: Record
        dwAccess: int
        dwShareMode: int
        pClientId: UUID
        fNonRoutingServer: int
        Major: int
        Minor: int
        BuildNumber: int
        fWorkgroup: int

    @dataclass
    class OpenQueueForMoveResults:
        pQueueFormat: Record | None = None
        dwAccess: int | None = None
        dwShareMode: int | None = None
        pClientId: UUID | None = None
        fNonRoutingServer: int | None = None
        Major: int | None = None
        Minor: int | None = None
        BuildNumber: int | None = None
        fWorkgroup: int | None = None
        pMoveContext: int = 0
        pphContext: bytes | None = None

    @dataclass
    class EnlistRemoteTransactionArgs:
        pTransactionId: bytes
        cbPropagationToken: int
        pbPropagationToken: bytes
        pQueueFormat: Record

    @dataclass
    class EnlistRemoteTransactionResults:
        pTransactionId: bytes | None = None
        cbPropagationToken: int | None = None
        pbPropagationToken: bytes | None = None
        pQueueFormat: Record | None = None
        result: int = 0

    @dataclass
    class StartTransactionalReceiveArgs:
        phContext: bytes | None
        LookupId: int
        hCursor: int
        ulAction: int
        ulTimeout: int
        dwRequestId: int
        dwMaxBodySize: int
        dwMaxCompoundMessageSize: int
        pTransactionId: bytes

    @dataclass
    class StartTransactionalReceiveResults:
        phContext: bytes | None = None
        LookupId: int | None = None
        hCursor: int | None = None
        ulAction: int | None = None
        ulTimeout: int | None = None
        dwRequestId: int | None = None
        dwMaxBodySize: int | None = None
        dwMaxCompoundMessageSize: int | None = None
        pTransactionId: bytes | None = None
        pdwArriveTime: int = 0
        pSequenceId: int = 0
        pdwNumberOfSections: int = 0
        ppPacketSections: Sequence[Record] | None = None
        result: int = 0

    @dataclass
    class SetUserAcknowledgementClassArgs:
        phContext: bytes | None
        LookupId: int
        usClass: int

    @dataclass
    class SetUserAcknowledgementClassResults:
        phContext: bytes | None = None
        LookupId: int | None = None
        usClass: int | None = None
        result: int = 0

    @dataclass
    class EndTransactionalReceiveArgs:
        phContext: bytes | None
        dwAck: int
        dwRequestId: int

    @dataclass
    class EndTransactionalReceiveResults:
        phContext: bytes | None = None
        dwAck: int | None = None
        dwRequestId: int | None = None
        result: int = 0

else:
    GetServerPortArgs = REMOTE_READ.op("get_server_port").Args
    GetServerPortResults = REMOTE_READ.op("get_server_port").Results
    OpenQueueArgs = REMOTE_READ.op("open_queue").Args
    OpenQueueResults = REMOTE_READ.op("open_queue").Results
    CloseQueueArgs = REMOTE_READ.op("close_queue").Args
    CloseQueueResults = REMOTE_READ.op("close_queue").Results
    CreateCursorArgs = REMOTE_READ.op("create_cursor").Args
    CreateCursorResults = REMOTE_READ.op("create_cursor").Results
    CloseCursorArgs = REMOTE_READ.op("close_cursor").Args
    CloseCursorResults = REMOTE_READ.op("close_cursor").Results
    PurgeQueueArgs = REMOTE_READ.op("purge_queue").Args
    PurgeQueueResults = REMOTE_READ.op("purge_queue").Results
    StartReceiveArgs = REMOTE_READ.op("start_receive").Args
    StartReceiveResults = REMOTE_READ.op("start_receive").Results
    CancelReceiveArgs = REMOTE_READ.op("cancel_receive").Args
    CancelReceiveResults = REMOTE_READ.op("cancel_receive").Results
    EndReceiveArgs = REMOTE_READ.op("end_receive").Args
    EndReceiveResults = REMOTE_READ.op("end_receive").Results
    MoveMessageArgs = REMOTE_READ.op("move_message").Args
    MoveMessageResults = REMOTE_READ.op("move_message").Results
    OpenQueueForMoveArgs = REMOTE_READ.op("open_queue_for_move").Args
    OpenQueueForMoveResults = REMOTE_READ.op("open_queue_for_move").Results
    EnlistRemoteTransactionArgs = REMOTE_READ.op("enlist_remote_transaction").Args
    EnlistRemoteTransactionResults = REMOTE_READ.op("enlist_remote_transaction").Results
    StartTransactionalReceiveArgs = REMOTE_READ.op("start_transactional_receive").Args
    StartTransactionalReceiveResults = REMOTE_READ.op("start_transactional_receive").Results
    SetUserAcknowledgementClassArgs = REMOTE_READ.op("set_user_acknowledgement_class").Args
    SetUserAcknowledgementClassResults = REMOTE_READ.op("set_user_acknowledgement_class").Results
    EndTransactionalReceiveArgs = REMOTE_READ.op("end_transactional_receive").Args
    EndTransactionalReceiveResults = REMOTE_READ.op("end_transactional_receive").Results


class Opnum(IntEnum):
    """The numbers of the operations."""

    GET_SERVER_PORT = 0
    OPEN_QUEUE = 2
    CLOSE_QUEUE = 3
    CREATE_CURSOR = 4
    CLOSE_CURSOR = 5
    PURGE_QUEUE = 6
    START_RECEIVE = 7
    CANCEL_RECEIVE = 8
    END_RECEIVE = 9
    MOVE_MESSAGE = 10
    OPEN_QUEUE_FOR_MOVE = 11
    ENLIST_REMOTE_TRANSACTION = 12
    START_TRANSACTIONAL_RECEIVE = 13
    SET_USER_ACKNOWLEDGEMENT_CLASS = 14
    END_TRANSACTIONAL_RECEIVE = 15


__all__ = [
    "CancelReceiveArgs",
    "CancelReceiveResults",
    "CloseCursorArgs",
    "CloseCursorResults",
    "CloseQueueArgs",
    "CloseQueueResults",
    "CreateCursorArgs",
    "CreateCursorResults",
    "EndReceiveArgs",
    "EndReceiveResults",
    "EndTransactionalReceiveArgs",
    "EndTransactionalReceiveResults",
    "EnlistRemoteTransactionArgs",
    "EnlistRemoteTransactionResults",
    "GetServerPortArgs",
    "GetServerPortResults",
    "MoveMessageArgs",
    "MoveMessageResults",
    "OpenQueueArgs",
    "OpenQueueForMoveArgs",
    "OpenQueueForMoveResults",
    "OpenQueueResults",
    "Opnum",
    "PurgeQueueArgs",
    "PurgeQueueResults",
    "SetUserAcknowledgementClassArgs",
    "SetUserAcknowledgementClassResults",
    "StartReceiveArgs",
    "StartReceiveResults",
    "StartTransactionalReceiveArgs",
    "StartTransactionalReceiveResults",
]
