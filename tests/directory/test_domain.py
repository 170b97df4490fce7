"""Objects in Active Directory: what is written is what Windows writes, seen by another program; what others
wrote is read; lists, users, refusals and hostile names.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from msmq_fast.directory.filters import Condition, Operator, equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from msmq_fast.directory.results import DirectoryOperationResult as Result
from msmq_fast.protocol.errors import AccessDenied
from tests.support.processes.domain import NEEDS, computer, controller, make_provider, provider
from tests.support.processes.samba import CONFIGURATION, DOMAIN, SITE, DomainController
from tests.support.worlds.directories import machine, queue, result_of, site

if TYPE_CHECKING:
    from msmq_fast.directory.ldap.provider import LdapDirectory

__all__ = ["computer", "controller", "provider"]

pytestmark = [*NEEDS, pytest.mark.long(seconds=5)]

NOBODY = UUID("00112233-4455-6677-8899-aabbccddeeff")


def site_of(provider: LdapDirectory) -> UUID:
    found = provider.read(ObjectType.SITE, (equals("Name", "Default-First-Site-Name"),)).result().identifier
    assert found is not None
    return found


def one(entries: list[dict[str, list[bytes]]]) -> dict[str, list[bytes]]:
    (entry,) = entries
    return entry


def test_a_queue_is_written_as_windows_writes_it(
    controller: DomainController, provider: LdapDirectory, computer: str
) -> None:
    provider.create(machine(computer)).result()
    given = {
        "Label": "Grüße",
        "Type": NOBODY,
        "Journaling": True,
        "Quota": 0xFFFF_FFFF,
        "JournalQuota": 3_000_000_000,
        "Authentication": True,
        "PrivacyLevel": 2,
        "Transactional": True,
        "MulticastAddress": "234.1.1.1:8001",
        "BasePriority": -7,
    }
    identifier = provider.create(queue(rf"{computer}\Orders", **given)).result()
    path = f"CN=Orders,CN=msmq,CN={computer},CN=Computers,{DOMAIN}"
    entry = one(controller.search(f"(distinguishedName={path})", "*"))
    assert {name: values for name, values in entry.items() if "msmq" in name.lower()} == {
        "mSMQLabelEx": ["Grüße".encode()],
        "mSMQQueueType": [NOBODY.bytes_le],
        "mSMQJournal": [b"TRUE"],
        "mSMQQueueQuota": [b"-1"],
        "mSMQQueueJournalQuota": [b"-1294967296"],
        "mSMQAuthenticate": [b"TRUE"],
        "mSMQPrivacyLevel": [b"2"],
        "mSMQTransactional": [b"TRUE"],
        "MSMQ-MulticastAddress": [b"234.1.1.1:8001"],
        "mSMQBasePriority": [b"-7"],
    }
    assert entry["objectClass"][-1] == b"mSMQQueue"
    assert entry["objectGUID"] == [identifier.bytes_le]
    found = provider.read(ObjectType.QUEUE, (equals(IDENTIFIER, identifier),)).result()
    assert {name: found[name] for name in given} == given
    assert (found["FullPath"], found["DirectoryPath"]) == (path, f"LDAP://{path}")
    assert found["Pathname"] == rf"{computer}\orders".lower()
    assert found["QualifiedPathname"] == rf"{computer}.corp.example\orders".lower()
    provider.write(queue(rf"{computer}\Orders", Label="", Quota=7, Transactional=False)).result()
    entry = one(controller.search(f"(distinguishedName={path})", "*"))
    assert "mSMQLabelEx" not in entry
    assert (entry["mSMQQueueQuota"], entry["mSMQTransactional"]) == ([b"7"], [b"TRUE"])
    provider.delete(queue(rf"{computer}\Orders")).result()
    assert controller.search(f"(distinguishedName={path})") == []


def test_a_router_is_written_with_its_settings(
    controller: DomainController, provider: LdapDirectory, computer: str
) -> None:
    here = site_of(provider)
    given = machine(
        computer,
        RoutingServer=True,
        RemoteAccessServer=True,
        QueueManagerQuota=5,
        OperatingSystemType=5,
        PublicEncryptionKeyList=b"keys",
        PublicSigningKeyList=b"certificates",
    )
    identifier = provider.create(given).result()
    assert provider.create(given).result() == identifier  # it is the same queue manager
    path = f"CN=msmq,CN={computer},CN=Computers,{DOMAIN}"
    entry = one(controller.search(f"(distinguishedName={path})", "*"))
    assert {name: values for name, values in entry.items() if "msmq" in name.lower()} == {
        "mSMQOSType": [b"1280"],
        "mSMQServiceType": [b"17"],
        "mSMQQuota": [b"5"],
        "mSMQSites": [here.bytes_le],
        "mSMQRoutingServices": [b"TRUE"],
        "mSMQEncryptKey": [b"keys"],
    }
    settings = one(controller.search(f"(mSMQQMID={escaped(identifier.bytes_le)})", "*", base=CONFIGURATION))
    assert settings["dn"] == [f"CN=MSMQ Settings,CN={computer},CN=Servers,{SITE}".encode()]
    assert (settings["mSMQServices"], settings["mSMQRoutingService"]) == ([b"17"], [b"TRUE"])
    account = one(controller.search(f"(&(objectClass=computer)(cn={computer}))", "mSMQSignCertificates"))
    assert account["mSMQSignCertificates"] == [b"certificates"]
    found = provider.read(ObjectType.QUEUE_MANAGER, (equals("ComputerName", computer),)).result()
    assert found["RemoteAccessServer"] is True
    assert found["QualifiedComputerName"] == f"{computer.lower()}.corp.example"
    assert provider.machine_sid(computer).result().startswith("S-1-5-21-")


def escaped(data: bytes) -> str:
    return "".join(f"\\{byte:02x}" for byte in data)


def test_sites_and_their_links(controller: DomainController, provider: LdapDirectory, computer: str) -> None:
    gate = provider.create(machine(computer, RoutingServer=True)).result()
    here, there = site_of(provider), provider.create(site("north", ForeignSite=False)).result()
    link = DirectoryObject(
        ObjectType.ROUTING_LINK,
        {
            "Site1Identifier": here,
            "Site2Identifier": there,
            "ActualCost": 7,
            "SiteGateIdentifierList": (gate,),
        },
    )
    identifier = provider.create(link).result()
    entry = one(controller.search("(objectClass=mSMQSiteLink)", "*", base=CONFIGURATION))
    assert entry["cn"] == [f"{here.hex}{there.hex}".encode()]
    assert (entry["mSMQCost"], entry["mSMQSite1"]) == ([b"7"], [SITE.encode()])
    assert entry["mSMQSiteGates"] == [f"CN=msmq,CN={computer},CN=Computers,{DOMAIN}".encode()]
    found = provider.read(ObjectType.ROUTING_LINK, (equals(IDENTIFIER, identifier),)).result()
    assert (found["Site2Identifier"], found["SiteGateIdentifierList"]) == (there, (gate,))
    lost = link.changed({"Site2Identifier": NOBODY})
    assert result_of(provider.create(lost)) is Result.GENERIC_ERROR


def test_what_others_wrote_is_read_with_its_defaults(controller: DomainController, computer: str) -> None:
    place = f"CN={computer},CN=Computers,{DOMAIN}"
    controller.ldif(f"dn: CN=msmq,{place}\nchangetype: add\nobjectClass: mSMQConfiguration\n")
    long = "l" * 55 + "-12345678"
    for name, more in (("bare", ""), (long, "mSMQQueueNameExt: rest-of-it\nmSMQLabelEx: long\n")):
        controller.ldif(f"dn: CN={name},CN=msmq,{place}\nchangetype: add\nobjectClass: mSMQQueue\n{more}")
    provider = make_provider(controller)
    bare = provider.read(ObjectType.QUEUE, (equals("Pathname", rf"{computer}\bare"),)).result()
    assert {name: bare[name] for name in ("Label", "Quota", "PrivacyLevel", "Journaling", "Type")} == {
        "Label": "",
        "Quota": 0xFFFF_FFFF,
        "PrivacyLevel": 1,
        "Journaling": False,
        "Type": UUID(int=0),
    }
    cut = provider.read(ObjectType.QUEUE, (equals("Label", "long"),)).result()
    assert cut["Pathname"] == rf"{computer}\{'l' * 55}rest-of-it".lower()
    own = provider.read(ObjectType.QUEUE_MANAGER, (equals("ComputerName", computer),)).result()
    assert (own["QueueManagerQuota"], own["SiteIdentifierList"]) == (0x0010_0000, ())


def test_refusals(controller: DomainController, provider: LdapDirectory, computer: str) -> None:
    assert result_of(provider.create(machine("NONE"))) is Result.OBJECT_NOT_FOUND
    assert result_of(provider.create(queue(rf"{computer}\q"))) is Result.OBJECT_NOT_FOUND  # no parent
    provider.create(machine(computer)).result()
    provider.create(queue(rf"{computer}\q")).result()
    assert result_of(provider.create(queue(rf"{computer}\Q"))) is Result.OBJECT_ALREADY_EXISTS
    for kind in (ObjectType.CONNECTED_NETWORK, ObjectType.DISTRIBUTION_LIST):
        assert result_of(provider.create(DirectoryObject(kind, {"Name": "x"}))) is Result.GENERIC_ERROR
    long = provider.create(queue(rf"{computer}\long", Label="x" * 125)).exception()
    assert str(long) == "the label has 125 characters; a domain keeps at most 124"
    provider.create(queue(rf"{computer}\long", Label="x" * 124)).result()
    for item in (queue(rf"{computer}\none"), DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: NOBODY})):
        assert result_of(provider.write(item)) is Result.OBJECT_NOT_FOUND
        assert result_of(provider.delete(item)) is Result.OBJECT_NOT_FOUND
    controller.user("ordinary")
    ordinary = make_provider(controller, "ordinary@CORP.EXAMPLE")
    found = ordinary.read(ObjectType.QUEUE, (equals("Pathname", rf"{computer}\q"),)).result()
    for denied in (
        ordinary.create(queue(rf"{computer}\mine")),
        ordinary.write(found.changed({"Label": "mine"}), ("Label",)),
        ordinary.delete(found),
    ):
        error = denied.exception()
        assert isinstance(error, DirectoryError)
        assert isinstance(error.for_applications(), AccessDenied)


def test_lists_with_queues_aliases_and_themselves(
    controller: DomainController, provider: LdapDirectory, computer: str
) -> None:
    provider.create(machine(computer)).result()
    first = provider.create(queue(rf"{computer}\first")).result()
    at = f"CN=first,CN=msmq,CN={computer},CN=Computers,{DOMAIN}"
    alias = f"CN={computer}-alias,CN=Users,{DOMAIN}"
    inner, outer = (f"CN={computer}-{name},CN=Users,{DOMAIN}" for name in ("inner", "outer"))
    controller.ldif(
        f"dn: {alias}\nchangetype: add\nobjectClass: msMQ-Custom-Recipient\n"
        "msMQ-Recipient-FormatName: DIRECT=TCP:10.0.0.9\\other\n"
    )
    for path, members in ((inner, (alias,)), (outer, (at, inner))):
        lines = "".join(f"member: {member}\n" for member in members)
        controller.ldif(f"dn: {path}\nchangetype: add\nobjectClass: group\n{lines}")
    controller.ldif(f"dn: {inner}\nchangetype: modify\nadd: member\nmember: {outer}\n")
    wanted = {f"PUBLIC={first}", "DIRECT=TCP:10.0.0.9\\other"}
    for path in (inner, outer):
        entry = one(controller.search(f"(distinguishedName={path})", "objectGUID"))
        identifier = UUID(bytes_le=entry["objectGUID"][0])
        assert set(provider.resolve_list(identifier).result()) == wanted
        assert set(make_provider(controller).resolve_list(identifier).result()) == wanted
    assert result_of(provider.resolve_list(NOBODY)) is Result.OBJECT_NOT_FOUND


def test_users_are_found_by_a_certificate(controller: DomainController, provider: LdapDirectory) -> None:
    path = controller.user("signer")
    digest = bytes(range(16))
    entry = one(controller.search(f"(distinguishedName={path})", "objectSid"))
    account = DirectoryObject(
        ObjectType.USER,
        {"SecurityIdentifier": text_of(entry["objectSid"][0]), "CertificateDigestList": (digest,)},
    )
    identifier = provider.create(account.changed({"Certificates": b"certificate"})).result()
    assert result_of(provider.create(account)) is Result.OBJECT_ALREADY_EXISTS
    found = (
        make_provider(controller).read(ObjectType.USER, (equals("CertificateDigestList", digest),)).result()
    )
    assert (found.identifier, found["Certificates"]) == (identifier, b"certificate")
    provider.delete(account).result()
    entry = one(controller.search(f"(distinguishedName={path})", "mSMQDigests"))
    assert set(entry) == {"dn"}


def text_of(data: bytes) -> str:
    parts = [int.from_bytes(data[at : at + 4], "little") for at in range(8, len(data), 4)]
    return "-".join(["S-1", str(int.from_bytes(data[2:8])), *map(str, parts)])


NAMES = (
    "*)(objectClass=*", "a)(cn=*", "(|(cn=*))", "\\2a", "a,CN=Users", "a+b=c", "#a", " a", "a ", 'a"b',
    "a<b>;c", "a/b", "ä€𝄞", "a\\,b", "CN=x", "=", "%00", "a;b",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_a_name_and_no_filter(provider: LdapDirectory, computer: str, name: str) -> None:
    provider.create(machine(computer)).result()
    before = provider.count(ObjectType.QUEUE)
    assert result_of(provider.machine_sid(name)) in (Result.OBJECT_NOT_FOUND, Result.GENERIC_ERROR)
    assert result_of(provider.create(machine(name))) is not Result.SUCCESS
    made = provider.create(queue(f"{computer}\\{name}", Label=name))
    if made.exception() is None:
        (found,) = list(everything(provider, equals("Label", name)))
        assert found["Pathname"] == f"{computer}\\{name}".lower().replace(
            f"{computer.lower()}\\", f"{computer.lower()}\\"
        )
        provider.delete(found).result()
    assert provider.count(ObjectType.QUEUE) == before


def everything(provider: LdapDirectory, condition: Condition) -> list[DirectoryObject]:
    handle = provider.begin(ObjectType.QUEUE, (condition,)).result()
    found = []
    while (step := provider.next(handle)).exception() is None:
        found.append(step.result())
    return found


def test_what_others_change_and_delete_is_noticed(
    controller: DomainController, provider: LdapDirectory, computer: str
) -> None:
    provider.create(machine(computer)).result()
    other = make_provider(controller)
    identifier = other.create(queue(rf"{computer}\q", Label="new")).result()
    wanted = (equals(IDENTIFIER, identifier),)
    assert result_of(provider.read(ObjectType.QUEUE, wanted)) is Result.OBJECT_NOT_FOUND
    assert provider.read(ObjectType.QUEUE, wanted, force=True).result()["Label"] == "new"
    other.write(DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: identifier, "Label": "changed"})).result()
    assert provider.read(ObjectType.QUEUE, wanted, force=True).result()["Label"] == "changed"
    other.delete(DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: identifier})).result()
    assert result_of(provider.read(ObjectType.QUEUE, wanted, force=True)) is Result.OBJECT_NOT_FOUND


def test_more_queues_than_a_page(
    controller: DomainController, provider: LdapDirectory, computer: str
) -> None:
    provider.create(machine(computer)).result()
    place = f"CN=msmq,CN={computer},CN=Computers,{DOMAIN}"
    label = base64.b64encode(computer.encode()).decode()
    controller.ldif(
        "\n".join(
            f"dn: CN=q{number},{place}\nchangetype: add\nobjectClass: mSMQQueue\nmSMQLabelEx:: {label}\n"
            for number in range(1_204)
        )
    )
    found = everything(make_provider(controller), Condition("Label", Operator.EQUALS, computer))
    assert len({item["Pathname"] for item in found}) == 1_204
    provider.delete(machine(computer)).result()
    assert controller.search(f"(mSMQLabelEx={computer})") == []
