"""What every provider has to do: the embedded one in memory and on disk, and that of a domain, in memory and
on Samba. Then what a workgroup does.

Where a domain has to differ, a test has one parametrization for the embedded provider, and a neighbour for
the domain that says what is done there instead.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from msmq_fast.directory.filters import Condition, Operator, Sort, equals
from msmq_fast.directory.objects import ATTRIBUTES, IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from msmq_fast.directory.workgroup import WorkgroupDirectory
from msmq_fast.protocol.errors import IllegalFormatName, UnsupportedOperation
from tests.directory.samples import SAMPLES
from tests.support.processes.domain import NEEDS, controller, make_link
from tests.support.worlds.directories import (
    OTHER,
    OWN,
    WALL,
    Local,
    Result,
    World,
    everything,
    machine,
    queue,
    result_of,
    site,
)
from tests.support.worlds.domains import DomainWorld, SambaWorld

__all__ = ["controller"]


EMBEDDED = pytest.mark.parametrize("world", ["memory", "lmdb"], indirect=True)
SAMBA = pytest.param("samba", marks=[*NEEDS, pytest.mark.long(seconds=3)])
IN_DOMAIN = pytest.mark.parametrize("world", ["domain", SAMBA], indirect=True)


@pytest.fixture(params=["memory", "lmdb", "domain", SAMBA])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    match request.param:
        case "domain":
            return DomainWorld()
        case "samba":
            found = request.getfixturevalue("controller")
            return SambaWorld(found, make_link(found))
        case _:
            return World(tmp_path / "store" if request.param == "lmdb" else None)


def guid(number: int) -> UUID:
    return UUID(int=number)


def changed_again(world: World, identifier: UUID) -> DirectoryObject:
    return world.directory.read(ObjectType.QUEUE, (equals(IDENTIFIER, identifier),)).result()


@pytest.mark.rule("DS-01", "DS-11")
@pytest.mark.parametrize("kind", list(ObjectType), ids=lambda kind: kind.title)
def test_every_type_keeps_all_its_attributes_over_a_restart(world: World, kind: ObjectType) -> None:
    if kind not in world.creates:  # MS-MQDSSM 3.1.6.1: they are those of the domain's administrators
        refused = world.directory.create(DirectoryObject(kind, SAMPLES[kind]))
        assert result_of(refused) is Result.GENERIC_ERROR
        return
    given = world.fitted(kind, SAMPLES[kind])
    identifier = world.finish(world.directory.create(DirectoryObject(kind, given)))
    world.restart()
    found = world.directory.read(kind, (equals(IDENTIFIER, identifier),)).result()
    assert [name for name in given if not world.same(name, found[name], given[name])] == []
    assert found.identifier == identifier
    assert set(found.values) <= set(ATTRIBUTES[kind])


@pytest.mark.rule("DS-11")
@pytest.mark.parametrize(
    ("role", "number"),
    [
        ("Standalone", 1),
        ("BackupSiteController", 2),
        ("PrimarySiteController", 3),
        ("PrimaryEnterpriseController", 4),
    ],
)
def test_roles_of_a_directory_server_are_attributes(world: World, role: str, number: int) -> None:
    world.account("BETA")
    named = {"ComputerName": "BETA", "DirectoryServer": True, "DirectoryServerType": role}
    identifier = world.finish(
        world.directory.create(DirectoryObject.from_json(ObjectType.QUEUE_MANAGER, named))
    )
    world.restart()
    found = world.directory.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, identifier),)).result()
    assert found["DirectoryServerType"] == number
    assert found.to_json()["DirectoryServerType"] == role


def test_an_object_has_only_attributes_of_its_type() -> None:
    for values in ({"Label": "x"}, {"Name": 5}, {"Name": "a", IDENTIFIER: "no GUID"}):
        with pytest.raises(ValueError, match=r"attribute|Name|Identifier"):
            DirectoryObject(ObjectType.SITE, values)
    with pytest.raises(ValueError, match="ActualCost: expected a whole number from 1 to 999999"):
        DirectoryObject(ObjectType.ROUTING_LINK, {"ActualCost": 1_000_000})


@pytest.mark.rule("DS-02", "DM-151", "DM-154", "KV-03")
def test_create_read_write_enumerate_and_delete(world: World) -> None:
    directory = world.directory
    identifier = world.finish(directory.create(site("north")))
    assert directory.read(ObjectType.SITE, (equals("Name", "NORTH"),)).result().identifier == identifier
    world.finish(directory.write(site("north", IntraSiteReplicationInterval=9)))
    assert [item["IntraSiteReplicationInterval"] for item in world.objects(ObjectType.SITE)] == [9]
    handle = directory.begin(ObjectType.SITE).result()
    directory.end(handle).result()
    assert result_of(directory.next(handle)) is Result.GENERIC_ERROR
    world.finish(directory.delete(site("north")))
    assert world.objects(ObjectType.SITE) == []
    world.restart()
    assert world.objects(ObjectType.SITE) == []


@pytest.mark.rule("DS-20", "KV-03", "SM-029")
@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (ObjectType.QUEUE, "Pathname"),
        (ObjectType.QUEUE_MANAGER, "ComputerName"),
        (ObjectType.SITE, "Name"),
        (ObjectType.USER, "SecurityIdentifier"),
    ],
)
def test_unique_keys_without_regard_to_case(world: World, kind: ObjectType, key: str) -> None:
    given = world.fitted(kind, SAMPLES[kind])
    identifier = world.finish(world.directory.create(DirectoryObject(kind, given)))
    other = DirectoryObject(kind, given | {key: given[key].swapcase()})
    again = world.directory.create(other)
    if world.chooses_guids and kind is ObjectType.QUEUE_MANAGER:
        assert again.result() == identifier  # MS-MQDSSM 3.1.6.1.1.2: it is the same queue manager
    else:
        assert result_of(again) is Result.OBJECT_ALREADY_EXISTS
    (stored,) = [item for item in everything(world.directory, kind) if item.identifier == identifier]
    world.finish(world.directory.delete(stored))
    world.finish(world.directory.create(other))


@EMBEDDED
@pytest.mark.rule("DS-20", "KV-03")
def test_a_guid_is_given_once_over_all_types(world: World) -> None:
    world.finish(world.directory.create(site("north", Identifier=OTHER)))
    assert result_of(world.directory.create(machine("BETA", OTHER))) is Result.OBJECT_ALREADY_EXISTS


@IN_DOMAIN
def test_a_domain_chooses_the_guids_itself(world: World) -> None:
    """objectGUID is an attribute that the domain controller alone sets (MS-ADTS 3.1.1.1.4)."""
    made = world.directory.create(site("north", Identifier=OTHER)).result()
    assert made != OTHER
    assert world.directory.read(ObjectType.SITE, (equals("Name", "north"),)).result().identifier == made


@pytest.mark.rule("DS-20", "DS-29", "SM-001", "SM-059")
def test_create_sets_times_and_paths(world: World) -> None:
    world.home("BETA")
    world.now = WALL + 5
    world.finish(world.directory.create(queue(r"BETA\orders", CreateTime=1, ModifyTime=2)))
    (found,) = world.objects()
    assert world.stamped(found["CreateTime"])
    assert world.stamped(found["ModifyTime"])
    path = f"CN=orders,CN=msmq,CN=BETA,CN=Computers,{world.root}"
    assert (found["FullPath"], found["DirectoryPath"]) == (path, f"LDAP://{path}")


@pytest.mark.rule("DS-29", "SM-002", "SM-003", "SM-004", "SM-005")
def test_paths_of_the_other_types(world: World) -> None:
    kinds = (ObjectType.QUEUE_MANAGER, ObjectType.SITE, ObjectType.ROUTING_LINK, ObjectType.ENTERPRISE)
    given = {kind: world.fitted(kind, SAMPLES[kind]) for kind in kinds}
    for kind in kinds:
        if kind in world.creates:  # the Enterprise of a domain is there from the beginning
            world.finish(world.directory.create(DirectoryObject(kind, given[kind])))
    ends = given[ObjectType.ROUTING_LINK]
    services = f"CN=MsmqServices,CN=Services,CN=Configuration,{world.root}"
    for kind, path in zip(
        kinds,
        (
            f"CN=msmq,CN=BETA,CN=Computers,{world.root}",
            f"CN=north,CN=Sites,CN=Configuration,{world.root}",
            f"CN={ends['Site1Identifier'].hex}{ends['Site2Identifier'].hex},{services}",
            services,
        ),
        strict=True,
    ):
        found = world.directory.read(kind, (equals("FullPath", path),))
        assert found.result()["FullPath"] == path


@pytest.mark.parametrize(
    "item",
    [
        DirectoryObject(ObjectType.QUEUE, {"Label": "no path"}),
        queue(r"BETA\private$\orders"),
        queue(r"BETA\orders;poison"),
        queue("orders"),
        queue(r"BETA\bad,name"),
        DirectoryObject(ObjectType.ROUTING_LINK, {"Site1Identifier": OWN, "ActualCost": 1}),
    ],
)
def test_what_cannot_be_created(world: World, item: DirectoryObject) -> None:
    world.home("BETA")
    assert result_of(world.directory.create(item)) is Result.GENERIC_ERROR
    assert world.objects(item.kind) == []


@pytest.mark.rule("DS-04", "DM-155", "SM-030")
def test_only_the_listed_attributes_are_created_written_and_read(world: World) -> None:
    world.home("BETA")
    directory = world.directory
    identifier = world.finish(
        directory.create(queue(r"BETA\orders", Label="a", Quota=5), ("Pathname", "Label"))
    )
    assert changed_again(world, identifier).get("Quota") != 5
    world.finish(directory.write(queue(r"BETA\orders", Label="b", Quota=6), ("Quota",)))
    found = changed_again(world, identifier)
    assert (found["Label"], found["Quota"]) == ("a", 6)
    read = directory.read(ObjectType.QUEUE, (), ("Quota",)).result()
    assert dict(read.values) == {IDENTIFIER: identifier, "Quota": 6}


@pytest.mark.rule("DS-21")
def test_write_and_delete_of_what_is_not_there(world: World) -> None:
    for item in (queue(r"BETA\x"), DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: OTHER})):
        assert result_of(world.directory.write(item)) is Result.OBJECT_NOT_FOUND
        assert result_of(world.directory.delete(item)) is Result.OBJECT_NOT_FOUND


@EMBEDDED
@pytest.mark.rule("DS-21", "DU-17", "KV-02")
def test_modify_time_advances_and_never_goes_back(world: World) -> None:
    identifier = world.finish(world.directory.create(queue(r"BETA\orders")))
    for moved, expected in ((10, WALL + 10), (-500, WALL + 10)):
        world.now = WALL + moved
        world.finish(world.directory.write(queue(r"BETA\orders", Label="x")))
        found = changed_again(world, identifier)
        assert (found["ModifyTime"], found["CreateTime"]) == (expected, WALL)


@IN_DOMAIN
def test_the_clock_of_the_domain_controller_sets_the_times(world: World) -> None:
    """whenChanged is an attribute of the domain controller's, whose clock this computer does not correct."""
    world.home("BETA")
    created = world.now
    identifier = world.directory.create(queue(r"BETA\orders")).result()
    world.now += 10
    world.directory.write(queue(r"BETA\orders", Label="x")).result()
    found = changed_again(world, identifier)
    assert world.stamped(found["ModifyTime"])
    assert found["CreateTime"] == created or created == 0
    assert found["CreateTime"] <= found["ModifyTime"]


@pytest.mark.rule("DS-21")
def test_a_write_does_not_change_what_is_fixed(world: World) -> None:
    world.home("BETA")
    identifier = world.finish(world.directory.create(queue(r"BETA\orders", Transactional=True)))
    before = changed_again(world, identifier)
    moved = {IDENTIFIER: identifier, "Pathname": r"BETA\other", "Transactional": False, "FullPath": "CN=x"}
    world.finish(world.directory.write(DirectoryObject(ObjectType.QUEUE, moved | {"CreateTime": 1})))
    assert changed_again(world, identifier) == before


@pytest.mark.rule("DS-22", "DM-155")
def test_the_first_match_is_that_with_the_smallest_guid(world: World) -> None:
    world.home("BETA")
    made = [
        world.finish(world.directory.create(queue(rf"BETA\q{number}", Identifier=guid(number), Label="x")))
        for number in (300, 2, 0x0100_0000_0000_0000)
    ]
    first, second, _third = sorted(made, key=lambda one: one.bytes)
    assert world.directory.read(ObjectType.QUEUE).result().identifier == first
    found = world.directory.read(ObjectType.QUEUE, (Condition("Label", Operator.NOT_EQUALS, "y"),))
    assert found.result().identifier == first
    above = (Condition(IDENTIFIER, Operator.GREATER_THAN, first), equals("Label", "X"))
    assert world.directory.read(ObjectType.QUEUE, above).result().identifier == second


@pytest.mark.rule("DS-22")
def test_attribute_not_found_and_object_not_found(world: World) -> None:
    assert result_of(world.directory.read(ObjectType.QUEUE)) is Result.OBJECT_NOT_FOUND
    world.home("BETA")
    world.finish(world.directory.create(queue(r"BETA\orders")))
    never = ("PrivateQueueNumber",)  # no provider sets it
    assert result_of(world.directory.read(ObjectType.QUEUE, (), never)) is Result.ATTRIBUTE_NOT_FOUND
    assert result_of(world.directory.read(ObjectType.QUEUE, (), ("Name",))) is Result.GENERIC_ERROR
    wrong = (equals("Quota", "many"),)
    assert result_of(world.directory.read(ObjectType.QUEUE, wrong)) is Result.GENERIC_ERROR


@pytest.mark.rule("DS-23", "DM-162", "DM-163", "SM-069")
def test_an_enumeration_shows_what_was_there_when_it_began(world: World) -> None:
    world.home("BETA")
    directory = world.directory
    made = [
        world.finish(directory.create(queue(rf"BETA\q{number}", Identifier=guid(number + 1), Label="old")))
        for number in range(4)
    ]
    handle = directory.begin(ObjectType.QUEUE).result()
    world.finish(directory.delete(queue(r"BETA\q2")))
    world.finish(directory.write(queue(r"BETA\q1", Label="new")))
    world.finish(directory.create(queue(r"BETA\q9", Identifier=guid(9))))
    seen = [directory.next(handle).result() for _ in range(4)]
    in_order = sorted(made, key=lambda one: one.bytes)
    assert [(item.identifier, item["Label"]) for item in seen] == [(one, "old") for one in in_order]
    assert [result_of(directory.next(handle)) for _ in range(2)] == [Result.END_OF_DATA] * 2
    directory.end(handle).result()
    assert result_of(directory.next(handle)) is Result.GENERIC_ERROR
    assert result_of(directory.end(handle)) is Result.GENERIC_ERROR


@pytest.mark.rule("DS-23", "DM-163")
def test_handles_are_limited_and_given_back_with_their_owner(world: World) -> None:
    directory = world.directory
    alice, bob = object(), object()
    for owner in (alice, bob) * 4:
        directory.begin(ObjectType.SITE, owner=owner).result()
    assert result_of(directory.begin(ObjectType.SITE)) is Result.GENERIC_ERROR
    directory.release(alice)
    handles = [directory.begin(ObjectType.SITE, owner=bob).result() for _ in range(4)]
    assert len(set(handles)) == 4
    assert result_of(directory.begin(ObjectType.SITE)) is Result.GENERIC_ERROR


@pytest.mark.rule("DS-23", "DM-161", "SM-067")
def test_sorting_by_priority_then_direction(world: World) -> None:
    world.home("BETA")
    rows = [("b", 2), ("a", 1), ("B", 3), ("c", 1)]
    for number, (label, quota) in enumerate(rows):
        world.finish(world.directory.create(queue(rf"BETA\q{number}", Label=label, Quota=quota)))
    world.finish(world.directory.create(queue(r"BETA\bare")))
    # In a domain, what is not set has the default of MS-MQDSSM 3.1.6.11.2.
    bare = ("", 0xFFFF_FFFF) if world.chooses_guids else (None, None)

    def listed(*order: Sort) -> list[object]:
        handle = world.directory.begin(ObjectType.QUEUE, (), ("Label", "Quota"), order).result()
        found = [world.directory.next(handle).result() for _ in range(5)]
        return [(item.get("Label"), item.get("Quota")) for item in found]

    first = listed(Sort("Quota", 1), Sort("Label", 2, ascending=False))
    assert first == [("c", 1), ("b", 2), ("B", 3), ("a", 1), bare]
    second = listed(Sort("Quota", 9), Sort("Label", 2, ascending=False))
    rest = [("c", 1), ("a", 1), ("b", 2), ("B", 3)]
    assert second == ([*rest, bare] if world.chooses_guids else [bare, *rest])
    assert listed(Sort("Quota", 0, ascending=False), Sort("Label", 1))[0] == bare


@pytest.mark.rule("DS-24", "DS-03", "SM-060")
def test_how_values_compare(world: World) -> None:
    world.account("BETA")
    own = world.finish(
        world.directory.create(machine("BETA", OTHER, SiteIdentifierList=(OWN, OTHER), QueueManagerQuota=9))
    )

    def holds(attribute: str, operator: Operator, value: object) -> bool:
        condition = Condition(attribute, operator, value)  # type: ignore[arg-type]
        return result_of(world.directory.read(ObjectType.QUEUE_MANAGER, (condition,))) is Result.SUCCESS

    assert holds("ComputerName", Operator.EQUALS, "beta")
    assert holds("ComputerName", Operator.LESS_THAN, "GAMMA")
    assert holds("QueueManagerQuota", Operator.LESS_THAN, 10)  # as text it would not
    assert holds("QueueManagerQuota", Operator.GREATER_THAN_OR_EQUAL, 9)
    assert not holds("QueueManagerQuota", Operator.NOT_EQUALS, 9)
    assert holds("SiteIdentifierList", Operator.EQUALS, OWN)
    assert not holds("SiteIdentifierList", Operator.EQUALS, UUID(int=5))
    assert not holds("SiteIdentifierList", Operator.NOT_EQUALS, OWN)
    assert holds(IDENTIFIER, Operator.LESS_THAN_OR_EQUAL, own)
    assert not holds(IDENTIFIER, Operator.GREATER_THAN, own)
    assert not holds("ConnectedNetworkIdentifierList", Operator.NOT_EQUALS, OWN)  # not set
    both = (equals("ComputerName", "BETA"), equals("QueueManagerQuota", 8))
    assert result_of(world.directory.read(ObjectType.QUEUE_MANAGER, both)) is Result.OBJECT_NOT_FOUND


@pytest.mark.rule("DS-25")
def test_distribution_lists_and_machine_sids(world: World) -> None:
    world.home("BETA")
    member = world.finish(world.directory.create(queue(r"BETA\orders")))
    identifier = world.make_list("list-of-contract", member, "DIRECT=OS:a\\b")
    assert set(world.directory.resolve_list(identifier).result()) == {f"PUBLIC={member}", "DIRECT=OS:a\\b"}
    assert result_of(world.directory.resolve_list(OTHER)) is Result.OBJECT_NOT_FOUND
    assert result_of(world.directory.machine_sid("NONE")) is Result.OBJECT_NOT_FOUND


@EMBEDDED
@pytest.mark.rule("DS-25")
def test_the_sid_of_a_computer_is_an_attribute(world: World) -> None:
    world.finish(world.directory.create(machine("BETA", MachineSid="S-1-5-21-9")))
    world.finish(world.directory.create(machine("GAMMA")))
    assert world.directory.machine_sid("beta").result() == "S-1-5-21-9"
    assert result_of(world.directory.machine_sid("GAMMA")) is Result.ATTRIBUTE_NOT_FOUND


@IN_DOMAIN
@pytest.mark.rule("DS-25")
def test_the_sid_of_a_computer_is_that_of_its_account(world: World) -> None:
    """The domain gives each account a SID, whether the computer has a queue manager or not."""
    world.home("BETA")
    world.account("GAMMA")
    found = [world.directory.machine_sid(name).result() for name in ("beta", "GAMMA")]
    assert len(set(found)) == 2
    assert all(one.startswith("S-1-5-21-") for one in found)


@IN_DOMAIN
@pytest.mark.rule("SM-216")
def test_a_change_of_a_computer_is_one_of_its_queue_manager_and_queues(world: DomainWorld) -> None:
    world.home("BETA")
    world.directory.create(queue(r"BETA\orders")).result()
    world.restart()  # from here on, only the computer changes
    keys = {"dNSHostName": [b"new.corp.example"], "mSMQSignCertificates": [b"keys"]}
    world.link.modify(f"CN=BETA,CN=Computers,{world.root}", keys)
    wanted = (equals("ComputerName", "BETA"),)
    found = world.directory.read(ObjectType.QUEUE_MANAGER, wanted, force=True).result()
    assert (found["QualifiedComputerName"], found["PublicSigningKeyList"]) == ("new.corp.example", b"keys")
    (item,) = world.objects()
    assert item["QualifiedPathname"] == r"new.corp.example\orders"


# ---- the workgroup


@pytest.mark.rule("DS-05")
def test_a_workgroup_publishes_nothing() -> None:
    directory = WorkgroupDirectory(Local())
    assert not directory.integrated
    for done in (directory.create(queue(r"HOST\q")), directory.delete(site("s")), directory.write(site("s"))):
        with pytest.raises(DirectoryError) as refused:
            done.result()
        assert isinstance(refused.value.for_applications(), UnsupportedOperation)
    assert result_of(directory.resolve_list(OTHER)) is Result.OBJECT_NOT_FOUND
    assert result_of(directory.machine_sid("HOST")) is Result.OBJECT_NOT_FOUND


@pytest.mark.rule("DS-05")
def test_a_workgroup_knows_its_own_objects() -> None:
    own = queue(r"HOST\private$\a", Identifier=OTHER, Label="x")
    directory = WorkgroupDirectory(Local(own))
    assert directory.read(ObjectType.QUEUE, (equals("Label", "X"),)).result() == own
    assert directory.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, OWN),)).result().identifier == OWN
    assert result_of(directory.read(ObjectType.QUEUE, (equals("Label", "y"),))) is Result.OBJECT_NOT_FOUND
    assert result_of(directory.read(ObjectType.SITE)) is Result.OBJECT_NOT_FOUND
    assert result_of(directory.read(ObjectType.QUEUE, (), ("Quota",))) is Result.ATTRIBUTE_NOT_FOUND
    assert everything(directory, ObjectType.QUEUE) == [own]
    assert everything(directory, ObjectType.USER) == []


# ---- what applications are told


@pytest.mark.rule("DS-30")
@pytest.mark.parametrize(
    ("result", "kind", "code"),
    [
        (Result.OBJECT_NOT_FOUND, ObjectType.QUEUE, 0xC00E0003),
        (Result.OBJECT_NOT_FOUND, ObjectType.QUEUE_MANAGER, 0xC00E000D),
        (Result.OBJECT_ALREADY_EXISTS, ObjectType.QUEUE, 0xC00E0005),
        (Result.NOT_CONNECTED, ObjectType.QUEUE, 0xC00E0013),
        (Result.NOT_CONNECTED, None, 0xC00E0013),
        (Result.GENERIC_ERROR, ObjectType.QUEUE, 0xC00E0043),
        (Result.OBJECT_NOT_FOUND, ObjectType.SITE, 0xC00E0043),
    ],
)
def test_hresults(result: Result, kind: ObjectType | None, code: int) -> None:
    error = DirectoryError(result, "why", kind=kind).for_applications()
    assert (error.code, error.detail) == (code, "why")


def test_a_given_refusal_goes_before_the_table() -> None:
    refusal = IllegalFormatName("x")
    assert DirectoryError(Result.GENERIC_ERROR, "y", refusal=refusal).for_applications() is refusal
