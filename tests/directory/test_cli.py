"""The verbs `directory` and `queue import` against server processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes.definitions import JSON, ORDERS, PUBLIC, exported
from tests.support.processes.pair import free_port
from tests.support.processes.servers import Server, data_directory, until


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data, "--name", "ALPHA").start()
        try:
            yield running
        finally:
            running.kill()


def failed(server: Server, *arguments: str, code: Exit) -> str:
    done = server.run(*arguments)
    assert done.returncode == code, done
    lines = done.stderr.decode().splitlines()
    assert lines
    return lines[-1]


@pytest.mark.rule("DS-01")
def test_an_object_from_create_to_delete(server: Server) -> None:
    server.ok(
        "directory", "create", "site", "name=north", "IntraSiteReplicationInterval=5", "ForeignSite=false"
    )
    (shown,) = server.ok("directory", "show", "Site", "NORTH")
    assert (shown["object"], shown["Name"], shown["IntraSiteReplicationInterval"]) == ("Site", "north", 5)
    (changed,) = server.ok("directory", "set", "Site", "north", "ForeignSite=true")
    assert changed == shown | {"ForeignSite": True}
    assert server.ok("directory", "show", "Site", shown["Identifier"]) == [changed]
    assert server.ok("directory", "list", "Site") == [changed]
    server.ok("directory", "delete", "Site", "north")
    assert server.ok("directory", "list", "Site") == []


def test_list_shows_the_queue_manager_itself(server: Server) -> None:
    text = server.run("directory", "list").stdout.decode().splitlines()
    assert text[0].split() == ["OBJECT", "NAME", "Identifier".upper()]
    own = [line.split() for line in text if line.startswith("QueueManager")]
    assert own == [["QueueManager", "ALPHA", server.ready["guid"]]]


def test_a_public_queue_is_an_object(server: Server) -> None:
    server.ok("queue", "create", r".\prices", "--label", "new", "--quota", "9")
    (item,) = server.ok("directory", "show", "Queue", r"alpha\PRICES")
    assert (item["Label"], item["Quota"]) == ("new", 9)
    assert server.ok("directory", "show", "Queue", r".\prices") == [item]
    server.ok("directory", "set", "Queue", r"ALPHA\prices", "Quota=11", "Label=a = b")
    (shown,) = server.ok("queue", "show", r".\prices")
    assert (shown["quota_kb"], shown["label"], shown["guid"]) == (11, "a = b", item["Identifier"])
    server.ok("send", f"PUBLIC={item['Identifier']}", "--body", "hello")
    assert [message["body_size"] for message in server.messages(r".\prices")] == [5]
    server.ok("directory", "delete", "Queue", item["Identifier"])
    assert failed(server, "queue", "show", r".\prices", code=Exit.NOT_FOUND)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("show", "Site", "none"), Exit.REFUSED, "no Site"),
        (("show", "Queue", r"ALPHA\none"), Exit.NOT_FOUND, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (("show", "Planet", "x"), Exit.USAGE, "'Planet' is not one of QueueManager, Queue"),
        (("create", "Site", "Name"), Exit.USAGE, "a Site has the attributes Identifier, Name"),
        (("create", "Site", "Label=x"), Exit.USAGE, "a Site has the attributes"),
        (("create", "RoutingLink", "ActualCost=0"), Exit.USAGE, "ActualCost: expected a whole number from 1"),
        (
            ("create", "Site", "ForeignSite=true"),
            Exit.REFUSED,
            "Name: required for a Site without an Identifier",
        ),
        (("create", "QueueManager", "ComputerName=alpha"), Exit.REFUSED, "MQ_ERROR_MACHINE_EXISTS"),
        (("set", "QueueManager", "ALPHA", "ComputerName=x"), Exit.USAGE, "ComputerName of a QueueManager"),
        (("delete", "QueueManager", "ALPHA"), Exit.REFUSED, "the object is the running queue manager itself"),
        (("import", "/nonexistent.json"), Exit.USAGE, "No such file"),
    ],
)
def test_mistakes_in_one_line(server: Server, arguments: tuple[str, ...], code: Exit, text: str) -> None:
    assert text in failed(server, "directory", *arguments, code=code)


def test_export_and_import(server: Server, tmp_path: Path) -> None:
    server.ok("directory", "create", "Site", "Name=south")
    server.ok("directory", "create", "User", "SecurityIdentifier=S-1-5-21-1-2-3-4")
    server.ok("directory", "create", "QueueManager", "ComputerName=GAMMA", "SiteIdentifierList=")
    server.ok("directory", "create", "Queue", r"Pathname=GAMMA\q", "BasePriority=-3")
    file = tmp_path / "directory.json"
    (done,) = server.ok("directory", "export", str(file), "--type", "Site", "--type", "Queue")
    assert done == {"exported": str(file), "objects": 2}
    document = json.loads(file.read_text())
    assert [entry["object"] for entry in document["objects"]] == ["Site", "Queue"]
    whole = json.loads(server.run("directory", "export").stdout)
    assert len(whole["objects"]) >= 5
    server.ok("directory", "delete", "Site", "south")
    document["objects"][1]["BasePriority"] = 5
    file.write_text(json.dumps(document))
    for flags, outcomes in (
        (("--dry-run",), ["created", "changed"]),
        ((), ["created", "changed"]),
        ((), ["unchanged", "unchanged"]),
    ):
        rows = server.ok("directory", "import", str(file), *flags)
        assert [row["outcome"] for row in rows] == outcomes
    assert server.ok("directory", "show", "Queue", r"GAMMA\q")[0]["BasePriority"] == 5
    rows = server.ok("directory", "import", str(file), "--type", "User")
    assert rows == []


def test_an_import_with_mistakes_changes_nothing(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "directory.json"
    entries = [{"object": "Site", "Name": "east"}, {"object": "Site", "Nmae": "x"}, {"object": "Sight"}]
    file.write_text(json.dumps({"msmq_fast_directory": 1, "objects": entries}))
    done = server.run("directory", "import", str(file))
    lines = done.stderr.decode().splitlines()
    assert done.returncode == Exit.USAGE
    assert [line.split(": ")[1] for line in lines[:2]] == ["objects[1]", "objects[2]"]
    assert lines[2].endswith(f"2 mistakes in {file}: nothing was changed")
    assert failed(server, "directory", "show", "Site", "east", code=Exit.REFUSED)


def test_more_objects_than_one_reply_holds(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "many.json"
    entries = [{"object": "ConnectedNetwork", "Name": f"n{number}"} for number in range(2100)]
    file.write_text(json.dumps({"msmq_fast_directory": 1, "objects": entries}))
    assert len(server.ok("directory", "import", str(file))) == 2100
    listed = server.ok("directory", "list", "ConnectedNetwork")
    assert {item["Name"] for item in listed} == {entry["Name"] for entry in entries}


# ---- queue definitions


def test_the_queues_of_a_windows_host(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "queues.csv"
    journal = ORDERS | {"QueueName": "", "Path": r"FACTORY\private$\orders;journal"}
    file.write_bytes(exported(ORDERS, journal, PUBLIC).encode("utf-16"))
    rows = server.ok("queue", "import", str(file), "--dry-run")
    assert [row["outcome"] for row in rows] == ["created", "skipped", "created"]
    assert failed(server, "queue", "show", "orders", code=Exit.NOT_FOUND)
    assert server.ok("queue", "import", str(file)) == rows
    (orders,) = server.ok("queue", "show", "orders")
    assert (orders["transactional"], orders["journal"], orders["quota_kb"]) == (True, True, 2048)
    assert orders["label"] == ORDERS["Label"]
    (prices,) = server.ok("queue", "show", r".\Prices")
    assert (prices["privacy_level"], prices["base_priority"], prices["multicast_address"]) == (
        2,
        -7,
        "234.1.1.1:8001",
    )
    assert prices["type"] == PUBLIC["Category"].lower()
    again = server.ok("queue", "import", str(file))
    assert [row["outcome"] for row in again] == ["unchanged", "skipped", "unchanged"]
    changed = json.dumps([JSON | {"MaximumQueueSize": 4096, "Label": "x"}, {"QueueName": "Prices"}])
    rows = [
        json.loads(line)
        for line in server.run("queue", "import", "-", "--json", stdin=changed.encode()).stdout.splitlines()
    ]
    assert [(row["outcome"], row["detail"]) for row in rows] == [
        ("changed", "Label, MaximumQueueSize"),
        ("unchanged", ""),
    ]
    assert server.ok("queue", "show", "orders")[0]["quota_kb"] == 4096


def test_what_the_server_refuses_is_told_row_by_row(server: Server) -> None:
    server.ok("queue", "create", "plain")
    rows = [{"QueueName": r"private$\plain", "Transactional": True}, {"QueueName": r"private$\other"}]
    done = server.run("queue", "import", "-", "--json", stdin=json.dumps(rows).encode())
    assert done.returncode == Exit.REFUSED
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["outcome"] for line in lines] == ["failed", "created"]
    assert (
        lines[0]["detail"] == "column Transactional: the queue is not transactional, which cannot be changed"
    )


def test_mistakes_in_a_definitions_file_change_nothing(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "queues.csv"
    good, bad = (ORDERS | {"QueueName": rf"private$\{name}"} for name in ("good", "bad"))
    file.write_text(exported(good, bad | {"MaximumQueueSize": "much"}))
    done = server.run("queue", "import", str(file))
    assert done.returncode == Exit.USAGE
    assert done.stderr.decode().splitlines() == [
        f"{file}: row 2 (line 4), column MaximumQueueSize: expected a whole number, got 'much'",
        f"msmq-fast queue import: 1 mistake in {file}: nothing was changed",
    ]
    assert failed(server, "queue", "show", "good", code=Exit.NOT_FOUND)


# ---- two servers


@pytest.mark.rule("DM-078", "DM-080")
def test_a_message_to_a_public_queue_of_another_computer(tmp_path: Path) -> None:
    port = str(free_port())
    environment = {"MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.3"}
    with data_directory() as first, data_directory() as second:
        a = Server(first, "--port", port, "--name", "ALPHA", host="127.0.0.2", environment=environment)
        b = Server(second, "--port", port, "--name", "BETA", host="127.0.0.3", environment=environment)
        try:
            a.start()
            b.start()
            (queue,) = b.ok("queue", "create", r".\orders")
            name = f"PUBLIC={queue['guid']}"
            file = tmp_path / "beta.json"
            b.ok("directory", "export", str(file), "--type", "Queue")
            assert failed(a, "send", name, "--body", "x", code=Exit.REFUSED)
            a.ok("directory", "import", str(file))
            # Nobody can resolve the name BETA: the message waits until the directory says more.
            a.ok("send", name, "--body", "hello", "--recoverable")
            assert b.messages(r".\orders") == []
            guid = f"Identifier={b.ready['guid']}"
            host = "QualifiedComputerName=127.0.0.3"
            a.ok("directory", "create", "QueueManager", "ComputerName=BETA", guid, host)
            a.kill()
            a.start()
            received = until(lambda: b.messages(r".\orders"), 10, "the message")
            assert received[0]["body_b64"] == "aGVsbG8="
            assert received[0]["source_machine"] == a.ready["guid"]
            number = int(b.ok("queue", "create", "private")[0]["format_name"].split("\\")[1], 16)
            a.ok("send", f"PRIVATE={b.ready['guid']}\\{number:x}", "--body", "direct")
            assert until(lambda: b.messages("private"), 10, "the second message")
        finally:
            a.kill()
            b.kill()


def test_a_workgroup_server_refuses_public_queues() -> None:
    environment = {"MSMQ_FAST_DIRECTORY__MODE": "workgroup"}
    with data_directory() as data:
        server = Server(data, environment=environment).start()
        try:
            assert "MQ_ERROR_UNSUPPORTED_OPERATION" in failed(
                server, "queue", "create", r".\orders", code=Exit.REFUSED
            )
            server.ok("queue", "create", "orders")
        finally:
            server.kill()
