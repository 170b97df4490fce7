"""The users file and the configuration over the management API: never a secret."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.http.api import call, ok
from tests.support.processes.servers import Server, command, data_directory, until

TOKEN = "s3cret-of-billing-0123456789"  # noqa: S105
CONFIG = """
[listen.app]
host = "127.0.0.1"
port = 0
[limits]
handshake_timeout = 7
[protection]
key = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I="
[[users]]
name = "billing"
token = "{token}"
[[queues]]
name = "declared"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("config")
    (folder / "msmq.toml").write_text(CONFIG.format(token=TOKEN))
    return folder / "msmq.toml"


@pytest.fixture(scope="module")
def own(place: Path) -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA", "--config", str(place)).start()
        try:
            yield running
        finally:
            running.kill()


def settings(server: Server, **query: str) -> dict[str, dict[str, object]]:
    page = ok(server, "GET", "/config", limit=1000, **query)
    assert page["total"] == len(page["items"])
    return {one["key"]: one for one in page["items"]}


def test_values_have_their_origin_and_secrets_are_hidden(own: Server, place: Path) -> None:
    found = settings(own)
    line = CONFIG.splitlines().index("handshake_timeout = 7") + 1
    assert found["limits.handshake_timeout"]["value"] == "7 s"
    assert found["limits.handshake_timeout"]["origin"] == f"{place}:{line}"
    assert found["server.name"]["origin"] == "--name"
    assert found["users[0].token"]["value"] == "(hidden)"
    assert found["protection.key"]["value"] == "(hidden)"
    assert TOKEN not in json.dumps(found)
    assert "default" not in {one["origin"] for one in settings(own, set="true").values()}
    assert set(settings(own, filter="handshake")) == {"limits.handshake_timeout"}
    pages = [ok(own, "GET", "/config", limit=50, offset=offset) for offset in range(0, len(found), 50)]
    assert [one["key"] for page in pages for one in page["items"]] == list(found)


def test_the_command_prints_the_same(own: Server) -> None:
    assert own.ok("config", "show", "--running") == list(settings(own).values())


def test_what_changed_since_the_start_is_marked(own: Server, place: Path) -> None:
    assert settings(own, changed="true") == {}
    text = CONFIG.format(token=TOKEN).replace("= 7", "= 9").replace('"127.0.0.1"', '"127.0.0.2"')
    planned = ok(own, "POST", "/config/check", body={"text": text})
    assert (planned["changed"], planned["restart"]) == (["limits.handshake_timeout"], ["listen.app.host"])
    assert planned["mistakes"] == []
    assert settings(own, changed="true") == {}
    place.write_text("\n" + text)
    ok(own, "POST", "/server/reload")
    found = settings(own, changed="true")
    assert set(found) == {"limits.handshake_timeout", "listen.app.host"}
    timeout, host = found["limits.handshake_timeout"], found["listen.app.host"]
    assert (timeout["value"], timeout["changed"], timeout["restart"], timeout["live"]) == (
        "9 s",
        True,
        False,
        True,
    )
    line = text.splitlines().index("handshake_timeout = 9") + 2
    assert timeout["origin"] == f"{place}:{line}"
    assert (host["value"], host["changed"], host["restart"], host["live"]) == (
        ["127.0.0.1"],
        False,
        True,
        False,
    )


def test_mistakes_of_a_text_have_their_lines(own: Server) -> None:
    text = "[limits]\nhandshake_timeout = 'soon'\n[nowhere]\n"
    found = ok(own, "POST", "/config/check", body={"text": text})
    assert [one["line"] for one in found["mistakes"]] == [2, 3]
    assert all("\n" not in one["text"] for one in found["mistakes"])
    assert (found["changed"], found["restart"]) == ([], [])
    assert ok(own, "POST", "/config/check", body={"text": "["})["mistakes"][0]["text"].startswith("is not")
    assert call(own, "POST", "/config/check", body={"text": "#" * 262_145}).status == 400


def test_users_and_groups_without_secrets(own: Server) -> None:
    data = ("--data", str(own.data))
    own.ok("user", "add", "alice", *data, "--uid", "4711", "--group", "operators", stdin=b"secret-of-alice\n")
    own.ok("user", "add", "bob", *data, "--no-password", "--group", "operators", "--group", "readers")
    secret = own.ok("user", "token", "bob", *data)[0]["token"]
    until(lambda: ok(own, "GET", "/users")["total"] == 2, what="the server reads the users file")
    alice, bob = ok(own, "GET", "/users")["items"]
    rows = own.ok("user", "list", *data)
    assert [(one["name"], one["sid"], one["tokens"]) for one in (alice, bob)] == [
        (one["name"], one["sid"], one["tokens"]) for one in rows
    ]
    assert (alice["uid"], alice["password"], alice["tokens"], alice["last_logon"]) == (4711, True, 0, 0)
    assert ("uid" in bob, bob["groups"], bob["password"]) == (False, ["operators", "readers"], False)
    until(lambda: ok(own, "GET", "/users")["items"][1]["tokens"] == 1, what="the token is read")
    endpoint = f"tcp://127.0.0.1:{own.port('app-tcp')}"
    done = command("stats", environment={"MSMQ_FAST_ENDPOINT": endpoint, "MSMQ_FAST_TOKEN": secret})
    assert done.returncode == 0, done
    seen = ok(own, "GET", "/users", offset=1)["items"][0]
    assert (seen["name"], seen["last_address"], seen["last_method"]) == ("bob", "127.0.0.1", "a token")
    assert seen["last_logon"] > 1_700_000_000
    groups = ok(own, "GET", "/groups")
    assert [(one["name"], one["members"]) for one in groups["items"]] == [("operators", 2)]
    whole = json.dumps([seen, alice, groups])
    assert "scrypt" not in whole
    assert secret not in whole
