"""Streams of changes from a running server: what they send, when they end, and how many there are."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any
from urllib.parse import urlencode

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from msmq_fast.console.live import Live
from msmq_fast.console.streams import MOST_OF_SESSION, Streams
from tests.support.http.console import PASSWORD, Browser, add_user
from tests.support.processes.servers import Server, data_directory, until


class Stream:
    """An open stream of one page."""

    def __init__(self, server: Server, cookie: str, page: str) -> None:
        self._connection = http.client.HTTPConnection(server.host, server.port("admin"), timeout=30)
        path = "/ui/live?" + urlencode({"page": page, "since": 0})
        self._connection.request("GET", path, headers={"Host": "localhost", "Cookie": cookie})
        self.answer = self._connection.getresponse()

    def close(self) -> None:
        self._connection.close()

    def events(self) -> Iterator[tuple[str, Any]]:
        """Yield the kind and the content of each event until the stream ends."""
        kind = "message"
        for line in self.answer:
            name, _, content = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = content
            elif name == "data":
                yield kind, json.loads(content)
                kind = "message"

    def until(self, text: str) -> tuple[str, Any]:
        """Return the first event that has a text."""
        return next(one for one in self.events() if text in json.dumps(one))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        data.mkdir(mode=0o700, exist_ok=True)
        for name in ("admin", "leaver", "crowd"):
            add_user(data, name, PASSWORD, "--group", "administrators")
        running = Server(data, "--name", "ALPHA")
        try:
            yield running.start()
        finally:
            running.kill()


def log_on(server: Server, name: str = "admin") -> Browser:
    made = Browser(server)
    assert made.log_on(name, PASSWORD).status == 303
    return made


def test_a_stream_sends_the_rows_that_change(server: Server) -> None:
    for name in ("busy", "calm"):
        server.ok("queue", "create", name)
    with closing(Stream(server, log_on(server).cookie, "/ui/queues")) as stream:
        assert stream.answer.status == 200
        assert stream.answer.getheader("Content-Type") == "text/event-stream; charset=utf-8"
        assert "script-src 'self'" in str(stream.answer.getheader("Content-Security-Policy"))
        _, first = next(stream.events())
        assert len(first["rows"]["queues"]["order"]) == 2
        server.ok("send", ".\\private$\\busy", "--body", "x")
        (busy,) = (name for name in first["rows"]["queues"]["order"] if name.endswith("busy"))
        _, second = stream.until("1 message")
        assert list(second["rows"]["queues"]["html"]) == [busy]
        assert "parts" not in second


def test_an_empty_list_becomes_a_table(server: Server) -> None:
    with closing(Stream(server, log_on(server).cookie, "/ui/queues?filter=appears")) as stream:
        _, first = next(stream.events())
        assert "No queue has" in first["parts"]["list"]["html"]
        server.ok("queue", "create", "appears")
        _, second = stream.until("private$")
        assert "<table>" in second["parts"]["list"]["html"]


def test_hostile_names_stay_text_in_streams(server: Server) -> None:
    server.ok("queue", "create", "evil", "--label", "<img src=x onerror=alert(1)>")
    with closing(Stream(server, log_on(server).cookie, "/ui/queues")) as stream:
        _, first = next(stream.events())
        rows = "".join(first["rows"]["queues"]["html"].values())
    assert "<img" not in rows
    assert "&lt;img" in rows


def test_a_stream_changes_nothing(server: Server) -> None:
    server.ok("queue", "create", "kept", "--label", "kept", "--journal")
    server.ok("send", "DIRECT=TCP:127.0.0.9\\private$\\far", "--body", "x")
    far = urlencode({"name": "DIRECT=TCP:127.0.0.9\\private$\\far"})
    for page in ("/ui/queue?name=kept", f"/ui/outgoing/queue?{far}", "/ui/overview", "/ui/outgoing"):
        with closing(Stream(server, log_on(server).cookie, page)) as stream:
            kind, first = next(stream.events())
            assert (kind, "texts" in first) == ("message", True)
    (shown,) = server.ok("queue", "show", "kept")
    assert (shown["label"], shown["journal"]) == ("kept", True)


def test_a_stream_ends_with_its_session(server: Server) -> None:
    browser = log_on(server, "leaver")
    with closing(Stream(server, browser.cookie, "/ui/overview")) as stream:
        events = stream.events()
        next(events)
        browser.ask("POST", "/logout", {})
        assert "ended" in [kind for kind, _ in events]


def test_a_stream_ends_when_its_queue_is_deleted(server: Server) -> None:
    server.ok("queue", "create", "brief")
    with closing(Stream(server, log_on(server).cookie, "/ui/queue?name=brief")) as stream:
        events = stream.events()
        next(events)
        server.ok("queue", "delete", "brief")
        assert "failed" in [kind for kind, _ in events]


@pytest.mark.parametrize(
    "page", ["", "/ui/audit", "/ui/queues/new", "/ui/login", "//evil.example/ui/queues", "http://x/ui/queues"]
)
def test_other_pages_have_no_stream(server: Server, page: str) -> None:
    with closing(Stream(server, log_on(server).cookie, page)) as stream:
        assert stream.answer.status == 404


def test_without_a_session_there_is_no_stream(server: Server) -> None:
    with closing(Stream(server, "", "/ui/queues")) as stream:
        assert stream.answer.status == 401


def test_a_question_has_all_that_can_change(server: Server) -> None:
    page = log_on(server).ask("GET", "/live?" + urlencode({"page": "/ui/overview", "since": 0, "poll": 1}))
    assert page.status == 200
    found = json.loads(page.html)
    assert {"texts", "parts", "since"} <= set(found)


def test_the_streams_of_a_session_are_limited(server: Server) -> None:
    browser, other = log_on(server, "crowd"), log_on(server)
    with ExitStack() as stack:
        for _ in range(MOST_OF_SESSION):
            assert (
                stack.enter_context(closing(Stream(server, browser.cookie, "/ui/queues"))).answer.status
                == 200
            )
        with closing(Stream(server, browser.cookie, "/ui/queues")) as refused:
            assert refused.answer.status == 503
            assert refused.answer.getheader("Retry-After")
        with closing(Stream(server, other.cookie, "/ui/queues")) as admitted:
            assert admitted.answer.status == 200

    def again() -> bool:
        with closing(Stream(server, browser.cookie, "/ui/queues")) as stream:
            return stream.answer.status == 200

    until(again)


def test_streams_do_not_delay_the_stop() -> None:
    with data_directory() as data:
        data.mkdir(mode=0o700, exist_ok=True)
        add_user(data, "admin", PASSWORD, "--group", "administrators")
        running = Server(data, "--name", "BETA").start()
        try:
            stream = Stream(running, log_on(running).cookie, "/ui/overview")
            next(stream.events())
            began = time.monotonic()
            assert running.stop() == 0
            assert time.monotonic() - began < 2
            stream.close()
        finally:
            running.kill()


@pytest.mark.long(seconds=8)
def test_a_browser_that_does_not_read_is_dropped() -> None:
    asyncio.run(_send_to_a_silent_browser())


async def _send_to_a_silent_browser() -> None:
    streams = Streams(interval=0.001, patience=0.2)
    rendered, ended = 0, asyncio.Event()

    async def render(live: Live) -> None:
        nonlocal rendered
        rendered += 1
        live.text("figure", f"{rendered} {'x' * 100_000}")

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await streams.follow(request, 1, render, 0)
        finally:
            ended.set()

    application = web.Application()
    application.router.add_get("/", handle)
    async with TestServer(application) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        async with asyncio.timeout(20):
            await ended.wait()
        assert len(streams) == 0
        assert 0 < rendered < 200  # 20 MB: far above what the system and the server may buffer
        writer.close()
