"""`receive` of queues of other computers: two server processes, over RemoteRead and over qm2qm."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes.remotes import HOST, NAME, computers
from tests.support.processes.servers import Server, data_directory


@pytest.fixture(scope="module", params=["RemoteRead", "qm2qm"])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[Server, Server]]:
    """Over either interface."""
    off = {"MSMQ_FAST_RPC__REMOTE_READ": "false"} if request.param == "qm2qm" else {}
    with computers(off) as pair:
        yield pair


@pytest.fixture
def pair(both: tuple[Server, Server]) -> tuple[Server, Server]:
    """With an empty queue."""
    both[0].run("queue", "purge", "orders")
    return both


def send(owner: Server, *bodies: str, priority: int = 3) -> None:
    for body in bodies:
        owner.ok("send", "orders", "--body", body, "--recoverable", "--priority", str(priority))


def bodies(lines: list[dict[str, Any]]) -> list[str]:
    return [b64decode(line["body_b64"]).decode() for line in lines]


def test_receive_and_count(pair: tuple[Server, Server]) -> None:
    owner, reader = pair
    send(owner, "one", "two", "three")
    assert bodies(reader.ok("receive", NAME)) == ["one"]
    assert bodies(reader.messages(NAME)) == ["two", "three"]
    assert owner.messages("orders") == []


def test_a_message_is_what_its_owner_says(pair: tuple[Server, Server]) -> None:
    owner, reader = pair
    send(owner, "one")
    (there,) = owner.ok("receive", "orders", "--peek")
    (here,) = reader.ok("receive", NAME)
    assert {key: value for key, value in here.items() if key != "arrival_seq"} == {
        key: value for key, value in there.items() if key != "arrival_seq"
    }


def test_peek_leaves_everything(pair: tuple[Server, Server]) -> None:
    owner, reader = pair
    send(owner, "one", "two")
    assert bodies(reader.ok("receive", NAME, "--peek", "--count", "2")) == ["one", "two"]
    assert bodies(owner.messages("orders")) == ["one", "two"]


def test_by_lookup_id(pair: tuple[Server, Server]) -> None:
    owner, reader = pair
    send(owner, "low", priority=1)
    send(owner, "one", "two", "three")
    shown = reader.ok("receive", NAME, "--peek", "--count", "4")
    assert bodies(shown) == ["one", "two", "three", "low"]
    ids = {body: line["lookup_id"] for body, line in zip(bodies(shown), shown, strict=True)}
    assert ids == {
        body: line["lookup_id"]
        for body, line in zip(
            bodies(shown), owner.ok("receive", "orders", "--peek", "--count", "4"), strict=True
        )
    }
    assert bodies(reader.ok("receive", NAME, "--lookup-id", str(ids["low"]))) == ["low"]
    assert bodies(reader.ok("receive", NAME, "--lookup-id", str(ids["one"]), "--next", "--peek")) == ["two"]
    assert bodies(reader.ok("receive", NAME, "--lookup-id", str(ids["three"]), "--prev")) == ["two"]
    assert reader.run("receive", NAME, "--lookup-id", str(ids["two"])).returncode == Exit.NOT_FOUND
    assert bodies(owner.messages("orders")) == ["one", "three"]


def test_an_empty_queue(pair: tuple[Server, Server]) -> None:
    _, reader = pair
    assert reader.run("receive", NAME, "--timeout", "0.2").returncode == Exit.EMPTY


def test_purge(pair: tuple[Server, Server]) -> None:
    owner, reader = pair
    send(owner, "one", "two")
    assert reader.ok("queue", "purge", NAME) == [{"purged": None, "name": NAME}]
    assert owner.messages("orders") == []


def test_what_there_is_not(pair: tuple[Server, Server]) -> None:
    _, reader = pair
    missing = reader.run("receive", rf"DIRECT=TCP:{HOST}\private$\nowhere")
    assert missing.returncode == Exit.NOT_FOUND
    assert b"MQ_ERROR_QUEUE_NOT_FOUND" in missing.stderr
    nobody = reader.run("receive", r"DIRECT=TCP:127.0.0.9\private$\orders")
    assert nobody.returncode == Exit.REFUSED
    assert b"MQ_ERROR_REMOTE_MACHINE_NOT_AVAILABLE" in nobody.stderr


def test_nothing_is_received_in_a_transaction(pair: tuple[Server, Server]) -> None:
    _, reader = pair
    refused = reader.run("receive", NAME, "--xact")
    assert refused.returncode == Exit.REFUSED
    assert b"MQ_ERROR_TRANSACTION_ENLIST" in refused.stderr


def test_large_messages(pair: tuple[Server, Server], tmp_path: Path) -> None:
    owner, reader = pair
    body = bytes(range(256)) * 16_000
    file = tmp_path / "body"
    file.write_bytes(body)
    owner.ok("send", "orders", "--file", str(file))
    (line,) = reader.ok("receive", NAME)
    assert b64decode(line["body_b64"]) == body


def test_a_wrong_password(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("battery staple\n")
    with computers(reading={"MSMQ_FAST_REMOTE__PASSWORD_FILE": str(wrong)}) as (owner, reader):
        send(owner, "one")
        refused = reader.run("receive", NAME)
        assert refused.returncode == Exit.REFUSED
        assert b"MQ_ERROR_ACCESS_DENIED" in refused.stderr
        assert len(owner.messages("orders")) == 1


def test_without_a_name() -> None:
    with computers(reading={"MSMQ_FAST_REMOTE__USER": ""}) as (owner, reader):
        send(owner, "one")
        refused = reader.run("receive", NAME)
        assert refused.returncode == Exit.REFUSED
        rights = ("--right", "MQSEC_RECEIVE_MESSAGE")
        owner.ok("acl", "grant", "orders", "--user", "anonymous", *rights)
        assert bodies(reader.ok("receive", NAME)) == ["one"]


def test_switched_off() -> None:
    with computers(reading={"MSMQ_FAST_REMOTE__ENABLED": "false"}) as (_, reader):
        refused = reader.run("receive", NAME)
        assert refused.returncode == Exit.NOT_FOUND
        assert b"is not on this computer" in refused.stderr


def test_json_of_a_purge_is_json(pair: tuple[Server, Server]) -> None:
    _, reader = pair
    done = reader.run("queue", "purge", NAME, "--json")
    assert json.loads(done.stdout)["purged"] is None


@pytest.fixture(scope="module")
def lenient() -> Iterator[tuple[Server, Server]]:
    """The owner takes callers of any level; the reader is one by which the others are started."""
    any_level = {"MSMQ_FAST_RPC__REMOTE_READ_LEVEL": "none", "MSMQ_FAST_RPC__NAMED_LEVEL": "none"}
    with computers(any_level) as pair:
        pair[0].ok("acl", "grant", "orders", "--user", "anonymous", "--right", "MQSEC_RECEIVE_MESSAGE")
        yield pair


@pytest.mark.parametrize(
    ("authentication", "level"),
    [
        *((kind, level) for kind in ("negotiate", "ntlm") for level in ("connect", "packet", "integrity")),
        ("ntlm", "privacy"),
        ("none", "privacy"),
    ],
)
def test_authentication(
    lenient: tuple[Server, Server], authentication: str, level: str, tmp_path: Path
) -> None:
    owner, other = lenient
    body = bytes(range(256)) * 400
    file = tmp_path / "body"
    file.write_bytes(body)
    owner.ok("send", "orders", "--file", str(file))
    environment = {
        **other.environment,
        "MSMQ_FAST_REMOTE__AUTHENTICATION": authentication,
        "MSMQ_FAST_REMOTE__LEVEL": level,
    }
    with data_directory() as data:
        reader = Server(data, "--name", "THIRD", host="127.0.0.4", environment=environment).start()
        try:
            (line,) = reader.ok("receive", NAME)
        finally:
            reader.kill()
    assert b64decode(line["body_b64"]) == body
