"""Get Queue Path and Expand Format Name."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.directory.names import MAX_ELEMENTS, QueuePath, expand_format_name, get_queue_path
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.protocol.errors import IllegalFormatName
from tests.directory.scripted import ScriptedDirectory
from tests.support.worlds.directories import OTHER, OWN, Events, World, machine, queue

pytestmark = pytest.mark.smoke

LIST = UUID("11111111-0000-4000-8000-000000000000")
NESTED = UUID("22222222-0000-4000-8000-000000000000")
PUBLIC = UUID("33333333-0000-4000-8000-000000000000")


class Scene:
    def __init__(self) -> None:
        self.world = World()
        self.script = ScriptedDirectory(self.world.directory)
        self.at = Events(self.script)
        for item in (machine("HOST", OWN), machine("BETA", OTHER), queue(r"BETA\orders", Identifier=PUBLIC)):
            self.world.finish(self.script.create(item))

    def path(self, name: str) -> QueuePath:
        return get_queue_path(name, self.at.events, self.at.local).result()

    def list(self, identifier: UUID, *members: str) -> None:
        values = {"Identifier": identifier, "Name": str(identifier), "Members": members}
        self.world.finish(self.script.create(DirectoryObject(ObjectType.DISTRIBUTION_LIST, values)))

    def expand(self, name: str) -> str:
        return expand_format_name(name, self.at.events).result()


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.rule("DM-168", "DM-169")
def test_only_the_host_of_an_http_name_is_known(scene: Scene) -> None:
    assert scene.path("DIRECT=HTTP://web.example.net/msmq/private$/q") == QueuePath("", "web.example.net")
    assert scene.path("DIRECT=https://web:8443/msmq/q") == QueuePath("", "web")


@pytest.mark.rule("DM-170", "DM-173")
def test_a_direct_name_is_taken_apart(scene: Scene) -> None:
    assert scene.path(r"DIRECT=OS:h\private$\q") == QueuePath(r"h\private$\q", "h")
    assert scene.path(r"DIRECT=TCP:10.0.0.7\q") == QueuePath(r"10.0.0.7\q", "10.0.0.7")
    assert scene.path(r"DIRECT=OS:h\private$\q;JOURNAL") == QueuePath(r"h\private$\q;JOURNAL", "h")
    assert scene.path(r"DIRECT=OS:h\private$\q;late") == QueuePath(r"h\private$\q;late", "h")


@pytest.mark.rule("DM-171", "DM-173")
def test_a_public_name_is_read_from_the_directory(scene: Scene) -> None:
    assert scene.path(f"PUBLIC={PUBLIC}") == QueuePath(r"BETA\orders", "BETA")
    assert scene.path(f"PUBLIC={PUBLIC};JOURNAL") == QueuePath(r"BETA\orders;JOURNAL", "BETA")
    with pytest.raises(IllegalFormatName):
        scene.path(f"PUBLIC={OTHER}")


@pytest.mark.rule("DM-172", "DM-173")
def test_a_private_name_is_known_by_number_on_this_computer_only(scene: Scene) -> None:
    assert scene.path(f"PRIVATE={OWN}\\7") == QueuePath(r"HOST\private$\seven", "HOST")
    assert scene.path(f"PRIVATE={OWN}\\7;JOURNAL") == QueuePath(r"HOST\private$\seven;JOURNAL", "HOST")
    assert scene.path(f"PRIVATE={OWN}\\8") == QueuePath("", "HOST")
    assert scene.path(f"PRIVATE={OTHER}\\7") == QueuePath("", "BETA")
    with pytest.raises(IllegalFormatName):
        scene.path(f"PRIVATE={PUBLIC}\\7")


@pytest.mark.rule("DM-173")
@pytest.mark.parametrize(
    "name",
    [
        f"MACHINE={OWN};JOURNAL",
        f"CONNECTOR={OWN}",
        "MULTICAST=224.1.1.1:80",
        f"DL={LIST}",
        r"DIRECT=OS:a\b,DIRECT=OS:c\d",
        "nonsense",
    ],
)
def test_names_without_a_path(scene: Scene, name: str) -> None:
    with pytest.raises(IllegalFormatName):
        scene.path(name)


@pytest.mark.rule("DM-235")
@pytest.mark.parametrize("name", [r"DIRECT=OS:Z\Q", f"public={PUBLIC}", "MULTICAST=224.1.1.1:80"])
def test_single_names_are_left_as_they_are(scene: Scene, name: str) -> None:
    assert scene.expand(name) == name
    assert [call for call, _ in scene.script.calls if call != "create"] == []


@pytest.mark.rule("DM-236")
def test_lists_are_expanded_through_lists(scene: Scene) -> None:
    scene.list(NESTED, r"DIRECT=OS:b\q", f"PUBLIC={PUBLIC}")
    scene.list(LIST, f"DL={NESTED}", r"DIRECT=OS:a\q")
    assert scene.expand(f"DL={LIST}") == rf"DIRECT=OS:a\q,DIRECT=OS:b\q,PUBLIC={PUBLIC}"
    assert scene.expand(rf"DIRECT=OS:c\q,DL={NESTED}").split(",")[-2:] == [
        r"DIRECT=OS:c\q",
        f"PUBLIC={PUBLIC}",
    ]


@pytest.mark.rule("DM-236")
def test_a_list_that_contains_itself_ends(scene: Scene) -> None:
    scene.list(NESTED, f"DL={LIST}", r"DIRECT=OS:b\q")
    scene.list(LIST, f"DL={NESTED}", f"DL={LIST}")
    assert scene.expand(f"DL={LIST}") == r"DIRECT=OS:b\q"


@pytest.mark.rule("DM-236")
def test_an_unknown_list_ends_the_expansion(scene: Scene) -> None:
    scene.list(LIST, r"DIRECT=OS:b\q", f"DL={NESTED}")
    with pytest.raises(IllegalFormatName, match=str(NESTED)):
        scene.expand(f"DL={LIST}")
    scene.list(NESTED)
    assert scene.expand(f"DL={LIST}") == r"DIRECT=OS:b\q"
    with pytest.raises(IllegalFormatName, match="empty"):
        scene.expand(f"DL={NESTED}")


def test_what_a_list_stands_for_is_bounded(scene: Scene) -> None:
    scene.list(LIST, *(rf"DIRECT=OS:h\q{number}" for number in range(MAX_ELEMENTS + 1)))
    with pytest.raises(IllegalFormatName, match="more than"):
        scene.expand(f"DL={LIST}")


def test_a_long_chain_of_lists(scene: Scene) -> None:
    chain = [UUID(int=number) for number in range(1, 3000)]
    for number, identifier in enumerate(chain):
        following = f"DL={chain[number + 1]}" if number + 1 < len(chain) else r"DIRECT=OS:end\q"
        values = {"Identifier": identifier, "Name": str(number), "Members": (following,)}
        scene.script.create(DirectoryObject(ObjectType.DISTRIBUTION_LIST, values))
    scene.world.run()
    assert scene.expand(f"DL={chain[0]}") == r"DIRECT=OS:end\q"


@pytest.mark.rule("DM-237", "DM-238")
def test_sorted_without_duplicates_and_single_again(scene: Scene) -> None:
    assert scene.expand(r"DIRECT=OS:b\q,direct=os:A\q,DIRECT=OS:B\Q") in (
        r"DIRECT=os:A\q,DIRECT=OS:b\q",
        r"DIRECT=os:A\q,DIRECT=OS:B\Q",
    )
    assert scene.expand(r"DIRECT=OS:a\q,DIRECT=OS:a\q") == r"DIRECT=OS:a\q"


def test_a_directory_that_answers_later(scene: Scene) -> None:
    scene.list(NESTED, r"DIRECT=OS:b\q")
    scene.list(LIST, f"DL={NESTED}", r"DIRECT=OS:a\q")
    scene.script.later = True
    done = expand_format_name(f"DL={LIST}", scene.at.events)
    path = get_queue_path(f"PUBLIC={PUBLIC}", scene.at.events, scene.at.local)
    assert not done.done
    scene.script.answer()
    scene.script.answer()
    assert done.result() == r"DIRECT=OS:a\q,DIRECT=OS:b\q"
    assert path.result().machine == "BETA"
