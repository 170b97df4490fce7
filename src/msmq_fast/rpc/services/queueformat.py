"""Converts format names to and from QUEUE_FORMAT, their form in RPC interfaces (MS-MQMQ 2.2.7)."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Any, Final

from msmq_fast.packet.names import FormatName, NameKind, Suffix, parse_format_name
from msmq_fast.protocol.errors import IllegalFormatName
from msmq_fast.rpc.idl.mqmq import DL_ID, MULTICAST_ID, OBJECTID, QUEUE_FORMAT

if TYPE_CHECKING:
    from msmq_fast.rpc.ndr.record import Record

__all__ = ["name_of", "queue_format"]

_SYSTEM: Final = 0x80  # QUEUE_FORMAT_FLAG_SYSTEM
_SUFFIX: Final = 0x0F
_SUFFIXES: Final = {
    NameKind.PUBLIC: (Suffix.NONE, Suffix.JOURNAL),
    NameKind.PRIVATE: (Suffix.NONE, Suffix.JOURNAL),
    NameKind.DIRECT: (Suffix.NONE, Suffix.JOURNAL, Suffix.DEADLETTER, Suffix.DEADXACT),
    NameKind.MACHINE: (Suffix.JOURNAL, Suffix.DEADLETTER, Suffix.DEADXACT),
    NameKind.CONNECTOR: (Suffix.NONE, Suffix.XACTONLY),
    NameKind.DL: (Suffix.NONE,),
    NameKind.MULTICAST: (Suffix.NONE,),
    NameKind.SUBQUEUE: (Suffix.NONE, Suffix.SUBQUEUE),
}


def name_of(given: Record) -> FormatName:
    """Returns the format name of a QUEUE_FORMAT. Raises ILLEGAL_FORMATNAME if it breaks a rule of MS-MQMQ 2.1
    or 2.2.7.
    """
    try:
        kind, suffix = NameKind(given.m_qft), Suffix(given.m_SuffixAndFlags & _SUFFIX)
    except ValueError:
        raise IllegalFormatName(
            f"unknown queue format: type {given.m_qft}, suffix 0x{given.m_SuffixAndFlags:02X}"
        ) from None
    if suffix not in _SUFFIXES[kind]:
        raise IllegalFormatName(f"a queue format of type {kind.name} cannot have the suffix {suffix.name}")
    if given.name is None:
        raise IllegalFormatName(f"a queue format of type {kind.name} needs a name")
    # Converts to text and parses it, so that the same rules apply to every format name.
    return parse_format_name(_text(kind, suffix, given.name))


def _text(kind: NameKind, suffix: Suffix, value: Any) -> str:
    match kind:
        case NameKind.DIRECT | NameKind.SUBQUEUE:
            # The suffix is part of the text. If the text has none, the suffix field gives it.
            complete = ";" in value or suffix in (Suffix.NONE, Suffix.SUBQUEUE)
            return f"DIRECT={value}" if complete else f"DIRECT={value};{suffix.name}"
        case NameKind.PRIVATE:
            name = FormatName(kind, value.Lineage, value.Uniquifier, suffix=suffix)
        case NameKind.DL:
            name = FormatName(kind, value.m_DlGuid, text=value.m_pwzDomain or "")
        case NameKind.MULTICAST:
            # The address is an in_addr: its bytes in network order.
            address = IPv4Address(value.m_address.to_bytes(4, "little"))
            name = FormatName(kind, text=f"{address}:{value.m_port}")
        case _:
            name = FormatName(kind, value, suffix=suffix)
    return str(name)


def queue_format(name: FormatName) -> Record:
    """Returns the QUEUE_FORMAT of a format name."""
    value: Any = name.guid
    match name.kind:
        case NameKind.DIRECT | NameKind.SUBQUEUE:
            value = name.text
        case NameKind.PRIVATE:
            value = OBJECTID(name.guid, name.number)
        case NameKind.DL:
            value = DL_ID(name.guid, name.text or None)
        case NameKind.MULTICAST:
            address, _, port = name.text.partition(":")
            value = MULTICAST_ID(int.from_bytes(IPv4Address(address).packed, "little"), int(port))
    system = _SYSTEM if name.read_only else 0
    return QUEUE_FORMAT(int(name.kind), system | name.suffix, 0, value)
