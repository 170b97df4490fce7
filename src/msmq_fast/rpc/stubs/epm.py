"""epm: its operations by name, and the types of their requests and results.

Made by tools/rpcstubs.py from rpc/idl/epm.py; do not edit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msmq_fast.rpc.idl.epm import EPM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from dataclasses import dataclass
    from uuid import UUID

    from msmq_fast.rpc.ndr.record import Record

    @dataclass
    class EptLookupArgs:
        inquiry_type: int
        object: UUID | None
        Ifid: Record | None
        vers_option: int
        entry_handle: bytes | None
        max_ents: int

    @dataclass
    class EptLookupResults:
        inquiry_type: int | None = None
        object: UUID | None = None
        Ifid: Record | None = None
        vers_option: int | None = None
        entry_handle: bytes | None = None
        max_ents: int | None = None
        num_ents: int = 0
        entries: Sequence[Record] = ()
        status: int = 0

    @dataclass
    class EptMapArgs:
        obj: UUID | None
        map_tower: Record | None
        entry_handle: bytes | None
        max_towers: int

    @dataclass
    class EptMapResults:
        obj: UUID | None = None
        map_tower: Record | None = None
        entry_handle: bytes | None = None
        max_towers: int | None = None
        num_towers: int = 0
        ITowers: Sequence[Record | None] = ()
        status: int = 0

    @dataclass
    class EptLookupHandleFreeArgs:
        entry_handle: bytes | None

    @dataclass
    class EptLookupHandleFreeResults:
        entry_handle: bytes | None = None
        status: int = 0

else:
    EptLookupArgs = EPM.op("ept_lookup").Args
    EptLookupResults = EPM.op("ept_lookup").Results
    EptMapArgs = EPM.op("ept_map").Args
    EptMapResults = EPM.op("ept_map").Results
    EptLookupHandleFreeArgs = EPM.op("ept_lookup_handle_free").Args
    EptLookupHandleFreeResults = EPM.op("ept_lookup_handle_free").Results


class Opnum(IntEnum):
    """The numbers of the operations."""

    EPT_LOOKUP = 2
    EPT_MAP = 3
    EPT_LOOKUP_HANDLE_FREE = 4


__all__ = [
    "EptLookupArgs",
    "EptLookupHandleFreeArgs",
    "EptLookupHandleFreeResults",
    "EptLookupResults",
    "EptMapArgs",
    "EptMapResults",
    "Opnum",
]
