"""Objects of the data model from the entries of Active Directory, and back (MS-MQDSSM 3.1.6.1, .7, .11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.schema import (
    CLASSES,
    COMPUTER_FIELDS,
    FIELDS,
    REMOTE_ACCESS_SERVICE,
    ROUTING_SERVICE,
    SERVER_TYPES,
    Attributes,
    decode_fields,
    encode_fields,
)
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.paths import check_public
from msmq_fast.security.blobs import read_user_certificates
from msmq_fast.security.errors import SecurityDataError

MAX_VALUES = 5_000
"""Values of an attribute that a domain controller returns at most (MaxValRange)."""
_CLUSTER = b"MSClusterVirtualServer"
_KINDS = {name.lower().encode(): kind for kind, name in CLASSES.items()}


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry as the domain controller returns it."""

    path: str  # distinguished name
    attributes: Attributes = field(repr=False)

    def first(self, attribute: str) -> bytes | None:
        """The first value of an attribute, None if it is absent."""
        values = self.attributes.get(attribute.lower())
        return values[0] if values else None

    @property
    def identifier(self) -> UUID:
        """objectGUID. Raises ValueError if the entry has none."""
        value = self.first("objectGUID")
        if value is None or len(value) != 16:
            raise ValueError(f"{self.path} has no objectGUID")
        return UUID(bytes_le=value)

    @property
    def kind(self) -> ObjectType | None:
        """The type of the object; None if the entry has none of the classes of the data model."""
        for value in reversed(self.attributes.get("objectclass", ())):
            found = _KINDS.get(value.lower())
            if found is not None:
                return found
        return None


class PathIndex:
    """The GUIDs of queue managers and sites by distinguished name, and the reverse: attributes such as
    mSMQSiteGates refer to objects by their names.
    """

    def __init__(self) -> None:
        self._guids: dict[str, UUID] = {}
        self._paths: dict[UUID, str] = {}

    def note(self, entry: Entry) -> None:
        """Remember the name of an entry, which may have been renamed."""
        self.forget(entry.identifier)
        self._guids[entry.path.casefold()] = entry.identifier
        self._paths[entry.identifier] = entry.path

    def forget(self, identifier: UUID) -> None:
        """Forget an object."""
        path = self._paths.pop(identifier, None)
        if path is not None:
            self._guids.pop(path.casefold(), None)

    def guid(self, path: str) -> UUID | None:
        """The GUID of the object with this name, None if it is not known."""
        return self._guids.get(path.casefold())

    def path(self, identifier: UUID) -> str | None:
        """The name of the object with this GUID, None if it is not known."""
        return self._paths.get(identifier)


def decoded(
    kind: ObjectType, entry: Entry, known: PathIndex, computer: Entry | None, root: str
) -> DirectoryObject:
    """Return the object of an entry. `computer` is the entry of the computer of a queue manager or queue, and
    `root` the name of the root domain. Raises ValueError if the entry is malformed.
    """
    for name, given in entry.attributes.items():
        if len(given) > MAX_VALUES:
            raise ValueError(f"{name}: {len(given)} values; a domain controller returns at most {MAX_VALUES}")
    values = decode_fields(FIELDS[kind], entry.attributes)
    values[IDENTIFIER] = entry.identifier
    if kind is not ObjectType.USER:
        values["FullPath"] = entry.path
    _COMPUTED.get(kind, _nothing)(values, entry, known, computer, root)
    return DirectoryObject(kind, values)


_Computed = Callable[[dict[str, Any], Entry, PathIndex, Entry | None, str], None]


def _nothing(
    values: dict[str, Any], entry: Entry, known: PathIndex, computer: Entry | None, root: str
) -> None:
    """Nothing is computed."""


def _queue(values: dict[str, Any], entry: Entry, known: PathIndex, computer: Entry | None, root: str) -> None:
    name, _msmq, machine, *_ = names.parts(entry.path)
    extension = entry.first("mSMQQueueNameExt") or b""
    whole = names.whole_name(name, extension.decode())
    values["Pathname"] = f"{machine}\\{whole}".lower()
    check_public(values["Pathname"])
    values["DirectoryPath"] = f"LDAP://{entry.path}"
    host = None if computer is None else computer.first("dNSHostName")
    if host is not None:
        values["QualifiedPathname"] = f"{host.decode()}\\{whole}".lower()


def _machine(
    values: dict[str, Any], entry: Entry, known: PathIndex, computer: Entry | None, root: str
) -> None:
    values["ComputerName"] = names.parts(entry.path)[1]
    service = int(entry.first("mSMQServiceType") or 0)
    values["RemoteAccessServer"] = bool(service & REMOTE_ACCESS_SERVICE)
    if values["DirectoryServer"]:
        types = [number for number, bit in SERVER_TYPES.items() if service & bit]
        values["DirectoryServerType"] = types[0] if types else 1
    for name, attribute in _ROUTERS:
        values[name] = _guids(entry, attribute, known)
    if computer is not None:
        values.update(decode_fields(COMPUTER_FIELDS, computer.attributes))
        principals = computer.attributes.get("serviceprincipalname", ())
        values["Clustered"] = any(_CLUSTER.lower() in one.lower() for one in principals)


_ROUTERS = (
    ("OutRoutingServerIdentifierList", "mSMQOutRoutingServers"),
    ("InRoutingServerIdentifierList", "mSMQInRoutingServers"),
)


def _guids(entry: Entry, attribute: str, known: PathIndex) -> tuple[UUID, ...]:
    found = (known.guid(path.decode()) for path in entry.attributes.get(attribute.lower(), ()))
    return tuple(identifier for identifier in found if identifier is not None)


def _link(values: dict[str, Any], entry: Entry, known: PathIndex, computer: Entry | None, root: str) -> None:
    for name, attribute in (("Site1Identifier", "mSMQSite1"), ("Site2Identifier", "mSMQSite2")):
        identifiers = _guids(entry, attribute, known)
        if not identifiers:
            raise ValueError(f"{attribute}: it names no site")
        values[name] = identifiers[0]
    values["SiteGateIdentifierList"] = _guids(entry, "mSMQSiteGates", known)


def _site(values: dict[str, Any], entry: Entry, known: PathIndex, computer: Entry | None, root: str) -> None:
    values["Name"] = names.parts(entry.path)[0]


def _enterprise(
    values: dict[str, Any], entry: Entry, known: PathIndex, computer: Entry | None, root: str
) -> None:
    values["Name"] = root


_COMPUTED: Mapping[ObjectType, _Computed] = {
    ObjectType.QUEUE: _queue,
    ObjectType.QUEUE_MANAGER: _machine,
    ObjectType.ROUTING_LINK: _link,
    ObjectType.SITE: _site,
    ObjectType.ENTERPRISE: _enterprise,
}


def encoded(
    kind: ObjectType, values: Mapping[str, Any], known: PathIndex, *, creating: bool
) -> dict[str, list[bytes]]:
    """Return the LDAP attributes for attributes of the data model. Raises ValueError if a value cannot be
    kept, or a site that they refer to is not in the directory.
    """
    changes = encode_fields(FIELDS[kind], values, creating=creating)
    if kind is ObjectType.QUEUE_MANAGER:
        changes |= _services(values, known, creating=creating)
    elif kind is ObjectType.ROUTING_LINK:
        changes |= _sites(values, known, creating=creating)
    return changes


def _services(values: Mapping[str, Any], known: PathIndex, *, creating: bool) -> dict[str, list[bytes]]:
    changes: dict[str, list[bytes]] = {}
    if creating or {"RoutingServer", "RemoteAccessServer", "DirectoryServerType"} & set(values):
        service = ROUTING_SERVICE if values.get("RoutingServer") else 0
        service |= REMOTE_ACCESS_SERVICE if values.get("RemoteAccessServer") else 0
        if values.get("DirectoryServer"):
            service |= SERVER_TYPES.get(values.get("DirectoryServerType", 1), 0)
        changes["mSMQServiceType"] = [b"%d" % service]
    for name, attribute in _ROUTERS:
        if name in values:
            changes[attribute] = _paths(values[name], known)
    return {name: kept for name, kept in changes.items() if kept or not creating}


def encoded_computer(values: Mapping[str, Any]) -> dict[str, list[bytes]]:
    """Return the LDAP attributes of a computer for attributes of its queue manager (3.1.6.1.1.9).

    MS-MQDSSM takes PublicSigningKeyList for a list of certificates, MS-MQDMPR 3.1.1.1 for one of public keys.
    Both are kept; certificates are found by their digests, keys have none.
    """
    changes = encode_fields(COMPUTER_FIELDS, values, creating=False)
    if "PublicSigningKeyList" in values:
        try:
            kept = read_user_certificates(values["PublicSigningKeyList"])
        except SecurityDataError:
            kept = ()
        changes["mSMQDigests"] = [one.digest for one in kept]
    return changes


def _paths(identifiers: Sequence[UUID], known: PathIndex) -> list[bytes]:
    found = (known.path(identifier) for identifier in identifiers)
    return [path.encode() for path in found if path is not None]


def _sites(values: Mapping[str, Any], known: PathIndex, *, creating: bool) -> dict[str, list[bytes]]:
    changes: dict[str, list[bytes]] = {}
    for name, attribute in (("Site1Identifier", "mSMQSite1"), ("Site2Identifier", "mSMQSite2")):
        if creating and name in values:
            paths = _paths((values[name],), known)
            if not paths:
                raise ValueError(f"{name}: the directory has no site {values[name]}")
            changes[attribute] = paths
    if "SiteGateIdentifierList" in values:
        gates = _paths(values["SiteGateIdentifierList"], known)
        if gates or not creating:
            changes["mSMQSiteGates"] = gates
    return changes
