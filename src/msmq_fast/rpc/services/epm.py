"""The endpoint mapper: the port of each interface (C706 appendix O, MS-RPCE 2.2.1.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple
from uuid import UUID

from msmq_fast.rpc.call import Call
from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.idl.epm import EPM, EPT_ENTRY, TWR
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.services.towers import TcpTower, TowerError, decode_floors
from msmq_fast.rpc.stubs.epm import EptLookupArgs, EptLookupHandleFreeArgs, EptMapArgs
from msmq_fast.rpc.syntaxes import NDR, NDR64, SyntaxId

__all__ = ["EndpointMapper", "RegisteredEndpoint"]

EPT_S_CANT_PERFORM_OP: Final = 0x000006D8
"""The exception that Windows raises for the methods that MS-RPCE made void (2.2.1.2.6, .7, .9, .10)."""
EPT_S_NOT_REGISTERED: Final = 0x16C9A0D6
"""No element matches. A caller of RemoteRead may then try qm2qm (MS-MQRR 3.2.4.1)."""

_LOOKUP, _MAP, _FREE = (EPM.op(name) for name in ("ept_lookup", "ept_map", "ept_lookup_handle_free"))
_HANDLE: Final = "ept_lookup_handle_t"
_ANY: Final = UUID(int=0)


class RegisteredEndpoint(NamedTuple):
    """An element of the endpoint map. It has no object UUID, so it matches any object UUID."""

    interface: SyntaxId
    port: int
    annotation: str
    """Up to 63 ASCII characters, for display."""
    address: bytes = bytes(4)
    """IPv4 address. Zeros stand for the host that was asked. Clients ignore it (MS-RPCE 3.1.3.5.3)."""


class _Inquiry(IntEnum):
    """The elements for which a lookup asks: RPC_C_EP_…. As on Windows, any other value counts as ALL_ELTS."""

    ALL_ELTS = 0
    MATCH_BY_IF = 1
    MATCH_BY_OBJ = 2
    MATCH_BY_BOTH = 3


def _compatible(wanted: SyntaxId, offered: SyntaxId) -> bool:
    return wanted[:2] == offered[:2] and offered.minor >= wanted.minor


_VERSIONS: Final[dict[int, Callable[[SyntaxId, SyntaxId], bool]]] = {
    1: lambda wanted, offered: wanted.uuid == offered.uuid,  # RPC_C_VERS_ALL
    2: _compatible,  # RPC_C_VERS_COMPATIBLE
    3: lambda wanted, offered: wanted == offered,  # RPC_C_VERS_EXACT
    4: lambda wanted, offered: wanted[:2] == offered[:2],  # RPC_C_VERS_MAJOR_ONLY
    5: lambda wanted, offered: wanted.uuid == offered.uuid and offered[1:] <= wanted[1:],  # RPC_C_VERS_UPTO
}


class _Element(NamedTuple):
    tower: bytes
    annotation: str


class EndpointMapper:
    """Serves a map that never changes: the interfaces of this process (MS-RPCE 3.1.3.5.3)."""

    table = EPM
    policy = InterfacePolicy(obsolete_status=EPT_S_CANT_PERFORM_OP)

    def __init__(self, registered: Sequence[RegisteredEndpoint]) -> None:
        self._registered = tuple(registered)

    def ept_lookup(self, call: Call, args: EptLookupArgs) -> Any:
        """Opnum 2 (MS-RPCE 2.2.1.2.4): returns the matching elements of the map, over several calls if there
        are many.
        """
        elements, rest = self._found(call, args.entry_handle, args.max_ents, lambda: self._inquire(args))
        entries = [
            EPT_ENTRY(object=_ANY, tower=_twr(element.tower), annotation=element.annotation)
            for element in elements
        ]
        return _LOOKUP.results(
            args,
            entry_handle=rest,
            num_ents=len(entries),
            entries=entries,
            status=0 if entries else EPT_S_NOT_REGISTERED,
        )

    def ept_map(self, call: Call, args: EptMapArgs) -> Any:
        """Opnum 3 (MS-RPCE 2.2.1.2.5): returns the endpoint of the interface in a tower, as a tower with the
        same protocols.
        """
        tower = None if args.map_tower is None else args.map_tower.tower_octet_string
        elements, rest = self._found(call, args.entry_handle, args.max_towers, lambda: self._map(tower))
        return _MAP.results(
            args,
            entry_handle=rest,
            num_towers=len(elements),
            ITowers=[_twr(element.tower) for element in elements],
            status=0 if elements else EPT_S_NOT_REGISTERED,
        )

    def ept_lookup_handle_free(self, call: Call, args: EptLookupHandleFreeArgs) -> Any:
        """Opnum 4: discards the remaining elements of a lookup."""
        if args.entry_handle is not None:
            call.handles.close(args.entry_handle, _HANDLE)
        return _FREE.results(args, entry_handle=None, status=0)

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        """Raises RpcFault with the HRESULT as status, since no operation of this interface returns an
        HRESULT.
        """
        raise RpcFault(hresult)

    # ---- inside

    @staticmethod
    def _found(
        call: Call, handle: bytes | None, most: int, search: Callable[[], list[_Element]]
    ) -> tuple[list[_Element], bytes | None]:
        """Returns (next elements, at most `most`; handle for the remaining elements, or None if there are
        none).
        """
        if handle is None:
            elements = search()
            if len(elements) > most > 0:
                return elements[:most], call.handles.create(_HANDLE, elements[most:], _nothing)
            return elements[:most], None
        elements = call.handles.get(handle, _HANDLE)
        taken = elements[:most]
        del elements[:most]
        if elements:
            return taken, handle
        call.handles.close(handle, _HANDLE)
        return taken, None

    def _inquire(self, args: Any) -> list[_Element]:
        by_interface = args.inquiry_type in (_Inquiry.MATCH_BY_IF, _Inquiry.MATCH_BY_BOTH)
        by_object = args.inquiry_type in (_Inquiry.MATCH_BY_OBJ, _Inquiry.MATCH_BY_BOTH)
        if by_object and args.object not in (None, _ANY):
            return []  # a lookup compares object UUIDs exactly, unlike ept_map, and no element has one
        if not by_interface:
            return [_element(endpoint, NDR) for endpoint in self._registered]
        fits = _VERSIONS.get(args.vers_option)
        if fits is None or args.Ifid is None:
            raise RpcFault(EPT_S_CANT_PERFORM_OP)
        wanted = SyntaxId(args.Ifid.uuid, args.Ifid.vers_major, args.Ifid.vers_minor)
        return [_element(endpoint, NDR) for endpoint in self._registered if fits(wanted, endpoint.interface)]

    def _map(self, octets: bytes | None) -> list[_Element]:
        try:
            wanted = TcpTower.of_floors(decode_floors(octets)) if octets is not None else None
        except TowerError:
            return []
        if wanted is None:
            return []
        syntax = next((known for known in (NDR, NDR64) if _compatible(wanted.syntax, known)), None)
        if syntax is None:
            return []
        return [
            _element(endpoint, syntax)
            for endpoint in self._registered
            if _compatible(wanted.interface, endpoint.interface)
        ]


def _element(endpoint: RegisteredEndpoint, syntax: SyntaxId) -> _Element:
    tower = TcpTower(endpoint.interface, syntax, endpoint.port, endpoint.address)
    return _Element(tower.encode(), endpoint.annotation)


def _twr(octets: bytes) -> Any:
    return TWR(tower_length=len(octets), tower_octet_string=octets)


def _nothing(_: object) -> None:
    """The rundown of a lookup: does nothing."""
