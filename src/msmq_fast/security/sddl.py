"""Security descriptors as text (MS-DTYP 2.5.1): `O:BAG:BAD:(A;;0x3;;;WD)`.

Entries that the language cannot express, such as conditional ones, are written `(0xTT;0xFF;HEX)`: type, flags
and all bytes after the header of the entry. This form is parsed again, so nothing is lost.
"""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

from msmq_fast.security.acl import Ace, AceFlag, AceType, Acl
from msmq_fast.security.descriptor import Control, SecurityDescriptor
from msmq_fast.security.errors import SddlError, SecurityDataError
from msmq_fast.security.sid import ALIASES, DOMAIN_ALIASES, Sid, sid

__all__ = ["parse_sddl", "parse_sid", "sid_name", "to_sddl"]

MAX_TEXT: Final = 1 << 20
"""Maximum length of a descriptor string in characters."""

_TYPES: Final = {
    "A": AceType.ACCESS_ALLOWED,
    "D": AceType.ACCESS_DENIED,
    "AU": AceType.SYSTEM_AUDIT,
    "AL": AceType.SYSTEM_ALARM,
    "OA": AceType.ACCESS_ALLOWED_OBJECT,
    "OD": AceType.ACCESS_DENIED_OBJECT,
    "OU": AceType.SYSTEM_AUDIT_OBJECT,
    "OL": AceType.SYSTEM_ALARM_OBJECT,
    "ML": AceType.SYSTEM_MANDATORY_LABEL,
    "SP": AceType.SYSTEM_SCOPED_POLICY_ID,
}
_TYPE_NAMES: Final = {int(number): name for name, number in _TYPES.items()}
_FLAGS: Final = {
    "OI": AceFlag.OBJECT_INHERIT,
    "CI": AceFlag.CONTAINER_INHERIT,
    "NP": AceFlag.NO_PROPAGATE_INHERIT,
    "IO": AceFlag.INHERIT_ONLY,
    "ID": AceFlag.INHERITED,
    "SA": AceFlag.SUCCESSFUL_ACCESS,
    "FA": AceFlag.FAILED_ACCESS,
}
# One letter pair for each bit; what is written is made of these.
_BITS: Final = {
    "CC": 0x0001, "DC": 0x0002, "LC": 0x0004, "SW": 0x0008, "RP": 0x0010, "WP": 0x0020, "DT": 0x0040,
    "LO": 0x0080, "CR": 0x0100, "SD": 0x0001_0000, "RC": 0x0002_0000, "WD": 0x0004_0000, "WO": 0x0008_0000,
    "GA": 0x1000_0000, "GX": 0x2000_0000, "GW": 0x4000_0000, "GR": 0x8000_0000,
}  # fmt: skip
# These stand for several bits, or mean something for files and registry keys; they are read only.
_RIGHTS: Final = _BITS | {
    "FA": 0x001F_01FF, "FX": 0x0012_00A0, "FW": 0x0012_0116, "FR": 0x0012_0089,
    "KA": 0x000F_003F, "KR": 0x0002_0019, "KX": 0x0002_0019, "KW": 0x0002_0006,
    "NW": 0x1, "NR": 0x2, "NX": 0x4,
}  # fmt: skip
_ALIAS_NAMES: Final = {value: alias for alias, value in ALIASES.items()}
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20}", re.ASCII)
_PART: Final = re.compile(r"\s*([OGDS]):", re.ASCII)
_ACL_FLAGS: Final = re.compile(r"(?:P|AR|AI|\s)*", re.ASCII)
_RAW: Final = re.compile(
    r"\(\s*0x([0-9A-Fa-f]{2})\s*;\s*0x([0-9A-Fa-f]{2})\s*;\s*((?:[0-9A-Fa-f]{2})*)\s*\)", re.ASCII
)
_NULL_ACL: Final = "NO_ACCESS_CONTROL"


def parse_sid(text: str, domain: Sid | None = None) -> Sid:
    """Parse a SID, given as `S-1-…` or as a two-letter name. `domain` is the SID of the domain to which names
    such as DA and DU refer.

    Raises SddlError.
    """
    text = text.strip()
    name = text.upper()
    if name in ALIASES:
        return ALIASES[name]
    if name in DOMAIN_ALIASES:
        if domain is None:
            raise SddlError(f"{name} needs a domain")
        return domain.child(DOMAIN_ALIASES[name])
    try:
        return sid(text)
    except SecurityDataError as error:
        raise SddlError(str(error)) from None


def sid_name(value: Sid) -> str:
    """Return the two-letter name of a SID, or its text if it has none."""
    return _ALIAS_NAMES.get(value) or str(value)


# ---------------------------------------------------------------------------------------------------- reading


def parse_sddl(text: str, domain: Sid | None = None) -> SecurityDescriptor:
    """Parse a descriptor string. Its parts may be in any order, each at most once. Raises SddlError."""
    if len(text) > MAX_TEXT:
        raise SddlError(f"the descriptor string has {len(text)} characters; at most {MAX_TEXT} are allowed")
    parts: dict[str, str] = {}
    at = 0
    while at < len(text.rstrip()):
        matched = _PART.match(text, at)
        if matched is None:
            raise SddlError(f"expected O:, G:, D: or S: at {text[at : at + 12]!r}")
        key = matched[1]
        if key in parts:
            raise SddlError(f"the part {key}: occurs twice")
        end = _end_of_part(text, matched.end())
        parts[key] = text[matched.end() : end].strip()
        at = end
    dacl, dacl_control = _acl(parts.get("D"), domain, _DACL_CONTROL)
    sacl, sacl_control = _acl(parts.get("S"), domain, _SACL_CONTROL)
    return SecurityDescriptor(
        owner=parse_sid(parts["O"], domain) if "O" in parts else None,
        group=parse_sid(parts["G"], domain) if "G" in parts else None,
        dacl=dacl,
        sacl=sacl,
        control=dacl_control | sacl_control,
        dacl_present="D" in parts,
        sacl_present="S" in parts,
    )


def _end_of_part(text: str, start: int) -> int:
    """Returns the offset of the next part: the first `X:` outside parentheses."""
    at = start
    while at < len(text):
        if text[at] == "(":
            closing = text.find(")", at)
            if closing < 0:
                raise SddlError(f"an entry is not closed: {text[at : at + 24]!r}")
            at = closing + 1
        elif text[at : at + 1] in "OGDS" and text[at + 1 : at + 2] == ":" and at > start:
            return at
        else:
            at += 1
    return at


_DACL_CONTROL: Final = {
    "P": Control.DACL_PROTECTED,
    "AR": Control.DACL_INHERIT_REQUIRED,
    "AI": Control.DACL_AUTO_INHERITED,
}
_SACL_CONTROL: Final = {
    "P": Control.SACL_PROTECTED,
    "AR": Control.SACL_INHERIT_REQUIRED,
    "AI": Control.SACL_AUTO_INHERITED,
}


def _acl(text: str | None, domain: Sid | None, flags: dict[str, Control]) -> tuple[Acl | None, int]:
    if text is None:
        return None, 0
    if text.startswith(_NULL_ACL):
        if text != _NULL_ACL:
            raise SddlError(f"{_NULL_ACL} cannot be combined with entries")
        return None, 0
    matched = _ACL_FLAGS.match(text)
    at = matched.end() if matched is not None else 0
    control = 0
    for word in re.findall("P|AR|AI", text[:at]):
        control |= flags[word]
    aces: list[Ace] = []
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        if text[at] != "(":
            raise SddlError(f"expected an entry at {text[at : at + 24]!r}")
        end = text.find(")", at) + 1
        aces.append(_ace(text[at:end], domain))
        at = end
    revision = 4 if any(ace.is_object for ace in aces) else 2
    acl = Acl(tuple(aces), revision)
    try:
        acl.encode()
    except SecurityDataError as error:
        raise SddlError(str(error)) from None
    return acl, control


def _ace(text: str, domain: Sid | None) -> Ace:
    raw = _RAW.fullmatch(text)
    try:
        if raw is not None:
            return Ace.opaque(int(raw[1], 16), int(raw[2], 16), bytes.fromhex(raw[3]))
        fields = [part.strip() for part in text[1:-1].split(";")]
        if len(fields) != 6:
            raise SddlError(f"expected an entry with six fields, got {text!r}")
        kind, flags, rights, object_type, inherited, trustee = fields
        if kind not in _TYPES:
            raise SddlError(f"unknown entry type {kind!r} in {text!r}")
        type_ = _TYPES[kind]
        guids = [_guid(object_type), _guid(inherited)]
        if kind[0] != "O" and any(guids):
            raise SddlError(f"only object entries have GUIDs: {text!r}")
        return Ace.build(type_, _rights(rights), parse_sid(trustee, domain), _flags(flags), *guids)
    except SddlError:
        raise
    except SecurityDataError as error:
        raise SddlError(f"{text!r}: {error}") from None


def _guid(text: str) -> bytes | None:
    if not text:
        return None
    try:
        return UUID(text).bytes_le
    except ValueError:
        raise SddlError(f"{text!r} is not a GUID") from None


def _flags(text: str) -> int:
    flags = 0
    for at in range(0, len(text), 2):
        word = text[at : at + 2]
        if word not in _FLAGS:
            raise SddlError(f"unknown entry flag {word!r}")
        flags |= _FLAGS[word]
    return flags


def _rights(text: str) -> int:
    if _NUMBER.fullmatch(text):
        octal = len(text) > 1 and text[0] == "0" and text[1] not in "xX"
        try:
            mask = int(text, 16 if text[1:2] in ("x", "X") else 8 if octal else 10)
        except ValueError:
            raise SddlError(f"{text!r} is not an access mask: expected a number") from None
        if mask >= 1 << 32:
            raise SddlError(f"the access mask {text} has more than 32 bits")
        return mask
    mask = 0
    for at in range(0, len(text), 2):
        word = text[at : at + 2]
        if word not in _RIGHTS:
            raise SddlError(f"unknown right {word!r}")
        mask |= _RIGHTS[word]
    return mask


# ---------------------------------------------------------------------------------------------------- writing


def to_sddl(descriptor: SecurityDescriptor) -> str:
    """Return a descriptor as a string."""
    text = ""
    if descriptor.owner is not None:
        text += f"O:{sid_name(descriptor.owner)}"
    if descriptor.group is not None:
        text += f"G:{sid_name(descriptor.group)}"
    if descriptor.dacl_present:
        text += "D:" + _acl_text(descriptor.dacl, descriptor.control, _DACL_CONTROL)
    if descriptor.sacl_present:
        text += "S:" + _acl_text(descriptor.sacl, descriptor.control, _SACL_CONTROL)
    return text


def _acl_text(acl: Acl | None, control: int, flags: dict[str, Control]) -> str:
    if acl is None:
        return _NULL_ACL
    return "".join(word for word, flag in flags.items() if control & flag) + "".join(map(_ace_text, acl.aces))


def _ace_text(ace: Ace) -> str:
    flags = "".join(word for word, flag in _FLAGS.items() if ace.flags & flag)
    kind = _TYPE_NAMES.get(ace.type)
    if kind is None or ace.sid is None or ace.rest or ace.flags & 0x20 or not _plain_object(ace):
        return f"(0x{ace.type:02X};0x{ace.flags:02X};{ace.data[4:].hex().upper()})"
    guids = [
        str(UUID(bytes_le=guid)) if guid else "" for guid in (ace.object_type, ace.inherited_object_type)
    ]
    return f"({kind};{flags};{_rights_text(ace.mask)};{guids[0]};{guids[1]};{sid_name(ace.sid)})"


def _plain_object(ace: Ace) -> bool:
    """Whether `Ace.build` returns exactly the same bytes for the fields of this object entry."""
    if not ace.is_object or ace.sid is None:
        return True
    return (
        Ace.build(ace.type, ace.mask, ace.sid, ace.flags, ace.object_type, ace.inherited_object_type) == ace
    )


def _rights_text(mask: int) -> str:
    if mask and not mask & ~sum(_BITS.values()):
        return "".join(word for word, bit in _BITS.items() if mask & bit)
    return f"0x{mask:x}" if mask else "0x0"
