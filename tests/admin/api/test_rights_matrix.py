"""Each operation × a caller with each right: the API refuses what the application protocol refuses, no more.

To add an operation: give it a Case, whose `frames` makes the same request with the client of the application
protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import Any
from uuid import uuid4

import pytest

from msmq_fast.admin.api.operations import BY_NAME
from msmq_fast.client.connection import Connection, connect
from msmq_fast.client.exchange import EVERYTHING
from msmq_fast.client.message import Message, parse_message_id
from msmq_fast.protocol.errors import AccessDenied, MSMQError
from msmq_fast.protocol.frames import Access
from tests.support.http.api import call, ok
from tests.support.processes.servers import Server, data_directory, until

FAR = r"DIRECT=TCP:127.0.0.94\private$\matrix"
DEAD = r".\system$;deadletter"
GUID = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
MESSAGE_ID = r"{ca67622c-7290-4658-b39b-f700fff64801}\5"
NOBODY = "00000000-0000-0000-0000-000000000001"

QUEUE_RIGHTS = (
    "send", "peek", "receive", "get-properties", "set-properties", "get-permissions", "change-permissions",
    "take-ownership", "delete", "all",
)  # fmt: skip
MACHINE_RIGHTS = (
    "create-queue", "deadletter", "peek-deadletter", "get-properties", "set-properties", "get-permissions",
    "change-permissions", "all",
)  # fmt: skip
CALLERS = (
    "none",
    *(f"queue-{right}" for right in QUEUE_RIGHTS),
    *(f"machine-{right}" for right in MACHINE_RIGHTS),
    "reader",
    "administrator",
)

Frames = Callable[[Connection, "Case"], Awaitable[object]]


@dataclass(frozen=True)
class Case:
    """A request that an administrator may make. `{}` in values of `path` and `body` stands for a queue that
    is new for each request, with one message, whose lookup id replaces LOOKUP. `frames` makes the same
    request; None if the operation asks the queue manager nothing.
    """

    frames: Frames | None
    path: dict[str, Any] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None

    def on(self, queue: str, lookup_id: int) -> Case:
        """Return the case for one queue."""

        def filled(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: filled(one) for name, one in value.items()}
            if value is LOOKUP:
                return lookup_id
            return value.replace("{}", queue) if isinstance(value, str) and "{}" in value else value

        return Case(self.frames, filled(self.path), filled(self.query), filled(self.body))


LOOKUP = object()
QUEUE = {"queue": "{}"}


def simple(function: Callable[[Connection], Awaitable[object]]) -> Frames:
    """A request without arguments of the case."""
    return lambda link, _case: function(link)


def opened(access: Access, use: Callable[[Connection, Any, Case], Awaitable[object]]) -> Frames:
    """A request that opens the queue of the case."""

    async def run(link: Connection, case: Case) -> None:
        async with link.open(case.path["queue"], access) as queue:
            await use(link, queue, case)

    return run


def relocated(keep: bool) -> Frames:
    async def run(link: Connection, case: Case) -> None:
        async with (
            link.open(case.path["queue"], Access.PEEK if keep else Access.RECEIVE) as source,
            link.open(case.body["target"], Access.SEND) as target,
        ):
            messages = link.admin.messages
            await (messages.copy(source, target) if keep else messages.move(source, target))

    return run


def named(function: Callable[[Connection, str], Awaitable[object]]) -> Frames:
    """A request on the outgoing queue."""
    return lambda link, case: function(link, case.path["name"])


async def delete_outgoing(link: Connection, name: str) -> None:
    """The API must know that the name is that of an outgoing queue, and asks for its properties."""
    await link.admin.outgoing.get(name)
    await link.admin.queues.delete(name)


REMOVE = opened(Access.RECEIVE, lambda link, queue, _: link.admin.messages.remove(queue))
LOOK = opened(Access.PEEK, lambda _, queue, case: queue.lookup(case.path["lookup_id"]))
BROWSE = opened(Access.PEEK, lambda link, queue, _: link.admin.messages.browse(queue))
LIST_USERS = simple(lambda link: link.admin.users.page())
ONE = {"queue": "{}", "lookup_id": LOOKUP}
OUT = {"name": FAR}
CERTIFICATE = b64encode(b"not a certificate").decode()

CASES: dict[str, Case] = {
    "server.reload": Case(simple(lambda link: link.admin.reload())),
    "server.show": Case(None),
    "server.stats": Case(simple(lambda link: link.admin.stats())),
    "queues.list": Case(simple(lambda link: link.admin.queues.page())),
    "queues.show": Case(lambda link, case: link.admin.queues.get(case.path["queue"]), QUEUE),
    "queues.create": Case(
        lambda link, case: link.admin.queues.create(case.body["name"] + "-f"), body={"name": "{}-made"}
    ),
    "queues.set": Case(
        lambda link, case: link.admin.queues.set(case.path["queue"], label="x"), QUEUE, body={"label": "x"}
    ),
    "queues.delete": Case(lambda link, case: link.admin.queues.delete(case.path["queue"]), QUEUE),
    "queues.purge": Case(opened(Access.RECEIVE, lambda _, queue, __: queue.purge()), QUEUE),
    "queues.rights": Case(
        lambda link, case: link.admin.access.explain(case.path["queue"], "", "send"), QUEUE
    ),
    "messages.list": Case(BROWSE, QUEUE),
    "messages.show": Case(LOOK, ONE),
    "messages.body": Case(LOOK, ONE),
    "messages.move": Case(relocated(keep=False), QUEUE, body={"target": "{}-target"}),
    "messages.copy": Case(relocated(keep=True), QUEUE, body={"target": "{}-target"}),
    "messages.resubmit": Case(
        opened(Access.RECEIVE, lambda link, queue, _: link.admin.messages.resubmit(queue)),
        {"queue": DEAD},
        body={},
    ),
    "messages.remove": Case(REMOVE, ONE),
    "messages.remove_selected": Case(REMOVE, QUEUE, body={"label": "*"}),
    "messages.send": Case(
        opened(Access.SEND, lambda _, queue, __: queue.send(Message(b"x"))), QUEUE, body={"body": "x"}
    ),
    "outgoing.list": Case(simple(lambda link: link.admin.outgoing.all())),
    "outgoing.show": Case(named(lambda link, name: link.admin.outgoing.get(name)), OUT),
    "outgoing.pause": Case(named(lambda link, name: link.admin.outgoing.pause(name)), OUT),
    "outgoing.resume": Case(named(lambda link, name: link.admin.outgoing.resume(name)), OUT),
    "outgoing.kick": Case(named(lambda link, name: link.admin.outgoing.kick(name)), OUT),
    "outgoing.purge": Case(named(lambda link, name: link.admin.outgoing.purge(name)), OUT),
    "outgoing.delete": Case(named(delete_outgoing), OUT),
    "outgoing.remove_selected": Case(
        named(lambda link, name: link.admin.messages.remove_outgoing(name, EVERYTHING)),
        OUT,
        body={"label": "none"},
    ),
    "transactions.list": Case(simple(lambda link: link.admin.transactions.all())),
    "transactions.commit": Case(
        simple(lambda link: link.admin.transactions.commit(NOBODY)), {"identifier": NOBODY}
    ),
    "transactions.abort": Case(
        simple(lambda link: link.admin.transactions.abort(NOBODY)), {"identifier": NOBODY}
    ),
    "sessions.list": Case(simple(lambda link: link.admin.sessions.page())),
    "sessions.close": Case(simple(lambda link: link.admin.sessions.close(1 << 40)), {"number": 1 << 40}),
    "access.show": Case(lambda link, case: link.admin.access.get(case.query["queue"]), query=QUEUE),
    "access.edit": Case(
        lambda link, case: link.admin.access.grant(case.query["queue"], "everyone", "send"),
        query=QUEUE,
        body={"action": "grant", "account": "everyone", "rights": "send"},
    ),
    "access.explain": Case(
        lambda link, case: link.admin.access.explain(case.query["queue"], "everyone", "send"),
        query={"queue": "{}", "account": "everyone", "rights": "send"},
    ),
    "certificates.list": Case(
        simple(lambda link: link.admin.certificates.all("uid:4711")), query={"user": "uid:4711"}
    ),
    "certificates.create": Case(
        simple(lambda link: link.admin.certificates.create("uid:4711")), query={"user": "uid:4711"}
    ),
    "certificates.add": Case(
        simple(lambda link: link.admin.certificates.add(b"not a certificate", None, "uid:4711")),
        query={"user": "uid:4711"},
        body={"certificate_b64": CERTIFICATE},
    ),
    "certificates.remove": Case(
        simple(lambda link: link.admin.certificates.remove(NOBODY, "uid:4711")),
        {"identifier": NOBODY},
        {"user": "uid:4711"},
    ),
    "keys.list": Case(simple(lambda link: link.admin.keys.all())),
    "keys.add": Case(
        simple(lambda link: link.admin.keys.add(GUID, b"not keys")),
        body={"guid": GUID, "blob_b64": b64encode(b"not keys").decode()},
    ),
    "keys.remove": Case(simple(lambda link: link.admin.keys.remove(GUID)), {"guid": GUID}),
    "audit.list": Case(simple(lambda link: link.admin.audit.page())),
    "users.list": Case(LIST_USERS),
    "groups.list": Case(LIST_USERS),
    "config.show": Case(simple(lambda link: link.admin.config.page())),
    "config.check": Case(simple(lambda link: link.admin.config.check("")), body={"text": ""}),
    "series.show": Case(lambda link, case: link.admin.series(case.query["queue"]), query=QUEUE),
    "trace.show": Case(
        simple(lambda link: link.admin.trace(parse_message_id(MESSAGE_ID))), {"message_id": MESSAGE_ID}
    ),
    "dlq.list": Case(lambda link, _: BROWSE(link, Case(None, {"queue": DEAD}))),
    "directory.list": Case(simple(lambda link: link.admin.directory.all("Queue")), {"type": "Queue"}),
    "directory.show": Case(
        simple(lambda link: link.admin.directory.get("Queue", GUID)), {"type": "Queue", "name": GUID}
    ),
    "directory.create": Case(
        lambda link, case: link.admin.directory.put(
            {"object": "Site", "Name": case.body["Name"] + "-f"}, "create"
        ),
        {"type": "Site"},
        body={"Name": "{}-site"},
    ),
    "directory.delete": Case(
        simple(lambda link: link.admin.directory.delete("Site", GUID)), {"type": "Site", "name": GUID}
    ),
    "definitions.export": Case(simple(lambda link: link.admin.definitions.export())),
    "messages.packet": Case(LOOK, ONE),
    "readers.list": Case(simple(lambda link: link.admin.sessions.readers())),
    "routes.explain": Case(named(lambda link, name: link.admin.outgoing.explain_route(name)), OUT),
    "server.snapshots": Case(simple(lambda link: link.admin.snapshot_progress())),
}

UNTRIED = {"server.snapshot", "server.bundle", "definitions.import", "directory.import", "directory.set"}
"""Those that copy the store, or whose answer names what the caller may not do: see the tests below and
tests/cli/test_snapshot.py.
"""


def test_every_operation_has_its_case() -> None:
    assert set(CASES) | UNTRIED == set(BY_NAME)


@dataclass(frozen=True)
class Place:
    """A server, the token of each caller, and the descriptor of a queue with their rights."""

    server: Server
    tokens: dict[str, str]
    security: str

    @property
    def endpoint(self) -> str:
        return f"tcp://127.0.0.1:{self.server.port('app-tcp')}"


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with data_directory() as data:
        data.mkdir()
        where = ("--data", str(data))
        environment = {"MSMQ_FAST_LISTEN__APP__PORT": "0", "MSMQ_FAST_LISTEN__APP__HOST": "127.0.0.1"}
        server = Server(data, "--name", "ALPHA", environment=environment).start()
        try:
            tokens = {}
            for caller in CALLERS:
                group = {"reader": ("--group", "readers"), "administrator": ("--group", "administrators")}
                server.ok("user", "add", caller, "--no-password", *group.get(caller, ()), *where)
                tokens[caller] = server.ok("user", "token", caller, *where)[0]["token"]
            until(lambda: ok(server, "GET", "/users")["total"] == len(CALLERS), what="the users are read")
            ok(server, "PATCH", "/access", body={"action": "set", "descriptor": machine_list()})
            server.ok("send", FAR, "--body", "x", "--recoverable")
            ok(server, "POST", "/queues", body={"name": "template"})
            everything = {"action": "set", "descriptor": machine_list()}
            ok(server, "PATCH", "/access", queue="template", body=everything)
            for caller in CALLERS:
                kind, _, rights = caller.partition("-")
                grant = {"action": "grant", "account": caller, "rights": rights}
                if kind == "machine":
                    ok(server, "PATCH", "/access", body=grant)
                elif kind == "queue":
                    ok(server, "PATCH", "/access", queue="template", body=grant)
            yield Place(server, tokens, ok(server, "GET", "/access", queue="template")["sddl"])
        finally:
            server.kill()


def machine_list() -> str:
    """The access list of the queue manager to begin with: for administrators only."""
    return "D:P(A;;CCDCLCSWRPWPDTLOSDRCWDWO;;;BA)"


def renew(place: Place, case: Case) -> Case:
    """Make what a request needs, with the rights of the callers; returns the case for it."""
    server, name = place.server, f"matrix-{uuid4().hex[:12]}"
    text = json.dumps([case.path, case.query, case.body], default=lambda _: "LOOKUP")
    if FAR in text.replace("\\\\", "\\") and needs_message(server):
        server.ok("send", FAR, "--body", "x", "--recoverable")
    if "{}" not in text:
        return case
    for queue in (name, *((f"{name}-target",) if "-target" in text else ())):
        ok(server, "POST", "/queues", body={"name": queue, "security": place.security})
    if case.path.get("queue") != "{}":
        return case.on(name, 0)
    ok(server, "POST", "/queues/{}/messages", name, body={"body": "x"})
    if "LOOKUP" not in text:
        return case.on(name, 0)
    (row,) = ok(server, "GET", "/queues/{}/messages", name)["items"]
    return case.on(name, row["lookup_id"])


def needs_message(server: Server) -> bool:
    return call(server, "GET", "/outgoing/{}", FAR).status == 404


def over_http(server: Server, name: str, case: Case, token: str) -> str:
    """Make the request over the API; returns the code of its error, "" if there is none."""
    operation = BY_NAME[name]
    path, names = operation.path, []
    for parameter in operation.path_parameters:
        path = path.replace(f"{{{parameter.name}}}", "{}")
        names.append(case.path[parameter.name])
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = call(server, operation.method, path, *names, body=case.body, headers=headers, **case.query)
    assert answer.status < 500, (name, case, answer)
    return "" if answer.status < 400 else answer.code


async def over_frames(link: Connection, case: Case) -> str:
    assert case.frames is not None
    try:
        await case.frames(link, case)
    except AccessDenied:
        return "ACCESS_DENIED"
    except MSMQError as error:
        return error.name
    return ""


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_api_refuses_what_the_protocol_refuses(place: Place, name: str) -> None:
    case = CASES[name]
    wrong: list[object] = []

    shared = None if BY_NAME[name].changes else renew(place, case)

    async def compare() -> None:
        for caller, token in place.tokens.items():
            made = over_http(place.server, name, shared or renew(place, case), token)
            allowed = made != "ACCESS_DENIED"
            if case.frames is None:
                assert allowed
                continue
            async with await connect(place.endpoint, token=token) as link:
                asked = await over_frames(link, shared or renew(place, case))
            if allowed != (asked != "ACCESS_DENIED"):
                wrong.append((caller, made, asked))
            if caller == "administrator" and not allowed:
                wrong.append((caller, made))

    asyncio.run(compare())
    assert not wrong


def test_documents_of_other_callers_change_nothing(place: Place) -> None:
    headers = {"Authorization": f"Bearer {place.tokens['reader']}"}
    queues = {"msmq_fast_definitions": 1, "queues": [{"name": "refused"}]}
    sites = {"msmq_fast_directory": 1, "objects": [{"object": "Site", "Name": "refused"}]}
    answer = call(place.server, "POST", "/definitions", body=queues, headers=headers)
    assert (answer.status, answer.code) == (403, "ACCESS_DENIED")
    answer = call(place.server, "POST", "/directory", body=sites, headers=headers)
    (item,) = json.loads(answer.content)["items"]
    assert item["outcome"] == "failed"
    ok(place.server, "POST", "/directory/Site", body={"Name": "kept"})
    answer = call(place.server, "PATCH", "/directory/Site/kept", body={"ForeignSite": True}, headers=headers)
    assert (answer.status, answer.code) == (403, "ACCESS_DENIED")
    assert call(place.server, "GET", "/queues/{}", "refused").status == 404
    assert not ok(place.server, "GET", "/directory/Site/kept").get("ForeignSite")


@pytest.fixture(scope="module")
def strict() -> Iterator[Server]:
    """A server that treats each caller as one from another machine."""
    with data_directory() as data:
        server = Server(data, environment={"MSMQ_FAST_LISTEN__ADMIN__ACCESS": "token"})
        try:
            yield server.start()
        finally:
            server.kill()


@pytest.mark.parametrize("name", sorted(CASES))
def test_beyond_this_machine_a_token_is_needed(strict: Server, name: str) -> None:
    case = CASES[name].on("orders", 1)
    for token in ("", "wrong-token-0123456789"):
        assert over_http(strict, name, case, token) == "UNAUTHORIZED"


def test_the_description_needs_a_token_and_probes_do_not(strict: Server) -> None:
    for path, status in (("/livez", 200), ("/readyz", 200), ("/api/v1/openapi.json", 401)):
        connection = HTTPConnection(strict.host, strict.port("admin"), timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path)
            assert (path, connection.getresponse().status) == (path, status)
