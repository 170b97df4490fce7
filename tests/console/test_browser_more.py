"""The console in Chromium: pages that stay up to date, and pages for administrators."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.support.http.chromium import SHOTS, Watched, chromium, log_on, shot_name, shown_server, watched
from tests.support.processes.servers import Server, until

pytestmark = [
    pytest.mark.long(60),
    pytest.mark.needs("chromium", modules=("playwright", "axe_playwright_python")),
]
PATHS: tuple[str, ...] = (
    "/overview",
    "/queues",
    "/queue?name=orders",
    "/outgoing",
    "/outgoing/queue?name=DIRECT%3DTCP:127.0.0.9%5Cprivate%24%5Cfar",
    "/sessions",
    "/transactions",
    "/maintenance",
    "/keys",
    "/users",
    "/configuration",
    "/configuration/check",
    "/send",
    "/trace?id=%7B00000000-0000-0000-0000-000000000001%7D%5C1",
    "/messages?queue=orders&message_id=%7B00000000-0000-0000-0000-000000000001%7D%5C1",
    "/messages/batch?action=remove&queue=orders&scope=all",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with shown_server() as running:
        running.ok("queue", "create", "empty")
        yield running


class Console:
    """A browser that is logged on, and what a person does with it."""

    def __init__(self, watched: Watched, theme: str) -> None:
        self._watched, self.page, self.theme = watched, watched.page, theme

    def check(self) -> None:
        """Fail if a script of others ran, or the policy stopped something."""
        self._watched.check()

    def open(self, path: str) -> None:
        assert self.page.goto(f"/ui{path}").status == 200

    def checked(self, name: str) -> None:
        """Take a picture, and check accessibility and the content security policy."""
        from axe_playwright_python.sync_playwright import Axe

        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(SHOTS / f"{name}-{self.theme}.png"), full_page=True)
        assert Axe().run(self.page).response["violations"] == [], name
        self.check()

    def until(self, expression: str) -> None:
        """Wait until a JavaScript expression is true."""
        until(lambda: self.page.evaluate(expression))


@pytest.fixture(params=["light", "dark"])
def console(request: pytest.FixtureRequest, server: Server) -> Iterator[Console]:
    with chromium() as browser:
        made = watched(browser, server, request.param)
        log_on(made.page, "admin", "secret")
        yield Console(made, request.param)


def test_each_page_is_accessible_and_keeps_the_policy(console: Console) -> None:
    for path in PATHS:
        console.open(path)
        console.checked(f"more-{shot_name(path)}")


def test_figures_change_without_losing_the_focus(server: Server, console: Console) -> None:
    console.open("/queues")
    console.page.focus("tr[data-row] a[aria-label^='Browse']")
    focused = "document.activeElement.getAttribute('aria-label')"
    label = console.page.evaluate(focused)
    before = console.page.inner_text("caption")
    server.ok("send", ".\\private$\\orders", "--label", "two", "--body", "x")
    console.until(f"document.querySelector('caption').innerText !== {before!r}")
    assert console.page.evaluate(focused) == label
    console.check()


def test_a_new_queue_appears_in_its_place(server: Server, console: Console) -> None:
    console.open("/queues")
    name = f"fresh-{console.theme}"
    server.ok("queue", "create", name)
    console.until(
        f"[...document.querySelectorAll('tr[data-row]')].some(r => r.dataset.row.endsWith({name!r}))"
    )
    rows = console.page.eval_on_selector_all("tr[data-row]", "rows => rows.map(row => row.dataset.row)")
    assert rows == sorted(rows, key=str.casefold)
    server.ok("queue", "delete", name)
    console.until(
        f"![...document.querySelectorAll('tr[data-row]')].some(r => r.dataset.row.endsWith({name!r}))"
    )


def test_the_filter_and_the_stream_agree(server: Server, console: Console) -> None:
    console.open("/queues")
    console.page.fill("#filter", "empt")
    console.page.wait_for_url("**filter=empt**")
    server.ok("send", ".\\private$\\empty", "--body", "x")
    console.until("document.querySelector('caption').innerText.includes('1 queue with')")
    assert console.page.locator("tr[data-row]").count() == 1
    server.ok("queue", "purge", "empty")


def test_the_charts_grow(console: Console) -> None:
    console.open("/queue?name=orders")
    console.until("document.querySelectorAll('.chart canvas').length === 2")
    count = console.page.locator("tr[data-sample]").count()
    console.until(f"document.querySelectorAll('tr[data-sample]').length > {count}")
    console.check()


def test_without_a_stream_the_page_asks(server: Server, console: Console) -> None:
    asked = "[?&]poll=1"
    console.page.route(
        re.compile(r"/ui/live\?"),
        lambda route: route.continue_() if re.search(asked, route.request.url) else route.fulfill(status=503),
    )
    console.open("/queues")
    console.until("document.getElementById('live').innerText === 'Live, every 5 s'")
    before = console.page.inner_text("caption")
    server.ok("send", ".\\private$\\orders", "--label", "asked", "--body", "x")
    console.until(f"document.querySelector('caption').innerText !== {before!r}")
    console.check()


def test_updates_can_be_paused(server: Server, console: Console) -> None:
    console.open("/queues")
    console.page.click("#live")
    assert console.page.inner_text("#live") == "Updates paused"
    console.open("/overview")
    assert console.page.inner_text("#live") == "Updates paused"
    console.page.click("#live")
    console.until("document.getElementById('live').innerText === 'Live'")


def test_the_log_off_in_another_tab_ends_the_updates(console: Console) -> None:
    console.open("/queues")
    console.until("document.getElementById('live').innerText === 'Live'")
    console.page.evaluate("fetch('/ui/logout', {method: 'POST'})")
    console.until("document.getElementById('live').innerText === 'Not live'")
    assert "The session has ended" in console.page.inner_text("#notices")
