"""What the kind of a format name allows (DM-072 … DM-074)."""

from __future__ import annotations

from msmq_fast.packet.errors import UnsupportedFormatNameOperation
from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.qm.access import Access


def is_http(name: FormatName) -> bool:
    """Whether messages go there by HTTP or HTTPS."""
    return name.direct is not None and name.direct.protocol in ("HTTP", "HTTPS")


def check_name(name: FormatName, access: Access) -> None:
    """UNSUPPORTED_FORMATNAME_OPERATION: a queue with this name cannot be opened so, or nothing that is sent
    there could leave this computer.
    """
    multicast = name.kind is NameKind.MULTICAST
    if multicast or is_http(name):
        if access is not Access.SEND:
            raise UnsupportedFormatNameOperation(f"{name} can be opened for sending only")
        way = "multicast" if multicast else "HTTP"
        raise UnsupportedFormatNameOperation(
            f"nothing can be sent to {name}: this version does not send by {way}"
        )
    if name.kind in (NameKind.MACHINE, NameKind.CONNECTOR) and access is Access.SEND:
        raise UnsupportedFormatNameOperation(f"nothing is sent to {name}")
