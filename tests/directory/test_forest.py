"""Public queues of other domains of the forest, through the global catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.domain import Domain
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.forest import Catalog
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from tests.support.worlds.activedirectory import DOMAIN, ActiveDirectory

CHILD, OTHER = f"DC=child,{DOMAIN}", "DC=other,DC=example"


def queue(world: ActiveDirectory, computer: str, name: str, domain: str) -> UUID:
    """Make a queue, with its queue manager if need be, as a member of that domain does it."""
    machine = names.child("msmq", f"CN={computer},CN=Computers,{domain}")
    try:
        world.shown(machine)
    except DirectoryError:
        world.computer(computer, domain)
        quotas = {"mSMQQuota": [b"77"], "mSMQComputerTypeEx": [b"5.0"], "mSMQOSType": [b"768"]}
        world.add(machine, {"objectClass": [b"mSMQConfiguration"], **quotas})
    path = names.child(name, machine)
    world.add(path, {"objectClass": [b"mSMQQueue"], "mSMQLabelEx": [name.encode()]})
    return UUID(bytes_le=world.shown(path)["objectguid"][0])


def forest() -> ActiveDirectory:
    world = ActiveDirectory()
    for domain in (CHILD, OTHER):
        world.other_domain(domain)
    return world


def paths(objects: list[DirectoryObject], kind: ObjectType = ObjectType.QUEUE) -> set[str]:
    return {item.get("Pathname") or item["ComputerName"] for item in objects if item.kind is kind}


@pytest.mark.rule("SM-062")
def test_objects_of_all_domains_are_read() -> None:
    world = forest()
    own = queue(world, "ALPHA", "orders", DOMAIN)
    queue(world, "KID", "prices", CHILD)
    queue(world, "FAR", "parcels", OTHER)
    domain = Domain(world)
    found = domain.load().objects
    assert domain.forest_state == "read from the global catalog: the forest has 3 domains"
    assert paths(found) == {r"alpha\orders", r"kid\prices", r"far\parcels"}
    assert [item.identifier for item in found].count(own) == 1
    machines = {item["ComputerName"]: item for item in found if item.kind is ObjectType.QUEUE_MANAGER}
    assert set(machines) == {"ALPHA", "KID", "FAR"}
    assert (machines["ALPHA"]["QueueManagerQuota"], machines["ALPHA"]["QueueManagerVersion"]) == (77, "5.0")
    assert machines["FAR"]["QualifiedComputerName"] == "far.corp.example"
    assert machines["FAR"]["OperatingSystemType"] == 3
    # what the catalog does not have
    assert (machines["FAR"]["QueueManagerQuota"], machines["FAR"]["QueueManagerVersion"]) == (0x10_0000, "")
    assert machines["FAR"]["JournalQuota"] == 0xFFFF_FFFF


def test_a_reading_gives_way_after_each_object() -> None:
    """So that it works for a moment at a time, however many objects are handed over at once."""
    world = forest()
    domain = Domain(world)
    before = domain.load()
    for number in range(10):
        queue(world, "ALPHA", f"orders{number}", DOMAIN)
    handed: list[DirectoryObject] = []
    turns: list[int] = []
    found = domain.load(handed.extend, turn=lambda: turns.append(len(handed)))
    assert len(turns) == len(handed) + len(found.objects) == len(before.objects) + 11


def test_changes_in_other_domains_are_noticed() -> None:
    world = forest()
    queue(world, "KID", "prices", CHILD)
    domain = Domain(world)
    before = domain.load()
    gone = queue(world, "KID", "more", CHILD)
    after = domain.changes(before.controller, before.usn)
    assert paths(after.objects) == {r"kid\more"}
    computer = f"CN=KID,CN=Computers,{CHILD}"
    world.modify(computer, {"dNSHostName": [b"new.corp.example"]})
    renamed = domain.changes(before.controller, after.usn)
    assert {
        item["QualifiedComputerName"] for item in renamed.objects if item.kind is ObjectType.QUEUE_MANAGER
    } == {"new.corp.example"}
    world.delete(f"CN=more,CN=msmq,{computer}")
    assert domain.changes(before.controller, renamed.usn).gone == [gone]


def test_lists_with_members_of_other_domains() -> None:
    world = forest()
    near, far = queue(world, "ALPHA", "near", DOMAIN), queue(world, "FAR", "far", OTHER)
    alias = f"CN=alias,CN=Computers,{OTHER}"  # whose format name the catalog does not have
    address = {"msMQ-Recipient-FormatName": [rb"DIRECT=TCP:10.0.0.1\x"]}
    world.add(alias, {"objectClass": [b"msMQ-Custom-Recipient"], **address})
    members = [
        f"CN=near,CN=msmq,CN=ALPHA,CN=Computers,{DOMAIN}",
        f"CN=far,CN=msmq,CN=FAR,CN=Computers,{OTHER}",
        alias,
    ]
    path = f"CN=list,CN=Computers,{OTHER}"
    world.add(path, {"objectClass": [b"group"], "member": [member.encode() for member in members]})
    identifier = UUID(bytes_le=world.shown(path)["objectguid"][0])
    expected = {f"PUBLIC={near}", f"PUBLIC={far}"}
    domain = Domain(world)
    assert {key: set(names) for key, names in domain.load().lists.items()} == {identifier: expected}
    assert set(domain.members(identifier)) == expected
    # without the catalog, a list elsewhere is not known, and does no harm
    alone = Domain(world, catalog=Catalog.NO)
    assert alone.load().lists == {}


class Closed(ActiveDirectory):
    """A domain that refuses searches for what was deleted."""

    def search(self, *arguments: Any, deleted: bool = False) -> Iterator[Entry]:
        if deleted:
            raise DirectoryError(DirectoryOperationResult.GENERIC_ERROR, "insufficientAccessRights")
        yield from super().search(*arguments)


def test_an_account_that_may_not_see_what_was_deleted_notices_changed_lists() -> None:
    world = Closed()
    domain = Domain(world)
    before = domain.load()
    world.add(f"CN=list,CN=Computers,{DOMAIN}", {"objectClass": [b"group"]})
    after = domain.changes(before.controller, before.usn)
    assert (after.lists_changed, after.gone) == (True, [])
    queue(world, "ALPHA", "orders", DOMAIN)
    later = domain.changes(before.controller, after.usn)
    assert (later.lists_changed, paths(later.objects)) == (False, {r"alpha\orders"})


def test_when_the_catalog_is_read() -> None:
    world = ActiveDirectory()
    queue(world, "ALPHA", "orders", DOMAIN)
    asked = {
        Catalog.AUTO: "not read: the forest has one domain",
        Catalog.YES: 'read from the global catalog: directory.global_catalog = "yes"',
        Catalog.NO: 'not read: directory.global_catalog = "no"',
    }
    for catalog, state in asked.items():
        del world.searches[:]
        domain = Domain(world, catalog=catalog)
        assert paths(domain.load().objects) == {r"alpha\orders"}
        assert domain.forest_state == state
        read = any(base.startswith("catalog:") for base, _, _ in world.searches)
        assert read == (catalog is Catalog.YES)


def test_a_controller_without_catalog() -> None:
    world = forest()
    world.catalog_ready = False
    queue(world, "ALPHA", "orders", DOMAIN)
    queue(world, "FAR", "parcels", OTHER)
    domain = Domain(world)
    assert paths(domain.load().objects) == {r"alpha\orders"}
    assert domain.forest_state == (
        "not read: ldap://dc1.corp.example is not a global catalog (the forest has 3 domains)"
    )


def test_objects_of_other_domains_are_not_changed() -> None:
    world = forest()
    far = queue(world, "FAR", "parcels", OTHER)
    domain = Domain(world)
    (item,) = [one for one in domain.load().objects if one.identifier == far]
    named = DirectoryObject(ObjectType.QUEUE, {"Pathname": item["Pathname"]})
    with pytest.raises(DirectoryError, match="the domain has no computer far"):
        domain.write(named, {"Label": "mine"})


@pytest.mark.parametrize(
    ("path", "domain"),
    [
        ("CN=a,CN=Users,DC=corp,DC=example", "DC=corp,DC=example"),
        (r"CN=a\,DC\=x,DC=corp,DC=example", "DC=corp,DC=example"),
        ("CN=a, dc=corp,DC=example", "dc=corp,DC=example"),
        ("CN=a", ""),
        ("", ""),
    ],
)
def test_the_domain_of_an_object(path: str, domain: str) -> None:
    assert names.domain_of(path) == domain
