"""Hostile texts in every place that the console shows: by a parser, and in Chromium."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape, quoteattr

import pytest

from msmq_fast.client import Access, Journal, MSMQError, sync
from msmq_fast.client.message import VT_BSTR, VT_LPSTR, VT_LPWSTR
from msmq_fast.console.bodyviews import DECODERS
from msmq_fast.console.pages import LIVE, PAGES
from tests.support.hostile.markup import TEXTS, faults, skeleton
from tests.support.http.api import ok
from tests.support.http.chromium import chromium, log_on, watched
from tests.support.http.console import Browser, Page, add_user
from tests.support.processes.servers import Server, command, data_directory, until

PASSWORD = "secret"  # noqa: S105
PLAIN = "plain"
DEAD = ".\\system$;deadletter"
FAR = "DIRECT=OS:far{}\\private$\\x"
PARAMETERS = ("name", "queue", "filter", "label", "class", "kind", "sort", "order", "offset", "id", "after",
              "upto", "decoder", "part", "account", "right", "caller", "operation", "object", "start", "span",
              "action", "scope", "target", "until", "next", "page", "since", "message_id", "correlation_id",
              "from", "user", "only", "guid", "number")  # fmt: skip


def bodies(text: str) -> Iterator[tuple[bytes, int]]:
    """Yield bodies with `text` inside, for every decoder: body and body type."""
    yield text.encode(), 0
    yield text.encode("utf-16-le"), VT_BSTR
    yield text.encode("utf-16-le") + b"\0\0", VT_LPWSTR
    yield text.encode("cp1252", "replace") + b"\0", VT_LPSTR
    yield json.dumps({text: [text, {"k": text}]}).encode(), 0
    element = f"<a b={quoteattr(text)}><c>{escape(text)}</c><d><![CDATA[{text}]]></d></a>"
    yield f"<?xml version='1.0'?>{element}".encode(), 0
    yield f"<r><!--{text}--><s>{text}</s></r>".encode(), 0
    yield b"\0\1\0\1\2\2" + bytes([min(len(text.encode()), 127)]) + text.encode()[:127] + b"\3\x08\x0c", 0
    yield b"\xff\xfe\0\x80" + text.encode(), 0


def extensions(text: str) -> Iterator[bytes]:
    """Yield extensions with headers of NServiceBus and Rebus, and neither."""
    pair = f"<HeaderInfo><Key>{escape(text)}</Key><Value>{escape(text)}</Value></HeaderInfo>"
    yield f"<?xml version='1.0'?><ArrayOfHeaderInfo>{pair}</ArrayOfHeaderInfo>".encode()
    yield json.dumps({text: text}).encode()
    yield text.encode()


class Attacked:
    """A server with one queue for each text, and one with plain text in the same places."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.names: dict[str, str] = {}
        with sync.connect(server.endpoint) as program:
            program.admin.queues.create("dying")
            for number, text in enumerate((PLAIN, *TEXTS)):
                self.names[text] = f"attacked{number:02}"
                self._fill(program, self.names[text], text, number)
                self._name(program, text)
                self._register(program, text)
        self.browser = Browser(server)
        assert self.browser.log_on("admin", PASSWORD).status == 303
        until(lambda: ok(server, "GET", "/queues/{}/messages", DEAD)["items"])

    @staticmethod
    def _fill(program: Any, name: str, text: str, number: int) -> None:
        program.admin.queues.create(name, label=text, journal=True)
        with program.open(name, Access.SEND) as queue:
            for body, kind in bodies(text):
                queue.send(body, body_type=kind, label=text)
            for extension in extensions(text):
                queue.send(b"x", extension=extension, label=text)
        with program.open(FAR.format(number), Access.SEND) as queue:
            queue.send(text.encode(), label=text)
        with program.open("dying") as queue:
            queue.send(text.encode(), label=text, journal=Journal.DEADLETTER)
            queue.purge()

    @staticmethod
    def _name(program: Any, text: str) -> None:
        """Use the text as the name of a queue, a subqueue and a destination, where names may be such."""
        for act in (
            lambda: program.admin.queues.create(text),
            lambda: program.open(f"DIRECT=OS:{text}\\private$\\x", Access.SEND).send(b"x"),
            lambda: program.open(f"DIRECT=OS:far\\private$\\{text}", Access.SEND).send(b"x"),
            lambda: program.admin.access.grant(None, text, "create-queue"),
            lambda: program.admin.access.set("attacked00", text),
        ):
            try:
                act()
            except (MSMQError, ValueError):
                continue

    @staticmethod
    def _register(program: Any, text: str) -> None:
        for entry in (
            {"object": "Site", "Name": text},
            {"object": "QueueManager", "ComputerName": text},
            {"object": "Queue", "Pathname": text, "Label": text},
        ):
            try:
                program.admin.directory.put(entry, "create")
            except MSMQError:
                continue

    def pages_of(self, text: str) -> Iterator[str]:
        """Yield the paths of the pages of one text; the plain one has the same."""
        name = self.names[text]
        yield f"/queues?filter={name}"
        yield f"/queue?name={name}"
        yield f"/queue/confirm?name={name}&action=purge"
        yield f"/messages?queue={name}"
        yield f"/messages?queue={name};journal"
        yield f"/messages/batch?action=copy&queue={name}&target={name}&scope=all"
        yield f"/access?queue={name}"
        far = quote(FAR.format(list(self.names).index(text)))
        yield f"/outgoing/queue?name={far}"
        yield f"/outgoing/purge?name={far}"
        messages = ok(self.server, "GET", "/queues/{}/messages", name)["items"]
        for one in messages:
            yield f"/message?queue={name}&id={one['lookup_id']}&decoder=hex"
        yield f"/send?from={name}&id={messages[0]['lookup_id']}"

    def ask(self, path: str) -> Page:
        page = self.browser.ask("GET", path)
        if page.headers.get("Content-Type") == "application/octet-stream":
            assert page.headers["Content-Disposition"].startswith("attachment"), path
            return page
        assert list(faults(page.html)) == [], path
        assert "23331" not in page.html, path
        assert "X" not in page.headers.get("Set-Cookie", ""), path
        return page


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA")
        data.mkdir(mode=0o700, exist_ok=True)
        add_user(data, "admin", PASSWORD, "--group", "administrators")
        for text in TEXTS[:12]:
            command("user", "add", "--data", str(data), "--no-password", "--", text)
        try:
            yield Attacked(running.start())
        finally:
            running.kill()


@pytest.mark.parametrize(
    "texts", [TEXTS[::3], pytest.param(TEXTS, marks=pytest.mark.long(seconds=10))], ids=["some", "all"]
)
def test_the_structure_of_a_page_does_not_depend_on_texts(attacked: Attacked, texts: Sequence[str]) -> None:
    """Where plain text is shown, hostile text gives the same elements with the same attributes."""

    def structure_of(path: str) -> list[tuple[str, tuple[str, ...]]]:
        # Not the samples of the history, and the attempts to connect: they follow the clock.
        html = attacked.ask(path).html
        return (
            [] if path.startswith("/outgoing/") else skeleton(html.partition('<section class="history">')[0])
        )

    wanted = [structure_of(path) for path in attacked.pages_of(PLAIN)]
    for text in texts:
        for path, structure in zip(attacked.pages_of(text), wanted, strict=True):
            assert structure_of(path) == structure, (text, path)


def test_every_decoder_gives_text(attacked: Attacked) -> None:
    decoders = [*DECODERS, ""]  # each kind of body meets each of them with some texts
    for first, text in enumerate(TEXTS):
        name = attacked.names[text]
        for number, one in enumerate(ok(attacked.server, "GET", "/queues/{}/messages", name)["items"]):
            decoder = decoders[(first + number) % len(decoders)]
            page = attacked.ask(f"/message?queue={name}&id={one['lookup_id']}&decoder={decoder}")
            assert page.status == 200


def test_lists_of_everything_hold_texts_only(attacked: Attacked) -> None:
    for method, path, _ in PAGES:
        if method == "GET":
            for query in ("", "?kind=system", "?sort=messages&order=down", f"?queue={quote(DEAD)}"):
                attacked.ask(path + query)


def test_what_an_open_page_gets_stays_text(attacked: Attacked) -> None:
    for path in (*LIVE, "/queue?name=attacked01", f"/outgoing/queue?name={FAR.format(3)}"):
        page = attacked.browser.ask("GET", f"/live?{urlencode({'page': f'/ui{path}', 'poll': '1'})}")
        if page.status != 200:
            assert "?" not in path, path
            continue
        found = json.loads(page.html)
        pieces = [one["html"] for one in found.get("parts", {}).values()]
        for table in found.get("rows", {}).values():
            pieces += table["html"].values()
        for piece in pieces:
            assert list(faults(piece)) == [], (path, piece)


def test_what_a_query_string_names_stays_text(attacked: Attacked) -> None:
    """Every parameter of every page: filters, names that do not exist, bad numbers, error messages."""
    paths = [path for method, path, _ in PAGES if method == "GET"]
    for text in TEXTS:
        for path in paths if text in TEXTS[::4] else ():
            together = dict.fromkeys(PARAMETERS, text)
            page = attacked.ask(f"{path}?{urlencode(together)}")
            assert page.status in (200, 303, 400, 403, 404), (path, page.text)
        for path, name in (("/queues", "filter"), ("/queue", "name"), ("/messages", "queue"),
                           ("/messages", "label"), ("/outgoing", "filter"), ("/audit", "object"),
                           ("/access", "account"), ("/access", "queue"), ("/login", "next"),
                           ("/message", "decoder"), ("/deadletters", "label")):  # fmt: skip
            more = {"right": "journal"} if name == "account" else {}
            page = attacked.ask(f"{path}?{urlencode({name: text, **more})}")
            assert page.status < 500


def test_what_a_form_reports_stays_text(attacked: Attacked) -> None:
    for text in TEXTS:
        for path, form in (
            ("/queues/new", {"name": f"{text}\\x\\y\\z", "label": text, "quota_kb": text}),
            (f"/queue?name={quote(text)}", {"label": text}),
            ("/queue?name=attacked00", {"base_priority": text}),
            (f"/queue/confirm?name={quote(text)}&action={quote(text)}", {"typed": text}),
            ("/access?queue=attacked00", {"account": text, "action": "grant", "peek": "on"}),
            (f"/access/revoke?queue=attacked00&account={quote(text)}", {}),
            (f"/outgoing/queue?name={quote(text)}", {"action": text}),
            ("/login", {"name": text, "secret": "x", "next": text}),
            ("/theme", {"theme": text, "next": text}),
        ):
            page = attacked.browser.ask("POST", path, form)
            assert list(faults(page.html)) == [], (path, text)
            target = page.headers.get("Location", "/ui/")
            assert target.startswith("/ui/"), (path, text)
            assert not set(target) & set('<>"\r\n \\'), (path, text)
        attacked.ask("/access")  # shows the notices


@pytest.mark.long(120)
@pytest.mark.timeout(600)
@pytest.mark.needs("chromium", modules=("playwright",))
def test_nothing_runs_in_a_browser(attacked: Attacked) -> None:
    with chromium() as browser:
        seen = watched(browser, attacked.server)
        page = seen.page
        log_on(page, "admin", PASSWORD)
        paths = [
            "/overview",
            "/queues",
            "/queues?kind=subqueue",
            "/deadletters",
            "/outgoing",
            "/access",
            "/audit",
        ]
        for text in TEXTS:
            for number, path in enumerate(attacked.pages_of(text)):
                # Each kind of body once; the other pages of a text have it in the same places.
                if number < 5 or (number + TEXTS.index(text)) % 4 == 0:
                    paths.append(path)
            paths += [f"/queues?{urlencode({'filter': text})}", f"/queue?{urlencode({'name': text})}"]
            paths.append(f"/access?{urlencode({'account': text, 'right': 'journal'})}")
        for path in paths:
            page.goto(f"/ui{path}", wait_until="load")
            seen.check(path)
        page.goto("/ui/queues")
        for text in TEXTS:  # swapped into the page by htmx
            page.fill("#filter", text[:20])
            with page.expect_response("**/ui/queues?**"):
                page.keyboard.press("Enter")
            seen.check(text)
        page.fill("#filter", "attacked")
        page.wait_for_selector("#list tbody tr >> nth=20")
        seen.check("swapped rows")
        page.goto("/ui/queues?filter=attacked00")
        for text in TEXTS:  # streamed into the open page
            attacked.server.ok("queue", "set", "attacked00", f"--label={text}")
            page.wait_for_function(
                "text => document.querySelector('#list td').textContent === text", arg=text
            )
            seen.check(f"stream {text}")
        page.goto("/ui/login")
        for text in TEXTS[:6]:
            page.fill("#name", text)
            page.fill("#secret", "wrong")
            page.keyboard.press("Enter")
            page.wait_for_selector(".notice.failed")
            seen.check(f"log-on {text}")
