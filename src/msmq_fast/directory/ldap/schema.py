"""The attributes of Active Directory behind those of the data model (MS-MQDSSM 2.2.2, 3.1.6.1, 3.1.6.11).

Active Directory keeps Booleans as `TRUE` and `FALSE`, and all integers as signed numbers of 32 bits: the
quota 4294967295 is -1 there.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any
from uuid import UUID

from msmq_fast.directory.ldap.descriptors import from_domain, to_domain
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sid import Sid, sid

Attributes = Mapping[str, Sequence[bytes]]
"""The attributes of an entry: name in lower case → values. An attribute without values is absent."""

_TIME = re.compile(rb"(\d{8})(\d\d)(\d\d)(\d\d)(?:\.\d+)?Z")
LABEL_LENGTH = 124
"""The longest label, in characters, that the schema of Active Directory allows."""


@dataclass(frozen=True, slots=True)
class Codec:
    """How one kind of values is kept. `decode` takes the values of an attribute, at least one, and raises
    ValueError if they are malformed. `encode` returns the values; none if the attribute is to be absent.
    """

    decode: Callable[[Sequence[bytes]], Any]
    encode: Callable[[Any], list[bytes]]


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of the data model and the LDAP attribute that keeps it. `default` is the value of an
    absent attribute (3.1.6.11), None if there is none. A `fixed` attribute is written at creation only, and
    a `read` one never.
    """

    name: str
    attribute: str
    codec: Codec
    default: Any = None
    fixed: bool = False
    read: bool = False
    key: str = field(init=False)
    """The LDAP attribute in lower case, as `Entry` has it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.attribute.lower())


def _flag(values: Sequence[bytes]) -> bool:
    if values[0] not in (b"TRUE", b"FALSE"):
        raise ValueError("expected TRUE or FALSE")
    return values[0] == b"TRUE"


def _time(values: Sequence[bytes]) -> int:
    matched = _TIME.fullmatch(values[0])
    if matched is None:
        raise ValueError("expected a generalized time")
    day, hour, minute, second = matched.groups()
    return max(0, _midnight(day) + 3600 * int(hour) + 60 * int(minute) + int(second))


@lru_cache(maxsize=1024)  # most objects of a domain were made or changed on the same days
def _midnight(day: bytes) -> int:
    return calendar.timegm((int(day[:4]), int(day[4:6]), int(day[6:]), 0, 0, 0))


def _signed(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value


def _sid(values: Sequence[bytes]) -> str:
    try:
        return str(Sid.from_bytes(values[0]))
    except SecurityDataError as error:
        raise ValueError(str(error)) from None


def _guid(value: bytes) -> UUID:
    return UUID(bytes_le=value)


def _text(value: str) -> list[bytes]:
    return [value.encode()] if value else []


TEXT = Codec(lambda values: values[0].decode(), _text)
FLAG = Codec(_flag, lambda value: [b"TRUE" if value else b"FALSE"])
FLAGS = Codec(lambda values: int(values[0]) != 0, lambda value: [b"1" if value else b"0"])
"""A Boolean that Active Directory keeps as a list of integers."""
UNSIGNED = Codec(lambda values: int(values[0]) % (1 << 32), lambda value: [b"%d" % _signed(value)])
NUMBER = Codec(lambda values: int(values[0]), lambda value: [b"%d" % value])
GUID = Codec(lambda values: _guid(values[0]), lambda value: [value.bytes_le])
GUIDS = Codec(
    lambda values: tuple(_guid(value) for value in values), lambda value: [one.bytes_le for one in value]
)
BLOB = Codec(lambda values: bytes(values[0]), lambda value: [value] if value else [])
BLOBS = Codec(lambda values: tuple(bytes(value) for value in values), list)
TIME = Codec(_time, lambda value: [])
SID = Codec(_sid, lambda value: [sid(value).data])
OS_TYPE = Codec(lambda values: int(values[0]) >> 8, lambda value: [b"%d" % (value << 8)])
YES_NO = Codec(lambda values: values[0].upper() != b"N", lambda value: [b"Y" if value else b"N"])
VERSION = Codec(lambda values: int(values[0]) == 3, lambda value: [b"3" if value else b"200"])


def _security(kind: ObjectType) -> Field:
    codec = Codec(lambda values: from_domain(kind, values[0]), lambda value: [to_domain(kind, value)])
    return Field("Security", "nTSecurityDescriptor", codec)


_TIMES = (
    Field("CreateTime", "whenCreated", TIME, read=True),
    Field("ModifyTime", "whenChanged", TIME, read=True),
)

FIELDS: Mapping[ObjectType, tuple[Field, ...]] = MappingProxyType(
    {
        ObjectType.QUEUE: (
            Field("Label", "mSMQLabelEx", TEXT, ""),
            Field("Type", "mSMQQueueType", GUID, UUID(int=0)),
            Field("Journaling", "mSMQJournal", FLAG, False),
            Field("Quota", "mSMQQueueQuota", UNSIGNED, 0xFFFF_FFFF),
            Field("JournalQuota", "mSMQQueueJournalQuota", UNSIGNED, 0xFFFF_FFFF),
            Field("Authentication", "mSMQAuthenticate", FLAG, False),
            Field("PrivacyLevel", "mSMQPrivacyLevel", NUMBER, 1),
            Field("Transactional", "mSMQTransactional", FLAG, False, fixed=True),
            Field("MulticastAddress", "MSMQ-MulticastAddress", TEXT, ""),
            Field("BasePriority", "mSMQBasePriority", NUMBER, 0),
            _security(ObjectType.QUEUE),
            *_TIMES,
        ),
        ObjectType.QUEUE_MANAGER: (
            Field("QueueManagerVersion", "mSMQComputerTypeEx", TEXT, ""),
            Field("OperatingSystemType", "mSMQOSType", OS_TYPE, 0),
            Field("QueueManagerQuota", "mSMQQuota", UNSIGNED, 0x0010_0000),
            Field("JournalQuota", "mSMQJournalQuota", UNSIGNED, 0xFFFF_FFFF),
            Field("ForeignSystem", "mSMQForeign", FLAG, False),
            Field("SiteIdentifierList", "mSMQSites", GUIDS, ()),
            Field("RoutingServer", "mSMQRoutingServices", FLAG, False),
            Field("DirectoryServer", "mSMQDsServices", FLAG, False),
            Field("SupportingServer", "mSMQDependentClientServices", FLAG, False),
            Field("PublicEncryptionKeyList", "mSMQEncryptKey", BLOB, b""),
            _security(ObjectType.QUEUE_MANAGER),
            *_TIMES,
        ),
        ObjectType.SITE: (
            Field("IntraSiteReplicationInterval", "mSMQInterval1", UNSIGNED, 2),
            Field("InterSiteReplicationInterval", "mSMQInterval2", UNSIGNED, 10),
            Field("ForeignSite", "mSMQSiteForeign", FLAG, False),
            Field("MigratedFromMsmq10", "mSMQNt4Stub", FLAGS),
            _security(ObjectType.SITE),
        ),
        ObjectType.ROUTING_LINK: (
            Field("Description", "description", TEXT, ""),
            Field("ActualCost", "mSMQCost", NUMBER),
        ),
        ObjectType.ENTERPRISE: (
            Field("WeakenedSecurity", "mSMQNameStyle", FLAG, False),
            Field("NonLDAPCapableQueueManagerNotification", "mSMQCSPName", YES_NO, True),
            Field("DefaultTimeToLive", "mSMQLongLived", UNSIGNED, 345_600),
            Field("OldDirectory", "mSMQVersion", VERSION, True),
            _security(ObjectType.ENTERPRISE),
        ),
        ObjectType.USER: (
            Field("CertificateDigestList", "mSMQDigests", BLOBS, ()),
            Field("Certificates", "mSMQSignCertificates", BLOB, b""),
            Field("SecurityIdentifier", "objectSid", SID, read=True),
        ),
    }
)
"""Attributes that follow from one LDAP attribute alone. `entries` computes the rest."""

COMPUTER_FIELDS = (
    Field("QualifiedComputerName", "dNSHostName", TEXT, read=True),
    Field("OperatingSystemVersion", "operatingSystemVersion", TEXT, "", read=True),
    Field("MachineSid", "objectSid", SID, read=True),
    Field("PublicSigningKeyList", "mSMQSignCertificates", BLOB, b""),
)
"""Attributes of a queue manager that its computer object keeps (3.1.6.11.1)."""

CLASSES: Mapping[ObjectType, str] = MappingProxyType(
    {
        ObjectType.QUEUE: "mSMQQueue",
        ObjectType.QUEUE_MANAGER: "mSMQConfiguration",
        ObjectType.SITE: "site",
        ObjectType.ROUTING_LINK: "mSMQSiteLink",
        ObjectType.ENTERPRISE: "mSMQEnterpriseSettings",
        ObjectType.USER: "user",
    }
)

UNSUPPORTED: Mapping[ObjectType, frozenset[str]] = MappingProxyType(
    {
        ObjectType.QUEUE: frozenset(("Scope",)),
        ObjectType.QUEUE_MANAGER: frozenset(("ConnectedNetworkIdentifierList",)),
        ObjectType.SITE: frozenset(("PrimarySiteController", "PublicSigningKeyList")),
    }
)
"""Attributes that a domain does not keep (3.1.6.20): to ask for one is an error."""

# The bits of mSMQServiceType (3.1.6.1.1.5).
ROUTING_SERVICE = 0x01
REMOTE_ACCESS_SERVICE = 0x10
SERVER_TYPES = {2: 0x02, 3: 0x04, 4: 0x08}  # DirectoryServerType → bit


def wanted_attributes(kind: ObjectType) -> list[str]:
    """Return the LDAP attributes that make an object of this type."""
    found = [one.attribute for one in FIELDS[kind]]
    more = {
        ObjectType.QUEUE: ["mSMQQueueNameExt", "memberOf"],
        ObjectType.QUEUE_MANAGER: ["mSMQServiceType", "mSMQOutRoutingServers", "mSMQInRoutingServers"],
        ObjectType.SITE: ["cn"],
        ObjectType.ROUTING_LINK: ["mSMQSite1", "mSMQSite2", "mSMQSiteGates"],
    }
    return ["objectClass", "objectGUID", "uSNChanged", *found, *more.get(kind, [])]


def decode_fields(fields: Sequence[Field], attributes: Attributes) -> dict[str, Any]:
    """Return the attributes of the data model: name → value. Raises ValueError, whose text names the LDAP
    attribute that is malformed.
    """
    values: dict[str, Any] = {}
    for one in fields:
        kept = attributes.get(one.key)
        if not kept:
            if one.default is not None:
                values[one.name] = one.default
            continue
        try:
            values[one.name] = one.codec.decode(kept)
        except (ValueError, IndexError) as error:
            raise ValueError(f"{one.attribute}: {error}") from None
    return values


def encode_fields(
    fields: Sequence[Field], values: Mapping[str, Any], *, creating: bool
) -> dict[str, list[bytes]]:
    """Return the LDAP attributes for attributes of the data model. An empty list deletes an attribute; at
    creation, such an attribute is left out.
    """
    changes: dict[str, list[bytes]] = {}
    for one in fields:
        if one.name not in values or one.read or (one.fixed and not creating):
            continue
        encoded = one.codec.encode(values[one.name])
        if encoded or not creating:
            changes[one.attribute] = encoded
    return changes
