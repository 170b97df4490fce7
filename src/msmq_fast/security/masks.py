"""Access masks: the standard bits of MS-DTYP 2.4.3 and the MQSEC_ rights of MS-MQMQ 2.2.23 … 2.2.27."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import Final

__all__ = [
    "CN_MAPPING",
    "ENTERPRISE_MAPPING",
    "MACHINE_MAPPING",
    "QUEUE_MAPPING",
    "SITE_MAPPING",
    "ConnectedNetworkRight",
    "EnterpriseRight",
    "GenericMapping",
    "MachineRight",
    "QueueRight",
    "SiteRight",
    "Standard",
    "parse_rights",
    "right_names",
]


class Standard(IntFlag):
    """The standard rights, which mean the same for every object."""

    DELETE = 0x0001_0000
    READ_CONTROL = 0x0002_0000
    WRITE_DAC = 0x0004_0000
    WRITE_OWNER = 0x0008_0000
    SYNCHRONIZE = 0x0010_0000
    ACCESS_SYSTEM_SECURITY = 0x0100_0000
    MAXIMUM_ALLOWED = 0x0200_0000
    GENERIC_ALL = 0x1000_0000
    GENERIC_EXECUTE = 0x2000_0000
    GENERIC_WRITE = 0x4000_0000
    GENERIC_READ = 0x8000_0000


class QueueRight(IntFlag):
    """The rights to a queue: MQQUEUEACCESSMASK (2.2.24)."""

    DELETE_MESSAGE = 0x01
    PEEK_MESSAGE = 0x02
    WRITE_MESSAGE = 0x04
    DELETE_JOURNAL_MESSAGE = 0x08
    SET_QUEUE_PROPERTIES = 0x10
    GET_QUEUE_PROPERTIES = 0x20
    DELETE_QUEUE = 0x0001_0000
    GET_QUEUE_PERMISSIONS = 0x0002_0000
    CHANGE_QUEUE_PERMISSIONS = 0x0004_0000
    TAKE_QUEUE_OWNERSHIP = 0x0008_0000
    RECEIVE_MESSAGE = 0x03
    RECEIVE_JOURNAL_MESSAGE = 0x0A
    QUEUE_GENERIC_READ = 0x0002_002B
    QUEUE_GENERIC_WRITE = 0x0002_0024
    QUEUE_GENERIC_ALL = 0x000F_003F


class MachineRight(IntFlag):
    """The rights to a queue manager: MQQMACCESSMASK (2.2.23)."""

    DELETE_DEADLETTER_MESSAGE = 0x01
    PEEK_DEADLETTER_MESSAGE = 0x02
    CREATE_QUEUE = 0x04
    SET_MACHINE_PROPERTIES = 0x10
    GET_MACHINE_PROPERTIES = 0x20
    DELETE_JOURNAL_QUEUE_MESSAGE = 0x40
    PEEK_JOURNAL_QUEUE_MESSAGE = 0x80
    DELETE_MACHINE = 0x0001_0000
    GET_MACHINE_PERMISSIONS = 0x0002_0000
    CHANGE_MACHINE_PERMISSIONS = 0x0004_0000
    TAKE_MACHINE_OWNERSHIP = 0x0008_0000
    RECEIVE_DEADLETTER_MESSAGE = 0x03
    RECEIVE_JOURNAL_QUEUE_MESSAGE = 0xC0
    MACHINE_GENERIC_READ = 0x0002_00E3
    MACHINE_GENERIC_WRITE = 0x0002_0024
    MACHINE_GENERIC_ALL = 0x000F_00F7
    MACHINE_WORLD_RIGHTS = 0x0002_0020


class SiteRight(IntFlag):
    """The rights to a site: MQSITEACCESSMASK (2.2.25)."""

    CREATE_FRS = 0x1
    CREATE_BSC = 0x2
    CREATE_MACHINE = 0x4
    SET_SITE_PROPERTIES = 0x10
    GET_SITE_PROPERTIES = 0x20
    DELETE_SITE = 0x0001_0000
    GET_SITE_PERMISSIONS = 0x0002_0000
    CHANGE_SITE_PERMISSIONS = 0x0004_0000
    TAKE_SITE_OWNERSHIP = 0x0008_0000
    SITE_GENERIC_READ = 0x0002_0020
    SITE_GENERIC_WRITE = 0x0002_0024
    SITE_GENERIC_ALL = 0x000F_0037


class EnterpriseRight(IntFlag):
    """The rights to an Enterprise object: MQENTACCESSMASK (2.2.26)."""

    CREATE_USER = 0x1
    CREATE_SITE = 0x2
    CREATE_CN = 0x4
    SET_ENTERPRISE_PROPERTIES = 0x10
    GET_ENTERPRISE_PROPERTIES = 0x20
    DELETE_ENTERPRISE = 0x0001_0000
    GET_ENTERPRISE_PERMISSIONS = 0x0002_0000
    CHANGE_ENTERPRISE_PERMISSIONS = 0x0004_0000
    TAKE_ENTERPRISE_OWNERSHIP = 0x0008_0000
    ENTERPRISE_GENERIC_READ = 0x0002_0021
    ENTERPRISE_GENERIC_WRITE = 0x0002_0027
    ENTERPRISE_GENERIC_ALL = 0x000F_0037


class ConnectedNetworkRight(IntFlag):
    """The rights to a connected network: MQCNACCESSMASK (2.2.27)."""

    CN_OPEN_CONNECTOR = 0x1
    SET_CN_PROPERTIES = 0x10
    GET_CN_PROPERTIES = 0x20
    DELETE_CN = 0x0001_0000
    GET_CN_PERMISSIONS = 0x0002_0000
    CHANGE_CN_PERMISSIONS = 0x0004_0000
    TAKE_CN_OWNERSHIP = 0x0008_0000
    CN_GENERIC_READ = 0x0002_0020
    CN_GENERIC_ALL = 0x000F_0031


@dataclass(frozen=True, slots=True)
class GenericMapping:
    """The rights for which the four generic bits stand, for one kind of object."""

    read: int
    write: int
    execute: int
    all: int

    def map(self, mask: int) -> int:
        """Return `mask` with its generic bits replaced by the rights that they stand for."""
        if not mask & 0xF000_0000:
            return mask
        mapped = mask & 0x0FFF_FFFF
        if mask & Standard.GENERIC_READ:
            mapped |= self.read
        if mask & Standard.GENERIC_WRITE:
            mapped |= self.write
        if mask & Standard.GENERIC_EXECUTE:
            mapped |= self.execute
        if mask & Standard.GENERIC_ALL:
            mapped |= self.all
        return mapped


# MS-MQMQ names no generic execute; it grants nothing.
Rights = type[QueueRight] | type[MachineRight] | type[ConnectedNetworkRight]

QUEUE_MAPPING: Final = GenericMapping(0x0002_002B, 0x0002_0024, 0, 0x000F_003F)
MACHINE_MAPPING: Final = GenericMapping(0x0002_00E3, 0x0002_0024, 0, 0x000F_00F7)
SITE_MAPPING: Final = GenericMapping(0x0002_0020, 0x0002_0024, 0, 0x000F_0037)
ENTERPRISE_MAPPING: Final = GenericMapping(0x0002_0021, 0x0002_0027, 0, 0x000F_0037)
CN_MAPPING: Final = GenericMapping(0x0002_0020, 0x0002_0020, 0, 0x000F_0031)

_SHORT: Final = {
    QueueRight: {
        "send": 0x04, "receive": 0x03, "peek": 0x02, "journal": 0x0A, "get-properties": 0x20,
        "set-properties": 0x10, "get-permissions": 0x0002_0000, "change-permissions": 0x0004_0000,
        "take-ownership": 0x0008_0000, "delete": 0x0001_0000, "read": 0x0002_002B, "write": 0x0002_0024,
        "all": 0x000F_003F,
    },
    MachineRight: {
        "create-queue": 0x04, "deadletter": 0x03, "peek-deadletter": 0x02, "journal": 0xC0,
        "peek-journal": 0x80, "get-properties": 0x20, "set-properties": 0x10,
        "get-permissions": 0x0002_0000, "change-permissions": 0x0004_0000, "take-ownership": 0x0008_0000,
        "delete": 0x0001_0000, "read": 0x0002_00E3, "write": 0x0002_0024, "all": 0x000F_00F7,
    },
}  # fmt: skip


def parse_rights(text: str, rights: Rights) -> int:
    """Return the mask of a list such as `send,peek`, `MQSEC_WRITE_MESSAGE` or `0x2B`. Raises ValueError."""
    mask = 0
    for word in filter(None, (part.strip() for part in text.split(","))):
        short = _SHORT[rights].get(word.lower())
        name = word.upper().removeprefix("MQSEC_").replace("-", "_")
        if short is not None:
            mask |= short
        elif name in rights.__members__:
            mask |= rights[name]
        elif word.lower().startswith("0x"):
            try:
                number = int(word, 16)
            except ValueError:
                raise ValueError(f"{word!r} is not a hexadecimal number") from None
            if not 0 <= number < 1 << 32:
                raise ValueError(f"{word} has more than 32 bits")
            mask |= number
        else:
            known = ", ".join(sorted(_SHORT[rights]))
            raise ValueError(f"{word!r} is not a right; use one of {known}, an MQSEC_ name, or 0x…")
    if not mask:
        raise ValueError("the list of rights is empty")
    return mask


def right_names(mask: int, rights: Rights) -> tuple[str, ...]:
    """Return the MQSEC_ names of the bits of `mask`; bits without a name are shown as a number."""
    names: list[str] = []
    for right in rights:
        if right.value & (right.value - 1) == 0 and mask & right.value:
            names.append(f"MQSEC_{right.name}")
            mask &= ~right.value
    if mask:
        names.append(f"0x{mask:08X}")
    return tuple(names)
