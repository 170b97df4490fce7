"""The interface mgmt, which manages an endpoint: C706 appendix Q with the changes of MS-RPCE 2.2.1.3."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.rpc.idl.epm import RPC_IF_ID
from msmq_fast.rpc.ndr.operations import In, InOut, InterfaceTable, Op, Out
from msmq_fast.rpc.ndr.types import U32, ArrayOf, FullPtr, Range, Struct, conformant, string

__all__ = ["MGMT", "RPC_IF_ID", "RPC_IF_ID_VECTOR"]

RPC_IF_ID_VECTOR = Struct(
    "rpc_if_id_vector_t", {"count": U32, "if_id": ArrayOf(FullPtr(RPC_IF_ID), conformant("count"))}
)

MGMT = InterfaceTable(
    "mgmt",
    UUID("afa8bd80-7d8a-11c9-bef4-08002b102989"),
    (1, 0),
    [
        Op(0, "inq_if_ids", [Out("if_id_vector", FullPtr(RPC_IF_ID_VECTOR)), Out("status", U32)]),
        Op(
            1,
            "inq_stats",
            [
                InOut("count", Range(U32, 0, 50)),
                Out("statistics", ArrayOf(U32, conformant("count"))),
                Out("status", U32),
            ],
        ),
        Op(2, "is_server_listening", [Out("status", U32)], returns=U32),
        Op(3, "stop_server_listening", [Out("status", U32)]),
        Op(
            4,
            "inq_princ_name",
            [
                In("authn_proto", U32),
                In("princ_name_size", Range(U32, 0, 4096)),
                Out("princ_name", string("princ_name_size")),
                Out("status", U32),
            ],
        ),
    ],
)
