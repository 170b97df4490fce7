"""The interface qmmgmt: MS-MQMR, appendix A."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.rpc.idl.mqmq import PROPVARIANT, QUEUE_FORMAT
from msmq_fast.rpc.ndr.operations import In, InOut, InterfaceTable, Op
from msmq_fast.rpc.ndr.types import (
    U32,
    ArrayOf,
    Enum16,
    Range,
    Struct,
    UnionOf,
    UniquePtr,
    conformant,
    wstring,
)

__all__ = ["MGMT_MACHINE", "MGMT_OBJECT", "MGMT_QUEUE", "MGMT_SESSION", "QMMGMT"]

MGMT_MACHINE, MGMT_QUEUE, MGMT_SESSION = 1, 2, 3
"""MgmtObjectType (2.2.2.1)."""

MGMT_OBJECT = Struct(
    "MGMT_OBJECT",
    {
        "type": Enum16(),
        "object": UnionOf(  # the IDL has no name for it
            "type",
            Enum16(),
            {
                MGMT_QUEUE: UniquePtr(QUEUE_FORMAT),  # pQueueFormat
                MGMT_MACHINE: U32,  # Reserved1
                MGMT_SESSION: U32,  # Reserved2
            },
        ),
    },
)

_OBJECT = In("pObjectFormat", MGMT_OBJECT)

QMMGMT = InterfaceTable(
    "qmmgmt",
    UUID("41208ee0-e970-11d1-9b9e-00e02c064c39"),
    (1, 0),
    [
        Op(
            0,
            "get_info",
            [
                _OBJECT,
                In("cp", Range(U32, 1, 128)),
                In("aProp", ArrayOf(U32, conformant("cp"))),
                InOut("apVar", ArrayOf(PROPVARIANT, conformant("cp"))),
            ],
            returns=U32,
        ),
        # The published IDL lacks the attribute `string` of lpwszAction, which the text describes.
        Op(1, "action", [_OBJECT, In("lpwszAction", wstring())], returns=U32),
    ],
)
