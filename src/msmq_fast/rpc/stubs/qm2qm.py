"""qm2qm: its operations by name, and the types of their requests and results.

Made by tools/rpcstubs.py from rpc/idl/qm2qm.py; do not edit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msmq_fast.rpc.idl.qm2qm import QM2QM

if TYPE_CHECKING:
    from dataclasses import dataclass
    from uuid import UUID

    from msmq_fast.rpc.ndr.record import Record

    @dataclass
    class StartReceiveArgs:
        lpRemoteReadDesc: Record

    @dataclass
    class StartReceiveResults:
        lpRemoteReadDesc: Record | None = None
        pphContext: bytes | None = None
        result: int = 0

    @dataclass
    class EndReceiveArgs:
        pphContext: bytes | None
        dwAck: int

    @dataclass
    class EndReceiveResults:
        pphContext: bytes | None = None
        dwAck: int | None = None
        result: int = 0

    @dataclass
    class OpenQueueArgs:
        pLicGuid: UUID
        dwMQS: int
        hQueue: int
        pQueue: int
        dwpContext: int

    @dataclass
    class OpenQueueResults:
        pLicGuid: UUID | None = None
        dwMQS: int | None = None
        hQueue: int | None = None
        pQueue: int | None = None
        dwpContext: int | None = None
        phContext: bytes | None = None
        result: int = 0

    @dataclass
    class CloseQueueArgs:
        pphContext: bytes | None

    @dataclass
    class CloseQueueResults:
        pphContext: bytes | None = None
        result: int = 0

    @dataclass
    class CloseCursorArgs:
        hQueue: int
        hCursor: int

    @dataclass
    class CloseCursorResults:
        hQueue: int | None = None
        hCursor: int | None = None
        result: int = 0

    @dataclass
    class CancelReceiveArgs:
        hQueue: int
        pQueue: int
        dwRequestID: int

    @dataclass
    class CancelReceiveResults:
        hQueue: int | None = None
        pQueue: int | None = None
        dwRequestID: int | None = None
        result: int = 0

    @dataclass
    class PurgeQueueArgs:
        hQueue: int

    @dataclass
    class PurgeQueueResults:
        hQueue: int | None = None
        result: int = 0

    @dataclass
    class GetPortArgs:
        dwPortType: int

    @dataclass
    class GetPortResults:
        dwPortType: int | None = None
        result: int = 0

    @dataclass
    class GetVersionArgs:
        pass

    @dataclass
    class GetVersionResults:
        pMajor: int = 0
        pMinor: int = 0
        pBuildNumber: int = 0

    @dataclass
    class StartReceive2Args:
        lpRemoteReadDesc2: Record

    @dataclass
    class StartReceive2Results:
        lpRemoteReadDesc2: Record | None = None
        pphContext: bytes | None = None
        result: int = 0

    @dataclass
    class StartReceiveByLookupIdArgs:
        LookupId: int
        lpRemoteReadDesc2: Record

    @dataclass
    class StartReceiveByLookupIdResults:
        LookupId: int | None = None
        lpRemoteReadDesc2: Record | None = None
        pphContext: bytes | None = None
        result: int = 0

else:
    StartReceiveArgs = QM2QM.op("start_receive").Args
    StartReceiveResults = QM2QM.op("start_receive").Results
    EndReceiveArgs = QM2QM.op("end_receive").Args
    EndReceiveResults = QM2QM.op("end_receive").Results
    OpenQueueArgs = QM2QM.op("open_queue").Args
    OpenQueueResults = QM2QM.op("open_queue").Results
    CloseQueueArgs = QM2QM.op("close_queue").Args
    CloseQueueResults = QM2QM.op("close_queue").Results
    CloseCursorArgs = QM2QM.op("close_cursor").Args
    CloseCursorResults = QM2QM.op("close_cursor").Results
    CancelReceiveArgs = QM2QM.op("cancel_receive").Args
    CancelReceiveResults = QM2QM.op("cancel_receive").Results
    PurgeQueueArgs = QM2QM.op("purge_queue").Args
    PurgeQueueResults = QM2QM.op("purge_queue").Results
    GetPortArgs = QM2QM.op("get_port").Args
    GetPortResults = QM2QM.op("get_port").Results
    GetVersionArgs = QM2QM.op("get_version").Args
    GetVersionResults = QM2QM.op("get_version").Results
    StartReceive2Args = QM2QM.op("start_receive2").Args
    StartReceive2Results = QM2QM.op("start_receive2").Results
    StartReceiveByLookupIdArgs = QM2QM.op("start_receive_by_lookup_id").Args
    StartReceiveByLookupIdResults = QM2QM.op("start_receive_by_lookup_id").Results


class Opnum(IntEnum):
    """The numbers of the operations."""

    START_RECEIVE = 0
    END_RECEIVE = 1
    OPEN_QUEUE = 2
    CLOSE_QUEUE = 3
    CLOSE_CURSOR = 4
    CANCEL_RECEIVE = 5
    PURGE_QUEUE = 6
    GET_PORT = 7
    GET_VERSION = 8
    START_RECEIVE2 = 9
    START_RECEIVE_BY_LOOKUP_ID = 10


__all__ = [
    "CancelReceiveArgs",
    "CancelReceiveResults",
    "CloseCursorArgs",
    "CloseCursorResults",
    "CloseQueueArgs",
    "CloseQueueResults",
    "EndReceiveArgs",
    "EndReceiveResults",
    "GetPortArgs",
    "GetPortResults",
    "GetVersionArgs",
    "GetVersionResults",
    "OpenQueueArgs",
    "OpenQueueResults",
    "Opnum",
    "PurgeQueueArgs",
    "PurgeQueueResults",
    "StartReceive2Args",
    "StartReceive2Results",
    "StartReceiveArgs",
    "StartReceiveByLookupIdArgs",
    "StartReceiveByLookupIdResults",
    "StartReceiveResults",
]
