"""Distinguished names of directory objects (MS-MQDSSM 2.2.1) and the shortening of long queue names."""

from __future__ import annotations

from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.packet.names import Scope, parse_path
from msmq_fast.protocol.errors import IllegalQueuePathName

_LONGEST_NAME = 63  # characters of a queue name that is not shortened
_KEPT = 55  # characters of one that is
_POLYNOMIAL = 0x9B619023  # of the table in 2.2.5
_SPECIAL = frozenset('",+;<>=#/\\\n')
_CONFIGURATION = "CN=Configuration"


def root_of(domain: str) -> str:
    """Return the root of all distinguished names: that of the DNS domain, or a fixed one for a workgroup."""
    return ",".join(f"DC={escaped(label)}" for label in (domain or "workgroup").split("."))


def escaped(text: str) -> str:
    """Return a value for a distinguished name, with a backslash before each special character."""
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in text)


def _remainder(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = tuple(_remainder(byte) for byte in range(256))


def name_hash(name: str) -> str:
    """Return the hash string of a queue name (2.2.5): eight lower-case hexadecimal digits."""
    value = 0
    for byte in name.lower().encode("utf-16-be"):
        value = (value >> 8) ^ _TABLE[byte ^ (value & 0xFF)]
    return f"{value:08x}"


def queue_name(name: str) -> str:
    """Return the name of a queue's object: escaped, and shortened to 64 characters if it is longer
    (3.1.6.1.2.5).
    """
    text = escaped(name)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_KEPT]}-{name_hash(text)}"


def full_path(item: DirectoryObject, root: str) -> str:
    """Return the distinguished name of an object below `root`, "" if its type has none."""
    match item.kind:
        case ObjectType.QUEUE:
            computer, _, name = str(item["Pathname"]).partition("\\")
            return f"CN={queue_name(name)},{_machine(computer, root)}"
        case ObjectType.QUEUE_MANAGER:
            return _machine(item["ComputerName"], root)
        case ObjectType.SITE:
            return f"CN={escaped(item['Name'])},CN=Sites,{_CONFIGURATION},{root}"
        case ObjectType.ENTERPRISE:
            return f"CN=MsmqServices,CN=Services,{_CONFIGURATION},{root}"
        case ObjectType.ROUTING_LINK:
            name = f"{item['Site1Identifier'].hex}{item['Site2Identifier'].hex}"
            return f"CN={name},CN=MsmqServices,CN=Services,{_CONFIGURATION},{root}"
        case _:
            return ""


def _machine(computer: str, root: str) -> str:
    return f"CN=msmq,CN={escaped(computer)},CN=Computers,{root}"


def check_public(path: str) -> None:
    """Raise ValueError unless `path` is the path of a public queue, with the name of its computer."""
    try:
        part = parse_path(path, "").part
    except IllegalQueuePathName as error:
        raise ValueError(error.detail) from None
    if "\\" not in path or part.scope is not Scope.PUBLIC or part.subqueue or part.journal:
        raise ValueError(f"Pathname: {path!r} is not the path of a public queue (computer\\queue)")
