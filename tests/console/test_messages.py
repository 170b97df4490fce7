"""The console's pages for single messages: delete, edit and send as new, find by identifier, trace, test
messages.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.support.http.console import HOSTILE, PASSWORD, Browser, Page, act_on, add_user, boxes, log_on
from tests.support.processes.servers import Server, data_directory

DEAD = ".\\system$;deadletter"


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


@pytest.fixture
def browser(server: Server) -> Browser:
    return log_on(server)


def put(server: Server, queue: str, *labels: str, create: bool = True) -> None:
    """Create a queue with messages."""
    if create:
        server.ok("queue", "create", queue)
    for label in labels:
        server.ok("send", f".\\private$\\{queue}", "--label", label, "--body", "x")


def labels(server: Server, queue: str) -> list[str]:
    return [one["label"] for one in server.ok("peek", f".\\private$\\{queue}", "--count", "100")]


def fields(page: Page) -> dict[str, str]:
    """Return what a browser sends for the form of a page as it is."""
    found: dict[str, str] = {}
    select = ""
    for tag, one in page.tags:
        name = str(one.get("name", ""))
        if tag == "input" and name and one.get("type") != "checkbox":
            found[name] = str(one.get("value") or "")
        elif tag == "input" and name and "checked" in one:
            found[name] = "on"
        elif tag == "select":
            select = name
        elif tag == "option" and "selected" in one:
            found[select] = str(one.get("value") or "")
    for name in ("body", "extension"):
        begin = page.html.partition(f'<textarea id="{name}"')[2].partition(">\n")[2]
        found[name] = unescape(begin.partition("</textarea>")[0])
    for name in ("filter", "theme", "next"):
        found.pop(name, None)
    found.setdefault("priority", "3")
    return found


def sent(server: Server, queue: str) -> dict[str, Any]:
    """Return the last message of a queue."""
    found: dict[str, Any] = server.ok("peek", f".\\private$\\{queue}", "--count", "100")[-1]
    return found


def inspector(browser: Browser, queue: str, label: str) -> str:
    """Return the URL of the page of a message."""
    page = browser.ask("GET", "/messages?" + urlencode({"queue": queue, "label": label}))
    return next(link for link in page.links() if link.startswith("/ui/message?")).removeprefix("/ui")


def link_to(page: Page, part: str) -> str:
    return next(link for link in page.links() if part in link).removeprefix("/ui")


def test_selected_messages_are_deleted_after_a_preview(server: Server, browser: Browser) -> None:
    put(server, "some", "a", "b", "c")
    first, _, third = boxes(browser.ask("GET", "/messages?queue=some"))
    url = f"/messages/batch?action=remove&queue=some&scope=selected&id={first}&id={third}"
    preview = browser.ask("GET", url)
    assert "Delete 2 messages" in preview.text
    assert labels(server, "some") == ["a", "b", "c"]
    assert "2 messages are deleted." in act_on(browser, url).text
    assert labels(server, "some") == ["b"]


def test_one_message_is_deleted_from_its_page(server: Server, browser: Browser) -> None:
    put(server, "single", "gone", "kept")
    page = browser.ask("GET", inspector(browser, "single", "gone"))
    assert "1 message is deleted." in act_on(browser, link_to(page, "action=remove")).text
    assert labels(server, "single") == ["kept"]


def test_messages_that_match_a_filter_are_deleted(server: Server, browser: Browser) -> None:
    put(server, "matching", "old 1", "new", "old 2")
    url = "/messages/batch?" + urlencode(
        {"action": "remove", "queue": "matching", "scope": "all", "label": "old *"}
    )
    preview = browser.ask("GET", url)
    put(server, "matching", "old 3", create=False)
    action = next(str(one["action"]) for tag, one in preview.tags if one.get("class") == "fields card")
    browser.ask("POST", action.removeprefix("/ui"), {})
    assert labels(server, "matching") == ["new", "old 3"]


def test_many_messages_are_deleted_only_with_the_typed_name(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "many")
    server.ok("send", ".\\private$\\many", "--body", "x", "--count", "1001")
    url = "/messages/batch?action=remove&queue=many&scope=all"
    preview = browser.ask("GET", url)
    assert "Type the name of the queue" in preview.text
    action = next(str(one["action"]) for tag, one in preview.tags if one.get("class") == "fields card")
    for typed, left in (("other", 1001), ("many", 0)):
        browser.ask("POST", action.removeprefix("/ui"), {"typed": typed})
        assert server.ok("queue", "show", "many")[0]["messages"] == left


def test_without_the_right_to_receive_nothing_is_deleted(server: Server, browser: Browser) -> None:
    put(server, "guarded", "a")
    server.ok("acl", "grant", "guarded", "--user", "bob", "--right", "peek")
    bob = log_on(server, "bob")
    listed = bob.ask("GET", "/messages?queue=guarded")
    assert "Delete" not in listed.text
    (number,) = boxes(listed)
    page = bob.ask("GET", f"/message?queue=guarded&id={number}")
    assert "Delete" not in page.text
    for method in ("GET", "POST"):
        bob.ask(method, f"/messages/batch?action=remove&queue=guarded&scope=selected&id={number}")
    form = {"queue": "guarded", "format": "text", "body": "x", "delete": "on"}
    bob.ask("POST", f"/send?from=guarded&id={number}", form)
    assert "a" in labels(server, "guarded")


BODIES = {
    "text": b"plain \xe2\x82\xac <b>\nline & two\n",
    "leading": b"\n\nafter two empty lines",
    "windows": b"first\r\nsecond\r\n",
    "mixed": b"first\r\nsecond\n",
    "binary": bytes(range(256)),
    "empty": b"",
    "tag": b"</textarea><script>alert(1)</script>",
}


@pytest.mark.parametrize("name", BODIES)
def test_an_unedited_copy_has_the_same_bytes(server: Server, browser: Browser, name: str) -> None:
    body, queue = BODIES[name], f"copy-{name}"
    server.ok("queue", "create", queue)
    api = {
        "queue": queue,
        "format": "hex",
        "body": body.hex(),
        "label": name,
        "extension": "00ff",
        "priority": "5",
    }
    assert browser.ask("POST", "/send", api).status == 303
    form = browser.ask("GET", link_to(browser.ask("GET", inspector(browser, queue, name)), "/ui/send?"))
    assert "script" not in [tag for tag, one in form.tags if not one.get("src")]
    given = {key: text.replace("\n", "\r\n") for key, text in fields(form).items()}  # as browsers do
    target = next(
        str(one["action"]) for tag, one in form.tags if tag == "form" and "/ui/send" in str(one["action"])
    )
    assert browser.ask("POST", target.removeprefix("/ui"), given).status == 303
    first, second = server.ok("peek", f".\\private$\\{queue}", "--count", "2")
    for key in ("body_b64", "body_type", "label", "extension_b64", "priority", "delivery"):
        assert first[key] == second[key], key
    assert b64decode(second["body_b64"]) == body
    assert first["message_id"] != second["message_id"]


def test_a_utf16_body_stays_utf16(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "wide")
    form = {"queue": "wide", "format": "activex", "body": "größer", "label": "w"}
    assert browser.ask("POST", "/send", form).status == 303
    first = sent(server, "wide")
    assert (first["body_type"], b64decode(first["body_b64"]).decode("utf-16-le")) == (8, "größer")
    page = browser.ask("GET", link_to(browser.ask("GET", inspector(browser, "wide", "w")), "/ui/send?"))
    assert fields(page)["body"] == "größer"
    assert fields(page)["format"] == "utf-16"
    browser.ask("POST", "/send?from=wide", fields(page) | {"body": "kleiner"})
    second = sent(server, "wide")
    assert (second["body_type"], b64decode(second["body_b64"]).decode("utf-16-le")) == (8, "kleiner")


def test_a_dead_letter_is_edited_and_sent_to_its_destination(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "orders")
    server.ok(
        "send", ".\\private$\\orders", "--body", "wrong", "--label", "fix", "--deadletter", "--ttbr", "9"
    )
    server.ok("queue", "purge", "orders")
    page = browser.ask("GET", inspector(browser, DEAD, "fix"))
    assert "Send again" in page.text
    form = browser.ask("GET", link_to(page, "/ui/send?"))
    values = fields(form)
    assert values["queue"].casefold().endswith("private$\\orders")
    target = link_to(page, "/ui/send?")
    done = browser.ask("POST", target, values | {"body": "right", "delete": "on"})
    assert "The original is deleted." in browser.ask("GET", done.headers["Location"].removeprefix("/ui")).text
    assert b64decode(sent(server, "orders")["body_b64"]) == b"right"
    assert not any("/ui/message?" in link for link in browser.ask("GET", "/deadletters?label=fix").links())


def test_a_test_message_has_all_properties(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "full")
    form = {
        "queue": "full",
        "label": "all",
        "format": "text",
        "body": "{}",
        "priority": "7",
        "recoverable": "on",
        "correlation_id": "ab" * 20,
        "app_specific": "42",
        "response_queue": "DIRECT=OS:ALPHA\\private$\\answers",
        "admin_queue": "DIRECT=OS:ALPHA\\private$\\acks",
        "ack-1": "on",
        "ack-8": "on",
        "deadletter": "on",
        "journal": "on",
        "time_to_reach_queue": "60",
        "time_to_be_received": "3600",
        "body_type": "0",
        "extension": "01 02",
    }
    assert browser.ask("POST", "/send", form).status == 303
    found = sent(server, "full")
    wanted = {
        "label": "all",
        "body_b64": b64encode(b"{}").decode(),
        "priority": 7,
        "delivery": "recoverable",
        "correlation_id": "ab" * 20,
        "app_specific": 42,
        "response_queue": "DIRECT=OS:ALPHA\\private$\\answers",
        "admin_queue": "DIRECT=OS:ALPHA\\private$\\acks",
        "acknowledge": 9,
        "journal": 3,
        "extension_b64": "AQI=",
    }
    assert {name: found[name] for name in wanted} == wanted


@pytest.mark.parametrize("name", ["text", "utf-16", "xml", "activex", "binary", "hex"])
def test_each_format_is_sent_and_shown(server: Server, browser: Browser, name: str) -> None:
    queue = f"format-{name}"
    server.ok("queue", "create", queue)
    body = "6f 6b" if name == "hex" else "ok"
    assert (
        browser.ask("POST", "/send", {"queue": queue, "format": name, "body": body, "label": "l"}).status
        == 303
    )
    assert "ok" in browser.ask("GET", inspector(browser, queue, "l")).text


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"queue": ""}, "enter the queue"),
        ({"queue": "no-such-queue"}, "no-such-queue"),
        ({"format": "hex", "body": "xyz"}, "hexadecimal"),
        ({"format": "word"}, "the format must be"),
        ({"priority": "high"}, "priority must be a whole number"),
        ({"priority": "9"}, "priority"),
        ({"extension": "1"}, "the extension must be"),
        ({"correlation_id": "12"}, "correlation_id"),
    ],
)
def test_a_mistake_keeps_what_was_entered(
    server: Server, browser: Browser, change: dict[str, str], reason: str
) -> None:
    page = browser.ask(
        "POST", "/send", {"queue": "x", "format": "text", "body": "kept", "label": "mine"} | change
    )
    assert page.status >= 400
    assert reason in page.text
    assert "mine" in fields(page).values()


def test_messages_are_found_by_their_identifiers(server: Server, browser: Browser) -> None:
    put(server, "found", "a", "b")
    wanted, other = server.ok("peek", ".\\private$\\found", "--count", "2")
    page = browser.ask(
        "GET", "/messages?" + urlencode({"queue": "found", "message_id": wanted["message_id"]})
    )
    assert boxes(page) == [str(wanted["lookup_id"])]
    page = browser.ask("GET", "/messages?" + urlencode({"queue": "found", "correlation_id": "cd" * 20}))
    assert "No message matches the filter" in page.text
    assert browser.ask("GET", "/messages?queue=found&message_id=nonsense").status == 400
    traced = browser.ask("GET", "/trace?" + urlencode({"id": other["message_id"]}))
    assert "What happened" in traced.text
    assert any(f"id={other['lookup_id']}" in link for link in traced.links())
    assert "What happened" not in browser.ask("GET", "/trace?id=nonsense").text
    unknown = browser.ask("GET", "/trace?id={00000000-0000-0000-0000-000000000009}%5C9")
    assert "No queue of this computer holds the message" in unknown.text
    bob = log_on(server, "bob")
    assert "What happened" not in bob.ask("GET", "/trace?" + urlencode({"id": other["message_id"]})).text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_text(server: Server, browser: Browser, text: str) -> None:
    form = {"queue": text, "format": text, "body": text, "label": text, "extension": text, "ends": text}
    pages = [browser.ask("POST", "/send", form)]
    paths = ("/send?queue=", "/trace?id=", "/messages?queue=x&message_id=")
    pages += [browser.ask("GET", path + urlencode({"": text})[1:]) for path in paths]
    for page in pages:
        assert not any(tag in ("img", "svg") for tag, _ in page.tags)
        assert all(attributes.get("src") for tag, attributes in page.tags if tag == "script")
        assert "23331" not in page.text


def test_forged_requests_send_and_delete_nothing(server: Server, browser: Browser) -> None:
    put(server, "safe", "a")
    (number,) = boxes(browser.ask("GET", "/messages?queue=safe"))
    for path in ("/send", f"/messages/batch?action=remove&queue=safe&scope=selected&id={number}"):
        form = {"queue": "safe", "format": "text", "body": "x"}
        assert browser.ask("POST", path, form, Sec_Fetch_Site="cross-site").status == 403
    assert labels(server, "safe") == ["a"]


def arrived(server: Server, queue: str) -> datetime:
    """Return when the first message of a queue arrived."""
    found = server.ok("peek", queue)[0]["arrived_time"]
    return datetime.fromtimestamp(found, UTC)


def shown(page: Page) -> list[str]:
    """Return the labels in a list of messages."""
    return re.findall(r'<th scope="row"><a href="/ui/message\?[^>]*>([^<]*)</a>', page.html)


def test_messages_are_filtered_by_their_arrival(server: Server, browser: Browser) -> None:
    put(server, "dated", "a", "b")
    now = arrived(server, "dated")
    second, tomorrow = f"{now:%Y-%m-%d %H:%M:%S}", f"{now + timedelta(days=1):%Y-%m-%d}"
    for given, labels in (
        ({"arrived_from": f"{now:%Y-%m-%d}"}, ["a", "b"]),
        ({"arrived_from": second}, ["a", "b"]),
        ({"arrived_from": tomorrow}, []),
        ({"arrived_to": f"{now:%Y-%m-%d}"}, ["a", "b"]),  # the day at the end is included
        ({"arrived_to": f"{now + timedelta(seconds=-60):%Y-%m-%dT%H:%M:%S}"}, []),
        ({"arrived_from": f"{now:%Y-%m-%d}", "arrived_to": tomorrow}, ["a", "b"]),
        ({"arrived_from": f"{now:%Y-%m-%d}", "arrived_to": tomorrow, "label": "b"}, ["b"]),
    ):
        page = browser.ask("GET", "/messages?" + urlencode({"queue": "dated"} | given))
        assert (page.status, shown(page)) == (200, labels), given
        assert fields(page).items() >= given.items()  # the form keeps what was entered


def test_a_wrong_time_gets_one_line_above_the_form_as_it_was(server: Server, browser: Browser) -> None:
    put(server, "mistimed", "a")
    for given, line in (
        ({"arrived_from": "yesterday"}, 'Arrived from: invalid time "yesterday": write 2026-01-31, '),
        ({"arrived_to": "2026-02-30"}, 'Arrived to: invalid time "2026-02-30": write '),
        (
            {"arrived_from": "2026-02-01", "arrived_to": "2026-01-31"},
            "The first time of arrival must not be later than the last one.",
        ),
        ({"message_id": "nonsense"}, "Id: "),
    ):
        for path in ("/messages?", "/deadletters?"):
            page = browser.ask("GET", path + urlencode({"queue": "mistimed"} | given))
            assert page.status == 400, given
            (text,) = re.findall(r'<p class="notice failed" role="alert">([^<\n]*)</p>', page.html)
            assert unescape(text).startswith(line), given
            assert fields(page).items() >= given.items()
            assert boxes(page) == []
        url = "/messages/batch?" + urlencode(
            {"action": "remove", "queue": "mistimed", "scope": "all"} | given
        )
        for method in ("GET", "POST"):
            assert browser.ask(method, url, {} if method == "POST" else None).status == 303
    assert labels(server, "mistimed") == ["a"]


def test_an_action_keeps_to_the_times_of_the_filter(server: Server, browser: Browser) -> None:
    put(server, "timed", "a", "b")
    now = arrived(server, "timed")
    filters = {"queue": "timed", "arrived_to": f"{now + timedelta(days=-1):%Y-%m-%d}"}
    batch = {"action": "remove", "scope": "all"}
    preview = browser.ask("GET", "/messages/batch?" + urlencode(batch | filters))
    assert "No message is selected any more" in preview.text
    assert "that arrived up to" in preview.text
    filters = {"queue": "timed", "arrived_from": f"{now:%Y-%m-%d}", "arrived_to": "2200-01-01"}
    url = "/messages/batch?" + urlencode(batch | filters)
    action = next(
        str(one["action"]) for tag, one in browser.ask("GET", url).tags if one.get("class") == "fields card"
    )
    put(server, "timed", "later", create=False)  # after the preview
    browser.ask("POST", action.removeprefix("/ui"), {})
    assert labels(server, "timed") == ["later"]
    dead = browser.ask("GET", "/deadletters?" + urlencode({"arrived_from": "2200-01-01"}))
    assert "No dead letter matches the filter" in dead.text
