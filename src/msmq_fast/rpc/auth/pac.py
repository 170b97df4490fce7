"""Reads the account and the groups from the PAC of a Kerberos ticket (MS-PAC 2.5).

The Kerberos library decrypts the ticket, and checks the signature of the PAC with the key of the service, and
that the PAC is that of the ticket's client. This module reads KERB_VALIDATION_INFO of a PAC that passed.
"""

from __future__ import annotations

import struct
from typing import Final

from msmq_fast.rpc.faults import RpcFault
from msmq_fast.rpc.idl.pac import KERB_VALIDATION_INFO
from msmq_fast.rpc.ndr.plan import Compiler
from msmq_fast.rpc.ndr.record import Record, record_class
from msmq_fast.rpc.ndr.syntax import NDR
from msmq_fast.rpc.ndr.types import UniquePtr
from msmq_fast.security.domainaccounts import DomainLogon
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import Sid

__all__ = ["PacError", "logon_of"]

_HEADERS: Final = struct.Struct("<BBHIII")  # MS-RPCE 2.2.6.1 and 2.2.6.2
_VERSION, _LITTLE_ENDIAN, _COMMON_SIZE = 1, 0x10, 8
_MAX_SIZE: Final = 65_535  # bytes: the token that carries the ticket has no room for more
_HAS_EXTRA_SIDS: Final = 0x20
_HAS_RESOURCE_GROUPS: Final = 0x200
_INFO: Final = record_class("KERB_VALIDATION_INFO_buffer", {"info": None})
_CODEC: Final = Compiler(NDR).parameters({"info": UniquePtr(KERB_VALIDATION_INFO)})


class PacError(ValueError):
    """A PAC is malformed; the text is one line for the log."""


def logon_of(data: bytes) -> DomainLogon:
    """Return the log-on that a KERB_VALIDATION_INFO buffer describes. Raises PacError."""
    info = _decoded(data)
    try:
        return _logon(info)
    except (SecurityDataError, UnicodeDecodeError) as error:
        raise PacError(f"KERB_VALIDATION_INFO: {error}") from None


def _decoded(data: bytes) -> Record:
    if not _HEADERS.size <= len(data) <= _MAX_SIZE:
        raise PacError(f"KERB_VALIDATION_INFO has {len(data)} bytes; 16 to {_MAX_SIZE} are allowed")
    version, order, common, _, size, _ = _HEADERS.unpack_from(data)
    if (version, order, common) != (_VERSION, _LITTLE_ENDIAN, _COMMON_SIZE):
        raise PacError("KERB_VALIDATION_INFO does not begin with the header of a serialized type")
    if size > len(data) - _HEADERS.size:
        raise PacError(f"KERB_VALIDATION_INFO names {size} bytes, but has {len(data) - _HEADERS.size}")
    try:
        info = _CODEC.decode(data[_HEADERS.size : _HEADERS.size + size], _INFO()).info
    except RpcFault as fault:
        raise PacError(f"KERB_VALIDATION_INFO: {fault}") from None
    if info is None or info.LogonDomainId is None:
        raise PacError("KERB_VALIDATION_INFO names no domain")
    found: Record = info
    return found


def _logon(info: Record) -> DomainLogon:
    domain = _sid(info.LogonDomainId)
    groups = [domain.child(one.RelativeId) for one in info.GroupIds or ()]
    groups.append(domain.child(info.PrimaryGroupId))
    if info.UserFlags & _HAS_EXTRA_SIDS:
        groups += [_sid(one.Sid) for one in info.ExtraSids or () if one.Sid is not None]
    if info.UserFlags & _HAS_RESOURCE_GROUPS and info.ResourceGroupDomainSid is not None:
        resources = _sid(info.ResourceGroupDomainSid)
        groups += [resources.child(one.RelativeId) for one in info.ResourceGroupIds or ()]
    name = f"{_text(info.LogonDomainName)}\\{_text(info.EffectiveName)}"
    return DomainLogon(
        domain.child(info.UserId),
        name if name.isprintable() else ascii(name),
        domain,
        domain.child(info.PrimaryGroupId),
        tuple(dict.fromkeys(groups)),
    )


def _sid(given: Record) -> Sid:
    return Sid.build(int.from_bytes(given.IdentifierAuthority, "big"), *given.SubAuthority)


def _text(given: Record) -> str:
    data: bytes = given.Buffer or b""
    if given.Length > len(data):
        raise SecurityDataError(f"a name of {given.Length} bytes is truncated")
    return data[: given.Length].decode("utf-16-le")
