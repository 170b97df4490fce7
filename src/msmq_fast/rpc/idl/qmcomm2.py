"""The interface qmcomm2: MS-MQMP, appendix A."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.rpc.idl.mqmq import OBJECTID, QUEUE_FORMAT
from msmq_fast.rpc.idl.qmcomm import CREATE_REMOTE_CURSOR, RPC_QUEUE_HANDLE, TRANSFER_BUFFER_V1
from msmq_fast.rpc.ndr.operations import In, InOut, InterfaceTable, Op
from msmq_fast.rpc.ndr.types import U8, U32, Struct, UniquePtr

__all__ = ["QMCOMM2", "TRANSFER_BUFFER_V2"]

TRANSFER_BUFFER_V2 = Struct(
    "CACTransferBufferV2",
    {
        "old": TRANSFER_BUFFER_V1,
        "pbFirstInXact": UniquePtr(U8),
        "pbLastInXact": UniquePtr(U8),
        "ppXactID": UniquePtr(UniquePtr(OBJECTID)),
    },
)
_MESSAGE_ID = InOut("pMessageID", UniquePtr(OBJECTID))

QMCOMM2 = InterfaceTable(
    "qmcomm2",
    UUID("76d12b80-3467-11d3-91ff-0090272f9ea3"),
    (1, 0),
    [
        Op(
            0,
            "send_message_internal_ex",
            [In("pQueueFormat", QUEUE_FORMAT), In("ptb", TRANSFER_BUFFER_V2), _MESSAGE_ID],
            returns=U32,
        ),
        Op(
            1,
            "send_message_ex",
            [In("hQueue", RPC_QUEUE_HANDLE), In("ptb", TRANSFER_BUFFER_V2), _MESSAGE_ID],
            returns=U32,
        ),
        Op(2, "receive_message_ex", [In("hQMContext", U32), InOut("ptb", TRANSFER_BUFFER_V2)], returns=U32),
        Op(
            3,
            "create_cursor_ex",
            [In("hQueue", RPC_QUEUE_HANDLE), InOut("pcc", CREATE_REMOTE_CURSOR)],
            returns=U32,
        ),
    ],
)
