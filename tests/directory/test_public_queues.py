"""Public queues: queue and directory object in one unit, names that the directory resolves, notifications."""

from __future__ import annotations

import errno
import itertools
from random import Random
from uuid import UUID

import pytest

from msmq_fast.directory.filters import equals
from msmq_fast.directory.notices import Change
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.hops import Target
from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from msmq_fast.qm.access import Access
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.settings import DirectoryMode
from tests.directory.noticeparser import parse_notice
from tests.directory.scripted import ScriptedDirectory
from tests.support.worlds.channels import context
from tests.support.worlds.directories import everything, machine, queue, site
from tests.support.worlds.queue_manager import World, body

BETA = UUID("bbbbbbbb-0000-4000-8000-000000000000")
REMOTE = UUID("cccccccc-0000-4000-8000-000000000000")


@pytest.fixture
def world() -> World:
    return World()


def objects(world: World, kind: ObjectType = ObjectType.QUEUE) -> list[DirectoryObject]:
    return everything(world.manager.directory.events.provider, kind)


def put(world: World, *items: DirectoryObject) -> None:
    for item in items:
        world.finish(world.manager.directory_changes.create(item))


def public(world: World, name: str = r".\orders", **properties: object) -> Queue:
    return world.create(name, **properties)


def scripted(world: World, *, provisioning: bool = True) -> ScriptedDirectory:
    """Start the queue manager again over a provider that does what a test says."""
    inner = world.manager.directory.events.provider
    script = ScriptedDirectory(inner)
    world.manager = QueueManager(world.store, world.settings, world.clock, world.random, script)
    return script


# ---- create, change, delete


@pytest.mark.rule("DM-060", "DU-10", "DS-27")
def test_a_public_queue_and_its_object_are_created_together(world: World) -> None:
    done = world.manager.create_queue(r".\orders", label="new", transactional=True)
    assert not done.done
    world.crash()
    assert (objects(world), [one for one in world.manager.queues() if one.kind is QueueKind.PUBLIC]) == (
        [],
        [],
    )
    created = public(world, label="new", transactional=True)
    world.crash()
    found = world.manager.find(r".\orders")
    (item,) = objects(world)
    assert item.identifier == found.guid == created.guid
    assert (item["Pathname"], item["Label"], item["Transactional"]) == (r"HOST\orders", "new", True)
    assert item["QualifiedPathname"] == r"HOST.example.net\orders"
    assert found.full_path == item["FullPath"] == "CN=orders,CN=msmq,CN=HOST,CN=Computers,DC=example,DC=net"
    assert found.directory_path == f"LDAP://{item['FullPath']}"


@pytest.mark.rule("DM-060")
def test_what_the_directory_refuses_leaves_nothing_behind(world: World) -> None:
    put(world, machine("BETA", BETA))
    provider = world.manager.directory.events.provider
    world.finish(provider.create(queue(r"HOST\orders")))  # an object without its queue
    before = objects(world)
    with pytest.raises(errors.QueueExists):
        world.finish(world.manager.create_queue(r".\orders"))
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(r".\orders")
    assert objects(world) == before
    world.crash()
    assert objects(world) == []  # in a directory of its own such an object is what a crash left
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(r".\orders")


@pytest.mark.rule("DM-060", "DS-27")
def test_a_public_queue_whose_commit_is_not_kept_is_not_there(world: World) -> None:
    world.writer.fail_commit(1, errno.ENOSPC)
    done = world.manager.create_queue(r".\orders")
    world.run()
    assert isinstance(done.exception(), errors.MessageStorageFailed)
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(r".\orders")
    assert objects(world) == []
    public(world)
    assert len(objects(world)) == 1


@pytest.mark.rule("DM-060", "DM-067", "DS-27")
def test_every_store_call_of_creating_and_deleting_may_fail(world: World) -> None:
    """Queue and object are both there or both not, before and after a restart."""

    def state(world: World) -> tuple[int, int]:
        queues = [one for one in world.manager.queues() if one.kind is QueueKind.PUBLIC]
        return len(queues), len(objects(world))

    injected = 0
    for operation in ("create_queue", "delete_queue"):
        for nth in itertools.count(1):
            world = World()
            if operation == "delete_queue":
                public(world)
            world.writer.fail_call(nth)
            try:
                done = getattr(world.manager, operation)(r".\orders")
                world.run()
                failed = done.exception() is not None
            except Exception:
                failed = True
            if not failed:
                break
            injected += 1
            assert state(world) in ((0, 0), (1, 1))
            world.crash()
            assert state(world) in ((0, 0), (1, 1))
    assert injected >= 4


@pytest.mark.rule("DM-067", "DU-09", "DM-154")
def test_a_public_queue_and_its_object_go_together(world: World) -> None:
    public(world)
    world.manager.delete_queue(r".\orders")
    world.crash()
    assert len(objects(world)) == 1
    assert world.manager.find(r".\orders").kind is QueueKind.PUBLIC
    world.finish(world.manager.delete_queue(r".\orders"))
    world.crash()
    assert objects(world) == []
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(r".\orders")


@pytest.mark.rule("DM-067", "DS-30")
def test_a_directory_that_refuses_to_delete_is_heard(world: World) -> None:
    public(world)
    script = scripted(world)
    world.manager.start()
    world.run()
    script.script.append(DirectoryError(DirectoryOperationResult.GENERIC_ERROR, "not now"))
    with pytest.raises(errors.MSMQError, match="not now") as refused:
        world.finish(world.manager.delete_queue(r".\orders"))
    assert refused.value.code == 0xC00E0043
    assert world.manager.find(r".\orders").guid == objects(world)[0].identifier


@pytest.mark.rule("DU-17", "DS-27")
def test_properties_are_written_through(world: World) -> None:
    made = public(world, quota_kb=5)
    world.clock.advance(10)
    world.manager.tick()
    done = world.manager.set_properties(made, label="x", quota_kb=7)
    world.crash()
    found = world.manager.find(r".\orders")
    assert (found.properties.quota_kb, objects(world)[0]["Quota"]) == (5, 5)
    world.manager.tick()
    world.finish(world.manager.set_properties(found, label="x", quota_kb=7, base_priority=3))
    assert done is not None
    (item,) = objects(world)
    assert (item["Label"], item["Quota"], item["BasePriority"]) == ("x", 7, 3)
    world.crash()
    assert objects(world) == [item]
    assert world.manager.find(r".\orders").properties.quota_kb == 7


def test_wrong_properties_change_neither_queue_nor_object(world: World) -> None:
    made = public(world, label="a")
    with pytest.raises(errors.IllegalPropertyValue):
        world.manager.set_properties(made, label="b", quota_kb=-1)
    world.run()
    assert (made.label, objects(world)[0]["Label"]) == ("a", "a")


# ---- through the directory


def test_an_object_of_an_own_queue_is_the_queue(world: World) -> None:
    changes = world.manager.directory_changes
    wanted = queue(r"HOST\orders", Identifier=REMOTE, Label="a", Transactional=True)
    assert world.finish(changes.create(wanted)) == REMOTE
    made = world.manager.find(f"PUBLIC={REMOTE}")
    assert (made.label, made.transactional) == ("a", True)
    world.finish(changes.write(DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: REMOTE, "Label": "b"})))
    assert (made.label, objects(world)[0]["Label"]) == ("b", "b")
    world.finish(changes.delete(queue(r"HOST\Orders")))
    assert objects(world) == []
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(r".\orders")


def test_the_running_queue_manager_is_not_deleted(world: World) -> None:
    done = world.manager.directory_changes.delete(machine("HOST", world.manager.guid))
    assert isinstance(done.exception(), DirectoryError)
    assert len(objects(world, ObjectType.QUEUE_MANAGER)) == 1


# ---- the own object, and older stores


@pytest.mark.rule("DM-009", "DM-004")
def test_the_own_object_is_kept_current(world: World) -> None:
    (own,) = objects(world, ObjectType.QUEUE_MANAGER)
    assert own.identifier == world.manager.guid
    assert (own["ComputerName"], own["QualifiedComputerName"]) == ("HOST", "HOST.example.net")
    put(world, site("north", Identifier=REMOTE))
    provider = world.manager.directory.events.provider
    world.finish(provider.write(own.changed({"SiteIdentifierList": (REMOTE,)})))
    public(world)
    world.settings = World(computer_name="RENAMED", domain="", quota_kb=77).settings
    world.crash()
    (own,) = objects(world, ObjectType.QUEUE_MANAGER)
    assert (own["ComputerName"], own["QualifiedComputerName"]) == ("RENAMED", "RENAMED")
    assert (own["QueueManagerQuota"], own["SiteIdentifierList"]) == (77, (REMOTE,))
    assert [item["Pathname"] for item in objects(world)] == [r"RENAMED\orders"]
    assert list(world.manager.directory.topology.sites) == [REMOTE]


@pytest.mark.rule("X-01")
def test_sites_are_read_again_as_often_as_the_settings_say() -> None:
    world = World(sites_interval=100.0, gates_interval=1e6)
    put(world, site("north", Identifier=REMOTE, IntraSiteReplicationInterval=1))
    (own,) = objects(world, ObjectType.QUEUE_MANAGER)
    provider = world.manager.directory.events.provider
    world.finish(provider.write(own.changed({"SiteIdentifierList": (REMOTE,)})))
    world.crash()
    publication = world.manager.directory
    changed = {IDENTIFIER: REMOTE, "IntraSiteReplicationInterval": 2}
    world.finish(publication.events.provider.write(DirectoryObject(ObjectType.SITE, changed)))
    for seconds, found in ((99, 1), (2, 2)):
        world.advance(seconds)
        assert publication.topology.sites[REMOTE]["IntraSiteReplicationInterval"] == found


@pytest.mark.rule("DM-005")
def test_the_configured_site_at_the_first_start() -> None:
    world = World(site=REMOTE)
    assert objects(world, ObjectType.QUEUE_MANAGER)[0]["SiteIdentifierList"] == (REMOTE,)


def test_public_queues_of_a_store_without_directory_are_published(world: World) -> None:
    made = public(world)
    provider = world.manager.directory.events.provider
    world.finish(provider.delete(objects(world)[0]))
    world.crash()
    assert [item.identifier for item in objects(world)] == [made.guid]


# ---- names


def remote(world: World, **values: object) -> None:
    put(
        world,
        machine("BETA", BETA, QualifiedComputerName="beta.example.net"),
        queue(r"BETA\orders", Identifier=REMOTE, **values),
    )


@pytest.mark.rule("DM-078")
def test_a_public_name_of_an_own_queue(world: World) -> None:
    made = public(world)
    handle = world.manager.open(f"PUBLIC={made.guid}", Access.SEND)
    assert handle.queue is made
    world.finish(handle.send(Message(body=b"hello")))
    assert world.receive(r".\orders") == b"hello"


@pytest.mark.rule("DM-078")
def test_a_public_name_that_the_directory_does_not_have(world: World) -> None:
    with pytest.raises(errors.UnsupportedFormatNameOperation):
        world.manager.open(f"PUBLIC={REMOTE}", Access.SEND)
    provider = world.manager.directory.events.provider
    world.finish(provider.create(queue(r"HOST\gone", Identifier=REMOTE)))
    with pytest.raises(errors.QueueNotFound):
        world.manager.open(f"PUBLIC={REMOTE}", Access.SEND)
    assert not list(world.manager.outgoing())


@pytest.mark.rule("DM-076", "DM-078", "DM-080")
def test_a_public_name_of_another_computer(world: World) -> None:
    remote(world, BasePriority=9)
    world.run()
    for access in (Access.RECEIVE, Access.PEEK):
        with pytest.raises(errors.QueueNotFound):
            world.manager.open(f"PUBLIC={REMOTE}", access)
    handle = world.manager.open(f"PUBLIC={REMOTE}", Access.SEND)
    outgoing = handle.queue
    assert isinstance(outgoing, OutgoingQueue)
    assert (str(outgoing.destination), outgoing.properties.base_priority) == (f"PUBLIC={REMOTE}", 9)
    assert world.manager.open(f"public={str(REMOTE).upper()}", Access.SEND).queue is outgoing
    world.finish(handle.send(Message(body=b"hello", delivery=1)))  # type: ignore[arg-type]
    world.crash()
    found = world.manager.find(f"PUBLIC={REMOTE}")
    assert (found.messages, found.properties.base_priority) == (1, 9)


def target(world: World, name: str) -> Target:
    outgoing = world.manager.open(name, Access.SEND).queue
    assert isinstance(outgoing, OutgoingQueue)
    return OutgoingChannel(outgoing, context()).hops[0]


@pytest.mark.rule("QB-364")
def test_where_public_and_private_names_lead(world: World) -> None:
    remote(world)
    assert target(world, f"PUBLIC={REMOTE}") == Target("beta.example.net", BETA)
    assert target(world, f"PRIVATE={BETA}\\7") == Target("beta.example.net", BETA)
    other = UUID(int=5)
    assert target(world, f"PRIVATE={other}\\7") == Target("", other)
    put(world, queue(r"GAMMA\alone", Identifier=other))
    assert target(world, f"PUBLIC={other}") == Target("gamma")


@pytest.mark.rule("DM-069")
def test_a_distribution_list_of_one_queue_can_be_opened(world: World) -> None:
    made = public(world)
    values = {IDENTIFIER: REMOTE, "Name": "all", "Members": (f"PUBLIC={made.guid}",)}
    put(world, DirectoryObject(ObjectType.DISTRIBUTION_LIST, values))
    assert world.manager.open(f"DL={REMOTE}", Access.SEND).queue is made
    with pytest.raises(errors.IllegalFormatName):
        world.manager.open(f"DL={BETA}", Access.SEND)


# ---- workgroup


@pytest.mark.rule("DS-05")
def test_a_workgroup_has_no_public_queues() -> None:
    world = World(directory=DirectoryMode.WORKGROUP)
    with pytest.raises(errors.UnsupportedOperation):
        world.finish(world.manager.create_queue(r".\orders"))
    with pytest.raises(errors.UnsupportedFormatNameOperation):
        world.manager.open(f"PUBLIC={REMOTE}", Access.SEND)
    private = world.create("orders")
    assert [item.identifier for item in objects(world) if item["PrivateQueueNumber"] > 15] == [private.guid]
    events = world.manager.directory.events
    found = events.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, world.manager.guid),))
    assert found.result()["ComputerName"] == "HOST"


def test_public_queues_from_before_the_workgroup_can_be_used_and_deleted(world: World) -> None:
    public(world)
    world.settings = World(directory=DirectoryMode.WORKGROUP).settings
    world.crash()
    world.send(b"x", r".\orders")
    world.finish(world.manager.set_properties(world.manager.find(r".\orders"), label="y"))
    assert world.receive(r".\orders") == b"x"
    world.finish(world.manager.delete_queue(r".\orders"))
    world.crash()
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(r".\orders")


# ---- a directory that is elsewhere


@pytest.mark.rule("DS-07")
def test_without_a_directory_at_start_it_runs_as_a_workgroup(world: World) -> None:
    script = scripted(world)
    script.connected = False
    world.manager.start()
    world.run()
    assert not world.manager.directory.events.integrated
    world.create("orders")
    script.connected = True
    world.advance(120)
    assert not world.manager.directory.events.integrated
    assert world.manager.directory.events.online.due is None


@pytest.mark.rule("DM-157", "DM-166", "DM-167", "X-05")
def test_offline_and_back_with_the_queue_managers_own_clock(world: World) -> None:
    made = public(world, label="old")
    script = scripted(world)
    world.manager.start()
    world.run()
    made = world.manager.find(r".\orders")
    publication = world.manager.directory
    script.connected = False
    with pytest.raises(errors.NoDirectory):
        world.finish(world.manager.create_queue(r".\more"))
    assert publication.events.offline
    own = publication.read(ObjectType.QUEUE, (equals("Pathname", r"host\ORDERS"),))
    assert own.result()["Label"] == "old"
    changed = {IDENTIFIER: made.guid, "Label": "changed elsewhere", "Quota": 4}
    world.finish(script._inner.write(DirectoryObject(ObjectType.QUEUE, changed)))
    world.advance(61)
    assert publication.events.offline
    script.connected = True
    assert world.manager.next_deadline() is not None
    world.advance(61)
    assert not publication.events.offline
    assert (made.label, made.properties.quota_kb) == ("changed elsewhere", 4)
    world.crash()
    assert world.manager.find(r".\orders").label == "changed elsewhere"


def test_creation_waits_for_a_directory_that_answers_later(world: World) -> None:
    script = scripted(world)
    world.manager.start()
    world.run()
    script.later = True
    done = world.manager.create_queue(r".\orders")
    world.run()
    assert not done.done
    script.answer()
    world.run()
    assert done.result() is world.manager.find(r".\orders")


def test_changes_and_deletion_wait_for_it_too(world: World) -> None:
    public(world, label="old")
    script = scripted(world)
    world.manager.start()
    world.run()
    script.later = True
    made = world.manager.find(r".\orders")
    changed = world.manager.set_properties(made, label="new")
    world.run()
    script.answer()
    world.run()
    assert (changed.done, made.label) == (True, "new")
    deleted = world.manager.delete_queue(r".\orders")
    script.answer()
    world.run()
    deleted.result()
    assert script._inner.read(ObjectType.QUEUE).exception() is not None
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(r".\orders")


def test_a_queue_that_the_directory_lost_can_be_deleted(world: World) -> None:
    public(world)
    provider = world.manager.directory.events.provider
    world.finish(provider.delete(objects(world)[0]))
    world.finish(world.manager.delete_queue(r".\orders"))
    world.crash()
    with pytest.raises(errors.QueueNotFound):
        world.manager.find(r".\orders")


# ---- notifications


@pytest.mark.rule("DS-09", "DS-31")
def test_a_notification_takes_the_way_of_every_message(world: World) -> None:
    remote(world)
    world.run()
    (outgoing,) = world.manager.outgoing()
    assert str(outgoing.destination) == f"PRIVATE={BETA}\\00000003"
    (raw,) = world.bodies(f"PRIVATE={BETA}\\3")
    notice = parse_notice(raw)
    assert (notice.change, notice.identifier, notice.server) == (Change.QUEUE_CREATION, REMOTE, "HOST")
    taken: list[Message] = []
    for key in outgoing.core.positions.keys():  # noqa: SIM118 - no mapping
        outgoing.core.peek(key, lambda message, _: taken.append(Message.from_packet(message.packet)))
    assert (taken[0].time_to_reach_queue, taken[0].delivery) == (300, 0)
    world.advance(301)
    assert outgoing.messages == 0


@pytest.mark.rule("DS-31")
def test_changes_of_own_queues_send_nothing(world: World) -> None:
    made = public(world)
    world.finish(world.manager.set_properties(made, label="x"))
    world.finish(world.manager.delete_queue(r".\orders"))
    world.run()
    assert not list(world.manager.outgoing())
    assert world.manager.find(r".\private$\notify_queue$").messages == 0


@pytest.mark.rule("DS-27", "DU-10", "DU-17")
@pytest.mark.parametrize("seed", range(10))
def test_queues_and_objects_agree_after_every_crash(seed: int) -> None:
    world = World()
    random = Random(seed)
    for _round in range(5):
        for step in range(random.randint(1, 6)):
            path = rf".\{random.choice('abc')}"
            try:
                match random.choice(("create", "set", "delete")):
                    case "create":
                        world.manager.create_queue(path, label=f"{_round}.{step}")
                    case "set":
                        world.manager.set_properties(world.manager.find(path), label=f"{_round}.{step}")
                    case _:
                        world.manager.delete_queue(path)
            except errors.MSMQError:
                continue
            if random.random() < 0.4:
                world.writer.flush()
            if random.random() < 0.4:
                world.writer.complete_one()
        rows = world.writer.crash()
        world.store = type(world.store).in_memory(now_s=1_700_000_000, random=world.random, tables=rows)
        stored = EmbeddedRecords(world)
        assert stored.queues == stored.objects
        world._begin()


class EmbeddedRecords:
    """What the store holds before anybody could repair it."""

    def __init__(self, world: World) -> None:
        from msmq_fast.qm.records import Records
        from msmq_fast.store import decode
        from msmq_fast.store.schema import Table

        self.queues = {
            UUID(bytes_le=record["guid"]): record["properties"]["label"]
            for _, record in Records(world.store).queues(lambda *_: None)
            if record["kind"] == QueueKind.PUBLIC and record["state"] == 1
        }
        rows = world.store.tables.scan(
            Table.DIRECTORY, bytes((ObjectType.QUEUE,)), bytes((ObjectType.QUEUE + 1,))
        )
        self.objects = {UUID(bytes=key[1:]): decode.cold(value)["Label"] for key, value in rows}


def test_a_message_sent_to_itself_by_list_and_public_name_is_received(world: World) -> None:
    made = public(world)
    handle = world.manager.open(f"PUBLIC={made.guid}", Access.SEND)
    world.finish(handle.send(Message(body=b"1")))
    reader = world.manager.open(r"DIRECT=OS:HOST\orders", Access.RECEIVE)
    assert body(world.finish(reader.receive(0).completion)) == b"1"
