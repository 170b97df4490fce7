"""The remote management interface, which lists the interfaces of an endpoint (C706 appendix Q, MS-RPCE
2.2.1.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msmq_fast.rpc.call import Call
from msmq_fast.rpc.faults import ACCESS_DENIED, RpcFault
from msmq_fast.rpc.idl.mgmt import MGMT, RPC_IF_ID, RPC_IF_ID_VECTOR
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.stubs.mgmt import (
    InqIfIdsArgs,
    InqPrincNameArgs,
    InqStatsArgs,
    IsServerListeningArgs,
    StopServerListeningArgs,
)
from msmq_fast.rpc.syntaxes import SyntaxId

__all__ = ["Management", "Statistics"]

RPC_S_STRING_TOO_LONG: Final = 0x000006CF
RPC_S_UNKNOWN_AUTHN_SERVICE: Final = 0x000006D3

_IDS, _STATS, _LISTENING, _STOP, _NAME = (
    MGMT.op(name)
    for name in ("inq_if_ids", "inq_stats", "is_server_listening", "stop_server_listening", "inq_princ_name")
)

Statistics = Callable[[], tuple[int, int, int, int]]
"""Returns the number of calls received and made, and of packets received and sent, since the start."""


class Management:
    """Serves mgmt for one endpoint. Every caller may query it; no caller may stop the server."""

    table = MGMT
    policy = InterfacePolicy()

    def __init__(
        self, interfaces: Sequence[SyntaxId], statistics: Statistics, names: Mapping[int, str]
    ) -> None:
        """`names` are the principal names of the server by authentication type."""
        self._interfaces = tuple(interfaces)
        self._statistics = statistics
        self._names = dict(names)

    def inq_if_ids(self, call: Call, args: InqIfIdsArgs) -> Any:
        """Opnum 0: returns the interfaces."""
        ids = [
            RPC_IF_ID(uuid=syntax.uuid, vers_major=syntax.major, vers_minor=syntax.minor)
            for syntax in self._interfaces
        ]
        return _IDS.results(args, if_id_vector=RPC_IF_ID_VECTOR(count=len(ids), if_id=ids), status=0)

    def inq_stats(self, call: Call, args: InqStatsArgs) -> Any:
        """Opnum 1: returns as many of the four statistics as the caller has room for."""
        figures = [figure & 0xFFFFFFFF for figure in self._statistics()][: args.count]
        return _STATS.results(args, count=len(figures), statistics=figures, status=0)

    def is_server_listening(self, call: Call, args: IsServerListeningArgs) -> Any:
        """Opnum 2: always returns that the server is listening."""
        return _LISTENING.results(args, status=0, result=1)

    def stop_server_listening(self, call: Call, args: StopServerListeningArgs) -> Any:
        """Opnum 3: rejects every caller."""
        return _STOP.results(args, status=ACCESS_DENIED)

    def inq_princ_name(self, call: Call, args: InqPrincNameArgs) -> Any:
        """Opnum 4: returns the principal name with which a client authenticates the server."""
        if not args.princ_name_size:  # not even room for an empty name
            raise RpcFault(RPC_S_STRING_TOO_LONG)
        name, status = self._names.get(args.authn_proto), 0
        if name is None:
            name, status = "", RPC_S_UNKNOWN_AUTHN_SERVICE
        elif len(name) >= args.princ_name_size:
            name, status = "", RPC_S_STRING_TOO_LONG
        return _NAME.results(args, princ_name=name, status=status)

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        """Raises RpcFault with the HRESULT as status, since no operation of this interface returns an
        HRESULT.
        """
        raise RpcFault(hresult)
