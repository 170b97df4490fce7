"""The console in Chromium: accessibility in both themes, the content security policy, and use by keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.http.chromium import FLAGS, SHOTS, WATCH, shot_name, shown_server
from tests.support.processes.servers import Server

pytestmark = [
    pytest.mark.long(seconds=100),
    pytest.mark.needs("chromium", modules=("playwright", "axe_playwright_python")),
]
WITH_CHARTS = ("/overview", "/queue?name=orders")
PATHS = (
    "/login",
    "/overview",
    "/queues",
    "/queues/new",
    "/queue?name=orders",
    "/queue/confirm?name=orders&action=purge",
    "/messages?queue=orders",
    "/deadletters",
    "/outgoing",
    "/outgoing/queue?name=DIRECT%3DTCP:127.0.0.9%5Cprivate%24%5Cfar",
    "/outgoing/purge?name=DIRECT%3DTCP:127.0.0.9%5Cprivate%24%5Cfar",
    "/trace?id=%7Bca67622c-7290-4658-b39b-f700fff64801%7D%5C5",
    "/route?name=orders",
    "/route?name=PRIVATE%3Dca67622c-7290-4658-b39b-f700fff64801%5C00000005",
    "/messages/batch?action=copy&queue=orders&target=short&scope=all",
    "/messages/batch?action=resubmit&queue=.%5Csystem%24;deadletter&scope=all",
    "/audit",
    "/access",
    "/access?queue=orders&account=everyone&right=receive",
    "/access/revoke?queue=orders&account=everyone",
    "/messages?queue=orders&arrived_from=yesterday",
    "/queues?kind=system",
    "/definitions",
    "{message}",
    "{trace}",
)
REFUSED = ("/messages?queue=orders", "/queues", "/queue?name=orders", "/deadletters")
"""Pages as a reader sees them, who may not browse."""
HEADERS = """<?xml version="1.0"?><ArrayOfHeaderInfo><HeaderInfo><Key>NServiceBus.EnclosedMessageTypes</Key>
<Value>Shop.OrderPlaced</Value></HeaderInfo></ArrayOfHeaderInfo>"""
DEFINITIONS = {
    "msmq_fast_definitions": 1,
    "queues": [
        {"name": "orders", "label": "Orders of the shop", "quota_kb": 4096},
        {"name": "invoices", "transactional": True},
        {"name": "not;possible"},
    ],
}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with shown_server() as running:
        running.ok("queue", "create", "short")
        running.ok("send", ".\\private$\\short", "--label", "late", "--body", "x", "--deadletter")
        running.ok("queue", "purge", "short")
        body = '{"order": 4711, "items": [{"sku": "A-1", "count": 2}]}'
        extension = HEADERS.encode().hex()
        running.ok("queue", "create", "shop", "--transactional", "--quota", "1MiB", "--journal")
        told = ("--label", "order 4711", "--body", body, "--extension", extension)
        running.ok("send", "shop", *told, "--transaction")
        yield running


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, server: Server) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(FLAGS))
        context = chromium.new_context(
            color_scheme=request.param, base_url=f"http://localhost:{server.port('admin')}"
        )
        made = context.new_page()
        made.add_init_script(WATCH)
        made.goto("/ui/login")
        made.fill("#name", "admin")
        made.fill("#secret", "secret")
        made.keyboard.press("Enter")
        made.wait_for_url("**/ui/queues")
        yield made, request.param
        chromium.close()


def test_each_page_is_accessible_and_keeps_the_policy(page: Any, server: Server) -> None:
    from axe_playwright_python.sync_playwright import Axe

    browser, theme = page
    SHOTS.mkdir(parents=True, exist_ok=True)
    (order,) = server.ok("peek", "shop")
    places = {
        "{message}": "/message?" + urlencode({"queue": "shop", "id": order["lookup_id"]}),
        "{trace}": "/trace?" + urlencode({"id": order["message_id"]}),
    }

    def check(path: str, status: int = 200, prefix: str = "") -> None:
        if status:
            assert browser.goto(f"/ui{places.get(path, path)}").status == status
        if path in WITH_CHARTS:
            browser.wait_for_selector(".chart canvas >> nth=1")
        name = prefix + shot_name(path)
        browser.screenshot(path=str(SHOTS / f"{name}-{theme}.png"), full_page=True)
        found = Axe().run(browser).response["violations"]
        assert found == [], (path, found)
        assert browser.evaluate("window.violations") == [], path

    for path in PATHS:
        check(path, 400 if "yesterday" in path else 200)
    browser.goto("/ui/definitions")
    browser.fill("#text", json.dumps(DEFINITIONS))
    browser.check("#delete")
    browser.click("button:has-text('Show what would change')")
    browser.wait_for_url("**/ui/definitions/preview")
    check("/definitions/preview", 0)
    browser.click("text=Log off")
    browser.fill("#name", "rita")
    browser.fill("#secret", "secret")
    browser.keyboard.press("Enter")
    browser.wait_for_url("**/ui/queues")
    for path in REFUSED:
        check(path, 200 if path.startswith("/queue") else 403, "reader-")


def test_the_user_of_this_computer_enters_without_a_password(page: Any, server: Server) -> None:
    browser, _ = page
    browser.click("text=Log off")
    browser.click("text=Enter as the user of this computer")
    browser.wait_for_url("**/ui/queues")
    assert "(administrator)" in browser.inner_text(".caller")


def test_the_list_is_filtered_without_a_new_page(page: Any) -> None:
    browser, _ = page
    browser.fill("#filter", "orde")
    browser.wait_for_url("**filter=orde**")
    assert "short" not in browser.inner_text("#list")
    assert browser.evaluate("window.violations") == []
