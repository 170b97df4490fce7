"""`route explain`: what would happen to a message for a name, by the command, the API and the console."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.http.api import call, ok
from tests.support.http.console import Browser
from tests.support.processes.servers import Server, data_directory, until

ROUTED = "43cd8907-394c-8f11-4445-9078909ea0fc"
CONFIG = f"""
[[routes]]
destination = "{ROUTED}"
via = ["router.example.net", "127.0.0.77"]
"""
FAR = r"DIRECT=TCP:127.0.0.78\private$\far"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("route") / "msmq.toml"
    file.write_text(CONFIG)
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA", "--config", str(file)).start()
        try:
            yield running
        finally:
            running.kill()


def explained(server: Server, name: str) -> dict[str, Any]:
    """The answer, which is the same in the API; the console and people read its cause."""
    (found,) = server.ok("route", "explain", name)
    assert ok(server, "GET", "/routes/{}", name) == found
    shown = server.run("route", "explain", name).stdout.decode()
    browser = Browser(server)
    assert browser.ask("POST", "/login", {"how": "local"}).status == 303
    page = browser.ask("GET", f"/route?name={quote(name)}")
    assert page.status == 200
    if found["cause"]:
        assert f"{found['cause']}: {found['reason']}" in shown
        assert found["reason"][1:] in page.text
    else:
        assert "nothing is known to stop a message" in shown
        assert "Nothing is known to stop a message" in page.text
    return dict(found)


def test_a_queue_of_this_computer(server: Server) -> None:
    server.ok("queue", "create", "orders", "--transactional")
    found = explained(server, "orders")
    assert (found["protocol"], found["queue"], found["cause"]) == ("local", r"ALPHA\private$\orders", "")
    assert (found["exists"], found["transactional"]) == (True, True)
    server.ok("queue", "set", "orders", "--quota", "0")
    assert explained(server, "orders")["cause"] == "quota"
    assert explained(server, "nosuch")["cause"] == "no such queue here"
    assert explained(server, r".\private$\orders;journal")["cause"] == "no such queue here"


def test_a_direct_name_before_and_after_its_first_message(server: Server) -> None:
    found = explained(server, FAR)
    assert (found["protocol"], found["hops"], found["exists"]) == ("mqqb", ["127.0.0.78"], False)
    assert found["cause"] == ""
    assert FAR not in [queue["name"] for queue in server.ok("outgoing", "list")]
    server.ok("send", FAR, "--body", "x", "--recoverable")
    until(lambda: explained(server, FAR)["cause"] == "connection refused", what="a failed attempt")
    found = explained(server, FAR)
    assert (found["exists"], found["messages"], found["addresses"]) == (True, 1, ["127.0.0.78"])
    assert "127.0.0.78 refused the connection" in found["reason"]
    server.ok("outgoing", "pause", FAR)
    assert explained(server, FAR)["cause"] == "on hold"
    server.ok("outgoing", "purge", FAR)
    assert explained(server, FAR)["cause"] == "on hold"


def test_names_that_need_a_route(server: Server) -> None:
    found = explained(server, f"PRIVATE={ROUTED}\\00000005")
    assert found["hops"] == ["router.example.net", "127.0.0.77"]
    assert found["cause"] == ""
    other = "53cd8907-394c-8f11-4445-9078909ea0fc"
    found = explained(server, f"PRIVATE={other}\\00000005")
    assert (found["hops"], found["cause"]) == ([f"{{{other}}}"], "no route")
    assert "[[routes]]" in found["reason"]
    assert explained(server, f"PUBLIC={other}")["cause"] == "unknown queue"


def test_other_protocols(server: Server) -> None:
    found = explained(server, "DIRECT=HTTPS://orders.example.net/msmq/private$/orders")
    assert (found["protocol"], found["cause"]) == ("https", "transport off")
    assert "srmp.sending" in found["reason"]
    found = explained(server, "MULTICAST=234.1.1.1:8001")
    assert (found["protocol"], found["cause"]) == ("pgm", "transport off")


@pytest.mark.parametrize("name", ["DIRECT=XYZ:a\\b", "DL=43cd8907-394c-8f11-4445-9078909ea0fc", "a\\b\\c\\d"])
def test_what_has_no_route(server: Server, name: str) -> None:
    done = server.run("route", "explain", name)
    assert done.returncode != Exit.OK
    assert done.stderr.startswith(b"msmq-fast route explain: ")
    assert call(server, "GET", "/routes/{}", name).status == 400
    browser = Browser(server)
    browser.ask("POST", "/login", {"how": "local"})
    assert browser.ask("GET", f"/route?name={quote(name)}").status == 400
