"""What is written is what Windows writes, and what Windows writes is read: one row for each attribute.

The tables are those of MS-MQDSSM 3.1.6.1, 3.1.6.7 and 3.1.6.11. On Samba, `ldapsearch` shows what was
written, and the values to be read are added as they are, so that an error of the mapping cannot hide in both
directions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.directory.filters import equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.security.blobs import UserCertificate, write_user_certificates
from tests.support.processes.domain import NEEDS, controller, make_link
from tests.support.processes.samba import DomainController
from tests.support.worlds.activedirectory import CONFIGURATION, DOMAIN, SCHEMA, SITE
from tests.support.worlds.domains import DomainWorld, SambaWorld

__all__ = ["controller"]

SAMBA = pytest.param("samba", marks=[*NEEDS, pytest.mark.long(seconds=1)])
TYPE = UUID("00112233-4455-6677-8899-aabbccddeeff")
TYPE_OCTETS = bytes.fromhex("33221100554477668899aabbccddeeff")  # little-endian, as a GUID of Windows
CERTIFICATES = write_user_certificates([UserCertificate(b"first", TYPE), UserCertificate(b"second", TYPE)])
DIGESTS = [
    bytes.fromhex("8b04d5e3775d298e78455efc5ca404d5"),
    bytes.fromhex("a9f0e61a137d86aa9db53465e0801612"),
]
SERVICES = f"CN=MsmqServices,CN=Services,{CONFIGURATION}"

QUEUE, MANAGER, SETTINGS = ObjectType.QUEUE, ObjectType.QUEUE_MANAGER, "MSMQ Settings"
LINK, ENTERPRISE, USER, COMPUTER = ObjectType.ROUTING_LINK, ObjectType.ENTERPRISE, ObjectType.USER, "computer"
Subject = ObjectType | str


STAGES = ("created", "written")
Shown = dict[str, list[bytes]]  # an entry: attribute in lower case → values


@dataclass
class Written:
    """A domain in which one object of each type was created, and then written, and how others saw it after
    each of the two. `named` has octets that are known only then.
    """

    world: DomainWorld
    paths: dict[Subject, str]
    named: dict[str, bytes]
    seen: dict[str, dict[Subject, Shown]] = field(default_factory=dict)

    def look(self, stage: str) -> None:
        """Read all objects, by another program where there is one."""
        self.seen[stage] = {subject: self._shown(path) for subject, path in self.paths.items()}

    def _shown(self, path: str) -> Shown:
        if not isinstance(self.world, SambaWorld):
            return self.world.memory.shown(path)
        base = CONFIGURATION if path.endswith(CONFIGURATION) else DOMAIN
        (entry,) = self.world.controller.search(f"(distinguishedName={path})", "*", base=base)
        return {name.lower(): values for name, values in entry.items()}

    def expected(self, values: list[Any]) -> list[bytes]:
        """Replace names by what they stand for."""
        return sorted(self.named[one] if isinstance(one, str) else one for one in values)


def values(stage: str, here: UUID, there: UUID, gate: UUID) -> dict[Subject, dict[str, Any]]:
    """The attributes of the objects. At the second stage, each has another value."""
    first = stage == "created"
    return {
        QUEUE: {
            "Label": "Grüße" if first else "other",
            "Type": TYPE if first else UUID(int=1),
            "Journaling": first,
            "Quota": 0xFFFF_FFFF if first else 7,
            "JournalQuota": 3_000_000_000 if first else 8,
            "Authentication": first,
            "PrivacyLevel": 2 if first else 0,
            "Transactional": True,
            "MulticastAddress": "234.1.1.1:8001" if first else "234.1.1.2:8002",
            "BasePriority": -7 if first else 9,
        },
        MANAGER: {
            "QueueManagerVersion": "6.3" if first else "10.0",
            "OperatingSystemType": 5 if first else 3,
            "DirectoryServer": True,
            "DirectoryServerType": 3 if first else 2,
            "RemoteAccessServer": first,
            "RoutingServer": True,
            "SupportingServer": first,
            "QueueManagerQuota": 4_000_000_000 if first else 5,
            "JournalQuota": 0xFFFF_FFFF if first else 6,
            "ForeignSystem": not first,
            "SiteIdentifierList": (here, there) if first else (there,),
            "OutRoutingServerIdentifierList": (gate,) if first else (),
            "InRoutingServerIdentifierList": () if first else (gate,),
            "PublicEncryptionKeyList": b"keys" if first else b"new keys",
            "PublicSigningKeyList": CERTIFICATES if first else b"public keys",
        },
        ObjectType.SITE: {
            "IntraSiteReplicationInterval": 3_000_000_000 if first else 4,
            "InterSiteReplicationInterval": 11 if first else 12,
            "ForeignSite": first,
            "MigratedFromMsmq10": first,
        },
        LINK: {
            "Description": "a link" if first else "another",
            "ActualCost": 7 if first else 8,
            "SiteGateIdentifierList": (gate,) if first else (),
        },
        ENTERPRISE: {
            "WeakenedSecurity": first,
            "NonLDAPCapableQueueManagerNotification": not first,
            "DefaultTimeToLive": 5 if first else 3_000_000_000,
            "OldDirectory": first,
        },
        USER: {
            "CertificateDigestList": tuple(DIGESTS if first else DIGESTS[:1]),
            "Certificates": CERTIFICATES if first else b"none",
        },
    }


@pytest.fixture(scope="module", params=["domain", SAMBA])
def domain(request: pytest.FixtureRequest) -> Written:
    if request.param == "domain":
        return written(DomainWorld())
    found = request.getfixturevalue("controller")
    return written(SambaWorld(found, make_link(found)))


def written(world: DomainWorld) -> Written:
    """Create an object of each type, and write all of them."""
    for name in ("GATE", "BETA"):
        world.account(name)
    sid, directory = world.user(), world.directory
    gate = directory.create(DirectoryObject(MANAGER, {"ComputerName": "GATE"})).result()
    here = directory.read(ObjectType.SITE, (equals("Name", "Default-First-Site-Name"),)).result().identifier
    assert here is not None
    given = values("created", here, TYPE, gate)
    there = directory.create(
        DirectoryObject(ObjectType.SITE, {"Name": "north", **given[ObjectType.SITE]})
    ).result()
    enterprise = directory.read(ENTERPRISE).result().identifier
    keys: dict[Subject, dict[str, Any]] = {
        MANAGER: {"ComputerName": "BETA"},
        QUEUE: {"Pathname": r"BETA\Orders"},
        LINK: {"Site1Identifier": here, "Site2Identifier": there},
        USER: {"SecurityIdentifier": sid},
    }
    given = values("created", here, there, gate)
    guids = {
        kind: directory.create(DirectoryObject(kind, key | given[kind])).result()
        for kind, key in keys.items()
    }  # type: ignore[arg-type]
    guids |= {ObjectType.SITE: there, ENTERPRISE: enterprise}
    directory.write(DirectoryObject(ENTERPRISE, {IDENTIFIER: enterprise} | given[ENTERPRISE])).result()
    paths: dict[Subject, str] = {
        QUEUE: f"CN=Orders,CN=msmq,CN=BETA,CN=Computers,{DOMAIN}",
        MANAGER: f"CN=msmq,CN=BETA,CN=Computers,{DOMAIN}",
        COMPUTER: f"CN=BETA,CN=Computers,{DOMAIN}",
        SETTINGS: f"CN=MSMQ Settings,CN=BETA,CN=Servers,CN=north,CN=Sites,{CONFIGURATION}",
        ObjectType.SITE: f"CN=north,CN=Sites,{CONFIGURATION}",
        LINK: f"CN={here.hex}{there.hex},{SERVICES}",
        ENTERPRISE: SERVICES,
        USER: f"CN=contract,CN=Users,{DOMAIN}",
    }
    named = {
        "here": here.bytes_le,
        "there": there.bytes_le,
        "here path": SITE.encode(),
        "there path": paths[ObjectType.SITE].encode(),
        "gate": f"CN=msmq,CN=GATE,CN=Computers,{DOMAIN}".encode(),
        "manager": guids[MANAGER].bytes_le,
    }
    found = Written(world, paths, named)
    found.look("created")
    for kind, more in values("written", here, there, gate).items():
        directory.write(DirectoryObject(kind, {IDENTIFIER: guids[kind]} | more)).result()  # type: ignore[arg-type]
    found.look("written")
    return found


@pytest.mark.parametrize(
    ("subject", "attribute", "created", "changed"),
    [
        pytest.param(MANAGER, "mSMQComputerTypeEx", [b"6.3"], [b"10.0"], marks=pytest.mark.rule("SM-101")),
        pytest.param(MANAGER, "mSMQOSType", [b"1280"], [b"768"], marks=pytest.mark.rule("SM-102")),
        pytest.param(MANAGER, "mSMQServiceType", [b"21"], [b"3"], marks=pytest.mark.rule("SM-103")),
        pytest.param(MANAGER, "mSMQQuota", [b"-294967296"], [b"5"], marks=pytest.mark.rule("SM-104")),
        pytest.param(MANAGER, "mSMQJournalQuota", [b"-1"], [b"6"], marks=pytest.mark.rule("SM-105")),
        pytest.param(MANAGER, "mSMQForeign", [b"FALSE"], [b"TRUE"], marks=pytest.mark.rule("SM-106")),
        pytest.param(MANAGER, "mSMQSites", ["here", "there"], ["there"], marks=pytest.mark.rule("SM-107")),
        pytest.param(MANAGER, "mSMQOutRoutingServers", ["gate"], [], marks=pytest.mark.rule("SM-108")),
        pytest.param(MANAGER, "mSMQInRoutingServers", [], ["gate"], marks=pytest.mark.rule("SM-109")),
        pytest.param(MANAGER, "mSMQRoutingServices", [b"TRUE"], [b"TRUE"], marks=pytest.mark.rule("SM-110")),
        pytest.param(MANAGER, "mSMQDsServices", [b"TRUE"], [b"TRUE"], marks=pytest.mark.rule("SM-111")),
        pytest.param(
            MANAGER, "mSMQDependentClientServices", [b"TRUE"], [b"FALSE"], marks=pytest.mark.rule("SM-112")
        ),
        pytest.param(MANAGER, "mSMQEncryptKey", [b"keys"], [b"new keys"], marks=pytest.mark.rule("SM-113")),
        pytest.param(
            COMPUTER,
            "mSMQSignCertificates",
            [CERTIFICATES],
            [b"public keys"],
            marks=pytest.mark.rule("SM-114"),
        ),
        pytest.param(COMPUTER, "mSMQDigests", DIGESTS, [], marks=pytest.mark.rule("SM-115")),
        pytest.param(SETTINGS, "mSMQQMID", ["manager"], ["manager"], marks=pytest.mark.rule("SM-116")),
        pytest.param(SETTINGS, "mSMQServices", [b"21"], [b"3"], marks=pytest.mark.rule("SM-117")),
        pytest.param(SETTINGS, "mSMQRoutingService", [b"TRUE"], [b"TRUE"], marks=pytest.mark.rule("SM-118")),
        pytest.param(SETTINGS, "mSMQDsService", [b"TRUE"], [b"TRUE"], marks=pytest.mark.rule("SM-119")),
        pytest.param(
            SETTINGS, "mSMQDependentClientService", [b"TRUE"], [b"FALSE"], marks=pytest.mark.rule("SM-120")
        ),
        pytest.param(QUEUE, "mSMQLabelEx", ["Grüße".encode()], [b"other"], marks=pytest.mark.rule("SM-121")),
        pytest.param(
            QUEUE, "mSMQQueueType", [TYPE_OCTETS], [bytes(15) + b"\1"], marks=pytest.mark.rule("SM-122")
        ),
        pytest.param(QUEUE, "mSMQJournal", [b"TRUE"], [b"FALSE"], marks=pytest.mark.rule("SM-123")),
        pytest.param(QUEUE, "mSMQQueueQuota", [b"-1"], [b"7"], marks=pytest.mark.rule("SM-124")),
        pytest.param(
            QUEUE, "mSMQQueueJournalQuota", [b"-1294967296"], [b"8"], marks=pytest.mark.rule("SM-125")
        ),
        pytest.param(QUEUE, "mSMQAuthenticate", [b"TRUE"], [b"FALSE"], marks=pytest.mark.rule("SM-126")),
        pytest.param(QUEUE, "mSMQPrivacyLevel", [b"2"], [b"0"], marks=pytest.mark.rule("SM-127")),
        pytest.param(QUEUE, "mSMQTransactional", [b"TRUE"], [b"TRUE"], marks=pytest.mark.rule("SM-128")),
        pytest.param(
            QUEUE,
            "MSMQ-MulticastAddress",
            [b"234.1.1.1:8001"],
            [b"234.1.1.2:8002"],
            marks=pytest.mark.rule("SM-129"),
        ),
        pytest.param(QUEUE, "mSMQBasePriority", [b"-7"], [b"9"], marks=pytest.mark.rule("SM-130")),
        pytest.param(
            ObjectType.SITE, "mSMQInterval1", [b"-1294967296"], [b"4"], marks=pytest.mark.rule("SM-131")
        ),
        pytest.param(ObjectType.SITE, "mSMQInterval2", [b"11"], [b"12"], marks=pytest.mark.rule("SM-132")),
        pytest.param(
            ObjectType.SITE, "mSMQSiteForeign", [b"TRUE"], [b"FALSE"], marks=pytest.mark.rule("SM-133")
        ),
        pytest.param(ObjectType.SITE, "mSMQNt4Stub", [b"1"], [b"0"], marks=pytest.mark.rule("SM-134")),
        pytest.param(LINK, "description", [b"a link"], [b"another"], marks=pytest.mark.rule("SM-135")),
        pytest.param(LINK, "mSMQCost", [b"7"], [b"8"], marks=pytest.mark.rule("SM-136")),
        pytest.param(LINK, "mSMQSite1", ["here path"], ["here path"], marks=pytest.mark.rule("SM-137")),
        pytest.param(LINK, "mSMQSite2", ["there path"], ["there path"], marks=pytest.mark.rule("SM-138")),
        pytest.param(LINK, "mSMQSiteGates", ["gate"], [], marks=pytest.mark.rule("SM-139")),
        pytest.param(ENTERPRISE, "mSMQNameStyle", [b"TRUE"], [b"FALSE"], marks=pytest.mark.rule("SM-140")),
        pytest.param(ENTERPRISE, "mSMQCSPName", [b"N"], [b"Y"], marks=pytest.mark.rule("SM-141")),
        pytest.param(ENTERPRISE, "mSMQLongLived", [b"5"], [b"-1294967296"], marks=pytest.mark.rule("SM-142")),
        pytest.param(ENTERPRISE, "mSMQVersion", [b"3"], [b"200"], marks=pytest.mark.rule("SM-143")),
        pytest.param(
            USER, "mSMQSignCertificates", [CERTIFICATES], [b"none"], marks=pytest.mark.rule("SM-144")
        ),
        pytest.param(USER, "mSMQDigests", DIGESTS, DIGESTS[:1], marks=pytest.mark.rule("SM-145")),
    ],
)
def test_what_is_written(
    domain: Written, subject: Subject, attribute: str, created: list[Any], changed: list[Any]
) -> None:
    found = {stage: sorted(domain.seen[stage][subject].get(attribute.lower(), [])) for stage in STAGES}
    assert found == {"created": domain.expected(created), "written": domain.expected(changed)}


@pytest.mark.rule("SM-011")
def test_nothing_else_is_written(domain: Written) -> None:
    """Of the attributes of message queuing, a queue has exactly those of the table: none that Windows does
    not use, such as mSMQLabel.
    """
    for stage in STAGES:
        names = {name for name in domain.seen[stage][QUEUE] if "msmq" in name}
        assert names == {
            "msmqlabelex", "msmqqueuetype", "msmqjournal", "msmqqueuequota", "msmqqueuejournalquota",
            "msmqauthenticate", "msmqprivacylevel", "msmqtransactional", "msmq-multicastaddress",
            "msmqbasepriority",
        }  # fmt: skip
        manager = domain.seen[stage][MANAGER]
        assert not {"msmqcomputertype", "msmqownerid", "msmqsiteid"} & set(manager)


# ---- reading


@dataclass
class Kept:
    """A domain with objects that another program wrote: of each type one with all attributes, one without."""

    objects: dict[tuple[ObjectType, str], DirectoryObject]
    gates: tuple[UUID, ...]


ATTRIBUTES: dict[ObjectType, dict[str, list[Any]]] = {
    MANAGER: {
        "mSMQComputerTypeEx": [b"5.0"],
        "mSMQOSType": [b"1024"],
        "mSMQQuota": [b"-1"],
        "mSMQJournalQuota": [b"-2"],
        "mSMQForeign": [b"TRUE"],
        "mSMQSites": [TYPE_OCTETS],
        "mSMQOutRoutingServers": ["gate"],
        "mSMQInRoutingServers": ["gate"],
        "mSMQRoutingServices": [b"TRUE"],
        "mSMQDsServices": [b"TRUE"],
        "mSMQServiceType": [b"26"],
        "mSMQDependentClientServices": [b"TRUE"],
        "mSMQEncryptKey": [b"keys"],
    },
    QUEUE: {
        "mSMQLabelEx": ["Grüße".encode()],
        "mSMQQueueType": [TYPE_OCTETS],
        "mSMQJournal": [b"TRUE"],
        "mSMQQueueQuota": [b"-1294967296"],
        "mSMQQueueJournalQuota": [b"-2147483648"],
        "mSMQAuthenticate": [b"TRUE"],
        "mSMQPrivacyLevel": [b"2"],
        "mSMQTransactional": [b"TRUE"],
        "MSMQ-MulticastAddress": [b"234.1.1.1:8001"],
        "mSMQBasePriority": [b"-7"],
    },
    ObjectType.SITE: {
        "mSMQInterval1": [b"-1"],
        "mSMQInterval2": [b"5"],
        "mSMQSiteForeign": [b"TRUE"],
        "mSMQNt4Stub": [b"1"],
    },
    LINK: {
        "description": [b"a link"],
        "mSMQCost": [b"7"],
        "mSMQSiteGates": ["gate"],
    },
    USER: {
        "mSMQDigests": [DIGESTS[0]],
        "mSMQSignCertificates": [b"kept"],
    },
    ENTERPRISE: {
        "mSMQNameStyle": [b"TRUE"],
        "mSMQCSPName": [b"N"],
        "mSMQLongLived": [b"-1"],
        "mSMQVersion": [b"200"],
    },
}


@pytest.fixture(scope="module", params=["domain", SAMBA])
def kept(request: pytest.FixtureRequest) -> Kept:
    if request.param == "domain":
        return read_back(DomainWorld())
    found = request.getfixturevalue("controller")
    return read_back(SambaWorld(found, make_link(found)))


def read_back(world: DomainWorld) -> Kept:
    """Add entries as another program would, and read them."""
    world.home("GATE")
    gate = world.directory.read(MANAGER, (equals("ComputerName", "GATE"),)).result()
    path = str(gate["FullPath"]).encode()

    def filled(kind: ObjectType) -> dict[str, list[bytes]]:
        return {
            name: [path if one == "gate" else one for one in values]
            for name, values in ATTRIBUTES[kind].items()
        }

    link, sites = world.link, f"CN=Sites,{CONFIGURATION}"
    enterprise = {False: world.directory.read(ENTERPRISE).result()}
    link.modify(SERVICES, {name: [] for name in ATTRIBUTES[ENTERPRISE]})
    world.restart()
    enterprise[False] = world.directory.read(ENTERPRISE).result()
    link.modify(SERVICES, filled(ENTERPRISE))
    for name, full in (("full", True), ("empty", False)):
        world.account(name)
        computer = f"CN={name},CN=Computers,{DOMAIN}"
        made = {
            f"CN=msmq,{computer}": ("mSMQConfiguration", MANAGER),
            f"CN=q,CN=msmq,{computer}": ("mSMQQueue", QUEUE),
            f"CN={name},{sites}": ("site", ObjectType.SITE),
        }
        for place, (kind, subject) in made.items():
            link.add(place, {"objectClass": [kind.encode()]} | (filled(subject) if full else {}))
        if full:
            link.modify(
                computer,
                {
                    "mSMQSignCertificates": [b"signing"],
                    "operatingSystemVersion": [b"10.0 (20348)"],
                    "servicePrincipalName": [b"MSClusterVirtualServer/full", b"HOST/full"],
                },
            )
        ends = {
            "mSMQSite1": [SITE.encode()],
            "mSMQSite2": [f"CN={name},{sites}".encode()],
        }
        more = filled(LINK) if full else {"mSMQCost": [b"1"]}  # the schema wants it
        link.add(f"CN={name},{SERVICES}", {"objectClass": [b"mSMQSiteLink"]} | ends | more)
    sid = world.user()
    link.modify(f"CN=contract,CN=Users,{DOMAIN}", filled(USER))
    world.restart()
    enterprise[True] = world.directory.read(ENTERPRISE).result()
    objects = {(ENTERPRISE, name): enterprise[name == "full"] for name in ("full", "empty")}
    objects[USER, "full"] = world.directory.read(USER, (equals("SecurityIdentifier", sid),)).result()
    for name in ("full", "empty"):
        for subject, path_of in (
            (MANAGER, f"CN=msmq,CN={name},CN=Computers,{DOMAIN}"),
            (QUEUE, f"CN=q,CN=msmq,CN={name},CN=Computers,{DOMAIN}"),
            (ObjectType.SITE, f"CN={name},{sites}"),
            (LINK, f"CN={name},{SERVICES}"),
        ):
            objects[subject, name] = world.directory.read(subject, (equals("FullPath", path_of),)).result()
    assert gate.identifier is not None
    return Kept(objects, (gate.identifier,))


@pytest.mark.parametrize(
    ("kind", "name", "full", "empty"),
    [
        pytest.param(MANAGER, "QueueManagerVersion", "5.0", "", marks=pytest.mark.rule("SM-201")),
        pytest.param(MANAGER, "OperatingSystemType", 4, 0, marks=pytest.mark.rule("SM-202")),
        pytest.param(
            MANAGER, "QueueManagerQuota", 0xFFFF_FFFF, 0x0010_0000, marks=pytest.mark.rule("SM-203")
        ),
        pytest.param(MANAGER, "JournalQuota", 0xFFFF_FFFE, 0xFFFF_FFFF, marks=pytest.mark.rule("SM-204")),
        pytest.param(MANAGER, "ForeignSystem", True, False, marks=pytest.mark.rule("SM-205")),
        pytest.param(MANAGER, "SiteIdentifierList", (TYPE,), (), marks=pytest.mark.rule("SM-206")),
        pytest.param(
            MANAGER, "OutRoutingServerIdentifierList", "gates", (), marks=pytest.mark.rule("SM-207")
        ),
        pytest.param(MANAGER, "InRoutingServerIdentifierList", "gates", (), marks=pytest.mark.rule("SM-208")),
        pytest.param(MANAGER, "RoutingServer", True, False, marks=pytest.mark.rule("SM-209")),
        pytest.param(MANAGER, "DirectoryServer", True, False, marks=pytest.mark.rule("SM-210")),
        pytest.param(MANAGER, "DirectoryServerType", 2, None, marks=pytest.mark.rule("SM-211")),
        pytest.param(MANAGER, "RemoteAccessServer", True, False, marks=pytest.mark.rule("SM-212")),
        pytest.param(MANAGER, "SupportingServer", True, False, marks=pytest.mark.rule("SM-213")),
        pytest.param(MANAGER, "PublicEncryptionKeyList", b"keys", b"", marks=pytest.mark.rule("SM-214")),
        pytest.param(MANAGER, "PublicSigningKeyList", b"signing", b"", marks=pytest.mark.rule("SM-215")),
        pytest.param(
            MANAGER,
            "QualifiedComputerName",
            "full.corp.example",
            "empty.corp.example",
            marks=pytest.mark.rule("SM-216"),
        ),
        pytest.param(MANAGER, "OperatingSystemVersion", "10.0 (20348)", "", marks=pytest.mark.rule("SM-217")),
        pytest.param(MANAGER, "Clustered", True, False, marks=pytest.mark.rule("SM-218")),
        pytest.param(QUEUE, "Label", "Grüße", "", marks=pytest.mark.rule("SM-219")),
        pytest.param(QUEUE, "Type", TYPE, UUID(int=0), marks=pytest.mark.rule("SM-220")),
        pytest.param(QUEUE, "Journaling", True, False, marks=pytest.mark.rule("SM-221")),
        pytest.param(QUEUE, "Quota", 3_000_000_000, 0xFFFF_FFFF, marks=pytest.mark.rule("SM-222")),
        pytest.param(QUEUE, "JournalQuota", 0x8000_0000, 0xFFFF_FFFF, marks=pytest.mark.rule("SM-223")),
        pytest.param(QUEUE, "Authentication", True, False, marks=pytest.mark.rule("SM-224")),
        pytest.param(QUEUE, "PrivacyLevel", 2, 1, marks=pytest.mark.rule("SM-225")),
        pytest.param(QUEUE, "Transactional", True, False, marks=pytest.mark.rule("SM-226")),
        pytest.param(QUEUE, "MulticastAddress", "234.1.1.1:8001", "", marks=pytest.mark.rule("SM-227")),
        pytest.param(QUEUE, "BasePriority", -7, 0, marks=pytest.mark.rule("SM-228")),
        pytest.param(
            ObjectType.SITE, "IntraSiteReplicationInterval", 0xFFFF_FFFF, 2, marks=pytest.mark.rule("SM-229")
        ),
        pytest.param(
            ObjectType.SITE, "InterSiteReplicationInterval", 5, 10, marks=pytest.mark.rule("SM-230")
        ),
        pytest.param(ObjectType.SITE, "ForeignSite", True, False, marks=pytest.mark.rule("SM-231")),
        pytest.param(ObjectType.SITE, "MigratedFromMsmq10", True, None, marks=pytest.mark.rule("SM-232")),
        pytest.param(LINK, "Description", "a link", "", marks=pytest.mark.rule("SM-233")),
        pytest.param(LINK, "ActualCost", 7, 1, marks=pytest.mark.rule("SM-234")),
        pytest.param(LINK, "SiteGateIdentifierList", "gates", (), marks=pytest.mark.rule("SM-235")),
        pytest.param(USER, "CertificateDigestList", (DIGESTS[0],), (), marks=pytest.mark.rule("SM-236")),
        pytest.param(USER, "Certificates", b"kept", b"", marks=pytest.mark.rule("SM-237")),
        pytest.param(ENTERPRISE, "WeakenedSecurity", True, False, marks=pytest.mark.rule("SM-238")),
        pytest.param(
            ENTERPRISE,
            "NonLDAPCapableQueueManagerNotification",
            False,
            True,
            marks=pytest.mark.rule("SM-239"),
        ),
        pytest.param(ENTERPRISE, "DefaultTimeToLive", 0xFFFF_FFFF, 345_600, marks=pytest.mark.rule("SM-240")),
        pytest.param(ENTERPRISE, "OldDirectory", False, True, marks=pytest.mark.rule("SM-241")),
    ],
)
def test_what_is_read(kept: Kept, kind: ObjectType, name: str, full: Any, empty: Any) -> None:
    """Value of an attribute that is set, and of one that is absent; None if there is no default."""
    expected = kept.gates if full == "gates" else full
    assert kept.objects[kind, "full"].get(name) == expected
    if (kind, "empty") in kept.objects:  # a user without certificates is not a User of message queuing
        assert kept.objects[kind, "empty"].get(name) == empty


@pytest.mark.long(seconds=10)
@pytest.mark.needs(*NEEDS[0].args, **NEEDS[0].kwargs)
@pytest.mark.timeout(240)
@pytest.mark.rule("SM-008")
def test_the_domain_in_memory_has_the_schema_of_active_directory(controller: DomainController) -> None:
    """Each attribute that is used: its syntax, whether it has several values, and its greatest length."""
    syntaxes = {
        b"2.5.5.1": "name",
        b"2.5.5.4": "text",
        b"2.5.5.5": "text",
        b"2.5.5.8": "boolean",
        b"2.5.5.9": "integer",
        b"2.5.5.10": "octets",
        b"2.5.5.12": "text",
        b"2.5.5.15": "descriptor",
    }
    facts = ("lDAPDisplayName", "attributeSyntax", "isSingleValued", "rangeUpper")
    found = {}
    for entry in controller.search("(attributeSyntax=*)", *facts, base=f"CN=Schema,{CONFIGURATION}"):
        length = int(entry["rangeUpper"][0]) if "rangeUpper" in entry else 0
        several = entry["isSingleValued"] == [b"FALSE"]
        name = entry["lDAPDisplayName"][0].decode()
        found[name] = (syntaxes.get(entry["attributeSyntax"][0], "other"), several, length)
    differing = {name: found.get(name) for name, rule in SCHEMA.items() if not agree(rule, found.get(name))}
    assert differing == {}


def agree(own: tuple[str, bool, int], theirs: tuple[str, bool, int] | None) -> bool:
    """Whether a rule of the domain in memory is that of the schema. It may be stricter in the length."""
    if theirs is None:
        return False
    return own[:2] == theirs[:2] and (not theirs[2] or own[2] in range(theirs[2] + 1) or own[0] == "integer")
