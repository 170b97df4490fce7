"""mgmt: its operations by name, and the types of their requests and results.

Made by tools/rpcstubs.py from rpc/idl/mgmt.py; do not edit.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msmq_fast.rpc.idl.mgmt import MGMT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from dataclasses import dataclass

    from msmq_fast.rpc.ndr.record import Record

    @dataclass
    class InqIfIdsArgs:
        pass

    @dataclass
    class InqIfIdsResults:
        if_id_vector: Record | None = None
        status: int = 0

    @dataclass
    class InqStatsArgs:
        count: int

    @dataclass
    class InqStatsResults:
        count: int = 0
        statistics: Sequence[int] = ()
        status: int = 0

    @dataclass
    class IsServerListeningArgs:
        pass

    @dataclass
    class IsServerListeningResults:
        status: int = 0
        result: int = 0

    @dataclass
    class StopServerListeningArgs:
        pass

    @dataclass
    class StopServerListeningResults:
        status: int = 0

    @dataclass
    class InqPrincNameArgs:
        authn_proto: int
        princ_name_size: int

    @dataclass
    class InqPrincNameResults:
        authn_proto: int | None = None
        princ_name_size: int | None = None
        princ_name: str = ""
        status: int = 0

else:
    InqIfIdsArgs = MGMT.op("inq_if_ids").Args
    InqIfIdsResults = MGMT.op("inq_if_ids").Results
    InqStatsArgs = MGMT.op("inq_stats").Args
    InqStatsResults = MGMT.op("inq_stats").Results
    IsServerListeningArgs = MGMT.op("is_server_listening").Args
    IsServerListeningResults = MGMT.op("is_server_listening").Results
    StopServerListeningArgs = MGMT.op("stop_server_listening").Args
    StopServerListeningResults = MGMT.op("stop_server_listening").Results
    InqPrincNameArgs = MGMT.op("inq_princ_name").Args
    InqPrincNameResults = MGMT.op("inq_princ_name").Results


class Opnum(IntEnum):
    """The numbers of the operations."""

    INQ_IF_IDS = 0
    INQ_STATS = 1
    IS_SERVER_LISTENING = 2
    STOP_SERVER_LISTENING = 3
    INQ_PRINC_NAME = 4


__all__ = [
    "InqIfIdsArgs",
    "InqIfIdsResults",
    "InqPrincNameArgs",
    "InqPrincNameResults",
    "InqStatsArgs",
    "InqStatsResults",
    "IsServerListeningArgs",
    "IsServerListeningResults",
    "Opnum",
    "StopServerListeningArgs",
    "StopServerListeningResults",
]
