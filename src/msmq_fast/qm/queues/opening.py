"""Checks which access to a queue the kind of its format name allows (DM-072 … DM-074)."""

from __future__ import annotations

from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.protocol.errors import TransactionUsage, UnsupportedFormatNameOperation
from msmq_fast.qm.access import Access
from msmq_fast.qm.settings import QueueManagerSettings


def is_http(name: FormatName) -> bool:
    """Whether messages to this name are sent by HTTP or HTTPS."""
    return name.direct is not None and name.direct.protocol in ("HTTP", "HTTPS")


def by_srmp(name: FormatName) -> bool:
    """Whether messages to this name are sent by SRMP: over HTTP, HTTPS or PGM."""
    return name.kind is NameKind.MULTICAST or is_http(name)


def check_name(name: FormatName, access: Access, settings: QueueManagerSettings) -> None:
    """Raises UNSUPPORTED_FORMATNAME_OPERATION if a queue with this name cannot be opened with `access`, or if
    this computer has no transport for messages to it.
    """
    if by_srmp(name):
        multicast = name.kind is NameKind.MULTICAST
        if access is not Access.SEND:
            raise UnsupportedFormatNameOperation(f"{name} can be opened for sending only")
        if not (settings.multicast if multicast else settings.http):
            transport, switch = ("multicast", "pgm.enabled") if multicast else ("HTTP", "srmp.sending")
            raise UnsupportedFormatNameOperation(
                f"nothing can be sent to {name}: sending by {transport} is disabled on this server ({switch})"
            )
    if name.kind in (NameKind.MACHINE, NameKind.CONNECTOR) and access is Access.SEND:
        raise UnsupportedFormatNameOperation(f"{name} cannot be sent to")


def check_transactional(name: FormatName) -> None:
    """Raises TRANSACTION_USAGE if transactional messages cannot be sent to this name (A-77)."""
    if name.kind is NameKind.MULTICAST:
        raise TransactionUsage("transactional messages cannot be sent to a multicast address")
