"""Which object an operation on a domain means, and what a new object needs (MS-MQDSSM 3.1.6.1 to 3.1.6.7)."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.directory.filters import Sort, equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryOperationResult as Result
from tests.support.worlds.activedirectory import CONFIGURATION, DOMAIN, SITE
from tests.support.worlds.directories import OTHER, machine, queue, result_of, site
from tests.support.worlds.domains import DomainWorld

QUEUE, MANAGER, SITES, LINK = (
    ObjectType.QUEUE,
    ObjectType.QUEUE_MANAGER,
    ObjectType.SITE,
    ObjectType.ROUTING_LINK,
)
KEYS: dict[ObjectType, tuple[str, ...]] = {
    QUEUE: (IDENTIFIER, "FullPath", "DirectoryPath", "Pathname"),
    MANAGER: (IDENTIFIER, "FullPath", "ComputerName"),
    SITES: (IDENTIFIER, "FullPath", "Name"),
    LINK: (IDENTIFIER, "FullPath"),
    ObjectType.USER: (IDENTIFIER, "SecurityIdentifier"),
}
CHANGES: dict[ObjectType, dict[str, Any]] = {
    QUEUE: {"Label": "changed"},
    MANAGER: {"QueueManagerQuota": 77},
    SITES: {"IntraSiteReplicationInterval": 77},
    LINK: {"ActualCost": 77},
    ObjectType.USER: {"Certificates": b"changed"},
}


@pytest.fixture
def world() -> DomainWorld:
    """A domain with an object of each type, and a second one of each that no test may touch."""
    found = DomainWorld()
    sites = []
    for name in ("BETA", "GAMMA"):
        found.home(name)
        found.directory.create(queue(rf"{name}\q", Label=name)).result()
        sites.append(found.directory.create(site(f"site-{name}")).result())
    here = found.directory.read(SITES, (equals("FullPath", SITE),)).result().identifier
    for number, end in enumerate(sites):
        ends = {"Site1Identifier": here, "Site2Identifier": end, "ActualCost": number + 1}
        found.directory.create(DirectoryObject(LINK, ends)).result()
    user = {"SecurityIdentifier": found.user(), "CertificateDigestList": (b"d" * 16,), "Certificates": b"c"}
    found.directory.create(DirectoryObject(ObjectType.USER, user)).result()
    return found


def first(world: DomainWorld, kind: ObjectType) -> DirectoryObject:
    """The object of the tests."""
    conditions = {
        QUEUE: ("Label", "BETA"),
        MANAGER: ("ComputerName", "BETA"),
        SITES: ("Name", "site-BETA"),
        LINK: ("ActualCost", 1),
    }
    wanted = (equals(*conditions[kind]),) if kind in conditions else ()
    return world.directory.read(kind, wanted).result()


@pytest.mark.rule("SM-032", "SM-033", "SM-034", "SM-035", "SM-037")
@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, keys in KEYS.items() for key in keys])
def test_what_identifies_an_object(world: DomainWorld, kind: ObjectType, key: str) -> None:
    known, others = first(world, kind), len(world.objects(kind)) - 1
    named = {key: known[key]}
    world.directory.write(DirectoryObject(kind, named | CHANGES[kind])).result()
    world.restart()
    changed = world.directory.read(kind, (equals(IDENTIFIER, known.identifier),)).result()  # type: ignore[arg-type]
    assert {name: changed[name] for name in CHANGES[kind]} == CHANGES[kind]
    world.directory.delete(DirectoryObject(kind, named)).result()
    world.restart()
    left = world.objects(kind)
    assert len(left) == others
    assert known.identifier not in [item.identifier for item in left]
    assert [item for item in left if set(CHANGES[kind].items()) <= set(item.values.items())] == []


@pytest.mark.rule("SM-032", "SM-033", "SM-034", "SM-035", "SM-037")
@pytest.mark.parametrize("kind", list(KEYS), ids=lambda kind: kind.title)
def test_what_identifies_none(world: DomainWorld, kind: ObjectType) -> None:
    before = world.objects(kind)
    nothing = DirectoryObject(kind, CHANGES[kind])
    for done in (world.directory.write(nothing), world.directory.delete(nothing)):
        assert result_of(done) is Result.GENERIC_ERROR
    assert world.objects(kind) == before


@pytest.mark.rule("SM-037")
def test_an_account_that_is_not_there() -> None:
    world = DomainWorld()
    missing = DirectoryObject(ObjectType.USER, {"SecurityIdentifier": "S-1-5-21-1-2-3-4"})
    assert result_of(world.directory.write(missing)) is Result.OBJECT_NOT_FOUND


@pytest.mark.rule("SM-023", "SM-025", "SM-027", "SM-028")
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (MANAGER, {"QueueManagerQuota": 5}),
        (QUEUE, {"Label": "x"}),
        (SITES, {"IntraSiteReplicationInterval": 5}),
        (LINK, {"Site1Identifier": OTHER, "ActualCost": 5}),
        (LINK, {"Site2Identifier": OTHER, "ActualCost": 5}),
        (LINK, {"Site1Identifier": OTHER, "Site2Identifier": OTHER}),
    ],
)
def test_what_a_new_object_needs(world: DomainWorld, kind: ObjectType, values: dict[str, Any]) -> None:
    before = len(world.objects(kind))
    done = world.directory.create(DirectoryObject(kind, values))
    assert result_of(done) is Result.GENERIC_ERROR
    assert "needs the attribute" in str(done.exception())
    assert len(world.objects(kind)) == before


@pytest.mark.rule("SM-082")
def test_the_parent_of_a_new_object_has_to_be_there(world: DomainWorld) -> None:
    world.account("DELTA")
    for item in (queue(r"DELTA\q"), queue(r"NOWHERE\q"), machine("NOWHERE")):
        assert result_of(world.directory.create(item)) is Result.OBJECT_NOT_FOUND


@pytest.mark.rule("SM-076")
@pytest.mark.parametrize("end", ["Site1Identifier", "Site2Identifier"])
def test_both_ends_of_a_link_have_to_be_there(world: DomainWorld, end: str) -> None:
    here, there = (item.identifier for item in world.objects(SITES))
    ends = {"Site1Identifier": here, "Site2Identifier": there, "ActualCost": 5} | {end: OTHER}
    done = world.directory.create(DirectoryObject(LINK, ends))
    assert result_of(done) is Result.GENERIC_ERROR
    assert str(done.exception()) == f"{end}: the directory has no site {OTHER}"


@pytest.mark.rule("SM-077")
def test_routers_and_gates_that_are_not_there_are_left_out(world: DomainWorld) -> None:
    gate = first(world, MANAGER).identifier
    for kind, name in (
        (MANAGER, "OutRoutingServerIdentifierList"),
        (MANAGER, "InRoutingServerIdentifierList"),
        (LINK, "SiteGateIdentifierList"),
    ):
        own = first(world, kind).identifier
        world.directory.write(DirectoryObject(kind, {IDENTIFIER: own, name: (OTHER, gate)})).result()
        assert first(world, kind)[name] == (gate,)


@pytest.mark.rule("SM-078", "SM-036")
def test_a_gate_that_is_deleted_is_left_out(world: DomainWorld) -> None:
    gate, own = first(world, MANAGER).identifier, first(world, LINK).identifier
    world.directory.write(
        DirectoryObject(LINK, {IDENTIFIER: own, "SiteGateIdentifierList": (gate,)})
    ).result()
    world.directory.delete(machine("BETA")).result()
    world.restart()
    assert first(world, LINK)["SiteGateIdentifierList"] == ()


@pytest.mark.rule("SM-073")
def test_people_in_a_list_are_left_out(world: DomainWorld) -> None:
    users = f"CN=Users,{DOMAIN}"
    person, place = world.memory.user("person")[0], first(world, QUEUE)["FullPath"]
    members = [person.encode(), str(place).encode()]
    world.memory.add(f"CN=mixed,{users}", {"objectClass": [b"group"], "member": members})
    (entry,) = world.memory.search(f"CN=mixed,{users}", 0, "(objectClass=group)", ["objectGUID"])
    found = world.directory.resolve_list(entry.identifier).result()
    assert found == (f"PUBLIC={first(world, QUEUE).identifier}",)


@pytest.mark.rule("SM-074", "SM-075")
@pytest.mark.parametrize("kind", [QUEUE, MANAGER, SITES, LINK], ids=lambda kind: kind.title)
def test_reads(world: DomainWorld, kind: ObjectType) -> None:
    known = first(world, kind)
    for key in (IDENTIFIER, "FullPath"):
        assert world.directory.read(kind, (equals(key, known[key]),)).result() == known
    absent = {IDENTIFIER: OTHER, "FullPath": f"CN=absent,{CONFIGURATION}"}
    for key, value in absent.items():
        assert result_of(world.directory.read(kind, (equals(key, value),))) is Result.OBJECT_NOT_FOUND
    both = (equals(IDENTIFIER, known.identifier), equals("FullPath", absent["FullPath"]))  # type: ignore[arg-type]
    assert result_of(world.directory.read(kind, both)) is Result.OBJECT_NOT_FOUND


@pytest.mark.rule("SM-079")
def test_an_attribute_that_is_absent_and_has_no_default(world: DomainWorld) -> None:
    for kind, name in ((SITES, "MigratedFromMsmq10"), (QUEUE, "QualifiedPathname")):
        if kind is QUEUE:
            world.memory.modify(f"CN=BETA,CN=Computers,{DOMAIN}", {"dNSHostName": []})
            world.restart()
        own = (equals(IDENTIFIER, first(world, kind).identifier),)  # type: ignore[arg-type]
        assert result_of(world.directory.read(kind, own, (name,))) is Result.ATTRIBUTE_NOT_FOUND
        assert result_of(world.directory.read(kind, own)) is Result.SUCCESS


@pytest.mark.rule("SM-055", "SM-059", "SM-067")
def test_what_an_enumeration_shows(world: DomainWorld) -> None:
    world.now += 60
    world.directory.write(queue(r"GAMMA\Q", Label="Z")).result()
    handle = world.directory.begin(QUEUE, (), None, (Sort("ModifyTime", 1, ascending=False),)).result()
    last, before = (world.directory.next(handle).result() for _ in range(2))
    assert (last["Pathname"], last["QualifiedPathname"]) == (r"gamma\q", r"gamma.corp.example\q")
    assert last["ModifyTime"] - 60 == last["CreateTime"] == before["ModifyTime"] == before["CreateTime"]


@pytest.mark.rule("SM-018")
def test_operations_share_a_connection(world: DomainWorld) -> None:
    """The link opens it at the first operation; the domain never closes it."""
    assert world.memory.closed == 0
    for item in list(world.objects()):
        world.directory.delete(item).result()
    assert world.memory.closed == 0
    world.provider.close()
