"""The interface RemoteRead: MS-MQRR, appendix A."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.rpc.idl.mqmq import QUEUE_FORMAT, XACTUOW
from msmq_fast.rpc.ndr.operations import In, InOut, InterfaceTable, Op, Out, Parameter
from msmq_fast.rpc.ndr.types import (
    GUID,
    I32,
    U8,
    U16,
    U32,
    U64,
    ArrayOf,
    Bytes,
    ContextHandle,
    Enum16,
    Range,
    Struct,
    UniquePtr,
    conformant,
)

__all__ = ["QUEUE_CONTEXT_HANDLE", "REMOTE_READ", "SECTION_BUFFER"]

QUEUE_CONTEXT_HANDLE = ContextHandle("QUEUE_CONTEXT_HANDLE")
"""The context handle of an open queue.

The IDL types QUEUE_CONTEXT_HANDLE_SERIALIZE and …_NOSERIALIZE are equal on the wire and not type-strict
(MS-MQRR 2.2.4).
"""
SECTION_BUFFER = Struct(
    "SectionBuffer",
    {
        "SectionBufferType": Enum16(),
        "SectionSizeAlloc": U32,
        "SectionSize": U32,
        "pSectionBuffer": UniquePtr(Bytes(conformant("SectionSize"))),
    },
)

_OPEN = [
    In("pQueueFormat", QUEUE_FORMAT),
    In("dwAccess", U32),
    In("dwShareMode", U32),
    In("pClientId", GUID),
    In("fNonRoutingServer", I32),
    In("Major", U8),
    In("Minor", U8),
    In("BuildNumber", U16),
    In("fWorkgroup", I32),
]
_CONTEXT = In("phContext", QUEUE_CONTEXT_HANDLE)
_END = [_CONTEXT, In("dwAck", Range(U32, 1, 2)), In("dwRequestId", U32)]


def _start(*transaction: Parameter) -> list[Parameter]:
    return [
        _CONTEXT,
        In("LookupId", U64),
        In("hCursor", U32),
        In("ulAction", U32),
        In("ulTimeout", U32),
        In("dwRequestId", U32),
        In("dwMaxBodySize", U32),
        In("dwMaxCompoundMessageSize", U32),
        *transaction,
        Out("pdwArriveTime", U32),
        Out("pSequenceId", U64),
        Out("pdwNumberOfSections", U32),
        Out("ppPacketSections", UniquePtr(ArrayOf(SECTION_BUFFER, conformant("pdwNumberOfSections")))),
    ]


REMOTE_READ = InterfaceTable(
    "RemoteRead",
    UUID("1a9134dd-7b39-45ba-ad88-44d01ca47f28"),
    (1, 0),
    [
        Op(0, "get_server_port", returns=U32),
        Op(1, "opnum1", obsolete=True),
        Op(2, "open_queue", [*_OPEN, Out("pphContext", QUEUE_CONTEXT_HANDLE)]),
        Op(3, "close_queue", [InOut("pphContext", QUEUE_CONTEXT_HANDLE)], returns=U32),
        Op(4, "create_cursor", [_CONTEXT, Out("phCursor", U32)], returns=U32),
        Op(5, "close_cursor", [_CONTEXT, In("hCursor", U32)], returns=U32),
        Op(6, "purge_queue", [_CONTEXT], returns=U32),
        Op(7, "start_receive", _start(), returns=U32),
        Op(8, "cancel_receive", [_CONTEXT, In("dwRequestId", U32)], returns=U32),
        Op(9, "end_receive", _END, returns=U32),
        Op(
            10,
            "move_message",
            [
                In("phContextFrom", QUEUE_CONTEXT_HANDLE),
                In("ullContextTo", U64),
                In("LookupId", U64),
                In("pTransactionId", XACTUOW),
            ],
            returns=U32,
        ),
        Op(
            11,
            "open_queue_for_move",
            [*_OPEN, Out("pMoveContext", U64), Out("pphContext", QUEUE_CONTEXT_HANDLE)],
        ),
        Op(
            12,
            "enlist_remote_transaction",
            [
                In("pTransactionId", XACTUOW),
                In("cbPropagationToken", Range(U32, 0, 131072)),
                In("pbPropagationToken", Bytes(conformant("cbPropagationToken"))),
                In("pQueueFormat", QUEUE_FORMAT),
            ],
            returns=U32,
        ),
        Op(13, "start_transactional_receive", _start(In("pTransactionId", XACTUOW)), returns=U32),
        Op(
            14,
            "set_user_acknowledgement_class",
            [_CONTEXT, In("LookupId", U64), In("usClass", U16)],
            returns=U32,
        ),
        Op(15, "end_transactional_receive", _END, returns=U32),
    ],
)
