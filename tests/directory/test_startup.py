"""What happens with the directory at start, and what is read from it again and again."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.directory.filters import equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError
from msmq_fast.directory.sites import Intervals, Topology
from msmq_fast.directory.startup import introduce, publish
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
from tests.support.worlds.queue_manager import World as QueueManagerWorld

NORTH = UUID(int=101)
SOUTH = UUID(int=102)
GATE = UUID(int=103)


class Scene:
    def __init__(self) -> None:
        self.world = World()
        self.script = ScriptedDirectory(self.world.directory)
        self.local = Local()
        self.at = Events(self.script, self.local)

    def put(self, *items: DirectoryObject) -> None:
        for item in items:
            self.world.finish(self.world.directory.create(item))

    def introduce(self, *, provisioning: bool = False, site: UUID | None = None) -> DirectoryObject:
        done = introduce(self.at.events, self.local, provisioning=provisioning, site=site)
        self.world.run()
        return done.result()

    def own(self) -> DirectoryObject:
        return self.world.directory.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, OWN),)).result()


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.rule("DM-005", "DM-009")
def test_the_first_start_makes_the_queue_manager_known_in_its_site(scene: Scene) -> None:
    scene.introduce(provisioning=True, site=NORTH)
    assert scene.own()["ComputerName"] == "HOST"
    assert scene.own()["SiteIdentifierList"] == (NORTH,)
    assert scene.local.own["SiteIdentifierList"] == (NORTH,)


@pytest.mark.rule("DM-009")
def test_a_later_start_takes_over_what_the_directory_says(scene: Scene) -> None:
    scene.put(machine("HOST", OWN, SiteIdentifierList=(SOUTH,), RoutingServer=True))
    scene.introduce()
    assert (scene.local.own["SiteIdentifierList"], scene.local.own["RoutingServer"]) == ((SOUTH,), True)


@pytest.mark.rule("DM-001", "DM-009")
def test_an_absent_own_object_is_an_error_unless_it_is_the_first_start(scene: Scene) -> None:
    done = introduce(scene.at.events, scene.local, provisioning=False)
    assert result_of(done) is Result.OBJECT_NOT_FOUND
    assert scene.world.objects(ObjectType.QUEUE_MANAGER) == []


@pytest.mark.rule("DM-009")
def test_where_the_enterprise_comes_from(scene: Scene) -> None:
    assert scene.introduce(provisioning=True)["NonLDAPCapableQueueManagerNotification"] is False
    scene.put(DirectoryObject(ObjectType.ENTERPRISE, {"Name": "corp", "DefaultTimeToLive": 7}))
    assert scene.introduce()["DefaultTimeToLive"] == 7
    scene.script.script.extend((None, DirectoryError(Result.ATTRIBUTE_NOT_FOUND, "an old schema")))
    assert scene.introduce()["NonLDAPCapableQueueManagerNotification"] is True


@pytest.mark.rule("DS-07")
def test_a_directory_that_is_not_there_at_start_is_said(scene: Scene) -> None:
    scene.script.connected = False
    for provisioning in (True, False):
        done = introduce(scene.at.events, scene.local, provisioning=provisioning)
        assert result_of(done) is Result.NOT_CONNECTED


def test_a_renamed_computer_keeps_its_identifier(scene: Scene) -> None:
    scene.put(machine("OLD", OWN, MachineSid="S-1-5-9"))
    own = scene.local.own

    class Renamed(Local):
        def refresh_queue_manager(self, item: DirectoryObject) -> None:
            self.own = item.changed(dict(own.values))

    scene.local = Renamed()
    scene.introduce()
    assert (scene.own()["ComputerName"], scene.own()["MachineSid"]) == ("HOST", "S-1-5-9")
    assert len(scene.world.objects(ObjectType.QUEUE_MANAGER)) == 1


def test_own_queues_that_the_directory_lacks_are_published(scene: Scene) -> None:
    known, lost = UUID(int=7), UUID(int=8)
    scene.put(queue(r"OLD\known", Identifier=known, Label="a"))
    publish(
        scene.at.events,
        [queue(r"HOST\known", Identifier=known, Label="b"), queue(r"HOST\lost", Identifier=lost, Label="c")],
    )
    scene.world.run()
    found = {item.identifier: (item["Pathname"], item["Label"]) for item in scene.world.objects()}
    assert found == {known: (r"HOST\known", "b"), lost: (r"HOST\lost", "c")}


# ---- topology


def topology(scene: Scene) -> Topology:
    scene.put(
        site("north", Identifier=NORTH, IntraSiteReplicationInterval=1),
        site("south", Identifier=SOUTH),
        machine("GATE", GATE, JournalQuota=1),
        machine("BETA", OTHER),
        DirectoryObject(
            ObjectType.ROUTING_LINK,
            {
                "Site1Identifier": SOUTH,
                "Site2Identifier": NORTH,
                "ActualCost": 3,
                "SiteGateIdentifierList": (GATE,),
            },
        ),
    )
    found = Topology(scene.at.events, lambda: scene.at.seconds, Intervals(sites=100, gates=10))
    found.start([NORTH])
    return found


def change(scene: Scene, item: DirectoryObject) -> None:
    scene.world.finish(scene.world.directory.write(item))


@pytest.mark.rule("DM-009", "DM-010")
def test_the_sites_and_their_gates_are_read_at_start(scene: Scene) -> None:
    found = topology(scene)
    assert [item["Name"] for item in found.sites.values()] == ["north"]
    assert list(found.gates[NORTH]) == [GATE]
    assert found.next_deadline() == 1010


@pytest.mark.rule("DM-010", "DS-08")
def test_by_default_gates_are_read_each_hour_and_sites_twice_a_day(scene: Scene) -> None:
    topology(scene)
    found = Topology(scene.at.events, lambda: scene.at.seconds)
    began = scene.at.seconds
    found.start([NORTH])
    change(scene, machine("GATE", JournalQuota=2))
    change(scene, site("north", IntraSiteReplicationInterval=2))
    seen = []
    for hours in range(1, 13):
        for moment in (3600 * hours - 1, 3600 * hours):
            scene.at.seconds = began + moment
            found.expire(scene.at.seconds)
            gate, north = found.gates[NORTH][GATE], found.sites[NORTH]
            seen.append((gate["JournalQuota"], north["IntraSiteReplicationInterval"]))
    assert seen == [(1, 1)] + [(2, 1)] * 22 + [(2, 2)]


@pytest.mark.rule("DM-010", "DM-050", "DS-08", "X-01")
def test_sites_are_read_again_by_timer(scene: Scene) -> None:
    found = topology(scene)
    for round_number in (1, 2):
        change(scene, site("north", IntraSiteReplicationInterval=10 * round_number))
        scene.at.seconds += 99
        found.expire(scene.at.seconds)
        before = found.sites[NORTH]["IntraSiteReplicationInterval"]
        scene.at.seconds += 1
        found.expire(scene.at.seconds)
        assert (before, found.sites[NORTH]["IntraSiteReplicationInterval"]) == (
            1 if round_number == 1 else 10,
            10 * round_number,
        )


@pytest.mark.rule("DM-050", "DM-051")
def test_what_cannot_be_read_stays_as_it_was(scene: Scene) -> None:
    """Until it can be read again: then it is new."""
    found = topology(scene)
    scene.put(machine("HOST", OWN))
    change(scene, site("north", IntraSiteReplicationInterval=7))
    change(scene, machine("GATE", JournalQuota=7))
    scene.script.connected = False
    found.update_sites()
    found.update_gates()
    assert (found.sites[NORTH]["Name"], found.sites[NORTH]["IntraSiteReplicationInterval"]) == ("north", 1)
    assert [(gate, item["JournalQuota"]) for gate, item in found.gates[NORTH].items()] == [(GATE, 1)]
    scene.script.connected = True
    scene.at.events.check_online()
    scene.world.run()
    found.update_sites()
    found.update_gates()
    assert found.sites[NORTH]["IntraSiteReplicationInterval"] == 7
    assert found.gates[NORTH][GATE]["JournalQuota"] == 7


@pytest.mark.rule("DM-051", "DS-08", "X-02")
def test_gates_are_read_again_by_timer_and_follow_the_links(scene: Scene) -> None:
    found = topology(scene)
    change(scene, machine("GATE", JournalQuota=2))
    scene.at.seconds += 9
    found.expire(scene.at.seconds)
    assert found.gates[NORTH][GATE]["JournalQuota"] == 1
    scene.at.seconds += 1
    found.expire(scene.at.seconds)
    assert found.gates[NORTH][GATE]["JournalQuota"] == 2
    (link,) = scene.world.objects(ObjectType.ROUTING_LINK)
    change(scene, link.changed({"SiteGateIdentifierList": (OTHER,)}))
    scene.at.seconds += 10
    found.expire(scene.at.seconds)
    assert list(found.gates[NORTH]) == [OTHER]


@pytest.mark.rule("X-01", "X-02")
def test_the_timers_are_twelve_hours_and_one(scene: Scene) -> None:
    found = Topology(scene.at.events, lambda: scene.at.seconds)
    assert found.next_deadline() is None
    found.start([])
    assert found.next_deadline() == scene.at.seconds + 3600
    calls = len(scene.script.calls)
    scene.put(site("north", Identifier=NORTH))
    found.sites[NORTH] = site("north")
    scene.at.seconds += 12 * 3600 - 1
    found.expire(scene.at.seconds)
    assert (ObjectType.SITE, False) not in [what for _, what in scene.script.calls[calls:]]
    scene.at.seconds += 1
    found.expire(scene.at.seconds)
    assert (ObjectType.SITE, False) in [what for _, what in scene.script.calls[calls:]]


class Copying(ScriptedDirectory):
    keeps_copy = True


def test_a_directory_with_a_copy_that_goes_away_during_the_start_is_used_again() -> None:
    kept = World()
    script = Copying(kept.directory)
    script.connected = False
    host = QueueManagerWorld(provider=script)
    kept.finish(kept.directory.create(machine("HOST", host.manager.guid, RoutingServer=True)))
    script.connected = True
    events = host.manager.directory.events
    assert events.provider is script
    assert not host.manager.directory.queue_manager().get("RoutingServer")
    host.clock.advance(61)
    host.manager.expire(host.clock.monotonic())
    host.run()
    assert events.provider is script
    assert host.manager.directory.queue_manager()["RoutingServer"] is True
    assert not events.offline
