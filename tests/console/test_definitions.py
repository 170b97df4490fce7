"""The console's page for definitions: export, preview, import; and what it refuses."""

from __future__ import annotations

import http.client
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.http.api import ok
from tests.support.http.console import HOSTILE, Browser, Page, console_server, log_on
from tests.support.processes.servers import Server

HEAD = {"msmq_fast_definitions": 1}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with console_server() as running:
        yield running


@pytest.fixture
def browser(server: Server) -> Browser:
    return log_on(server)


def document(*queues: dict[str, Any]) -> str:
    return json.dumps({**HEAD, "queues": list(queues)})


def hidden(page: Page) -> dict[str, str]:
    """Return the hidden fields of the preview, which its button posts."""
    names = ("document", "plan", "delete")
    found = [one for tag, one in page.tags if tag == "input" and one.get("name") in names]
    return {str(one["name"]): str(one["value"]) for one in found if one.get("type") == "hidden"}


def preview(browser: Browser, text: str, **more: str) -> Page:
    return browser.ask("POST", "/definitions/preview", {"text": text} | more)


def queues(server: Server) -> set[str]:
    return {one["name"].rpartition("\\")[2] for one in server.ok("queue", "list")}


def test_the_download_is_what_the_command_writes(server: Server, browser: Browser, tmp_path: Path) -> None:
    ok(server, "POST", "/queues", body={"name": "exported", "label": "Öl", "journal": True})
    found = browser.ask("GET", "/definitions/export")
    assert found.headers["Content-Disposition"] == 'attachment; filename="ALPHA-definitions.json"'
    server.ok("definitions", "export", str(tmp_path / "file"))
    assert found.html == (tmp_path / "file").read_text()
    unchanged = preview(browser, found.html)
    assert "The server has these definitions already" in unchanged.text
    assert not any(tag == "button" and "Import" in str(one) for tag, one in unchanged.tags)


def test_a_preview_lists_what_an_import_would_do_and_changes_nothing(
    server: Server, browser: Browser
) -> None:
    ok(server, "POST", "/queues", body={"name": "there", "label": "old"})
    text = document({"name": "there", "label": "new", "quota_kb": 9}, {"name": "fresh"}, {"name": "a;b"})
    page = preview(browser, text)
    assert page.status == 200
    for part in ("To create1 object", "To change1 object", "Would fail1 object", "label, quota", "a;b"):
        assert part in page.text
    assert "fresh" not in queues(server)
    assert server.ok("queue", "show", "there")[0]["label"] == "old"
    done = browser.ask("POST", "/definitions/import", hidden(page))
    assert (done.status, done.headers["Location"]) == (303, "/ui/definitions")
    told = browser.ask("GET", "/definitions").text
    assert "Done in part. 1 object is created, 1 object is changed." in told
    assert "queue a;b: " in told
    assert server.ok("queue", "show", "there")[0]["label"] == "new"
    acts = ok(server, "GET", "/audit", object="fresh", kind="act")["items"]
    assert [(one["operation"], one["caller"].split()[0]) for one in acts] == [("create queue", "admin")]
    assert "fails" not in preview(browser, document({"name": "fresh"})).text
    # The same import a second time changes nothing: its preview has passed.
    again = browser.ask("POST", "/definitions/import", hidden(page))
    assert again.status == 412
    assert "nothing was imported" in again.text


def test_an_import_that_would_do_something_else_by_now_is_refused(server: Server, browser: Browser) -> None:
    page = preview(browser, document({"name": "raced", "label": "mine"}))
    ok(server, "POST", "/queues", body={"name": "raced", "label": "theirs"})
    late = browser.ask("POST", "/definitions/import", hidden(page))
    assert late.status == 412
    assert "The server has changed since the preview" in late.text
    assert server.ok("queue", "show", "raced")[0]["label"] == "theirs"
    assert browser.ask("POST", "/definitions/import", hidden(late)).status == 303
    assert server.ok("queue", "show", "raced")[0]["label"] == "mine"
    for plan in ("", "0" * 64):
        form = hidden(preview(browser, document({"name": "planless"}))) | {"plan": plan}
        assert browser.ask("POST", "/definitions/import", form).status == 412
    assert "planless" not in queues(server)


def test_many_messages_are_deleted_only_with_the_typed_name() -> None:
    with console_server() as server:
        browser = log_on(server)
        for name in ("kept", "full"):
            server.ok("queue", "create", name)
        server.ok("send", "full", "--body", "x", "--count", "1001")
        page = preview(browser, document({"name": "kept"}), delete="on")
        assert "1\u202f001 messages" in page.text
        assert "Type the name of the computer" in page.text
        for typed in ("", "full"):
            again = browser.ask("POST", "/definitions/import", hidden(page) | {"typed": typed})
            assert again.status == 400
            assert "full" in queues(server)
        assert browser.ask("POST", "/definitions/import", hidden(page) | {"typed": "ALPHA"}).status == 303
        assert queues(server) == {"kept"}
        without = preview(browser, document())
        assert "To delete" not in without.text


def test_a_file_is_read_before_the_text(server: Server, browser: Browser) -> None:
    parts = {"file": document({"name": "from-file"}), "text": "nonsense"}
    names = {"file": 'name="file"; filename="d.json"', "text": 'name="text"'}
    body = "".join(
        f"--frontier\r\nContent-Disposition: form-data; {names[name]}\r\n\r\n{text}\r\n"
        for name, text in parts.items()
    )
    connection = http.client.HTTPConnection(server.host, server.port("admin"), timeout=30)
    with closing(connection):
        headers = {
            "Host": "localhost",
            "Sec-Fetch-Site": "same-origin",
            "Cookie": browser.cookie,
            "Content-Type": "multipart/form-data; boundary=frontier",
        }
        connection.request("POST", "/ui/definitions/preview", body + "--frontier--\r\n", headers)
        page = Page(200, {}, connection.getresponse().read().decode())
    assert "from-file" in page.text
    assert json.loads(b64decode(hidden(page)["document"]))["queues"] == [{"name": "from-file"}]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "Choose a file that"),
        ("{\n{", "Line 2 is not JSON"),
        ("[" * 100_000, "The document is too deeply nested"),
        ("{}", "This document has no definitions"),
        ('{"msmq_fast_definitions": 1, "users": []}', "users"),
        ('{"msmq_fast_definitions": 1, "queues": [{"label": "x"}]}', "name"),
        ('{"msmq_fast_definitions": 1, "queues": [{"name": "x", "colour": 1}]}', "colour"),
        (" " * ((4 << 20) + 1) + "{}", "larger than 4 MiB"),
    ],
    ids=["nothing", "no JSON", "deep", "other", "section", "nameless", "property", "large"],
)
def test_a_mistake_gets_one_line(browser: Browser, text: str, line: str) -> None:
    page = preview(browser, text)
    assert page.status == 400
    (notice,) = [one for tag, one in page.tags if one.get("class") == "notice failed"]
    assert notice["role"] == "alert"
    assert line in page.text


def test_a_damaged_form_imports_nothing(server: Server, browser: Browser) -> None:
    before = queues(server)
    for content in ("%%%", b64encode(b"\xff\xfe{").decode(), b64encode(b"{}").decode(), ""):
        browser.ask("POST", "/definitions/import", {"document": content, "plan": "0" * 64})
        assert "Not done" in browser.ask("GET", "/definitions").text
    assert queues(server) == before


@pytest.mark.parametrize("name", ["bob", "rita"])
def test_definitions_are_for_administrators(server: Server, name: str) -> None:
    other, page = log_on(server, name), preview(log_on(server), document({"name": f"of-{name}"}))
    assert other.ask("GET", "/definitions").status == 403
    assert other.ask("GET", "/definitions/export").status == 403
    assert "/ui/definitions" not in other.ask("GET", "/overview").links()
    other.ask("POST", "/definitions/import", hidden(page))
    assert "Not done" in other.ask("GET", "/overview").text
    assert f"of-{name}" not in queues(server)


def test_a_forged_request_imports_nothing(server: Server, browser: Browser) -> None:
    form = hidden(preview(browser, document({"name": "forged"})))
    for path in ("/definitions/preview", "/definitions/import"):
        assert browser.ask("POST", path, form, Sec_Fetch_Site="cross-site").status == 403
    assert "forged" not in queues(server)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_text(browser: Browser, text: str) -> None:
    pages = [preview(browser, document({"name": text, "label": text})), preview(browser, text)]
    pages.append(browser.ask("POST", "/definitions/import", hidden(pages[0])))
    for page in [*pages, browser.ask("GET", "/definitions")]:
        assert not any(tag in ("img", "svg") for tag, _ in page.tags)
        assert all(attributes.get("src") for tag, attributes in page.tags if tag == "script")
        assert "23331" not in page.text
