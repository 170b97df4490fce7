"""The web console of a running server: log-on, rules for requests, escaping, rights, and its actions."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote, urlencode

import pytest

from msmq_fast.console.formats import moment
from msmq_fast.console.guard import HEADERS
from tests.support.http.console import HOSTILE, PASSWORD, Browser, act_on, add_user, boxes, console_server
from tests.support.processes.servers import Server, command, until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with console_server() as running:
        yield running


@pytest.fixture
def browser(server: Server) -> Browser:
    made = Browser(server)
    assert made.log_on("admin", PASSWORD).status == 303
    return made


PAGES = (
    "/overview",
    "/queues",
    "/queues/new",
    "/deadletters",
    "/outgoing",
    "/trace",
    "/route",
    "/audit",
    "/access",
)


@pytest.mark.parametrize("path", PAGES)
def test_pages_need_a_session(server: Server, path: str) -> None:
    page = Browser(server).ask("GET", path)
    assert page.status == 303
    assert page.headers["Location"] == f"/ui/login?next=/ui{path}"


@pytest.mark.parametrize("path", PAGES)
def test_each_page_has_a_title_a_heading_and_the_headers(browser: Browser, path: str) -> None:
    page = browser.ask("GET", path)
    assert page.status == 200
    for name, value in HEADERS.items():
        assert page.headers[name] == value
    tags = [tag for tag, _ in page.tags]
    assert tags.count("h1") == 1
    assert tags.count("style") == 0
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        assert tag != "script" or attributes["src"]


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(server: Server) -> None:
    flags = Browser(server).log_on("admin", PASSWORD).headers["Set-Cookie"]
    assert flags.startswith("msmq=")
    for flag in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert flag in flags
    assert "Max-Age" not in flags


def test_a_wrong_password_opens_no_session(server: Server) -> None:
    for name, secret in (("admin", "wrong"), ("nobody", PASSWORD), ("", "not a token"), ("admin", "")):
        page = Browser(server).log_on(name, secret)
        assert page.status == 403
        assert "Set-Cookie" not in page.headers


def test_after_the_log_off_the_cookie_opens_nothing(browser: Browser) -> None:
    cookie = browser.cookie
    assert browser.ask("POST", "/logout", {}).status == 303
    browser.cookie = cookie
    assert browser.ask("GET", "/queues").status == 303


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "", "Origin": "http://evil.example"},
        {"Sec_Fetch_Site": ""},
    ],
)
def test_requests_of_other_sites_change_nothing(browser: Browser, headers: dict[str, str]) -> None:
    assert browser.ask("POST", "/queues/new", {"name": "forged"}, **headers).status == 403
    assert "forged" not in browser.ask("GET", "/queues").text


def test_other_host_names_are_refused(browser: Browser) -> None:
    assert browser.ask("GET", "/queues", Host="evil.example").status == 403
    assert browser.ask("GET", "/queues", Host="ALPHA:1802").status == 200


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "/ui/../x", "/ui/\\evil"])
def test_the_log_on_leads_to_pages_of_the_console_only(server: Server, target: str) -> None:
    form = {"how": "secret", "name": "admin", "secret": PASSWORD, "next": target}
    location = Browser(server).ask("POST", "/login", form).headers["Location"]
    assert location.startswith("/ui/")


def test_a_queue_is_created_changed_purged_and_deleted(server: Server, browser: Browser) -> None:
    made = browser.ask("POST", "/queues/new", {"name": "life", "label": "one", "journal": "on"})
    assert made.status == 303
    page = browser.ask("GET", made.headers["Location"].removeprefix("/ui"))
    assert "is created" in page.text
    assert "is created" not in browser.ask("GET", "/queue?name=life").text
    assert browser.ask("POST", "/queue?name=life", {"label": "two"}).status == 303
    shown = server.ok("queue", "show", "life")[0]
    assert (shown["label"], shown["journal"]) == ("two", False)
    server.ok("send", ".\\private$\\life", "--body", "a")
    assert "1 message " in browser.ask("GET", "/queue/confirm?name=life&action=purge").text
    assert browser.ask("POST", "/queue/confirm?name=life&action=purge", {}).status == 303
    assert server.ok("queue", "show", "life")[0]["messages"] == 0
    assert browser.ask("POST", "/queue/confirm?name=life&action=delete", {}).status == 303
    assert "life" not in browser.ask("GET", "/queues").text.split("deleted.")[-1]


def test_an_empty_quota_is_no_limit(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "limited", "--quota", "100")

    def quota() -> tuple[int, str]:
        page = browser.ask("GET", "/queue?name=limited")
        shown = next(str(one["value"]) for _, one in page.tags if one.get("name") == "quota_kb")
        return server.ok("queue", "show", "limited")[0]["quota_kb"], shown

    assert quota() == (100, "100")
    browser.ask("POST", "/queue?name=limited", {"label": "", "quota_kb": " ", "journal_quota_kb": "7"})
    assert quota() == (0xFFFF_FFFF, "")
    browser.ask("POST", "/queue?name=limited", {"label": "named"})
    assert server.ok("queue", "show", "limited")[0]["journal_quota_kb"] == 7


def test_the_queue_with_the_oldest_message_is_first(server: Server, browser: Browser) -> None:
    for name in ("waits-b", "waits-a"):
        server.ok("queue", "create", name)
        server.ok("send", f".\\private$\\{name}", "--body", "a")
    down = browser.ask("GET", "/queues?filter=waits-&sort=oldest&order=down")
    shown = [str(one["data-row"]) for tag, one in down.tags if tag == "tr" and one.get("data-row")]
    assert [name.rpartition("-")[2] for name in shown] == ["b", "a"]
    for sort in ("in_per_second", "out_per_second"):
        page = browser.ask("GET", f"/queues?sort={sort}&order=down")
        (head,) = [one for tag, one in page.tags if tag == "th" and one.get("aria-sort")]
        assert head["aria-sort"] == "descending"


def test_queues_show_their_oldest_message_and_rates(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "aged")
    empty = browser.ask("GET", "/queues?filter=aged").text
    server.ok("send", ".\\private$\\aged", "--body", "a")
    (row,) = server.ok("peek", ".\\private$\\aged")
    when = moment(row["arrived_time"])
    assert when not in empty
    for path in ("/queues?filter=aged", "/queue?name=aged"):
        page = browser.ask("GET", path)
        assert when in page.text
        assert "/s" in page.text


def test_the_overview_shows_what_was_refused(server: Server, browser: Browser) -> None:
    connection = http.client.HTTPConnection(server.host, server.port("admin"), timeout=30)
    with closing(connection):
        connection.request("GET", "/api/v1/no-such-path", headers={"Host": "localhost"})
        assert connection.getresponse().status == 404
    page = browser.ask("GET", "/overview")
    assert "API request" in page.text
    assert "NOT_FOUND" in page.text


@pytest.mark.parametrize("path", ["/overview", "/queue?name=busy"])
@pytest.mark.long(seconds=15)
def test_a_history_is_a_table_of_samples(server: Server, browser: Browser, path: str) -> None:
    if "busy" in path:
        server.ok("queue", "create", "busy")
        server.ok("send", ".\\private$\\busy", "--body", "a")

    def samples() -> list[str]:
        page = browser.ask("GET", path)
        return [str(one["data-sample"]) for tag, one in page.tags if tag == "tr" and "data-sample" in one]

    until(lambda: len(samples()) > 0)
    when, messages, arrivals, removals = samples()[0].split()
    assert int(when) > 0
    assert int(messages) >= 1 or path == "/overview"
    assert min(float(arrivals), float(removals)) >= 0


def test_a_large_queue_is_purged_only_with_its_name(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "large")
    server.ok("send", ".\\private$\\large", "--body", "a", "--count", "1001")
    url = "/queue/confirm?name=large&action=purge"
    name = server.ok("queue", "show", "large")[0]["name"]
    assert "Type the name" in browser.ask("GET", url).text
    browser.ask("POST", url, {"typed": "other"})
    assert "nothing was changed" in browser.ask("GET", "/queues").text
    assert server.ok("queue", "show", "large")[0]["messages"] == 1001
    browser.ask("POST", url, {"typed": name})
    assert server.ok("queue", "show", "large")[0]["messages"] == 0


def test_a_mistake_in_a_form_keeps_what_was_entered(browser: Browser) -> None:
    page = browser.ask("POST", "/queues/new", {"name": "a\\b\\c\\d", "label": "kept"})
    assert page.status == 400
    assert ("input", "kept") in [(tag, attributes.get("value")) for tag, attributes in page.tags]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_labels_bodies_and_names_stay_text(server: Server, browser: Browser, text: str) -> None:
    queue = f"hostile{HOSTILE.index(text)}"
    server.ok("queue", "create", queue, "--label", text)
    if server.run("queue", "show", "copies-of-hostile").returncode:
        server.ok("queue", "create", "copies-of-hostile")
    server.ok(
        "send", f".\\private$\\{queue}", "--label", text, "--body", text, "--extension", text.encode().hex()
    )
    messages = browser.ask("GET", f"/messages?queue={queue}")
    link = next(each for each in messages.links() if each.startswith("/ui/message?"))
    pages = [
        browser.ask("GET", "/queues?filter=hostile"),
        browser.ask("GET", f"/queue?name={queue}"),
        messages,
        browser.ask("GET", link.removeprefix("/ui")),
        browser.ask("GET", f"/messages/batch?action=copy&queue={queue}&target=copies-of-hostile&scope=all"),
        browser.ask("GET", f"/queues?{urlencode({'filter': text})}"),
        browser.ask("GET", f"/queue?{urlencode({'name': text})}"),
    ]
    for page in pages:
        assert not any(tag in ("img", "svg") for tag, _ in page.tags)
        assert all(attributes.get("src") for tag, attributes in page.tags if tag == "script")
        assert not any(link.startswith("javascript:") for link in page.links())
        assert "23331" not in page.text
    for page in pages[1:5]:
        assert text in page.text or any(text in attributes.values() for _, attributes in page.tags)


def test_selected_messages_are_moved_and_the_others_copied(server: Server, browser: Browser) -> None:
    for name in ("from1", "to1"):
        server.ok("queue", "create", name)
    for label in ("a", "b", "c"):
        server.ok("send", ".\\private$\\from1", "--label", label, "--body", "x")
    first, second, _ = boxes(browser.ask("GET", "/messages?queue=from1"))
    move = f"/messages/batch?action=move&queue=from1&target=to1&scope=selected&id={first}&id={second}"
    assert "Move 2 messages" in browser.ask("GET", move).text
    assert server.ok("queue", "show", "from1")[0]["messages"] == 3
    assert "2 messages are moved to to1" in act_on(browser, move).text
    copy = "/messages/batch?action=copy&queue=from1&target=to1&scope=all&label=c"
    assert "1 message is copied to to1" in act_on(browser, copy).text
    assert [server.ok("queue", "show", name)[0]["messages"] for name in ("from1", "to1")] == [1, 3]


def test_an_impossible_selection_leads_back_with_the_reason(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "from2")
    server.ok("send", ".\\private$\\from2", "--body", "x")
    for query, reason in (
        ("action=move&target=from2&scope=selected", "Select 1 to"),
        ("action=move&scope=all", "Enter the queue"),
        ("action=move&target=no-such-queue&scope=all", "no-such-queue"),
        ("action=burn&target=from2&scope=all", "Action must be"),
        ("action=copy&target=from2&scope=selected&id=x", "Id must be"),
    ):
        back = browser.ask("GET", f"/messages/batch?queue=from2&{query}")
        assert back.status == 303
        assert reason in browser.ask("GET", back.headers["Location"].removeprefix("/ui")).text


def test_dead_letters_are_sent_again_and_refusals_reported(server: Server, browser: Browser) -> None:
    for name in ("again", "gone"):
        server.ok("queue", "create", name)
        server.ok(
            "send", f".\\private$\\{name}", "--label", "retry", "--body", "x", "--deadletter", "--ttbr", "9"
        )
        server.ok("queue", "purge", name)
    server.ok("queue", "delete", "gone")
    dead = urlencode(
        {"action": "resubmit", "queue": ".\\system$;deadletter", "scope": "all", "label": "retry"}
    )
    preview = browser.ask("GET", f"/messages/batch?{dead}")
    assert "Send again: 1 message" in preview.text
    assert "private$\\again" in preview.text
    done = act_on(browser, f"/messages/batch?{dead}")
    assert "Done in part" in done.text
    assert "1 message is sent again" in done.text
    assert "1 message stays:" in done.text
    assert server.ok("queue", "show", "again")[0]["messages"] == 1


def test_bodies_are_downloads(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "files")
    server.ok("send", ".\\private$\\files", "--body", "<html>")
    link = next(each for each in browser.ask("GET", "/messages?queue=files").links() if "/message?" in each)
    page = browser.ask("GET", link.removeprefix("/ui").replace("/message?", "/message/download?"))
    assert page.headers["Content-Type"] == "application/octet-stream"
    assert page.headers["Content-Disposition"].startswith("attachment")
    packets = [each for each in browser.ask("GET", link.removeprefix("/ui")).links() if "part=packet" in each]
    connection = http.client.HTTPConnection(server.host, server.port("admin"), timeout=30)
    with closing(connection):
        connection.request("GET", packets[0], headers={"Host": "localhost", "Cookie": browser.cookie})
        packet = connection.getresponse()
        assert (packet.status, packet.headers["Content-Type"]) == (200, "application/octet-stream")
        assert packet.headers["Content-Disposition"].startswith("attachment")
        assert packet.read()[4:8] == b"LIOR"


def test_what_a_user_may_not_do_is_absent_and_refused(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "guarded")
    server.ok("send", ".\\private$\\guarded", "--body", "a")
    bob = Browser(server)
    assert bob.log_on("bob", PASSWORD).status == 303
    actions = ("action=purge", "action=delete")
    own = browser.ask("GET", "/queue?name=guarded").html
    other = bob.ask("GET", "/queue?name=guarded").html
    for action in actions:
        assert action in own
        assert action not in other
        bob.ask("POST", f"/queue/confirm?name=guarded&{action}", {})
    bob.ask("POST", "/queue?name=guarded", {"label": "taken"})
    shown = server.ok("queue", "show", "guarded")[0]
    assert (shown["messages"], shown["label"]) == (1, "")


def test_a_dead_letter_says_why_in_a_sentence(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "short")
    server.ok(
        "send", ".\\private$\\short", "--body", "late", "--label", "late", "--deadletter", "--ttbr", "1"
    )
    assert server.ok("queue", "purge", "short")
    page = browser.ask("GET", "/deadletters")
    assert "late" in page.text
    assert "while the message was in it" in page.text


def test_an_outgoing_queue_is_listed_with_its_state(server: Server, browser: Browser) -> None:
    name = "DIRECT=TCP:127.0.0.9\\private$\\far"
    server.ok("send", name, "--body", "a")
    for path in ("/outgoing", "/overview"):
        assert browser.ask("GET", path).status == 200
    assert name in browser.ask("GET", "/outgoing").text


def test_an_outgoing_queue_is_paused_resumed_kicked_and_purged(server: Server, browser: Browser) -> None:
    name = "DIRECT=TCP:127.0.0.9\\private$\\waiting"
    server.ok("send", name, "--body", "a")
    url = "/outgoing/queue?" + urlencode({"name": name})
    assert browser.ask("POST", url, {"action": "pause"}).status == 303
    paused = browser.ask("GET", url).text
    assert "paused by" in paused
    assert "Try now" not in paused
    browser.ask("POST", url, {"action": "kick"})
    assert "Not done" in browser.ask("GET", url).text
    for action, text in (("resume", "is resumed"), ("kick", "has begun"), ("explode", "Action must be")):
        browser.ask("POST", url, {"action": action})
        assert text in browser.ask("GET", url).text
    purge = url.replace("/queue?", "/purge?")
    assert "1 message " in browser.ask("GET", purge).text
    browser.ask("POST", purge, {})
    assert "1 message to" in browser.ask("GET", "/outgoing").text
    assert server.ok("outgoing", "show", name)[0]["messages"] == 0


def test_a_long_outgoing_queue_is_purged_only_with_its_name(server: Server, browser: Browser) -> None:
    name = "DIRECT=TCP:127.0.0.9\\private$\\long"
    server.ok("send", name, "--body", "a", "--count", "1001")
    purge = "/outgoing/purge?" + urlencode({"name": name})
    assert "Type the name" in browser.ask("GET", purge).text
    browser.ask("POST", purge, {"typed": "other"})
    assert server.ok("outgoing", "show", name)[0]["messages"] == 1001
    browser.ask("POST", purge, {"typed": name})
    assert server.ok("outgoing", "show", name)[0]["messages"] == 0


def test_a_user_without_rights_cannot_change_outgoing_queues(server: Server) -> None:
    name = "DIRECT=TCP:127.0.0.9\\private$\\fixed"
    server.ok("send", name, "--body", "a")
    bob = Browser(server)
    bob.log_on("bob", PASSWORD)
    query = urlencode({"name": name})
    shown = bob.ask("GET", f"/outgoing/queue?{query}")
    assert not any(text in shown.text for text in ("Pause", "Try now", "Purge"))
    bob.ask("POST", f"/outgoing/queue?{query}", {"action": "pause"})
    bob.ask("POST", f"/outgoing/purge?{query}", {})
    found = server.ok("outgoing", "show", name)[0]
    assert (found["messages"], found["paused_by"]) == (1, "")


def test_the_audit_is_filtered_and_for_administrators_and_readers(server: Server, browser: Browser) -> None:
    for name in ("watched", "unseen"):
        server.ok("queue", "create", name)
    page = browser.ask("GET", "/audit?object=watched&kind=act")
    assert "private$\\watched" in page.text
    assert "unseen" not in page.text
    assert "No entry matches" in browser.ask("GET", "/audit?caller=no+such+caller").text
    for name, status in (("rita", 200), ("bob", 403)):
        other = Browser(server)
        other.log_on(name, PASSWORD)
        assert other.ask("GET", "/audit").status == status
        assert ("/ui/audit" in other.ask("GET", "/queues").links()) is (status == 200)


def test_log_ons_to_the_console_are_in_the_audit_with_their_address(server: Server, browser: Browser) -> None:
    assert Browser(server).log_on("rita", "wrong").status == 403
    assert Browser(server).log_on("", "no such token").status == 403
    Browser(server).ask("POST", "/login", {"how": "local"}, Origin="http://localhost")

    def entries() -> list[tuple[str, str, str, str]]:
        found = server.ok("audit", "list", "--kind", "login")
        return [(one["operation"], one["caller"], one["result"], one["address"]) for one in found]

    wanted = {
        ("log on with a password at the console", "admin", "accepted", "127.0.0.1"),
        ("log on with a password at the console", "rita", "refused", "127.0.0.1"),
        ("log on with a token at the console", "unknown", "refused", "127.0.0.1"),
    }
    until(lambda: wanted <= set(entries()))
    until(lambda: any("account of this computer" in operation for operation, *_ in entries()))
    assert "a password at the console" in browser.ask("GET", "/audit?kind=login").text


def test_hostile_texts_in_the_audit_stay_text(server: Server, browser: Browser) -> None:
    for text in HOSTILE:
        Browser(server).log_on(text, "x")
        server.ok(
            "send", f"DIRECT=TCP:127.0.0.9\\private$\\{HOSTILE.index(text)}", "--label", text, "--body", text
        )
        pages = [browser.ask("GET", f"/audit?{urlencode({'object': text})}"), browser.ask("GET", "/outgoing")]
        pages.append(browser.ask("GET", f"/access?{urlencode({'account': text, 'right': 'journal'})}"))
        pages.append(browser.ask("GET", f"/access?{urlencode({'queue': text})}"))
        for page in pages:
            assert not any(tag in ("img", "svg") for tag, _ in page.tags)
            assert all(attributes.get("src") for tag, attributes in page.tags if tag == "script")
            assert "23331" not in page.text


def test_rights_are_granted_explained_and_revoked(server: Server, browser: Browser) -> None:
    server.ok("queue", "create", "shared")
    assert "bob has" not in browser.ask("GET", "/access?queue=shared").text
    browser.ask("POST", "/access?queue=shared", {"account": "bob", "action": "grant", "receive": "on"})
    page = browser.ask("GET", "/access?queue=shared&account=bob&right=receive")
    assert "Granted to bob: receive messages." in page.text
    assert "bob has this right" in page.text
    revoke = next(each for each in page.links() if "/access/revoke" in each and "S-1-5-21" in each)
    assert "receive messages" in browser.ask("GET", revoke.removeprefix("/ui")).text
    assert browser.ask("POST", revoke.removeprefix("/ui"), {}).status == 303
    page = browser.ask("GET", "/access?queue=shared&account=bob&right=receive")
    assert "bob does not have this right" in page.text
    for form, reason in (
        ({"account": "bob", "action": "grant"}, "Check at least one right"),
        ({"account": " ", "action": "grant", "send": "on"}, "Enter a user"),
        ({"account": "no such", "action": "grant", "send": "on"}, "no such"),
    ):
        browser.ask("POST", "/access?queue=shared", form)
        assert reason in browser.ask("GET", "/access?queue=shared").text


def test_a_user_without_rights_cannot_change_an_access_list(server: Server) -> None:
    server.ok("queue", "create", "closed")
    bob = Browser(server)
    bob.log_on("bob", PASSWORD)
    page = bob.ask("GET", "/access?queue=closed&right=receive")
    assert "bob does not have this right" in page.text
    assert "Revoke" not in page.text
    assert "Grant or deny" not in page.text
    bob.ask("POST", "/access?queue=closed", {"account": "bob", "action": "grant", "all": "on"})
    bob.ask("POST", "/access/revoke?queue=closed&account=everyone", {})
    assert "bob does not have this right" in bob.ask("GET", "/access?queue=closed&right=receive").text
    assert bob.ask("GET", "/queue?name=closed").status == 200


def test_a_user_whose_password_changes_is_logged_off(server: Server) -> None:
    add_user(server.data, "carol", "first")
    carol = Browser(server)
    until(lambda: carol.log_on("carol", "first").status == 303)
    assert carol.ask("GET", "/queues").status == 200
    done = command("user", "passwd", "carol", "--data", str(server.data), stdin=b"second\n")
    assert done.returncode == 0, done
    until(lambda: carol.ask("GET", "/queues").status == 303)


@pytest.mark.parametrize(
    ("name", "trace", "route"), [("admin", 200, 200), ("rita", 403, 200), ("bob", 403, 403)]
)
def test_traces_are_for_administrators_and_routes_also_for_readers(
    server: Server, name: str, trace: int, route: int
) -> None:
    browser = Browser(server)
    browser.log_on(name, PASSWORD)
    assert browser.ask("GET", "/trace?id=%7Bca67622c-7290-4658-b39b-f700fff64801%7D%5C5").status == trace
    assert browser.ask("GET", "/route?name=orders").status == route


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_traced_or_explained_is_escaped(browser: Browser, text: str) -> None:
    for page in ("trace?id", "route?name"):
        answer = browser.ask("GET", f"/{page}={quote(text)}")
        assert answer.status in (200, 400)
        assert not {tag for tag, _ in answer.tags} & {"img", "svg"}
        assert all("src" in attributes for tag, attributes in answer.tags if tag == "script")
        assert not [link for link in answer.links() if link.startswith("javascript:")]
        assert "23331" not in answer.html
