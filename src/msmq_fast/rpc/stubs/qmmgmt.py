"""qmmgmt: its operations by name, and the types of their requests and results.

Made by tools/rpcstubs.py from rpc/idl/qmmgmt.py; do not edit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msmq_fast.rpc.idl.qmmgmt import QMMGMT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from dataclasses import dataclass

    from msmq_fast.rpc.ndr.record import Record

    @dataclass
    class GetInfoArgs:
        pObjectFormat: Record
        cp: int
        aProp: Sequence[int]
        apVar: Sequence[Record]

    @dataclass
    class GetInfoResults:
        pObjectFormat: Record | None = None
        cp: int | None = None
        aProp: Sequence[int] | None = None
        apVar: Sequence[Record] = ()
        result: int = 0

    @dataclass
    class ActionArgs:
        pObjectFormat: Record
        lpwszAction: str

    @dataclass
    class ActionResults:
        pObjectFormat: Record | None = None
        lpwszAction: str | None = None
        result: int = 0

else:
    GetInfoArgs = QMMGMT.op("get_info").Args
    GetInfoResults = QMMGMT.op("get_info").Results
    ActionArgs = QMMGMT.op("action").Args
    ActionResults = QMMGMT.op("action").Results


class Opnum(IntEnum):
    """The numbers of the operations."""

    GET_INFO = 0
    ACTION = 1


__all__ = [
    "ActionArgs",
    "ActionResults",
    "GetInfoArgs",
    "GetInfoResults",
    "Opnum",
]
