"""The interface qm2qm: MS-MQQP, appendix A."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.rpc.ndr.operations import In, InOut, InterfaceTable, Op, Out
from msmq_fast.rpc.ndr.types import (
    GUID,
    U8,
    U16,
    U32,
    U64,
    Bytes,
    ContextHandle,
    Enum16,
    Range,
    Struct,
    UniquePtr,
    conformant_varying,
)

__all__ = [
    "MAX_PACKET",
    "PCTX_REMOTEREAD_HANDLE_TYPE",
    "PCTX_RRSESSION_HANDLE_TYPE",
    "QM2QM",
    "REMOTEREADDESC",
    "REMOTEREADDESC2",
]

MAX_PACKET = 4325376
"""The size limit, in bytes, of a packet that a descriptor can carry: 4 MiB and 128 KiB."""

PCTX_RRSESSION_HANDLE_TYPE = ContextHandle("PCTX_RRSESSION_HANDLE_TYPE")
PCTX_REMOTEREAD_HANDLE_TYPE = ContextHandle("PCTX_REMOTEREAD_HANDLE_TYPE")

REMOTEREADDESC = Struct(
    "REMOTEREADDESC",
    {
        "hRemoteQueue": U32,
        "hCursor": U32,
        "ulAction": U32,
        "ulTimeout": U32,
        "dwSize": Range(U32, 0, MAX_PACKET),
        "dwQueue": U32,
        "dwRequestID": U32,
        "Reserved": U32,
        "dwArriveTime": U32,
        "eAckNack": Enum16(),
        "lpBuffer": UniquePtr(Bytes(conformant_varying("dwSize", "dwSize"))),
    },
)
REMOTEREADDESC2 = Struct(
    "REMOTEREADDESC2", {"pRemoteReadDesc": UniquePtr(REMOTEREADDESC), "SequentialId": U64}
)

QM2QM = InterfaceTable(
    "qm2qm",
    UUID("1088a980-eae5-11d0-8d9b-00a02453c337"),
    (1, 0),
    [
        Op(
            0,
            "start_receive",
            [Out("pphContext", PCTX_REMOTEREAD_HANDLE_TYPE), InOut("lpRemoteReadDesc", REMOTEREADDESC)],
            returns=U32,
        ),
        Op(
            1,
            "end_receive",
            [InOut("pphContext", PCTX_REMOTEREAD_HANDLE_TYPE), In("dwAck", Range(U32, 1, 2))],
            returns=U32,
        ),
        Op(
            2,
            "open_queue",
            [
                Out("phContext", PCTX_RRSESSION_HANDLE_TYPE),
                In("pLicGuid", GUID),
                In("dwMQS", Range(U32, 0, 16)),
                In("hQueue", U32),
                In("pQueue", U32),
                In("dwpContext", U32),
            ],
            returns=U32,
        ),
        Op(3, "close_queue", [InOut("pphContext", PCTX_RRSESSION_HANDLE_TYPE)], returns=U32),
        Op(4, "close_cursor", [In("hQueue", U32), In("hCursor", U32)], returns=U32),
        Op(5, "cancel_receive", [In("hQueue", U32), In("pQueue", U32), In("dwRequestID", U32)], returns=U32),
        Op(6, "purge_queue", [In("hQueue", U32)], returns=U32),
        Op(7, "get_port", [In("dwPortType", Range(U32, 0, 3))], returns=U32),
        Op(8, "get_version", [Out("pMajor", U8), Out("pMinor", U8), Out("pBuildNumber", U16)]),
        Op(
            9,
            "start_receive2",
            [Out("pphContext", PCTX_REMOTEREAD_HANDLE_TYPE), InOut("lpRemoteReadDesc2", REMOTEREADDESC2)],
            returns=U32,
        ),
        Op(
            10,
            "start_receive_by_lookup_id",
            [
                In("LookupId", U64),
                Out("pphContext", PCTX_REMOTEREAD_HANDLE_TYPE),
                InOut("lpRemoteReadDesc2", REMOTEREADDESC2),
            ],
            returns=U32,
        ),
    ],
)
