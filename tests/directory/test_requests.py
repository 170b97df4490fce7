"""Requests about the directory, frame by frame: who may do what, and what is wrong with them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmq_fast.app.auth import Identity
from msmq_fast.protocol.frames import Frame
from tests.support.worlds.app import Client, World

DENIED, INVALID = "MQ_ERROR_ACCESS_DENIED", "MQ_ERROR_INVALID_PARAMETER"


def hello(world: World, identity: Identity) -> Client:
    client = Client(world, identity)
    assert client.call(Frame.HELLO, {"version": 1})[0] == Frame.REPLY
    return client


@pytest.fixture
def world() -> World:
    world = World()
    for name, descriptor in (
        (r".\open", "D:(A;;WP;;;WD)"),
        (r".\closed", "D:(A;;LC;;;WD)(A;;WP;;;S-1-22-1-0)"),
    ):
        world.client().call(Frame.CREATE_QUEUE, [name, {"security": descriptor, "label": "secret"}])
    return world


@pytest.fixture
def root(world: World) -> Client:
    return hello(world, Identity("root", uid=0))


@pytest.fixture
def nobody(world: World) -> Client:
    return hello(world, Identity("nobody", uid=4_000_000))


def value(answer: tuple[int, Any]) -> Any:
    assert answer[0] == Frame.REPLY, answer
    return answer[1]


def error(answer: tuple[int, Any]) -> str:
    assert answer[0] == Frame.ERROR, answer
    return str(answer[1][1])


def test_only_administrators_change_the_directory(root: Client, nobody: Client) -> None:
    entry = {"object": "Site", "Name": "north"}
    for how in ("create", "set", "import"):
        assert error(nobody.call(Frame.PUT_DIRECTORY, [entry, how])) == DENIED
    assert value(root.call(Frame.PUT_DIRECTORY, [entry, "create"])) == "created"
    assert error(nobody.call(Frame.DELETE_DIRECTORY, ["Site", "north"])) == DENIED
    assert value(nobody.call(Frame.SHOW_DIRECTORY, ["site", "NORTH"]))["Name"] == "north"
    assert value(root.call(Frame.DELETE_DIRECTORY, ["Site", "north"])) is None


def test_own_queues_are_shown_to_those_who_may_see_them(root: Client, nobody: Client) -> None:
    def listed(client: Client) -> dict[str, set[str]]:
        entries = value(client.call(Frame.LIST_DIRECTORY, ["Queue"]))
        return {entry["Pathname"].split("\\")[1]: set(entry) for entry in entries}

    assert {"Label", "Security"} <= listed(root)["closed"]
    assert listed(nobody)["closed"] == {"object", "Identifier", "Pathname"}
    assert "Label" in listed(nobody)["open"]
    assert "Security" not in listed(nobody)["open"]
    (path,) = (
        e["Pathname"] for e in value(root.call(Frame.LIST_DIRECTORY, ["Queue"])) if "closed" in e["Pathname"]
    )
    assert error(nobody.call(Frame.SHOW_DIRECTORY, ["Queue", path])) == DENIED
    assert value(root.call(Frame.SHOW_DIRECTORY, ["Queue", path]))["Label"] == "secret"


@pytest.mark.rule("DM-170", "DM-171", "DM-172")
def test_a_queue_is_shown_by_its_format_name(world: World, root: Client, nobody: Client) -> None:
    shown = value(root.call(Frame.SHOW_DIRECTORY, ["Queue", r".\open"]))
    computer = shown["Pathname"].split("\\")[0]
    for name in (f"PUBLIC={shown['Identifier']}", rf"direct=os:{computer}\open"):
        assert value(root.call(Frame.SHOW_DIRECTORY, ["queue", name])) == shown
    closed = value(root.call(Frame.SHOW_DIRECTORY, ["Queue", r".\closed"]))["Identifier"]
    assert error(nobody.call(Frame.SHOW_DIRECTORY, ["Queue", f"PUBLIC={closed}"])) == DENIED
    own = world.manager.guid
    for name in (f"PUBLIC={UUID(int=7)}", f"PRIVATE={own}\\99", "DIRECT=HTTP://host/msmq/q", "PUBLIC=orders"):
        assert error(root.call(Frame.SHOW_DIRECTORY, ["Queue", name])) == "MQ_ERROR_ILLEGAL_FORMATNAME"
    assert error(root.call(Frame.SHOW_DIRECTORY, ["Site", f"PUBLIC={closed}"])) == "MQ_ERROR_DS_ERROR"


@pytest.mark.parametrize(
    ("frame", "payload"),
    [
        (Frame.LIST_DIRECTORY, ["Planet"]),
        (Frame.LIST_DIRECTORY, ["Site", "no GUID"]),
        (Frame.LIST_DIRECTORY, ["Site", "", -1]),
        (Frame.LIST_DIRECTORY, []),
        (Frame.SHOW_DIRECTORY, ["User", "no SID"]),
        (Frame.PUT_DIRECTORY, [{"object": "Site", "Name": "x"}, "destroy"]),
        (Frame.PUT_DIRECTORY, [{"object": "Site", "Name": 7}, "create"]),
        (Frame.PUT_DIRECTORY, [{}, "create"]),
        (Frame.PUT_DIRECTORY, [{"object": "Site", "Name": "x", "Security": {}}, "create"]),
        (Frame.PUT_DIRECTORY, [["Site"], "create"]),
    ],
)
def test_bad_requests(root: Client, frame: Frame, payload: list[Any]) -> None:
    assert error(root.call(frame, payload)) == INVALID


def test_pages(root: Client) -> None:
    for number in range(5):
        entry = {"object": "Site", "Name": f"s{number}", "Identifier": str(UUID(int=number + 1))}
        value(root.call(Frame.PUT_DIRECTORY, [entry, "create"]))
    after, seen = "", []
    while page := value(root.call(Frame.LIST_DIRECTORY, ["Site", after, 2])):
        assert len(page) <= 2
        seen += [entry["Name"] for entry in page]
        after = page[-1]["Identifier"]
    assert seen == [f"s{number}" for number in range(5)]
