"""The application protocol's requests about access, frame by frame."""

from __future__ import annotations

from typing import Any

import pytest

from msmq_fast.app.auth import Identity
from msmq_fast.protocol.frames import Access, Frame
from msmq_fast.security.sddl import parse_sddl
from tests.support.worlds.app import Client, World

UID = 4_000_000  # of nobody on this machine
ITS_SID = f"S-1-22-1-{UID}"


def hello(world: World, identity: Identity) -> Client:
    client = Client(world, identity)
    assert client.call(Frame.HELLO, {"version": 1})[0] == Frame.REPLY
    return client


@pytest.fixture
def world() -> World:
    world = World()
    world.client().call(Frame.CREATE_QUEUE, ["orders", {"security": "D:(A;;LCWP;;;WD)"}])
    return world


@pytest.fixture
def root(world: World) -> Client:
    return hello(world, Identity("root", uid=0))


@pytest.fixture
def nobody(world: World) -> Client:
    return hello(world, Identity("nobody", uid=UID))


def value(answer: tuple[int, Any]) -> Any:
    assert answer[0] == Frame.REPLY, answer
    return answer[1]


def error(answer: tuple[int, Any]) -> str:
    assert answer[0] == Frame.ERROR, answer
    return str(answer[1][1])


DENIED, INVALID = "MQ_ERROR_ACCESS_DENIED", "MQ_ERROR_INVALID_PARAMETER"


def test_show(root: Client) -> None:
    shown = value(root.call(Frame.SHOW_ACL, ["orders"]))
    assert shown["owner"]["sid"] == "S-1-22-1-0"
    assert [(entry["type"], entry["name"], entry["mask"]) for entry in shown["entries"]] == [
        ("allow", "everyone", 0x24)
    ]
    assert parse_sddl(shown["sddl"]).encoded == shown["descriptor"]
    assert shown["entries"][0]["rights"] == ["MQSEC_WRITE_MESSAGE", "MQSEC_GET_QUEUE_PROPERTIES"]
    machine = value(root.call(Frame.SHOW_ACL, [None]))
    assert machine["entries"][0]["name"] == "administrators"


def test_edit(root: Client, nobody: Client) -> None:
    assert error(nobody.call(Frame.OPEN, ["orders", int(Access.PEEK)])) == DENIED
    value(root.call(Frame.EDIT_ACL, ["orders", "grant", f"uid:{UID}", "peek"]))
    value(nobody.call(Frame.OPEN, ["orders", int(Access.PEEK)]))
    value(root.call(Frame.EDIT_ACL, ["orders", "deny", ITS_SID, "send"]))
    assert error(nobody.call(Frame.OPEN, ["orders", int(Access.SEND)])) == DENIED
    value(root.call(Frame.EDIT_ACL, ["orders", "revoke", ITS_SID]))
    value(nobody.call(Frame.OPEN, ["orders", int(Access.SEND)]))
    shown = value(root.call(Frame.EDIT_ACL, ["orders", "set", "O:BAD:(A;;0x3;;;AN)(0x7F;0x00;01020304)"]))
    assert [entry["type"] for entry in shown["entries"]] == ["allow", "other"]
    assert value(root.call(Frame.EDIT_ACL, ["orders", "own", ITS_SID]))["owner"]["sid"] == ITS_SID
    # The owner may change the list, whatever it says.
    value(nobody.call(Frame.EDIT_ACL, ["orders", "grant", "WD", "send"]))


@pytest.mark.parametrize(
    "payload",
    [
        ["orders", "grant", "everyone", "all"],
        ["orders", "own", ITS_SID],
        ["orders", "set", "D:"],
        [None, "grant", "everyone", "create-queue"],
    ],
)
def test_edits_take_rights(root: Client, nobody: Client, payload: list[Any]) -> None:
    before = value(root.call(Frame.SHOW_ACL, payload[:1]))
    assert error(nobody.call(Frame.EDIT_ACL, payload)) == DENIED
    assert value(root.call(Frame.SHOW_ACL, payload[:1])) == before


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (["orders", "give", "everyone", "send"], INVALID),
        (["orders", "grant", "mallory", "send"], INVALID),
        (["orders", "grant", "ZZ", "send"], INVALID),
        (["orders", "grant", "everyone", "fly"], INVALID),
        (["orders", "grant", "everyone", ""], INVALID),
        (["orders", "set", "D:(A;;;)"], "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"),
        (["nowhere", "grant", "everyone", "send"], "MQ_ERROR_QUEUE_NOT_FOUND"),
        ([".\\system$;deadletter", "grant", "everyone", "send"], "MQ_ERROR_PROPERTY"),
        (["orders", "grant"], INVALID),
        ([7, "grant", "everyone", "send"], INVALID),
    ],
)
def test_wrong_edits(root: Client, payload: list[Any], expected: str) -> None:
    assert error(root.call(Frame.EDIT_ACL, payload)) == expected


def test_explain(root: Client, nobody: Client) -> None:
    told = value(root.call(Frame.EXPLAIN, ["orders", f"uid:{UID}", "send,peek"]))
    assert (told["granted"], told["missing"], told["entry"]) == (False, ["MQSEC_PEEK_MESSAGE"], None)
    told = value(root.call(Frame.EXPLAIN, ["orders", "anonymous", "send"]))
    assert (told["granted"], told["sids"]) == (False, [{"sid": "S-1-5-7", "name": "anonymous"}])
    told = value(root.call(Frame.EXPLAIN, ["orders", "everyone", "send"]))
    assert (told["granted"], told["entry"]["text"]) == (True, "(A;;LCWP;;;WD)")
    told = value(root.call(Frame.EXPLAIN, ["orders", "", "change-permissions"]))
    assert (told["granted"], told["reason"], told["entry"]) == (True, "the caller is the owner", None)
    assert value(root.call(Frame.EXPLAIN, [None, "administrators", "create-queue"]))["granted"]
    assert error(root.call(Frame.EXPLAIN, ["orders", "mallory", "send"])) == INVALID
    assert error(root.call(Frame.EXPLAIN, [None, "everyone", "send"])) == INVALID
    # Without the right to read the list, a caller may ask for itself, and does not see the list.
    told = value(nobody.call(Frame.EXPLAIN, ["orders", "", "send"]))
    assert (told["granted"], told["entry"], told["owner"]) == (True, None, {"sid": "", "name": ""})
    assert error(nobody.call(Frame.EXPLAIN, ["orders", "everyone", "send"])) == DENIED


def test_queue_maps(root: Client, nobody: Client) -> None:
    assert value(root.call(Frame.GET_QUEUE, ["orders"]))["security"] == (
        "O:S-1-22-1-0G:S-1-22-2-0D:(A;;LCWP;;;WD)"
    )
    assert "security" not in value(nobody.call(Frame.GET_QUEUE, ["orders"]))
    descriptor = parse_sddl("D:(A;;LC;;;WD)").encoded
    value(root.call(Frame.SET_QUEUE, ["orders", {"security": descriptor}]))
    assert error(nobody.call(Frame.GET_QUEUE, ["orders"])) == DENIED
    assert value(nobody.call(Frame.LIST_QUEUES, ["user"])) == []
    # Administrators must know what there is, even where they locked themselves out.
    assert error(root.call(Frame.GET_QUEUE, ["orders"])) == DENIED
    assert len(value(root.call(Frame.LIST_QUEUES, ["user"]))) == 1


@pytest.mark.parametrize("security", ["D:(", b"\1", 7, None, ["D:"]])
def test_wrong_descriptors(root: Client, security: Any) -> None:
    assert error(root.call(Frame.SET_QUEUE, ["orders", {"security": security, "label": "x"}])) == (
        "MQ_ERROR_ILLEGAL_PROPERTY_VALUE"
    )
    assert value(root.call(Frame.GET_QUEUE, ["orders"]))["label"] == ""


def test_what_else_takes_rights(root: Client, nobody: Client) -> None:
    assert error(nobody.call(Frame.CREATE_QUEUE, ["mine", {}])) == DENIED
    assert error(nobody.call(Frame.DELETE_QUEUE, ["orders"])) == DENIED
    assert error(nobody.call(Frame.SET_QUEUE, ["orders", {"label": "x"}])) == DENIED
    assert error(nobody.call(Frame.SET_QUEUE, ["orders", {}])) == DENIED
    value(nobody.call(Frame.OPEN, ["DIRECT=OS:far\\q", int(Access.SEND)]))
    far = "DIRECT=OS:far\\q"
    assert value(nobody.call(Frame.SHOW_OUTGOING, [far]))["kind"] == "outgoing"
    for frame in (
        Frame.PAUSE_OUTGOING,
        Frame.RESUME_OUTGOING,
        Frame.KICK_OUTGOING,
        Frame.PURGE_OUTGOING,
    ):
        assert error(nobody.call(frame, [far])) == DENIED
        root.call(frame, [far])


def test_a_group_that_does_not_exist_keeps_out(world: World) -> None:
    client = Client(world, Identity("billing", None, ("nonsense",)))
    assert error(client.call(Frame.HELLO, {"version": 1})) == DENIED
