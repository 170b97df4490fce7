"""The object types of the directory and their attributes (MS-MQDMPR 3.1.1), and immutable objects of these
types.

Attribute names are those of the data model. The security descriptors are self-relative, the key and
certificate lists have the packed form of MS-MQMQ 2.2.1, 2.2.2 and 2.2.22; the directory does not parse them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID

from msmq_fast.directory import values as v
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.directory.values import Kind, Value

IDENTIFIER = "Identifier"


_COMMON = {IDENTIFIER: v.GUID}
_KEYS = v.BLOB
_NUMBERS = {
    "PrivacyLevel": v.choice(**{"None": 0, "Optional": 1, "Body": 2}),
    "Scope": v.choice(Site=0, Enterprise=1),
    "OperatingSystemType": v.choice(Other=0, Foreign=1, Win95=2, WinClient=3, WinServer=4, WinEnt=5),
    "DirectoryServerType": v.choice(
        Standalone=1, BackupSiteController=2, PrimarySiteController=3, PrimaryEnterpriseController=4
    ),
}

ATTRIBUTES: Mapping[ObjectType, Mapping[str, Kind]] = {
    ObjectType.QUEUE_MANAGER: _COMMON
    | {
        "ComputerName": v.TEXT,
        "QueueManagerVersion": v.TEXT,
        "OperatingSystemVersion": v.TEXT,
        "OperatingSystemType": _NUMBERS["OperatingSystemType"],
        "QualifiedComputerName": v.TEXT,
        "CreateTime": v.SECONDS,
        "ModifyTime": v.SECONDS,
        "QueueManagerQuota": v.UINT32,
        "JournalQuota": v.UINT32,
        "ForeignSystem": v.FLAG,
        "FullPath": v.TEXT,
        "SiteIdentifierList": v.list_of(v.GUID),
        "ConnectedNetworkIdentifierList": v.list_of(v.GUID),
        "OutRoutingServerIdentifierList": v.list_of(v.GUID),
        "InRoutingServerIdentifierList": v.list_of(v.GUID),
        "DirectoryServer": v.FLAG,
        "RemoteAccessServer": v.FLAG,
        "RoutingServer": v.FLAG,
        "SupportingServer": v.FLAG,
        "DirectoryServerType": _NUMBERS["DirectoryServerType"],
        "PublicEncryptionKeyList": _KEYS,
        "PublicSigningKeyList": _KEYS,
        "Security": v.BLOB,
        "Clustered": v.FLAG,
        "MachineSid": v.SID,  # objectSid of the computer object
    },
    ObjectType.QUEUE: _COMMON
    | {
        "Label": v.TEXT,
        "CreateTime": v.SECONDS,
        "ModifyTime": v.SECONDS,
        "Type": v.GUID,
        "Pathname": v.TEXT,
        "QualifiedPathname": v.TEXT,
        "PrivateQueueNumber": v.UINT32,
        "Journaling": v.FLAG,
        "Quota": v.UINT32,
        "JournalQuota": v.UINT32,
        "Authentication": v.FLAG,
        "PrivacyLevel": _NUMBERS["PrivacyLevel"],
        "Transactional": v.FLAG,
        "MulticastAddress": v.TEXT,
        "Security": v.BLOB,
        "BasePriority": v.integer(-0x8000, 0x7FFF),
        "FullPath": v.TEXT,
        "DirectoryPath": v.TEXT,
        "Scope": _NUMBERS["Scope"],
    },
    ObjectType.ENTERPRISE: _COMMON
    | {
        "Name": v.TEXT,
        "WeakenedSecurity": v.FLAG,
        "NonLDAPCapableQueueManagerNotification": v.FLAG,
        "DefaultTimeToLive": v.UINT32,
        "OldDirectory": v.FLAG,
        "Security": v.BLOB,
        "FullPath": v.TEXT,
    },
    ObjectType.SITE: _COMMON
    | {
        "Name": v.TEXT,
        "PrimarySiteController": v.TEXT,
        "IntraSiteReplicationInterval": v.UINT32,
        "InterSiteReplicationInterval": v.UINT32,
        "FullPath": v.TEXT,
        "ForeignSite": v.FLAG,
        "PublicSigningKeyList": _KEYS,
        "MigratedFromMsmq10": v.FLAG,
        "Security": v.BLOB,
    },
    ObjectType.ROUTING_LINK: _COMMON
    | {
        "Description": v.TEXT,
        "FullPath": v.TEXT,
        "ActualCost": v.integer(1, 999_999),
        "Site1Identifier": v.GUID,
        "Site2Identifier": v.GUID,
        "SiteGateIdentifierList": v.list_of(v.GUID),
    },
    ObjectType.CONNECTED_NETWORK: _COMMON | {"Name": v.TEXT, "Security": v.BLOB},
    ObjectType.USER: _COMMON
    | {
        "SecurityIdentifier": v.SID,
        "CertificateDigestList": v.list_of(v.DIGEST),
        "Certificates": v.BLOB,
    },
    ObjectType.DISTRIBUTION_LIST: _COMMON | {"Name": v.TEXT, "Members": v.list_of(v.TEXT)},
}


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of an object type, as lists of attributes: `required` at creation, `unique` among the objects
    of the type, and `fixed` after creation.

    The directory itself sets the `computed` attributes. A look-up by an `indexed` attribute does not search
    through all objects.
    """

    required: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    indexed: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()


_TIMES = ("CreateTime", "ModifyTime")
RULES: Mapping[ObjectType, Rules] = {
    ObjectType.QUEUE_MANAGER: Rules(
        ("ComputerName",), ("ComputerName",), (), ("ComputerName",), ("FullPath", *_TIMES)
    ),
    ObjectType.QUEUE: Rules(
        ("Pathname",),
        ("Pathname",),
        ("FullPath", "Label", "Type"),
        ("Pathname", "QualifiedPathname", "Transactional", "PrivateQueueNumber"),
        ("FullPath", "DirectoryPath", *_TIMES),
    ),
    ObjectType.ENTERPRISE: Rules((), ("FullPath",), (), (), ("FullPath",)),
    ObjectType.SITE: Rules(("Name",), ("Name",), (), ("Name",), ("FullPath",)),
    ObjectType.ROUTING_LINK: Rules(
        ("Site1Identifier", "Site2Identifier", "ActualCost"),
        ("FullPath",),
        (),
        ("Site1Identifier", "Site2Identifier"),
        ("FullPath",),
    ),
    ObjectType.CONNECTED_NETWORK: Rules(("Name",), ("Name",), (), ("Name",)),
    ObjectType.USER: Rules(
        ("SecurityIdentifier",), ("SecurityIdentifier",), ("CertificateDigestList",), ("SecurityIdentifier",)
    ),
    ObjectType.DISTRIBUTION_LIST: Rules(("Name",), ("Name",), (), ("Name",)),
}


class DirectoryObject:
    """One object, or the part of it that a read returned: attributes that were not requested are absent.

    Raises ValueError for an attribute that its type does not have, or a value that does not fit.
    """

    __slots__ = ("_values", "kind")

    def __init__(self, kind: ObjectType, values: Mapping[str, Any]) -> None:
        self.kind = kind
        self._values: Mapping[str, Value] = _all_checked(kind, values)

    @classmethod
    def trusted(cls, kind: ObjectType, values: Mapping[str, Value]) -> DirectoryObject:
        """Return an object with the attributes `values`, which the caller has already checked."""
        made = cls.__new__(cls)
        made.kind = kind
        made._values = values
        return made

    @property
    def identifier(self) -> UUID | None:
        """The GUID of the object, None before it is created."""
        found = self._values.get(IDENTIFIER)
        return found if isinstance(found, UUID) else None

    @property
    def values(self) -> Mapping[str, Value]:
        """All attributes that are set."""
        return MappingProxyType(self._values)

    def get(self, name: str) -> Any:
        """The value of an attribute, None if it is not set."""
        return self._values.get(name)

    def __getitem__(self, name: str) -> Any:
        """The value of an attribute. Raises DirectoryError with AttributeNotFound if it is not set."""
        if name not in self._values:
            raise attribute_not_found(self.kind, name)
        return self._values[name]

    def changed(self, values: Mapping[str, Any]) -> DirectoryObject:
        """Return a copy in which `values` replace the old values of their attributes."""
        return DirectoryObject.trusted(self.kind, {**self._values, **_all_checked(self.kind, values)})

    def only(self, names: Collection[str] | None) -> DirectoryObject:
        """Return a copy with only the identifier and the attributes `names`; the object itself if `names`
        is None.
        """
        if names is None:
            return self
        wanted = {IDENTIFIER, *names}
        return DirectoryObject.trusted(self.kind, {k: x for k, x in self._values.items() if k in wanted})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DirectoryObject) and (self.kind, self._values) == (other.kind, other._values)

    def __hash__(self) -> int:
        return hash((self.kind, self.identifier))

    def __repr__(self) -> str:
        return f"<{self.kind.title} {self.describe()}>"

    def describe(self) -> str:
        """Return a name of the object for messages to people: its path, name, SID or GUID."""
        for name in RULES[self.kind].unique:
            if name in self._values:
                return str(self._values[name])
        return str(self.identifier)

    # ---- other forms

    def to_store(self) -> dict[str, Any]:
        """Return the form of the object in a stored record."""
        kinds = ATTRIBUTES[self.kind]
        return {name: kinds[name].to_store(value) for name, value in self._values.items()}

    @classmethod
    def from_store(cls, kind: ObjectType, record: Mapping[str, Any]) -> DirectoryObject:
        """Return the object of a stored record. Attributes that this version does not know are dropped.
        Raises ValueError.
        """
        kinds = ATTRIBUTES[kind]
        return cls.trusted(
            kind, {name: kinds[name].from_store(value) for name, value in record.items() if name in kinds}
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the object; attributes are in the order of the data model."""
        kinds = ATTRIBUTES[self.kind]
        return {name: kinds[name].to_json(self._values[name]) for name in kinds if name in self._values}

    @classmethod
    def from_json(cls, kind: ObjectType, values: Mapping[str, Any]) -> DirectoryObject:
        """Return the object from the form that `to_json` returns. Raises ValueError, whose text names the
        invalid attribute.
        """
        read: dict[str, Value] = {}
        for name, value in values.items():
            known = attribute_kind(kind, name)
            try:
                read[name] = known.from_json(value)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
        return cls.trusted(kind, read)


def attribute_kind(kind: ObjectType, name: str) -> Kind:
    """Return the kind of values of an attribute. Raises ValueError if the object type does not have the
    attribute.
    """
    found = ATTRIBUTES[kind].get(name)
    if found is None:
        raise ValueError(f"a {kind.title} has no attribute {name!r}")
    return found


def _all_checked(kind: ObjectType, values: Mapping[str, Any]) -> dict[str, Value]:
    """Check the values of an object. One loop, since a domain may have 100,000 objects."""
    kinds = ATTRIBUTES[kind]
    checked: dict[str, Value] = {}
    for name, value in values.items():
        known = kinds.get(name) or attribute_kind(kind, name)
        try:
            checked[name] = known.check(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return checked


def attribute_not_found(kind: ObjectType, name: str) -> DirectoryError:
    """Return the error AttributeNotFound."""
    return DirectoryError(
        DirectoryOperationResult.ATTRIBUTE_NOT_FOUND, f"the {kind.title} has no {name}", kind=kind
    )
