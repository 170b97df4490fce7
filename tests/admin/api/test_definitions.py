"""Definitions over the API and the command line: export, import, dry run, deletion, mistakes, rights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.client import sync
from msmq_fast.protocol.definitions import MOST, read_definitions
from msmq_fast.protocol.exits import Exit
from tests.support.http.api import call, ok
from tests.support.processes.servers import Server, data_directory

HEAD = {"msmq_fast_definitions": 1}
SDDL = "O:BAG:BAD:(A;;CCDCLCSWRPWPSDRCWDWO;;;BA)(A;;LC;;;WD)"
# Site Berlin, site Paris and a link between them
BERLIN, PARIS = "11111111-2222-3333-4444-555555555555", "22222222-2222-3333-4444-555555555555"
OBJECTS = [
    {"object": "Site", "Identifier": BERLIN, "Name": "Berlin"},
    {"object": "Site", "Identifier": PARIS, "Name": "Paris"},
    {
        "object": "RoutingLink",
        "Identifier": "33333333-2222-3333-4444-555555555555",
        "ActualCost": 7,
        "Site1Identifier": BERLIN,
        "Site2Identifier": PARIS,
    },
    {
        "object": "DistributionList",
        "Identifier": "44444444-2222-3333-4444-555555555555",
        "Name": "all",
        "Members": [r"DIRECT=OS:a\private$\x"],
    },
]


@pytest.fixture
def servers() -> Iterator[tuple[Server, Server]]:
    """Two servers of their own, of which the second is empty."""
    with data_directory() as first, data_directory() as second:
        found = Server(first, "--name", "ALPHA"), Server(second, "--name", "BETA")
        try:
            found[0].start()
            found[1].start()
            yield found
        finally:
            for one in found:
                one.kill()


def outcomes(answer: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {item["name"]: (item["outcome"], item["detail"]) for item in answer["items"]}


def test_an_export_imported_and_exported_again_is_the_same(
    servers: tuple[Server, Server], tmp_path: Path
) -> None:
    alpha, beta = servers
    alpha.ok("queue", "create", "orders", "--label", "Bestellungen für Öl", "--journal", "--quota", "1GiB")
    alpha.ok("queue", "create", "payments", "--transactional")
    alpha.ok("queue", "create", r".\prices")
    alpha.ok("queue", "set", "payments", "--poison-after", "3")
    alpha.ok("acl", "set", "orders", "--sddl", SDDL)
    alpha.ok("acl", "grant", "--machine", "--user", "uid:7", "--right", "create-queue")
    alpha.ok("send", "orders", "--body", "not exported")
    ok(alpha, "POST", "/directory", body={"msmq_fast_directory": 1, "objects": OBJECTS})
    first, second, third = (tmp_path / f"{name}.json" for name in ("first", "second", "third"))
    assert alpha.ok("definitions", "export", str(first)) == [
        {"exported": str(first), "queues": 3, "objects": 4}
    ]
    document = json.loads(first.read_text())
    assert document == ok(alpha, "GET", "/definitions")
    assert [one["name"] for one in document["queues"]] == [
        r".\prices",
        r".\private$\orders",
        r".\private$\payments",
    ]
    assert document["queues"][1]["security"] == SDDL
    assert document["directory"] == OBJECTS
    assert "not exported" not in first.read_text()
    preview = beta.ok("definitions", "import", str(first), "--dry-run")
    assert len(beta.ok("queue", "list")) == 0
    done = beta.ok("definitions", "import", str(first))
    assert done == preview
    assert {(one["object"], one["outcome"]) for one in done} == {
        *((kind, "created") for kind in ("Site", "RoutingLink", "DistributionList", "Queue")),
        ("QueueManager", "changed"),
    }
    beta.ok("definitions", "export", str(second))
    assert second.read_bytes() == first.read_bytes()
    again = ok(beta, "POST", "/definitions", body=document)
    assert (again["unchanged"], len(again["items"])) == (8, 8)
    beta.stop()
    beta.start()
    beta.ok("definitions", "export", str(third))
    assert third.read_bytes() == first.read_bytes()


def test_only_what_differs_is_changed_and_nothing_in_a_dry_run(server: Server) -> None:
    ok(server, "POST", "/queues", body={"name": "defined", "label": "old", "journal": True})
    body = {
        **HEAD,
        "queues": [{"name": "defined", "label": "new", "journal": True, "quota_kb": 9}, {"name": "beside"}],
    }
    for dry_run in (True, False):
        done = ok(server, "POST", "/definitions", body=body, dry_run=str(dry_run).lower())
        assert outcomes(done) == {"defined": ("changed", "label, quota_kb"), "beside": ("created", "")}
        assert (done["changed"], done["created"], done["dry_run"]) == (1, 1, dry_run)
        shown = ok(server, "GET", "/queues/{}", "defined")
        assert (shown["label"], shown["journal"]) == ("old" if dry_run else "new", True)
        assert call(server, "GET", "/queues/{}", "beside").status == (404 if dry_run else 200)
    acts = ok(server, "GET", "/audit", object="defined", kind="act")["items"]
    assert [one["operation"] for one in acts] == ["create queue", "set properties"]
    assert outcomes(ok(server, "POST", "/definitions", body=body)) == {
        "defined": ("unchanged", ""),
        "beside": ("unchanged", ""),
    }


def test_one_entry_that_fails_harms_no_other(server: Server, tmp_path: Path) -> None:
    ok(server, "POST", "/queues", body={"name": "plain"})
    queues = [
        {"name": "plain", "transactional": True},
        {"name": "wrong", "quota_kb": 3, "security": "nonsense"},
        {"name": "both", "transactional": True, "multicast_address": "234.1.1.1:8001"},
        {"name": r"OTHERHOST\private$\x"},
        {"name": "sound"},
    ]
    objects = [
        {"object": "Site", "Name": "sound"},
        {"object": "Site", "Name": "y", "Colour": "red"},
    ]
    body = {**HEAD, "queues": queues, "directory": objects}
    for dry_run in ("true", "false"):
        done = ok(server, "POST", "/definitions", body=body, dry_run=dry_run)
        found = outcomes(done)
        assert (done["failed"], done["created"]) == (5, 2)
        assert found["plain"] == ("failed", "the queue is not transactional, which cannot be changed")
        assert "security" in found["wrong"][1]
        assert "multicast" in found["both"][1]
        assert "names another computer" in found[r"OTHERHOST\private$\x"][1]
        assert "Colour" in found["y"][1]
    assert call(server, "GET", "/queues/{}", "wrong").status == 404
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(body))
    assert server.run("definitions", "import", str(file)).returncode == Exit.REFUSED


def test_nothing_is_deleted_unless_asked(servers: tuple[Server, Server], tmp_path: Path) -> None:
    alpha, _ = servers
    for name in ("kept", "extra"):
        alpha.ok("queue", "create", name)
    alpha.ok("send", "extra", "--body", "x", "--count", "3")
    ok(alpha, "POST", "/directory", body={"msmq_fast_directory": 1, "objects": OBJECTS})
    body = {**HEAD, "queues": [{"name": "KEPT"}], "directory": [OBJECTS[0]]}
    assert ok(alpha, "POST", "/definitions", body=body)["deleted"] == 0
    only = ok(alpha, "POST", "/definitions", body=HEAD, delete="true")
    assert only["items"] == []
    preview = ok(alpha, "POST", "/definitions", body=body, delete="true", dry_run="true")
    assert preview["deleted"] == 4
    (extra,) = [one for one in preview["items"] if one["object"] == "Queue" and one["outcome"] == "deleted"]
    assert (extra["name"], extra["messages"]) == (r".\private$\extra", 3)
    assert len(alpha.ok("queue", "list")) == 2
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(body))
    assert alpha.ok("definitions", "import", str(file), "--delete") == preview["items"]
    exported = ok(alpha, "GET", "/definitions")
    assert [one["name"] for one in exported["queues"]] == [r".\private$\kept"]
    assert exported["directory"] == [OBJECTS[0]]


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ([], 'expected the key "msmq_fast_definitions": 1'),
        ({"msmq_fast_definitions": 2}, 'expected the key "msmq_fast_definitions": 1'),
        ({**HEAD, "queue": []}, 'unknown section "queue"'),
        ({**HEAD, "queues": {}}, "queues: expected a list of objects"),
        ({**HEAD, "queues": [{"label": "x"}]}, "queues[0]: expected a name"),
        ({**HEAD, "queues": [{"name": "a", "colour": 1}]}, 'a queue has no property "colour"'),
        ({**HEAD, "queues": [{"name": "a"}, {"name": r".\PRIVATE$\A"}]}, "queues[0] has the same name"),
        ({**HEAD, "queues": [{"name": str(n)} for n in range(MOST + 1)]}, f"the limit is {MOST}"),
        ({**HEAD, "directory": [{"object": "User"}]}, "directory[0].object: expected one of Enterprise"),
        (
            {**HEAD, "queue_manager": {"name": "x"}},
            'queue_manager: expected an object with the key "security"',
        ),
        ({**HEAD, "queues": [{}] * 9}, "; and 6 more"),
    ],
)
def test_a_malformed_document_is_refused_in_one_line(document: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_definitions(document)
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mistakes_change_nothing(server: Server, tmp_path: Path) -> None:
    bad = {**HEAD, "queues": [{"name": "never"}, {"name": "never"}]}
    refused = call(server, "POST", "/definitions", body=bad)
    assert (refused.status, refused.code) == (400, "INVALID_PARAMETER")
    assert call(server, "POST", "/definitions", body={**HEAD, "queues": [{"nam": 1}]}).status == 400
    file = tmp_path / "definitions.json"
    for content in (json.dumps(bad), "{", "[" * 100_000):
        file.write_text(content)
        done = server.run("definitions", "import", str(file))
        assert (done.returncode, done.stderr.count(b"\n")) == (Exit.USAGE, 1)
    assert call(server, "GET", "/queues/{}", "never").status == 404


def test_pages_of_an_export_follow_each_other(servers: tuple[Server, Server]) -> None:
    _, beta = servers
    body = {
        **HEAD,
        "queues": [{"name": f"q{number}"} for number in range(1100)],
        "directory": [{"object": "Site", "Name": f"s{number}"} for number in range(250)],
    }
    assert ok(beta, "POST", "/definitions", body=body)["created"] == 1350
    with sync.connect(beta.endpoint) as connection:
        exported = connection.admin.definitions.export()
    names = [one["name"] for one in exported["queues"]]
    assert names == sorted(names, key=str.casefold)
    assert len(names) == len(set(names)) == 1100
    assert {one["Name"] for one in exported["directory"]} == {f"s{number}" for number in range(250)}
    assert ok(beta, "POST", "/definitions", body=exported)["unchanged"] == 1351
