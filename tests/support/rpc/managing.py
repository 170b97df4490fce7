"""Tools that manage a queue manager by qmmgmt, without a network; see peers."""

from __future__ import annotations

from typing import Any

from msmq_fast.packet.names import parse_format_name
from msmq_fast.rpc.auth.context import Caller
from msmq_fast.rpc.idl.mqmq import PROPVARIANT
from msmq_fast.rpc.idl.qmmgmt import MGMT_MACHINE, MGMT_OBJECT, MGMT_QUEUE
from msmq_fast.rpc.services.qmmgmt import QmMgmtService
from msmq_fast.rpc.services.queueformat import queue_format
from tests.support.rpc.peers import ADMIN, Peer, RemoteWorld

MACHINE = MGMT_OBJECT(MGMT_MACHINE, 0)
NULL, I4, UI4, I8, LPWSTR, BLOB = 1, 3, 19, 20, 31, 65
VECTOR, VARIANT = 0x1000, 12


def queue_object(text: str) -> Any:
    """The MGMT_OBJECT of a format name."""
    return MGMT_OBJECT(MGMT_QUEUE, queue_format(parse_format_name(text)))


def asking(count: int, vt: int = NULL) -> list[Any]:
    """apVar as a caller gives it."""
    return [PROPVARIANT(vt, 0, 0, 0, None if vt == NULL else 0) for _ in range(count)]


def plain(variant: Any) -> Any:
    """A PROPVARIANT as (VARTYPE, value): lists for vectors, bytes for a blob, None for VT_NULL."""
    value = variant._varUnion
    if variant.vt == BLOB:
        value = bytes(value.pBlobData)
    elif variant.vt & VECTOR:
        value = list(value.pElems or [])
        if variant.vt == VECTOR | VARIANT:
            value = [plain(each) for each in value]
    return (variant.vt, value)


class Tool:
    """A program that calls qmmgmt."""

    def __init__(self, remote: RemoteWorld, who: Caller = ADMIN) -> None:
        self.peer = Peer(remote, QmMgmtService(remote.world.manager), who)

    def look(self, target: Any, *numbers: int, **given: Any) -> Any:
        """R_QMMgmtGetInfo; the results."""
        parameters = {
            "pObjectFormat": target,
            "cp": len(numbers),
            "aProp": list(numbers),
            "apVar": asking(len(numbers)),
        }
        return self.peer.call("get_info", **(parameters | given))

    def values(self, target: Any, *numbers: int) -> list[Any]:
        """The values of properties, which can be read; see `plain`."""
        results = self.look(target, *numbers)
        assert results.result == 0, hex(results.result)
        return [plain(each) for each in results.apVar]

    def act(self, target: Any, action: str) -> int:
        """R_QMMgmtAction; the HRESULT."""
        return int(self.peer.call("action", pObjectFormat=target, lpwszAction=action).result)
