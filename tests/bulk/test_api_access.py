"""Who may do what over the bulk API, and how a caller proves who it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.client.bulk.client import (
    AccessDenied,
    BulkClient,
    BulkError,
    PlanRequest,
    Unauthorized,
    Unavailable,
)
from tests.support.http import bulk as api
from tests.support.processes.servers import Server, certify, command, data_directory

ROWS = [(b"a body", "a label")]


@pytest.fixture(scope="module")
def guarded(bulk_server: Server) -> Server:
    """With the queue `guarded`, to which `sender` may send; `taker` may receive, `nobody` nothing."""
    for user, right in (("taker", "receive"), ("taker", "peek")):
        bulk_server.ok("acl", "grant", "guarded", "--user", user, "--right", right)
    for user in ("reader", "taker", "nobody"):  # everybody may send, else
        bulk_server.ok("acl", "deny", "guarded", "--user", user, "--right", "send")
    bulk_server.ok("send", "guarded", "--body", "x", "--recoverable", "--count", "5")
    return bulk_server


def of(server: Server, user: str) -> BulkClient:
    return api.client(server, token=f"{user}-s3cret")


def allowed(call: object) -> bool:
    try:
        result = call()  # type: ignore[operator]
    except AccessDenied:
        return False
    if hasattr(result, "close"):
        result.close()
    return True


def test_rights_are_those_of_the_queue(guarded: Server) -> None:
    seen = {}
    for user in api.USERS:
        client = of(guarded, user)
        feed = client.bounds().feed_first
        seen[user] = {
            "bounds": allowed(lambda c=client: c.bounds(["guarded"])),
            "plan": allowed(lambda c=client: c.plan("guarded", 0, 1)),
            "rows": allowed(lambda c=client: c.rows("guarded", 0, 1)),
            "lease": allowed(lambda c=client: c.lease("s", "guarded", max_rows=1)),
            "release": allowed(lambda c=client: c.release("s", "guarded", 1)),
            "stage": allowed(lambda c=client: staged(c)),
            "events": allowed(lambda c=client, f=feed: c.events(f, f)),
            "subscribe": allowed(lambda c=client: c.subscribe("mine")),
            "snapshot": allowed(lambda c=client: c.snapshot("/")) if user != "admin" else True,
        }
    of(guarded, "admin").unsubscribe("mine")
    of(guarded, "taker").release("s", "guarded", 1 << 40)
    every = dict.fromkeys(seen["nobody"], False)
    reads = {"bounds": True, "plan": True, "rows": True}
    assert seen["nobody"] == every
    assert seen["taker"] == every | reads | {"lease": True, "release": True}
    assert seen["sender"] == every | {"stage": True}
    assert seen["reader"] == every | reads | {"events": True, "subscribe": True}
    assert seen["admin"] == dict.fromkeys(every, True)


def staged(client: BulkClient) -> None:
    schema = api.messages_schema()
    batch = api.pa.record_batch([[body for body, _ in ROWS], [label for _, label in ROWS]], schema=schema)
    stage = client.stage("writer-of-rights", 1, 0, 0, schema, [batch], queue="guarded")
    client.discard([stage.stage])


def test_a_pattern_shows_what_the_caller_may_read(guarded: Server) -> None:
    names = [queue.name.split("\\")[-1] for queue in of(guarded, "taker").bounds(pattern=".*").queues]
    assert "guarded" in names
    for content in ("messages", "journal"):
        none = of(guarded, "nobody").bounds(pattern=r".*\\guarded", content=content)
        assert (none.queues, none.known) == ((), 0)
        for user in ("reader", "taker"):
            one = of(guarded, user).bounds(pattern=r".*\\guarded", content=content, seen=1 << 40)
            assert (len(one.queues), one.known) == (1, 1)
    (refused,) = of(guarded, "nobody").plans([PlanRequest("guarded", 0, 1)])
    assert isinstance(refused, AccessDenied)


def test_a_stage_belongs_to_its_writer(guarded: Server) -> None:
    schema = api.messages_schema()
    stage = of(guarded, "sender").stage("hers", 1, 0, 0, schema, [], queue="guarded")
    with pytest.raises(BulkError, match="does not exist"):
        of(guarded, "admin").publish("hers", 1, 1, [stage.stage])
    assert of(guarded, "sender").publish("hers", 1, 1, [stage.stage]).rows == 0
    with pytest.raises(AccessDenied, match="another caller"):
        of(guarded, "admin").publish("hers", 1, 2, [])


def test_a_wrong_token_is_refused_and_never_written_down(guarded: Server) -> None:
    with pytest.raises(Unauthorized, match="unknown token"):
        api.client(guarded, token="wr0ng-s3cret").bounds()  # noqa: S106
    for header in ("Basic YTpi", "Bearer", "bearer", ""):
        answer = api.ask(guarded, "GET", "/bounds", headers={"Authorization": header})
        api.refused(answer, 401, "UNAUTHORIZED")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert api.ask(guarded, "GET", "/bounds", headers={"Authorization": "bEARER admin-s3cret"}).status == 200
    assert "s3cret" not in guarded.log.read_text()


def test_web_pages_and_proxies_on_this_machine_are_refused(guarded: Server) -> None:
    for headers in (
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example:1802"},
        {"Host": "10.0.0.1"},
        {"X-Forwarded-For": "203.0.113.9"},
        {"Via": "1.1 proxy"},
    ):
        answer = api.ask(guarded, "GET", "/bounds", headers=headers)
        api.refused(answer, 403, "ACCESS_DENIED", "web pages")
    with_token = {"Host": "msmq.example"} | api.bearer("nobody")
    assert api.ask(guarded, "GET", "/bounds", headers=with_token).status == 200
    assert api.ask(guarded, "GET", "/bounds", headers={"Host": "localhost:1802"}).status == 200


AS_SOMEBODY_ELSE = """
import encodings.idna, http.client, os, sys
os.setgroups([]); os.setgid(54321); os.setuid(54321)
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=20)
connection.request("GET", sys.argv[2])
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""


@pytest.mark.needs(rights=["ipv6"])
def test_both_loopback_addresses(guarded: Server) -> None:
    url = f"msmq+bulk://[::1]:{guarded.port('admin')}"
    assert BulkClient(url).bounds(content="events").feed_next > 1  # an administrator


def status_for_another_user(server: Server, path: str) -> str:
    """What a user without rights of its own gets for a request without a token."""
    arguments = [sys.executable, "-c", AS_SOMEBODY_ELSE, str(server.port("admin")), f"/v1/bulk{path}"]
    return subprocess.run(arguments, capture_output=True, text=True, check=True, cwd="/").stdout


@pytest.mark.needs(rights=["root"])
def test_another_user_of_this_machine_needs_a_token(guarded: Server) -> None:
    assert status_for_another_user(guarded, "/bounds").startswith("401 ")


@pytest.mark.needs(rights=["root"])
def test_another_user_of_this_machine_has_its_own_rights() -> None:
    with api.serving('[bulk]\naccess = "loopback"\n') as server:
        server.ok("queue", "create", "guarded")
        assert status_for_another_user(server, "/bounds").startswith("200 ")
        assert status_for_another_user(server, "/bounds?content=events").startswith("403 ")
        assert status_for_another_user(server, "/rows?queue=guarded&from=0&to=1").startswith("403 ")
        assert "uid 54321" in server.log.read_text()


@pytest.mark.needs(rights=["root"])
def test_readers_and_administrators_of_this_machine_need_no_token() -> None:
    with data_directory() as data:
        data.mkdir(mode=0o700)
        added = command(
            "user",
            "add",
            "watch",
            "--uid",
            "54321",
            "--no-password",
            "--group",
            "readers",
            "--data",
            str(data),
        )
        assert added.returncode == 0, added
        server = Server(data).start()
        try:
            assert status_for_another_user(server, "/bounds?content=events").startswith("200 ")
        finally:
            server.kill()


# ---- other ways to set it up


STRICT = """
[bulk]
access = "token"
[listen.admin]
tls_certificate = '{certificate}'
tls_key = '{key}'
"""


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server with TLS that wants a token of everybody, and its certificate."""
    directory = tmp_path_factory.mktemp("tls")
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    certify(key, certificate, "subjectAltName=IP:127.0.0.1")
    with api.serving(STRICT.format(certificate=certificate, key=key)) as server:
        yield server, certificate


@pytest.mark.needs("openssl")
def test_tls_with_a_token(
    secure: tuple[Server, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, certificate = secure
    file = tmp_path / "token"
    file.write_text("reader-s3cret\n")
    trusting = {"scheme": "https", "ca_file": str(certificate)}
    feed = api.client(server, token_file=str(file), **trusting).bounds(content="events")
    assert feed.feed_next > feed.feed_first
    with pytest.raises(Unauthorized, match="a token is needed"):
        api.client(server, **trusting).bounds()
    monkeypatch.setenv("MSMQ_FAST_TOKEN_FILE", str(file))
    client = api.client(server, **trusting)
    rows = client.events(feed.feed_first, feed.feed_next)
    assert sum(batch.num_rows for batch in rows) == feed.feed_next - feed.feed_first
    monkeypatch.setenv("MSMQ_FAST_TOKEN", "wrong")  # comes before the file
    with pytest.raises(Unauthorized):
        api.client(server, **trusting).bounds()


@pytest.mark.needs("openssl")
def test_a_certificate_that_is_not_trusted(secure: tuple[Server, Path]) -> None:
    server, _ = secure
    with pytest.raises(BulkError, match="certificate of the server is not trusted"):
        api.client(server, scheme="https", retries=5).bounds()
    with pytest.raises(Unavailable):
        api.client(server).bounds()  # in the clear


def test_the_bulk_api_can_be_switched_off() -> None:
    with api.serving('[bulk]\naccess = "off"\n') as server:
        answer = api.ask(server, "GET", "/bounds")
        assert answer.status == 404
        assert answer.content == {"error": "Not Found"}


def test_without_users_nobody_has_a_token() -> None:
    with data_directory() as data:
        server = Server(data, environment={"MSMQ_FAST_BULK__ACCESS": "token"}).start()
        try:
            answer = api.ask(server, "GET", "/bounds", headers={"Authorization": "Bearer "})
            assert (answer.status, api.ask(server, "GET", "/bounds").status) == (401, 401)
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[bulk]\naccess = "everybody"\n', 'expected one of "administrators", "loopback", "token", "off"'),
        ("[bulk]\nshare = 1.5\n", "expected a number from 0 to 1"),
        (
            "[listen.admin]\ntls_key = 'x'\n",
            "listen.admin.tls_certificate and listen.admin.tls_key must be set together",
        ),
    ],
)
def test_mistakes_of_the_configuration_are_told_at_the_start(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "msmq.toml"
    file.write_text(text)
    done = command("check-config", str(file))
    assert done.returncode == 2
    assert words in done.stderr.decode() + done.stdout.decode()
