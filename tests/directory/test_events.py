"""The directory events: delegation, being offline and coming back, change notifications."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.directory.filters import Sort, equals
from msmq_fast.directory.notices import Change, Notice, encode_notice
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.online import OnlineState
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult
from msmq_fast.directory.workgroup import WorkgroupDirectory
from tests.directory.noticeparser import parse_notice
from tests.directory.scripted import ScriptedDirectory
from tests.support.worlds.directories import (
    OTHER,
    OWN,
    Events,
    Local,
    Result,
    World,
    machine,
    queue,
    result_of,
    site,
)


class Scene:
    """An embedded directory behind a script, and the events over it."""

    def __init__(self, *queues: DirectoryObject) -> None:
        self.world = World()
        self.script = ScriptedDirectory(self.world.directory)
        self.local = Local(*queues)
        self.at = Events(self.script, self.local)
        self.events = self.at.events
        self.world.finish(self.events.create(machine("HOST", OWN, QueueManagerQuota=5)))
        self.world.finish(self.events.create(machine("BETA", OTHER)))
        self.script.calls.clear()

    def go_offline(self) -> None:
        self.script.connected = False
        assert result_of(self.events.read(ObjectType.SITE)) is Result.NOT_CONNECTED


@pytest.mark.rule("DM-150", "DM-151")
def test_a_creation_keeps_what_is_listed() -> None:
    scene = Scene()
    given = queue(r"BETA\orders", Label="a", Quota=5)
    scene.world.finish(scene.events.create(given, ("Pathname", "Label")))
    found = scene.events.read(ObjectType.QUEUE, (equals("Label", "a"),)).result()
    assert (found["Pathname"], found.get("Quota")) == (r"BETA\orders", None)


@pytest.mark.rule("DM-155")
def test_a_read_gives_what_is_listed_of_what_meets_its_conditions() -> None:
    conditions = (equals(IDENTIFIER, OTHER),)
    found = Scene().events.read(ObjectType.QUEUE_MANAGER, conditions, ("ComputerName",)).result()
    assert dict(found.values) == {IDENTIFIER: OTHER, "ComputerName": "BETA"}


@pytest.mark.rule("DM-161", "DM-163")
def test_an_enumeration_gives_what_is_listed_in_order_until_it_ends() -> None:
    events = Scene().events
    order = (Sort("ComputerName", 1),)
    handle = events.begin(ObjectType.QUEUE_MANAGER, (), ("ComputerName",), order).result()
    assert [dict(events.next(handle).result().values) for _ in range(2)] == [
        {IDENTIFIER: OTHER, "ComputerName": "BETA"},
        {IDENTIFIER: OWN, "ComputerName": "HOST"},
    ]
    events.end(handle).result()
    assert result_of(events.next(handle)) is Result.GENERIC_ERROR


@pytest.mark.rule("DM-164")
def test_a_write_changes_what_is_listed() -> None:
    scene = Scene()
    given = machine("BETA", OTHER, QueueManagerQuota=7, JournalQuota=8)
    scene.world.finish(scene.events.write(given, ("QueueManagerQuota",)))
    found = scene.events.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, OTHER),)).result()
    assert (found.get("QueueManagerQuota"), found.get("JournalQuota")) == (7, None)


@pytest.mark.rule("DM-152", "DM-154", "DM-160", "DM-164", "DS-06", "DS-28")
@pytest.mark.parametrize("operation", ["create", "delete", "write", "read"])
@pytest.mark.parametrize(
    "item", [site("north"), queue(r"BETA\orders", Identifier=UUID(int=9))], ids=["site", "queue"]
)
def test_every_operation_that_finds_no_directory_goes_offline(operation: str, item: DirectoryObject) -> None:
    scene = Scene()
    scene.script.connected = False
    events = scene.events
    done = {
        "create": lambda: events.create(item),
        "delete": lambda: events.delete(item),
        "write": lambda: events.write(item),
        "read": lambda: events.read(ObjectType.SITE),
    }[operation]()
    assert result_of(done) is Result.NOT_CONNECTED  # type: ignore[arg-type]
    assert events.offline
    assert events.online.due == 1060.0
    scene.at.seconds += 30
    assert result_of(events.create(item)) is Result.NOT_CONNECTED
    assert events.online.due == 1060.0  # a running timer is not started again


@pytest.mark.rule("DM-152", "DM-151")
def test_other_results_are_passed_through() -> None:
    scene = Scene()
    first = scene.world.finish(scene.events.create(site("north")))
    assert isinstance(first, UUID)
    assert result_of(scene.events.create(site("north"))) is Result.OBJECT_ALREADY_EXISTS
    assert result_of(scene.events.write(site("south"))) is Result.OBJECT_NOT_FOUND
    assert not scene.events.offline


@pytest.mark.rule("DM-157", "DM-158", "DM-159", "DS-05")
def test_what_is_known_while_offline() -> None:
    own = queue(r"HOST\orders", Identifier=UUID(int=9), Label="mine")
    scene = Scene(own, own.changed({"Pathname": r"HOST\more", IDENTIFIER: UUID(int=10)}))
    scene.go_offline()
    scene.script.calls.clear()
    read = scene.events.read
    assert read(ObjectType.QUEUE, (equals("Label", "MINE"),)).result() == own
    assert result_of(read(ObjectType.QUEUE, (equals("Label", "yours"),))) is Result.OBJECT_NOT_FOUND
    assert read(ObjectType.QUEUE_MANAGER, (equals("ComputerName", "host"),)).result().identifier == OWN
    assert result_of(read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, OTHER),))) is Result.NOT_CONNECTED
    assert result_of(read(ObjectType.SITE)) is Result.NOT_CONNECTED
    assert result_of(read(ObjectType.QUEUE, (equals("Name", "x"),))) is Result.GENERIC_ERROR
    assert scene.script.calls == []
    for kind in (ObjectType.QUEUE, ObjectType.QUEUE_MANAGER, ObjectType.SITE):
        assert result_of(read(kind, force=True)) is Result.NOT_CONNECTED
    assert len(scene.script.calls) == 3  # what is forced asks the directory all the same


@pytest.mark.rule("DM-155", "DM-160")
def test_a_forced_read_asks_the_directory_and_does_not_go_offline() -> None:
    scene = Scene()
    scene.script.connected = False
    assert result_of(scene.events.read(ObjectType.SITE, force=True)) is Result.NOT_CONNECTED
    assert not scene.events.offline
    scene.go_offline()
    scene.script.connected = True
    found = scene.events.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, OTHER),), force=True)
    assert found.result()["ComputerName"] == "BETA"


@pytest.mark.rule("X-05")
def test_a_second_loss_does_not_put_off_the_probe() -> None:
    state = OnlineState()
    for now in (100.0, 130.0):
        state.lost(now)
        assert state.due == 160.0
    assert [state.take_due(now) for now in (159.9, 160.0, 161.0)] == [False, True, False]


@pytest.mark.rule("DM-166", "DM-167", "DS-06", "DS-28", "ST-8", "X-05")
def test_the_probe_runs_every_minute_until_the_directory_is_back() -> None:
    public = queue(r"HOST\orders", Identifier=UUID(int=9))
    private = queue(r"HOST\private$\p", Identifier=UUID(int=10))
    scene = Scene(public, private)
    scene.world.finish(scene.script.create(public.changed({"Label": "from the directory"})))
    scene.go_offline()
    scene.script.calls.clear()
    scene.at.advance(59.9)
    assert scene.script.calls == []
    for _ in range(2):
        scene.at.advance(60.0)
        assert scene.script.calls == [("read", (ObjectType.QUEUE_MANAGER, True))]
        assert scene.events.offline
        scene.script.calls.clear()
    scene.script.connected = True
    scene.at.advance(60.0)
    assert not scene.events.offline
    assert scene.events.online.due is None
    assert scene.local.own["QueueManagerQuota"] == 5
    assert [item["Label"] for item in scene.local.refreshed] == ["from the directory"]


@pytest.mark.rule("DS-06")
@pytest.mark.parametrize("begun", [False, True])
def test_an_enumeration_that_finds_no_directory_goes_offline(begun: bool) -> None:
    scene = Scene()
    handle = scene.world.finish(scene.events.begin(ObjectType.QUEUE)) if begun else 0
    scene.script.connected = False
    done = scene.events.next(handle) if begun else scene.events.begin(ObjectType.QUEUE)
    scene.world.run()
    assert done.exception() is not None
    assert scene.events.offline


def test_a_probe_under_way_is_not_started_twice() -> None:
    scene = Scene()
    scene.go_offline()
    scene.script.connected = True
    scene.script.later = True
    scene.at.advance(60)
    scene.at.advance(60)
    assert [name for name, _ in scene.script.calls].count("read") == 2  # go_offline and one probe
    scene.script.answer()
    assert not scene.events.offline


@pytest.mark.rule("DS-05", "ST-8")
def test_a_workgroup_is_never_offline() -> None:
    at = Events(WorkgroupDirectory(Local()))
    at.events.create(queue(r"HOST\q"))
    at.events.read(ObjectType.SITE)
    assert (at.events.integrated, at.events.offline, at.events.online.due) == (False, False, None)


# ---- notifications


@pytest.mark.rule("DM-150", "DM-153", "DM-165", "DS-09")
def test_the_owner_of_a_queue_is_told_of_each_change_that_succeeded() -> None:
    scene = Scene()
    identifier = scene.world.finish(scene.events.create(queue(r"BETA\orders")))
    scene.world.finish(scene.events.write(queue(r"BETA\orders", Label="x")))
    scene.world.finish(
        scene.events.write(DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: identifier, "Label": "y"}))
    )
    scene.world.finish(scene.events.delete(DirectoryObject(ObjectType.QUEUE, {IDENTIFIER: identifier})))
    changes = [
        Change.QUEUE_CREATION,
        Change.QUEUE_UPDATE,
        Change.QUEUE_UPDATE,
        Change.QUEUE_DELETION,
    ]
    assert scene.at.notices == [(OTHER, Notice(change, identifier, "dc.example.net")) for change in changes]


@pytest.mark.rule("DM-150", "DM-153", "DM-165")
def test_nobody_is_told_of_what_failed() -> None:
    scene = Scene()
    scene.world.finish(scene.events.create(queue(r"BETA\orders")))
    scene.at.notices.clear()
    scene.events.create(queue(r"BETA\orders"))
    scene.events.write(queue(r"BETA\none", Label="x"))
    scene.events.delete(queue(r"BETA\none"))
    broken = DirectoryError(DirectoryOperationResult.GENERIC_ERROR, "broken")
    scene.script.script.extend((None, broken))
    scene.events.delete(queue(r"BETA\orders"))
    scene.world.run()
    assert scene.at.notices == []


@pytest.mark.rule("DM-165", "DS-09", "DS-31")
def test_another_queue_manager_is_told_of_a_change_of_itself() -> None:
    scene = Scene()
    for identifier in (OWN, OTHER):
        item = DirectoryObject(ObjectType.QUEUE_MANAGER, {IDENTIFIER: identifier, "JournalQuota": 3})
        scene.world.finish(scene.events.write(item))
    assert scene.at.notices == [(OTHER, Notice(Change.QUEUE_MANAGER_UPDATE, OTHER, "dc.example.net"))]


@pytest.mark.rule("DM-150", "DS-09", "DS-31")
def test_own_queues_and_queues_of_nobody_cause_no_message() -> None:
    scene = Scene()
    for path in (r"HOST\own", r"UNKNOWN\queue"):
        scene.world.finish(scene.events.create(queue(path)))
        scene.world.finish(scene.events.write(queue(path, Label="x")))
        scene.world.finish(scene.events.delete(queue(path)))
    scene.world.finish(scene.events.create(site("north")))
    assert scene.at.notices == []
    scene.world.finish(scene.events.create(queue(r"BETA\theirs")))  # as a queue of another computer does
    assert [target for target, _ in scene.at.notices] == [OTHER]


@pytest.mark.rule("DS-09")
def test_the_body_of_a_notification() -> None:
    body = encode_notice(Notice(Change.QUEUE_DELETION, OTHER, "dc.example.net"))
    assert body[:2] == b"\x02\x01"
    assert len(body) % 2 == 1  # one byte that means nothing
    assert body[2:-1].decode("utf-16-le") == (
        "<Notification><Event>3</Event><ObjectGuid>00000000-0000-4000-8000-000000000002</ObjectGuid>"
        "<DomainController>dc.example.net</DomainController></Notification>"
    )
    assert parse_notice(body) == Notice(Change.QUEUE_DELETION, OTHER, "dc.example.net")
    assert parse_notice(body[:-1]) == parse_notice(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x02",
        b"\x01\x01" + b"x" * 40,
        b"\x02\x02" + b"x" * 40,
        b"\x02\x01",
        b"\x02\x01\xff\xdf\xff",
        b"\x02\x01" + "<Notification><Event>5</Event></Notification>".encode("utf-16-le"),
        b"\x02\x01" + b"a\0" * 4000,
    ],
)
def test_bodies_that_are_none(body: bytes) -> None:
    with pytest.raises(ValueError, match="change notification"):
        parse_notice(body)


# ---- whole enumerations


def filled(count: int) -> Scene:
    scene = Scene()
    for number in range(count):
        scene.world.finish(scene.script.create(site(f"s{number}", Identifier=UUID(int=1000 + number))))
    return scene


def test_a_whole_enumeration_gives_its_handle_back() -> None:
    scene = filled(3)
    for limit, expected in ((None, 3), (2, 2), (0, 0)):
        for _ in range(2 * scene.world.max_handles):
            assert len(scene.events.all(ObjectType.SITE, limit=limit).result()) == expected


@pytest.mark.parametrize("limit", [None, 2])
def test_a_whole_enumeration_of_a_directory_that_answers_later(limit: int | None) -> None:
    scene = filled(3)
    scene.script.later = True
    done = scene.events.all(ObjectType.SITE, limit=limit)
    for _ in range(8):
        scene.script.answer()
    assert [item["Name"] for item in done.result()] == ["s0", "s1", "s2"][:limit]


@pytest.mark.parametrize("later", [False, True])
def test_an_enumeration_that_breaks_gives_its_handle_back(later: bool) -> None:
    scene = filled(3)
    broken = DirectoryError(DirectoryOperationResult.GENERIC_ERROR, "broken")
    for _ in range(2 * scene.world.max_handles):
        scene.script.later = later
        scene.script.script.extend((None, None, broken))
        done = scene.events.all(ObjectType.SITE)
        for _ in range(6):
            scene.script.answer()
        assert result_of(done) is Result.GENERIC_ERROR
