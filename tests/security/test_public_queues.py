"""Public queues: their descriptor is an attribute of their directory object, and the two are one."""

from __future__ import annotations

import pytest

from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.workgroup import WorkgroupDirectory
from msmq_fast.mqqb.access import SenderGate
from msmq_fast.mqqb.destination import destinations
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.security.defaults import DefaultPolicy
from msmq_fast.security.principals import Principals, UnsignedSid
from msmq_fast.security.sddl import parse_sddl, to_sddl
from msmq_fast.security.sid import sid
from msmq_fast.security.users import Users
from tests.support.worlds.directories import everything
from tests.support.worlds.queue_manager import World

SOMEBODY = sid("S-1-5-21-4-4-4-4444")


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def queue(world: World) -> Queue:
    created = world.create(r".\orders", security=parse_sddl("D:(A;;LC;;;WD)"))
    assert created.kind is QueueKind.PUBLIC
    return created


def shown(world: World, queue: Queue) -> bytes:
    """What the directory says."""
    (item,) = [
        item
        for item in everything(world.manager.directory.events.provider, ObjectType.QUEUE)
        if item.identifier == queue.guid
    ]
    found = item["Security"]
    assert isinstance(found, bytes)
    return found


def write(world: World, queue: Queue, security: bytes) -> None:
    """Change the descriptor in the directory, as its tools do."""
    item = DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: queue.guid, "Security": security})
    world.finish(world.manager.directory_changes.write(item, ("Security",)))


def may_send(world: World, queue: Queue) -> bool:
    """Whether a message of somebody would be delivered."""
    manager = world.manager
    principals = Principals(lambda: Users(sid("S-1-5-21-1-2-3")), 0)
    resolve = destinations(lambda _kind, _name: queue, manager.guard.open_to_everybody)
    target = resolve(1, queue.guid.bytes_le)
    assert target is not None
    gate = SenderGate(principals, manager.guard.authorizer, UnsignedSid.USE)
    return gate(target, 1, SOMEBODY.data, "1")


def test_the_object_shows_the_descriptor(world: World, queue: Queue) -> None:
    assert shown(world, queue) == queue.security.encoded
    world.finish(world.manager.set_properties(queue, security=parse_sddl("D:(A;;CC;;;WD)")))
    assert shown(world, queue) == queue.security.encoded
    assert to_sddl(queue.security).endswith("D:(A;;CC;;;WD)")
    world.crash()
    assert shown(world, world.manager.find(r".\orders")) == queue.security.encoded


@pytest.mark.rule("X-43")
def test_what_the_directory_says_decides_about_deliveries(world: World, queue: Queue) -> None:
    changes: list[None] = []
    world.manager.changes.changed.connect(lambda: changes.append(None))
    assert may_send(world, queue)
    write(world, queue, parse_sddl(f"O:BAD:(D;;LC;;;{SOMEBODY})(A;;LC;;;WD)").encoded)
    assert not may_send(world, queue)
    assert changes  # routes of the plain path are looked up anew
    world.crash()
    assert not may_send(world, world.manager.find(r".\orders"))


@pytest.mark.rule("X-43", "QB-257")
def test_what_is_read_from_the_directory_again_decides_too(world: World, queue: Queue) -> None:
    """The object was changed without the queue manager, which reads it when the directory answers again."""
    assert may_send(world, queue)
    closed = parse_sddl(f"O:BAD:(D;;LC;;;{SOMEBODY})(A;;LC;;;WD)").encoded
    item = DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: queue.guid, "Security": closed})
    events = world.manager.directory.events
    world.finish(events.provider.write(item, ("Security",)))
    assert may_send(world, queue)
    world.finish(events.check_online())
    assert not may_send(world, queue)
    assert queue.security.encoded == closed


def test_a_descriptor_that_cannot_be_read_changes_nothing(world: World, queue: Queue) -> None:
    before = queue.security
    write(world, queue, b"\1\2\3")
    assert queue.security == before


@pytest.mark.rule("DM-045")
def test_the_computer_has_a_sid_in_the_directory(world: World) -> None:
    world.manager.guard.policy = DefaultPolicy(reachable_by_srmp=False)
    machine = {IDENTIFIER: world.manager.guid, "MachineSid": "S-1-5-21-7-8-9-1105"}
    item = DirectoryObject(ObjectType.QUEUE_MANAGER, machine)
    world.finish(world.manager.directory_changes.write(item, ("MachineSid",)))
    made = world.create("fresh")
    assert to_sddl(made.security).endswith("D:(A;;CCDCLCSWRPWPSDRCWDWO;;;WD)(A;;WPRC;;;S-1-5-21-7-8-9-1105)")
    world.manager.directory._use(WorkgroupDirectory(world.manager.directory))
    assert world.manager.directory.machine_sid is None
