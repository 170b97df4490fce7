"""The interface epm, the endpoint mapper: C706 appendix O with the changes of MS-RPCE 2.2.1.2."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.rpc.ndr.operations import In, InOut, InterfaceTable, Op, Out
from msmq_fast.rpc.ndr.types import (
    GUID,
    U16,
    U32,
    ArrayOf,
    Bytes,
    ContextHandle,
    FullPtr,
    Range,
    Struct,
    conformant,
    conformant_varying,
    varying_string,
)

__all__ = ["EPM", "EPT_ENTRY", "EPT_LOOKUP_HANDLE", "RPC_IF_ID", "TWR"]

EPT_LOOKUP_HANDLE = ContextHandle("ept_lookup_handle_t")
TWR = Struct(
    "twr_t",
    {"tower_length": Range(U32, 0, 2000), "tower_octet_string": Bytes(conformant("tower_length"))},
)
EPT_ENTRY = Struct("ept_entry_t", {"object": GUID, "tower": FullPtr(TWR), "annotation": varying_string(64)})
RPC_IF_ID = Struct("RPC_IF_ID", {"uuid": GUID, "vers_major": U16, "vers_minor": U16})

EPM = InterfaceTable(
    "epm",
    UUID("e1af8308-5d1f-11c9-91a4-08002b14a0fa"),
    (3, 0),
    [
        Op(0, "ept_insert", obsolete=True),
        Op(1, "ept_delete", obsolete=True),
        Op(
            2,
            "ept_lookup",
            [
                In("inquiry_type", U32),
                In("object", FullPtr(GUID)),
                In("Ifid", FullPtr(RPC_IF_ID)),
                In("vers_option", U32),
                InOut("entry_handle", EPT_LOOKUP_HANDLE),
                In("max_ents", Range(U32, 0, 500)),
                Out("num_ents", U32),
                Out("entries", ArrayOf(EPT_ENTRY, conformant_varying("max_ents", "num_ents"))),
                Out("status", U32),
            ],
        ),
        Op(
            3,
            "ept_map",
            [
                In("obj", FullPtr(GUID)),
                In("map_tower", FullPtr(TWR)),
                InOut("entry_handle", EPT_LOOKUP_HANDLE),
                In("max_towers", Range(U32, 0, 500)),
                Out("num_towers", U32),
                Out("ITowers", ArrayOf(FullPtr(TWR), conformant_varying("max_towers", "num_towers"))),
                Out("status", U32),
            ],
        ),
        Op(4, "ept_lookup_handle_free", [InOut("entry_handle", EPT_LOOKUP_HANDLE), Out("status", U32)]),
        Op(5, "ept_inq_object", obsolete=True),
        Op(6, "ept_mgmt_delete", obsolete=True),
    ],
)
