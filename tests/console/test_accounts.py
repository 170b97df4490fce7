"""The console's pages about users and the configuration: shown to administrators and readers, without
secrets.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest

from tests.support.http.console import HOSTILE, Browser, console_server, log_on
from tests.support.processes.servers import Server

PATHS = ("/users", "/configuration", "/configuration/check")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with console_server() as running:
        yield running


@pytest.mark.parametrize("path", PATHS)
def test_the_pages_are_for_administrators_and_readers(server: Server, path: str) -> None:
    assert Browser(server).ask("GET", path).status == 303
    for name, links in (("admin", True), ("rita", True), ("bob", False)):
        browser = log_on(server, name)
        page = browser.ask("GET", path)
        assert page.status == (200 if links else 403)
        assert ("/ui/users" in browser.ask("GET", "/overview").links()) is links


def test_users_are_shown_with_groups_and_last_log_on(server: Server) -> None:
    page = log_on(server, "rita").ask("GET", "/users")
    assert "3 users" in page.text
    for text in ("admin", "administrators", "rita", "readers", "password", "127.0.0.1"):
        assert text in page.text
    assert "scrypt" not in page.html


def test_the_configuration_is_shown_with_origins(server: Server) -> None:
    browser = log_on(server)
    page = browser.ask("GET", "/configuration?filter=server.name")
    assert "ALPHA" in page.text
    for query, there in (({"filter": "listen.admin"}, True), ({"filter": "no.such.key"}, False)):
        assert (
            "listen.admin.access" in browser.ask("GET", f"/configuration?{urlencode(query)}").text
        ) is there
    assert "No key has changed" in browser.ask("GET", "/configuration?only=changed").text
    assert "No key has changed" not in browser.ask("GET", "/configuration?only=set").text


def test_a_configuration_is_checked_before_it_is_used(server: Server) -> None:
    browser = log_on(server)
    page = browser.ask("POST", "/configuration/check", {"text": "[server]\r\nnoname = 1\r\n"})
    assert "The server would not use it" in page.text
    assert "noname" in page.text
    assert "It is valid" in browser.ask("POST", "/configuration/check", {"text": ""}).text
    forged = browser.ask("POST", "/configuration/check", {"text": ""}, Sec_Fetch_Site="cross-site")
    assert forged.status == 403
    bob = log_on(server, "bob")
    bob.ask("POST", "/configuration/check", {"text": ""})
    assert "Not done" in bob.ask("GET", "/overview").text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_text(server: Server, text: str) -> None:
    browser = log_on(server)
    pages = [browser.ask("POST", "/configuration/check", {"text": f"{text} = 1"})]
    pages.append(browser.ask("GET", f"/configuration?{urlencode({'filter': text, 'only': text})}"))
    for page in pages:
        assert not any(tag in ("img", "svg") for tag, _ in page.tags)
        assert all(attributes.get("src") for tag, attributes in page.tags if tag == "script")
        assert "23331" not in page.text
