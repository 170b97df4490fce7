"""Who may do what in the console: every route with every caller, as a generated matrix.

`LINES` has a line for each route and action, with the rights that it needs. The test compares the lines with
the routes of the application, so a new route needs a line. The callers are generated: one for each single
right, one with exactly the rights of each line, one for each right left out of these, and administrators,
readers and users without rights. What the matrix expects follows from the masks of the rights alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from msmq_fast.admin.api.api import Api
from msmq_fast.client import Access, Journal, MSMQError, sync
from msmq_fast.console.application import build_console
from msmq_fast.console.sessions import Sessions
from msmq_fast.security.masks import MachineRight, QueueRight, parse_rights
from tests.support.http.api import ok
from tests.support.http.console import Browser, Page
from tests.support.processes.servers import Server, data_directory, until

ON_QUEUES = ("send", "receive", "peek", "journal", "get-properties", "set-properties", "get-permissions",
             "change-permissions", "take-ownership", "delete")  # fmt: skip
ON_MACHINE = ("create-queue", "deadletter", "peek-deadletter", "journal", "peek-journal", "get-properties",
              "set-properties", "get-permissions", "change-permissions", "take-ownership")  # fmt: skip
DEAD = ".\\system$;deadletter"


@dataclass(frozen=True)
class Rights:
    """Rights on every queue of the test, and on the queue manager."""

    queue: str = ""
    machine: str = ""

    @property
    def masks(self) -> tuple[int, int]:
        on_queue = parse_rights(self.queue, QueueRight) if self.queue else 0
        return on_queue, parse_rights(self.machine, MachineRight) if self.machine else 0

    def covers(self, needed: Rights) -> bool:
        return all(given & wanted == wanted for given, wanted in zip(self.masks, needed.masks, strict=True))

    def without_one(self) -> Iterator[Rights]:
        """Yield the rights without one of them each."""
        for name in filter(None, self.queue.split(",")):
            yield Rights(",".join(one for one in self.queue.split(",") if one != name), self.machine)
        for name in filter(None, self.machine.split(",")):
            yield Rights(self.queue, ",".join(one for one in self.machine.split(",") if one != name))


@dataclass(frozen=True)
class Line:
    """One action of a route. `{queue}`, `{target}`, `{outgoing}` and `{id}` stand for what the test makes.

    - `needs`: the rights without which it is refused; `readers`: members of that group need none.
    - `button`: the rights that a caller must have to see its button, if not all of `needs`; a page cannot
      know the rights on a target that is not entered yet.
    - `admins`: the page is for administrators only, as it is for few others.
    - `on_dead`: the rights for its button among dead letters, if they differ.
    - `outcome`: what the notice says to a caller with the rights; `failed` for an action on nothing; `page`
      if the answer is the result.
    - `hidden`: no page of this test has its button, as nothing is there that it could act on.
    - `session`: whether it needs one; `ended`: the status of the answer without one.
    - `lasting`: whether it changes something that the test can see afterwards.
    """

    method: str
    path: str
    needs: Rights = Rights()
    query: str = ""
    form: dict[str, str] = field(default_factory=dict)
    button: Rights | None = None
    readers: bool = False
    admins: bool = False
    on_dead: Rights | None = None
    outcome: str = "done"
    hidden: bool = False
    session: bool = True
    ended: int = 303
    lasting: bool = True

    @property
    def action(self) -> str:
        """The word that tells apart the actions of one route."""
        given = parse_qs(self.query).get("action", [""])[0]
        return self.form.get("action", given)

    @cached_property
    def name(self) -> str:
        return f"{self.method} {self.path} {self.action}".strip()


_SEE = Rights("get-properties")
_PURGE, _DELETE = Rights("get-properties,receive"), Rights("get-properties,delete")
_MOVE, _COPY = Rights("send,receive"), Rights("send,peek")
_RESUBMIT = Rights("send", "deadletter")
_STEER = Rights("", "set-properties")
_ONE = "queue={queue}&id={id}"
_TO = "messages/batch?action={}&queue={{queue}}&target={{target}}&scope=selected&id={{id}}"
_NAMED = "name={queue}"
_FAR = "name={outgoing}"
_DONE = "id={transaction}"


def _batch(method: str, action: str, needs: Rights, button: Rights) -> Line:
    query = f"action={action}&scope=selected&id={{id}}"
    query += f"&queue={DEAD}" if action == "resubmit" else "&queue={queue}&target={target}"
    dead = Rights("", "deadletter") if action == "remove" else None
    return Line(method, "/messages/batch", needs, query, button=button, on_dead=dead)


LINES = (
    Line("GET", "/static/{file}", session=False),
    Line("GET", "/login", session=False),
    Line("POST", "/login", form={"name": "x", "secret": "wrong"}, session=False, lasting=False),
    Line("POST", "/theme", form={"theme": "dark"}, session=False, lasting=False),
    Line("POST", "/logout", session=False, lasting=False),
    Line("GET", ""),
    Line("GET", "/"),
    Line("GET", "/live", _SEE, "page=/ui/queue?name%3D{queue}&poll=1", ended=401),
    Line("GET", "/overview"),
    Line("GET", "/queues"),
    Line("GET", "/queue", _SEE, _NAMED),
    Line("POST", "/queue", Rights("set-properties"), _NAMED, {"label": "changed"}, Rights("set-properties")),
    Line("GET", "/queues/new", Rights("", "create-queue")),
    Line("POST", "/queues/new", Rights("", "create-queue"), form={"name": "{made}"}),
    Line("GET", "/queue/confirm", _PURGE, _NAMED + "&action=purge"),
    Line("GET", "/queue/confirm", _DELETE, _NAMED + "&action=delete"),
    Line("POST", "/queue/confirm", _PURGE, _NAMED + "&action=purge"),
    Line("POST", "/queue/confirm", _DELETE, _NAMED + "&action=delete"),
    Line("GET", "/messages", Rights("peek"), "queue={queue}"),
    Line("GET", "/message", Rights("peek"), _ONE),
    Line("GET", "/message/download", Rights("peek"), _ONE),
    _batch("GET", "move", _MOVE, Rights("receive")),
    _batch("GET", "copy", _COPY, Rights("peek")),
    _batch("GET", "remove", Rights("receive"), Rights("receive")),
    _batch("POST", "remove", Rights("receive"), Rights("receive")),
    _batch("GET", "resubmit", Rights("", "deadletter"), Rights("", "deadletter")),
    _batch("POST", "move", _MOVE, _MOVE),
    _batch("POST", "copy", _COPY, _COPY),
    _batch("POST", "resubmit", _RESUBMIT, Rights("", "deadletter")),
    Line("GET", "/deadletters", Rights("", "peek-deadletter")),
    Line("GET", "/outgoing"),
    Line("GET", "/outgoing/queue", Rights("", "get-properties"), _FAR),
    Line("POST", "/outgoing/queue", _STEER, _FAR, {"action": "pause"}),
    Line("POST", "/outgoing/queue", _STEER, _FAR, {"action": "resume"}),
    Line("POST", "/outgoing/queue", _STEER, _FAR, {"action": "kick"}, lasting=False),
    Line("GET", "/outgoing/purge", Rights("", "get-properties,set-properties"), _FAR),
    Line("POST", "/outgoing/purge", Rights("", "get-properties,set-properties"), _FAR),
    Line("GET", "/send"),
    Line("POST", "/send", Rights("send"), form={"queue": "{queue}", "body": "x"}, button=Rights()),
    Line("GET", "/trace", _STEER, "id=" + "0" * 40),
    Line("GET", "/route", _STEER, "name=orders", readers=True),
    Line("GET", "/access", query="queue={queue}"),
    Line("POST", "/access", Rights("change-permissions"), "queue={queue}",
         {"account": "everyone", "action": "grant", "peek": "on"}),
    Line("POST", "/access", Rights("change-permissions"), "queue={queue}",
         {"account": "everyone", "action": "deny", "peek": "on"}),
    Line("GET", "/access/revoke", Rights("get-permissions,change-permissions"),
         "queue={queue}&account=anonymous"),
    Line("POST", "/access/revoke", Rights("change-permissions"), "queue={queue}&account=anonymous",
         button=Rights("get-permissions,change-permissions")),
    Line("GET", "/sessions"),
    Line("GET", "/sessions/close", _STEER, "number={session}"),
    Line("POST", "/sessions/close", _STEER, "number={session}"),
    Line("POST", "/sessions/end", form={"number": "{own}"}, lasting=False),
    Line("GET", "/transactions", _STEER),
    Line("GET", "/transactions/end", _STEER, _DONE + "&action=abort"),
    Line("POST", "/transactions/end", _STEER, _DONE + "&action=abort"),
    Line("GET", "/transactions/end", _STEER, _DONE + "&action=commit", hidden=True),
    Line("POST", "/transactions/end", _STEER, _DONE + "&action=commit", outcome="failed", lasting=False),
    Line("GET", "/users", _STEER, readers=True),
    Line("GET", "/configuration", _STEER, readers=True),
    Line("GET", "/configuration/check", _STEER, readers=True),
    Line("POST", "/configuration/check", _STEER, form={"text": ""}, readers=True, outcome="page",
         lasting=False),
    Line("GET", "/definitions", _STEER),
    Line("GET", "/definitions/export", _STEER),
    Line("POST", "/definitions/preview", _STEER, form={"text": "{definitions}"}, outcome="page",
         lasting=False),
    Line("POST", "/definitions/import", Rights("", "create-queue,set-properties"),
         form={"document": "{document}", "plan": "{plan}"}, hidden=True),
    Line("GET", "/maintenance", admins=True),
    Line("GET", "/maintenance/bundle", admins=True),
    Line("POST", "/maintenance/snapshot", _STEER, form={"directory": "{made_in}"}, outcome="begun",
         lasting=False),
    Line("POST", "/maintenance/reload", _STEER, lasting=False),
    Line("GET", "/keys"),
    Line("POST", "/keys/create", lasting=False),
    Line("POST", "/keys/register", form={"certificate": "none"}, outcome="failed", lasting=False),
    Line("GET", "/keys/certificate", query="id=none"),
    Line("POST", "/keys/certificate", query="id=none", outcome="failed", lasting=False, hidden=True),
    Line("GET", "/keys/peer", _STEER, "guid={guid}", hidden=True),
    Line("POST", "/keys/peer", _STEER, "guid={guid}", lasting=False),
    Line("POST", "/keys/peer/add", _STEER, outcome="failed", lasting=False),
    Line("GET", "/audit", _STEER, readers=True),
)  # fmt: skip
PREVIEWS = ("/queues/new", "/queue/confirm", "/messages/batch", "/outgoing/purge", "/access/revoke",
            "/sessions/close", "/transactions/end", "/keys/peer")  # fmt: skip
"""Pages whose only purpose is to prepare an action: their links count as buttons."""


def _generated() -> dict[str, Rights]:
    found = {Rights()} | {Rights(name) for name in ON_QUEUES} | {Rights("", name) for name in ON_MACHINE}
    for line in LINES:
        found |= {line.needs, *line.needs.without_one()}
    ordered = sorted(found, key=lambda one: (one.queue, one.machine))
    return {f"user{number}": rights for number, rights in enumerate(ordered)}


CALLERS = _generated()
GROUPS = {"boss": "administrators", "rita": "readers"}
ALL = Rights("all", "all")


def may(caller: str, needs: Rights) -> bool:
    """Whether the matrix allows it."""
    return (ALL if caller == "boss" else CALLERS.get(caller, Rights())).covers(needs)


class World:
    """The running server, with a browser for each caller."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.browsers: dict[str, Browser] = {}
        self.sids: dict[str, str] = {}
        self.owners: dict[int, str] = {}
        self.programs: list[sync.Connection] = []
        for name in (*CALLERS, *GROUPS):
            token = {"Authorization": f"Bearer token of {name}"}
            self.sids[name] = ok(server, "GET", "/server", headers=token)["caller"]["sid"]
            self.browsers[name] = Browser(server)
            self.owners[id(self.browsers[name])] = name
            assert self.browsers[name].log_on("", f"token of {name}").status == 303, name
        self.admin = sync.connect(server.endpoint)
        self.made = 0
        self.admin.admin.access.set(None, f"O:BAG:BAD:{self._entries(1)}(A;;0xF00F7;;;BA)")

    def _entries(self, which: int) -> str:
        masks = {name: rights.masks[which] for name, rights in CALLERS.items()}
        return "".join(f"(A;;{mask:#x};;;{self.sids[name]})" for name, mask in masks.items() if mask)

    def prepare(self, line: Line) -> dict[str, str]:
        """Make what a line acts on: a queue with one message, a target, an outgoing queue, a dead letter."""
        self.made += 1
        place = {
            "queue": f"from{self.made}",
            "target": f"to{self.made}",
            "made": f"new{self.made}",
            "outgoing": f"DIRECT=TCP:127.0.0.9\\private$\\far{self.made}",
            "file": "console.css",
            "guid": "{6fd54d2c-0d8a-4d5c-8a0e-3f6b0e6f1a11}",
            "made_in": str(self.server.data.parent / f"snapshot{self.made}"),
            "session": "0",
            "own": "0",
            "transaction": "0",
            "dead": DEAD if line.action == "resubmit" else "",
            "definitions": json.dumps({"msmq_fast_definitions": 1, "queues": [{"name": f"new{self.made}"}]}),
        }
        for name in (place["queue"], place["target"]):
            self.admin.admin.queues.create(name)
            self.admin.admin.access.set(name, f"O:BAG:BAD:{self._entries(0)}(A;;0xF003F;;;BA)(A;;4;;;AN)")
        with self.admin.open(place["queue"], Access.SEND) as queue:
            queue.send(b"x", label=place["queue"], journal=Journal.DEADLETTER)
            if line.action == "resubmit":
                with self.admin.open(place["queue"], Access.RECEIVE) as reader:
                    reader.purge()
                queue.send(b"x", label=place["queue"])
        if "outgoing" in line.path:
            with self.admin.open(place["outgoing"], Access.SEND) as queue:
                queue.send(b"x")
            if line.action == "resume":
                self.admin.admin.outgoing.pause(place["outgoing"])
        if "/sessions/close" in line.path:
            self.programs.append(sync.connect(self.server.endpoint))
            place["session"] = str(
                max(one.number for one in self.admin.admin.sessions.page("program").sessions)
            )
        if "/transactions" in line.path:
            self.admin.transaction().begin()
            place["transaction"] = self.admin.admin.transactions.all()[-1].identifier
        if "/definitions/import" in line.path:
            shown = self.browsers["boss"].ask("POST", "/definitions/preview", {"text": place["definitions"]})
            for name in ("document", "plan"):
                place[name] = next(str(one["value"]) for _, one in shown.tags if one.get("name") == name)
        source = place["dead"] or place["queue"]
        found = until(
            lambda: ok(self.server, "GET", "/queues/{}/messages", source, label=place["queue"])["items"]
        )
        return place | {"id": str(found[0]["lookup_id"])}

    def state(self, place: dict[str, str]) -> Any:
        """Return everything that an action could change."""
        admin, found = self.admin.admin, []
        for name in filter(None, (place["queue"], place["target"], place["made"], place["dead"])):
            try:
                shown = admin.queues.get(name)
            except MSMQError as error:
                found.append(str(error))
                continue
            found.append((shown.messages, shown.label, shown.journal, shown.quota_kb, shown.modified))
            found.append(None if name == DEAD else admin.access.get(name).as_map())
        numbers = [str(one.number) for one in admin.sessions.page("program").sessions]
        open_ones = [one.identifier for one in admin.transactions.all()]
        found += [place["session"] in numbers, place["transaction"] in open_ones]
        far = [one for one in admin.outgoing.all() if one.name == place["outgoing"]]
        return found + [(one.messages, one.paused_by, one.state == "on_hold") for one in far]

    def act(self, browser: Browser, line: Line, place: dict[str, str], **headers: str) -> Page:
        """Make the request of a line."""
        quoted = {name: quote(text, safe="") for name, text in place.items()}
        path = line.path.format_map(quoted)
        query = line.query.replace(DEAD, quote(DEAD, safe="")).format_map(quoted)
        if "/sessions/end" in line.path and id(browser) in self.owners:
            assert Browser(self.server).log_on("", f"token of {self.owners[id(browser)]}").status == 303
            numbers = re.findall(r'name="number" value="(\d+)"', browser.ask("GET", "/sessions").html)
            place = place | {"own": numbers[0]}
        form = {name: text.format_map(place) for name, text in line.form.items()}
        return browser.ask(
            line.method,
            path + ("?" + query if query else ""),
            form if line.method == "POST" else None,
            **headers,
        )


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with data_directory() as data:
        file = data.parent / "server.toml"
        users = [*((name, "") for name in CALLERS), *GROUPS.items()]
        file.write_text(
            "".join(
                f'[[users]]\nname = "{name}"\ntoken = "token of {name}"\n'
                + (f'groups = ["{group}"]\n' if group else "")
                for name, group in users
            )
        )
        running = Server(data, "--name", "ALPHA", "--config", str(file))
        try:
            made = World(running.start())
            yield made
            made.admin.close()
        finally:
            running.kill()


def each_line(method: str = "") -> Any:
    chosen = [line for line in LINES if method in ("", line.method)]
    return pytest.mark.parametrize("line", chosen, ids=lambda line: line.name)


def test_every_route_has_a_line() -> None:
    class Nothing:
        pass

    nothing: Any = Nothing()
    application = build_console(Api(nothing, nothing), nothing, Sessions(lambda: 0.0, bytes), ())
    routes = {
        (route.method, route.resource.canonical)
        for route in application.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    assert routes == {(line.method, line.path) for line in LINES}


@each_line()
def test_a_caller_without_a_session_gets_to_the_log_on_only(world: World, line: Line) -> None:
    place = world.prepare(line)
    before = world.state(place)
    ended = Browser(world.server)
    assert ended.log_on("", "token of boss").status == 303
    cookie = ended.cookie
    ended.ask("POST", "/logout", {})
    for given in ("", "msmq=", "msmq=" + "A" * 43, "msmq=" + "A" * 4000, cookie):
        stranger = Browser(world.server)
        stranger.cookie = given
        page = world.act(stranger, line, place)
        if line.session:
            assert page.status == line.ended
            if line.ended == 303:
                assert page.headers["Location"].startswith("/ui/login?next=")
        else:
            assert page.status in (200, 303, 403)
    assert world.state(place) == before


@each_line("GET")
def test_a_page_is_shown_to_who_has_the_rights(world: World, line: Line) -> None:
    place = world.prepare(line)
    before, wrong = world.state(place), []
    for name, browser in world.browsers.items():
        status = world.act(browser, line, place).status
        if line.path == "/messages/batch" and status == 303:
            status = 403  # it leads back to the list, with the reason
        allowed = may(name, line.needs) or (line.readers and name == "rita")
        allowed = allowed and (not line.admins or name == "boss")
        if status not in ((200, 303) if allowed else (403,)):
            wrong.append((name, CALLERS.get(name), status, "allowed" if allowed else "refused"))
    assert not wrong
    assert world.state(place) == before


@each_line("POST")
def test_an_action_is_done_for_who_has_the_rights(world: World, line: Line) -> None:
    if not line.session:
        return  # without a right; the test above covers them
    place, wrong = world.prepare(line), []
    before = world.state(place)
    for name, browser in world.browsers.items():
        allowed = may(name, line.needs) or (line.readers and name == "rita")
        mine = world.prepare(line) if allowed else place
        was = world.state(mine) if allowed else before
        browser.ask("GET", "/access")  # takes the notices of earlier tests
        answer = world.act(browser, line, mine)
        told = re.findall(r'class="notice (\w+)"', browser.ask("GET", "/access").html)
        if line.outcome == "begun" and told == ["begun"]:
            until(lambda ask=browser.ask: 'class="notice done"' in ask("GET", "/access").html)
        # An action on what is not there fails for the others, too.
        done = told == [line.outcome] if line.outcome != "failed" else allowed and told == ["failed"]
        shown = line.outcome == "page" and answer.status == 200
        changed = world.state(mine) != was
        # 412: the import would do something else for this caller than the preview showed the administrator.
        expected = answer.status in (303, 403, 412) or shown
        if (done or shown, changed) != (allowed, allowed and line.lasting) or not expected:
            wrong.append((name, CALLERS.get(name), answer.status, told, changed, allowed))
    assert not wrong


FORGED = {
    "cross-site": {"Sec_Fetch_Site": "cross-site"},
    "same-site": {"Sec_Fetch_Site": "same-site"},
    "cross-site, own origin": {"Sec_Fetch_Site": "cross-site", "Origin": "http://localhost"},
    "unknown word": {"Sec_Fetch_Site": "same-origin, cross-site"},
    "no headers": {"Sec_Fetch_Site": ""},
    "other origin": {"Sec_Fetch_Site": "", "Origin": "http://evil.example"},
    "other port": {"Sec_Fetch_Site": "", "Origin": "http://localhost:1"},
    "opaque origin": {"Sec_Fetch_Site": "", "Origin": "null"},
    "origin with user": {"Sec_Fetch_Site": "", "Origin": "http://localhost@evil.example"},
    "rebound name": {"Host": "evil.example", "Origin": "http://evil.example"},
    "rebound name, no fetch metadata": {
        "Host": "evil.example:1802",
        "Sec_Fetch_Site": "",
        "Origin": "http://evil.example:1802",
    },
}
GENUINE = {
    "same-origin": {},
    "by hand": {"Sec_Fetch_Site": "none"},
    "own origin": {"Sec_Fetch_Site": "", "Origin": "http://localhost"},
}


@each_line("POST")
def test_a_request_of_another_site_changes_nothing(world: World, line: Line) -> None:
    place = world.prepare(line)
    before = world.state(place)
    boss = world.browsers["boss"]
    for case, headers in FORGED.items():
        answer = world.act(boss, line, place, **headers)
        assert answer.status == 403, case
        assert "Set-Cookie" not in answer.headers, case
    assert world.state(place) == before
    for case, headers in GENUINE.items():
        if line.path != "/logout":  # it would end the session of the other tests
            answer = world.act(boss, line, world.prepare(line), **headers)
            assert "another" not in answer.text, case


@each_line("GET")
def test_a_rebound_name_gets_no_page(world: World, line: Line) -> None:
    place = world.prepare(line)
    for host in ("evil.example", "127.0.0.1.evil.example:1802", "localhost.evil.example", "[::1", ""):
        page = world.act(world.browsers["boss"], line, place, Host=host or " ")
        assert page.status in (400, 403), host
        assert place["queue"] not in page.html or place["queue"] in line.query, host


def test_other_methods_do_nothing(world: World) -> None:
    for line in LINES:
        place = world.prepare(line)
        before = world.state(place)
        for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "HEAD"):
            quoted = {name: quote(text, safe="") for name, text in place.items()}
            page = world.browsers["boss"].ask(method, f"{line.path}?{line.query}".format_map(quoted))
            assert page.status in (200, 404, 405), (line.name, method)
        assert world.state(place) == before


def test_a_caller_ends_no_log_on_of_another(world: World) -> None:
    boss = world.browsers["boss"]
    assert Browser(world.server).log_on("", "token of boss").status == 303
    other = re.findall(r'name="number" value="(\d+)"', boss.ask("GET", "/sessions").html)
    for number in other:
        world.browsers["rita"].ask("POST", "/sessions/end", {"number": number})
    assert re.findall(r'name="number" value="(\d+)"', boss.ask("GET", "/sessions").html) == other


def test_browse_is_offered_to_who_may_peek_only(world: World) -> None:
    place = world.prepare(Line("GET", "/queues"))
    for name, browser in world.browsers.items():
        for kind, pattern in (("user", place["queue"]), ("journal", place["queue"]), ("system", "")):
            page = browser.ask("GET", f"/queues?kind={kind}&filter={pattern}")
            links = {link for link in page.links() if link.startswith("/ui/messages?")}
            if kind == "user":
                assert bool(links) == may(name, Rights("get-properties,peek")), name
            for link in links:
                assert browser.ask("GET", link.removeprefix("/ui")).status == 200, (name, link)


def _buttons(page: Page) -> Iterator[tuple[str, str, str]]:
    """Yield method, path and action of each button, and of each link to a preview."""
    form: tuple[str, str, str] | None = None
    for tag, given in page.tags:
        if tag == "a":
            url = urlsplit(str(given.get("href", "")))
            if url.path.removeprefix("/ui") in PREVIEWS:
                yield "GET", url.path.removeprefix("/ui"), parse_qs(url.query).get("action", [""])[0]
        if tag == "form":
            url = urlsplit(str(given["action"]))
            action = parse_qs(url.query).get("action", [""])[0]
            form = str(given.get("method", "get")).upper(), url.path.removeprefix("/ui"), action
        if tag == "button" and form is not None and (form[0] == "POST" or form[1] in PREVIEWS):
            chosen = given.get("value") if given.get("name") == "action" else None
            yield form[0], form[1], str(chosen or form[2])


def test_a_button_is_shown_to_who_may_use_it_only(world: World) -> None:
    """Neither a button that would be refused, nor an action without a button for the administrator."""
    known = {(line.method, line.path, line.action): line for line in LINES}
    assert Browser(world.server).log_on("", "token of boss").status == 303  # a log-on that can be ended
    seen: set[tuple[str, str, str]] = set()
    wrong = []
    for line in LINES:
        if line.method != "GET" or line.path == "/static/{file}":
            continue
        place = world.prepare(line)
        places = [place]
        if line.path == "/outgoing/queue":
            places.append(
                world.prepare(Line("GET", "/outgoing/queue", query=_FAR, form={"action": "resume"}))
            )
        for name, browser in world.browsers.items():
            for each in places:
                page = world.act(browser, line, each)
                for button in _buttons(page) if page.status == 200 else ():
                    of = known[button]
                    needs = of.on_dead if line.path == "/deadletters" else None
                    if not may(name, needs or of.button or of.needs) and not (of.readers and name == "rita"):
                        wrong.append((line.name, button, name, CALLERS.get(name)))
                    if name == "boss":
                        seen.add(button)
    assert not wrong
    shown = [key for key, line in known.items() if line.session and not line.hidden]
    assert {key for key in shown if key[0] == "POST" or key[1] in PREVIEWS} <= seen
