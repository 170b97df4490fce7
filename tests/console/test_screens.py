"""Each screen of the console, used in Chromium for what it is for; one of them by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.http.chromium import Watched, chromium, log_on, watched
from tests.support.http.console import add_user
from tests.support.processes.servers import Server, data_directory, until

pytestmark = [
    pytest.mark.long(90),
    pytest.mark.timeout(300),
    pytest.mark.needs("chromium", modules=("playwright", "axe_playwright_python")),
]
PASSWORD = "secret"  # noqa: S105
FAR = "DIRECT=TCP:127.0.0.9\\private$\\far"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        data.mkdir(mode=0o700, exist_ok=True)
        add_user(data, "admin", PASSWORD, "--group", "administrators")
        add_user(data, "bob", PASSWORD)
        running = Server(data, "--name", "ALPHA")
        try:
            yield running.start()
        finally:
            running.kill()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def console(server: Server, browser: Any) -> Iterator[Any]:
    """A page that is logged on, and whose last state is accessible and broke no rule."""
    from axe_playwright_python.sync_playwright import Axe

    seen: Watched = watched(browser, server)
    log_on(seen.page, "admin", PASSWORD)
    yield seen.page
    seen.check()
    assert Axe().run(seen.page).response["violations"] == []
    seen.page.context.close()


def notice(page: Any) -> str:
    return str(page.inner_text("#notices"))


def test_a_queue_is_created_found_changed_and_purged(server: Server, console: Any) -> None:
    console.click("text=Create a queue")
    console.fill("#name", "created")
    console.fill("#label", "by hand")
    console.check("#journal")
    console.click("button:text-is('Create')")
    assert "is created" in notice(console)
    console.fill("#label", "changed")
    console.click("button:text-is('Save')")
    assert "saved" in notice(console)
    assert server.ok("queue", "show", "created")[0]["label"] == "changed"
    server.ok("send", ".\\private$\\created", "--body", "x", "--count", "1001")
    console.keyboard.press("/")
    console.keyboard.type("created")
    console.keyboard.press("Enter")
    console.click("#list a:has-text('created')")
    console.click("text=Purge…")
    console.click("button:has-text('Delete the messages')")  # the browser asks for the name
    assert server.ok("queue", "show", "created")[0]["messages"] == 1001
    console.fill("#typed", "ALPHA\\private$\\created")
    console.click("button:has-text('Delete the messages')")
    console.wait_for_url("**/ui/queue?**")
    assert "are deleted" in notice(console)
    assert server.ok("queue", "show", "created")[0]["messages"] == 0


def test_the_list_of_queues_is_sorted_by_depth(server: Server, console: Any) -> None:
    for name, depth in (("depth1", "1"), ("depth3", "3"), ("depth2", "2")):
        server.ok("queue", "create", name)
        server.ok("send", f".\\private$\\{name}", "--body", "x", "--count", depth)
    console.goto("/ui/queues?filter=depth")
    console.click("thead a:has-text('Messages')")
    console.wait_for_url("**sort=messages**")
    rows = console.locator("#list tbody th").all_inner_texts()
    assert [text[-6:] for text in rows] == ["depth3", "depth2", "depth1"]
    assert console.locator("th[aria-sort=descending]").count() == 1


def test_messages_are_selected_and_moved(server: Server, console: Any) -> None:
    for name in ("source", "target"):
        server.ok("queue", "create", name)
    for label in ("a", "b", "c"):
        server.ok("send", ".\\private$\\source", "--label", label, "--body", "x")
    console.goto("/ui/messages?queue=source")
    console.check("[aria-label='Select a']")
    console.check("[aria-label='Select c']")
    console.fill("#target", "target")
    console.click("button:has-text('Move…')")
    assert "Nothing is changed yet" in console.inner_text("main")
    console.click("button.main")
    assert "moved" in notice(console)
    assert [one["label"] for one in server.messages(".\\private$\\target")] == ["a", "c"]


def test_a_message_is_inspected_and_its_body_downloaded(server: Server, console: Any) -> None:
    server.ok("queue", "create", "inspected")
    server.ok("send", ".\\private$\\inspected", "--label", "order", "--body", '{"id": [1, 2]}')
    console.goto("/ui/messages?queue=inspected")
    console.click("tbody a:has-text('order')")
    assert '"id": [' in console.inner_text("pre")
    with console.expect_navigation():
        console.select_option("#decoder", "hex")
    assert "7b 22 69 64" in console.inner_text("pre")
    with console.expect_download() as download:
        console.click("a:has-text('Download (')")
    assert download.value.path().read_bytes() == b'{"id": [1, 2]}'


def test_messages_are_filtered_by_their_arrival_by_keyboard(server: Server, console: Any) -> None:
    server.ok("queue", "create", "dated")
    server.ok("send", ".\\private$\\dated", "--label", "today", "--body", "x")
    console.goto("/ui/messages?queue=dated")
    console.focus("#class")
    for key in ("Tab", *"2200-01-31", "Enter"):
        console.keyboard.press(key)
    console.wait_for_url("**arrived_from=2200-01-31**")
    assert "No message matches the filter" in console.inner_text("main")
    console.fill("#arrived_from", "yesterday")
    console.keyboard.press("Enter")
    console.wait_for_url("**arrived_from=yesterday**")
    assert 'invalid time "yesterday"' in console.inner_text("[role=alert]")
    console.fill("#arrived_from", "2026-01-31 12:00")
    console.fill("#arrived_to", "2200-01-31")
    console.keyboard.press("Enter")
    console.wait_for_url("**arrived_to=2200-01-31**")
    assert console.locator("tbody a:has-text('today')").count() == 1


def test_definitions_are_downloaded_changed_and_imported(
    server: Server, console: Any, tmp_path: Path
) -> None:
    server.ok("queue", "create", "defined", "--label", "before")
    console.click("nav a:has-text('Definitions')")
    with console.expect_download() as download:
        console.click("text=Download the definitions")
    file = tmp_path / download.value.suggested_filename
    file.write_text(download.value.path().read_text().replace("before", "after"))
    console.set_input_files("#file", file)
    console.click("button:has-text('Show what would change')")
    assert "To change" in console.inner_text("main")
    assert server.ok("queue", "show", "defined")[0]["label"] == "before"
    console.click("button:has-text('Import: 1 object')")
    console.wait_for_url("**/ui/definitions")
    assert "1 object is changed" in notice(console)
    assert server.ok("queue", "show", "defined")[0]["label"] == "after"


def test_a_refused_action_stays_on_its_page(console: Any) -> None:
    console.goto("/ui/maintenance")
    console.fill("#directory", "relative")
    console.click("text=Make a snapshot")
    console.wait_for_url("**/ui/maintenance")
    assert "absolute path" in notice(console)


def test_a_destination_is_paused_tried_and_resumed(server: Server, console: Any) -> None:
    server.ok("send", FAR, "--body", "x")
    console.goto("/ui/overview")
    console.click("a:has-text('stalled')")
    console.wait_for_url("**/ui/outgoing")
    console.click("tbody a:has-text('far')")
    console.click("button:has-text('Try now')")
    assert "has begun" in notice(console)
    console.click("button:has-text('Pause')")
    assert "paused by" in console.inner_text("main")
    assert server.ok("outgoing", "show", FAR)[0]["state"] == "on_hold"
    console.click("button:has-text('Resume')")
    assert "is resumed" in notice(console)


def test_a_right_is_granted_explained_and_revoked(server: Server, console: Any) -> None:
    server.ok("queue", "create", "granted")
    console.goto("/ui/queue?name=granted")
    console.click(".actions a:has-text('Access')")
    console.fill("#who", "bob")
    console.check("#right-receive")
    console.click("button:text-is('Grant')")
    assert "Granted to bob" in notice(console)
    console.fill("#account", "bob")
    console.select_option("#right", "receive")
    console.click("button:text-is('Explain')")
    assert "bob has this right" in console.inner_text("main")
    console.click("a[aria-label='Revoke the rights of bob']")
    console.click("button:has-text('Revoke the rights')")
    assert "are removed" in notice(console)


def test_the_audit_says_who_created_a_queue(server: Server, console: Any) -> None:
    server.ok("queue", "create", "audited")
    console.click("nav a:has-text('Audit')")
    console.fill("#object", "audited")
    console.click("main button:text-is('Filter')")
    row = console.inner_text("tbody tr")
    assert "create queue" in row
    assert "root" in row or "uid" in row


def test_a_dead_letter_is_found_read_and_sent_again_by_keyboard(server: Server, console: Any) -> None:
    server.ok("queue", "create", "lost")
    server.ok("send", ".\\private$\\lost", "--label", "late", "--body", "x", "--deadletter")
    server.ok("queue", "purge", "lost")

    def tab_to(text: str, key: str = "Enter", *, name: str = "innerText.trim()") -> None:
        for _ in range(80):
            console.keyboard.press("Tab")
            found = console.evaluate(f"(document.activeElement.{name} || '')")
            if str(found).startswith(text):
                console.keyboard.press(key)
                return
        raise AssertionError(f"{text} is not reached with the Tab key")

    tab_to("Dead letters")
    console.wait_for_url("**/ui/deadletters")
    tab_to("late")
    console.wait_for_url("**/ui/message?**")
    assert "purged while the message was in it" in console.inner_text("main")
    tab_to("Dead letters")
    console.wait_for_url("**/ui/deadletters")
    # The toolbar comes before the list: select, and go back to it.
    tab_to("Select late", "Space", name="ariaLabel")
    for _ in range(20):
        console.keyboard.press("Shift+Tab")
        if str(console.evaluate("document.activeElement.innerText || ''")).startswith("Send again"):
            break
    console.keyboard.press("Enter")
    console.wait_for_url("**/ui/messages/batch?**")
    tab_to("Send again: 1 message")
    console.wait_for_url("**/ui/deadletters**")
    assert "sent again" in notice(console)
    until(lambda: server.ok("queue", "show", "lost")[0]["messages"] == 1)
