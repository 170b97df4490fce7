"""Pages of the console for administrators: connections, transactions, snapshots, certificates and keys."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlencode

import pytest

import msmq_fast
from tests.support.http.console import HOSTILE, Browser, Page, console_server, log_on
from tests.support.processes.servers import Server, until

PATHS = ("/sessions", "/transactions", "/maintenance", "/keys")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with console_server() as running:
        yield running


@pytest.fixture
def browser(server: Server) -> Browser:
    return log_on(server)


def press(browser: Browser, path: str) -> Page:
    """Show a page that asks for confirmation, press its button, and return the next page."""
    shown = browser.ask("GET", path)
    assert shown.status == 200
    action = next(str(one["action"]) for tag, one in shown.tags if one.get("class") == "fields card")
    done = browser.ask("POST", action.removeprefix("/ui"), {})
    assert done.status == 303
    return browser.ask("GET", done.headers["Location"].removeprefix("/ui"))


def after(browser: Browser, path: str, form: dict[str, str]) -> str:
    """Post a form, and return the text of the page to which it leads."""
    done = browser.ask("POST", path, form)
    assert done.status == 303, done.text
    location = done.headers["Location"].removeprefix("/ui")
    return browser.ask("GET", location if "?" in location or location in PATHS else "/sessions").text


@pytest.mark.parametrize("path", PATHS)
def test_pages_need_a_session_and_forged_requests_are_refused(server: Server, path: str) -> None:
    assert Browser(server).ask("GET", path).status == 303
    browser = log_on(server)
    assert browser.ask("GET", path).status == 200
    for action in ("/sessions/close?number=1", "/maintenance/snapshot", "/keys/create", "/transactions/end"):
        assert browser.ask("POST", action, {}, Sec_Fetch_Site="cross-site").status == 403


def test_the_navigation_shows_what_the_user_may_see(server: Server) -> None:
    seen = {name: log_on(server, name).ask("GET", "/overview").links() for name in ("admin", "rita", "bob")}
    for path, names in (
        ("/ui/transactions", {"admin"}),
        ("/ui/maintenance", {"admin"}),
        ("/ui/audit", {"admin", "rita"}),
        ("/ui/keys", {"admin", "rita", "bob"}),
    ):
        assert {name for name, links in seen.items() if path in links} == names


def test_a_connection_is_listed_and_closed(server: Server, browser: Browser) -> None:
    async def stay() -> None:
        async with msmq_fast.connect(server.endpoint) as connection:
            await asyncio.to_thread(close)
            with pytest.raises(msmq_fast.ConnectionLost):
                await connection.ping()

    def close() -> None:
        page = browser.ask("GET", "/sessions?kind=program")
        assert "program" in page.text
        link = next(each for each in page.links() if "/sessions/close" in each)
        assert "is closed" in press(browser, link.removeprefix("/ui")).text

    asyncio.run(stay())


def test_readers_see_connections_and_others_their_log_ons_only(server: Server) -> None:
    rita, bob = log_on(server, "rita"), log_on(server, "bob")
    shown = rita.ask("GET", "/sessions")
    assert "Connections of the server" in shown.text
    assert not any("/sessions/close" in link for link in shown.links())
    other = bob.ask("GET", "/sessions")
    assert "Connections of the server" not in other.text
    assert "Your log-ons" in other.text
    for one in (rita, bob):
        one.ask("POST", "/sessions/close?number=1", {})
        assert "Not done" in one.ask("GET", "/sessions").text


def test_a_user_ends_an_own_log_on_only(server: Server) -> None:
    bob, again, admin = log_on(server, "bob"), log_on(server, "bob"), log_on(server)
    numbers = [
        str(one["value"])
        for tag, one in bob.ask("GET", "/sessions").tags
        if tag == "input" and one.get("name") == "number"
    ]
    admin.ask("POST", "/sessions/end", {"number": numbers[0]})
    assert again.ask("GET", "/queues").status == 200
    for number in numbers:
        assert bob.ask("POST", "/sessions/end", {"number": number}).status == 303
    assert again.ask("GET", "/queues").status == 303
    assert bob.ask("GET", "/queues").status == 200


def test_an_open_transaction_is_listed_and_aborted(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "orders", "--transactional")

    async def work() -> None:
        async with (
            msmq_fast.connect(server.endpoint) as connection,
            connection.open("orders") as queue,
        ):
            transaction = connection.transaction()
            await transaction.begin()
            await queue.send(b"x", transaction=transaction)
            await asyncio.to_thread(abort)

    def abort() -> None:
        page = browser.ask("GET", "/transactions")
        assert "1 transaction" in page.text
        assert not any("action=commit" in link for link in page.links())
        link = next(each for each in page.links() if "action=abort" in each)
        assert "is aborted" in press(browser, link.removeprefix("/ui")).text

    asyncio.run(work())
    assert server.ok("queue", "show", "orders")[0]["messages"] == 0
    assert "No transaction is active" in browser.ask("GET", "/transactions").text


def test_transactions_and_snapshots_are_for_administrators(server: Server) -> None:
    for name in ("bob", "rita"):
        other = log_on(server, name)
        assert other.ask("GET", "/transactions").status == 403
        assert other.ask("GET", "/maintenance").status == 403
        target = server.data.parent / f"of-{name}"
        other.ask("POST", "/maintenance/snapshot", {"directory": str(target)})
        other.ask("POST", "/maintenance/reload", {})
        assert "Not done" in other.ask("GET", "/overview").text
        assert not target.exists()


def test_a_snapshot_is_made_and_its_end_reported(server: Server, browser: Browser) -> None:
    target = server.data / "copy"
    for form, reason in (
        ({"directory": "relative"}, "absolute path"),
        ({"directory": str(target), "rate": "fast"}, "whole number of MiB"),
    ):
        browser.ask("POST", "/maintenance/snapshot", form)
        assert reason in browser.ask("GET", "/maintenance").text
    assert browser.ask("POST", "/maintenance/snapshot", {"directory": str(target)}).status == 303
    until(lambda: "is complete" in browser.ask("GET", "/maintenance").text)
    assert (target / "manifest.json").exists() or any(target.iterdir())
    assert "none" not in browser.ask("GET", "/maintenance").text.partition("Last one")[2][:40]


def test_a_failed_snapshot_is_reported(server: Server, browser: Browser) -> None:
    browser.ask("POST", "/maintenance/snapshot", {"directory": "/proc/no/such"})
    until(lambda: "Not done" in browser.ask("GET", "/maintenance").text)


def test_the_bundle_is_an_archive_without_secrets(server: Server, browser: Browser) -> None:
    import http.client

    connection = http.client.HTTPConnection(server.host, server.port("admin"), timeout=30)
    with closing(connection):
        connection.request(
            "GET", "/ui/maintenance/bundle", headers={"Host": "localhost", "Cookie": browser.cookie}
        )
        answer = connection.getresponse()
        assert answer.getheader("Content-Disposition") == 'attachment; filename="ALPHA-support.tar.gz"'
        content = answer.read()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        names = {name.rpartition("/")[2] for name in archive.getnames()}
    assert {"server.json", "stats.json", "queues.jsonl", "audit.jsonl", "missing.txt"} <= names


def test_the_configuration_is_read_again(browser: Browser) -> None:
    browser.ask("POST", "/maintenance/reload", {})
    assert "The configuration was read again" in browser.ask("GET", "/maintenance").text


def test_a_certificate_is_made_and_removed(server: Server, browser: Browser) -> None:
    assert "no certificate" in browser.ask("GET", "/keys").text
    assert "is made" in after(browser, "/keys/create", {})
    page = browser.ask("GET", "/keys")
    assert "internal" in page.text
    link = next(each for each in page.links() if "/keys/certificate" in each)
    assert "is removed" in press(browser, link.removeprefix("/ui")).text
    assert server.ok("certificate", "list", "--user", "admin") == []
    browser.ask("POST", "/keys/register", {"certificate": "nonsense"})
    assert "Not done" in browser.ask("GET", "/keys").text


def test_the_certificates_of_others_are_for_administrators(server: Server, browser: Browser) -> None:
    bob = log_on(server, "bob")
    page = bob.ask("GET", "/keys?user=admin")
    assert page.status == 200
    assert "Register an external certificate" not in page.text
    bob.ask("POST", "/keys/create?user=admin", {})
    assert "Not done" in bob.ask("GET", "/keys").text
    assert "is made" in after(browser, "/keys/create?user=bob", {})
    assert "internal" in bob.ask("GET", "/keys").text


def test_keys_of_other_queue_managers_are_added_from_a_file(server: Server, browser: Browser) -> None:
    browser.ask("POST", "/keys/peer/add", {"file": "text"})
    assert "peer-key list --own --json" in browser.ask("GET", "/keys").text
    bob = log_on(server, "bob")
    bob.ask("POST", "/keys/peer?guid=00000000-0000-0000-0000-000000000001", {})
    assert "Not done" in bob.ask("GET", "/keys").text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_text(browser: Browser, text: str) -> None:
    for path in (
        "/keys?" + urlencode({"user": text}),
        "/keys/peer?" + urlencode({"guid": text}),
        "/sessions?" + urlencode({"kind": text}),
    ):
        page = browser.ask("GET", path)
        assert not any(tag in ("img", "svg") for tag, _ in page.tags)
        assert all(attributes.get("src") for tag, attributes in page.tags if tag == "script")
        assert "23331" not in page.text
