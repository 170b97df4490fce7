"""The client verbs against a server process: exact JSON, exit codes, one line for each mistake."""

from __future__ import annotations

import base64
import json
import shutil
import time
from pathlib import Path

import pytest

from msmq_fast import Access, errors, sync
from msmq_fast.protocol.exits import Exit
from tests.support.processes.contract import JSON_KEYS
from tests.support.processes.servers import Server, command, data_directory


@pytest.fixture
def queue(server: Server, request: pytest.FixtureRequest) -> str:
    name = f"q{abs(hash(request.node.name)) % 10**9}"
    server.ok("queue", "create", name)
    return name


def refused(server: Server, code: Exit, *arguments: str, stdin: bytes | None = None) -> str:
    """The one line of complaint of a verb that must fail with `code`."""
    done = server.run(*arguments, stdin=stdin)
    shown = done.stderr.decode()
    assert done.returncode == code, (arguments, done)
    assert shown.count("\n") == 1, shown
    assert "Traceback" not in shown
    return shown


def test_all_properties_of_a_message_come_back(server: Server, queue: str) -> None:
    correlation = "ab" * 20
    before = int(time.time())
    properties = {
        "--body": "bödy",
        "--label": "läbel",
        "--priority": "6",
        "--admin-queue": r"DIRECT=OS:beta\private$\admin",
        "--ack": "reach,nack-receive",
        "--response-queue": r"DIRECT=TCP:10.0.0.7\private$\answers",
        "--correlation-id": correlation,
        "--app-specific": "77",
        "--body-type": "30",
        "--extension": "0102ff",
        "--ttrq": "1000",
        "--ttbr": "2000",
    }
    words = [word for pair in properties.items() for word in pair]
    (sent,) = server.ok("send", rf".\private$\{queue}", "--recoverable", "--journal", "--deadletter", *words)
    (message,) = server.ok("receive", queue)
    assert set(message) == set(JSON_KEYS)
    assert base64.b64decode(message["body_b64"]) == "bödy".encode()
    assert base64.b64decode(message["extension_b64"]) == b"\x01\x02\xff"
    assert before <= message["sent_time"] <= message["arrived_time"] <= time.time() + 1
    assert message["response_queue"].upper() == r"DIRECT=TCP:10.0.0.7\PRIVATE$\ANSWERS"
    assert message["admin_queue"].upper() == r"DIRECT=OS:BETA\PRIVATE$\ADMIN"
    expected = {
        "message_id": sent["message_id"],
        "label": "läbel",
        "body_size": 5,
        "body_type": 30,
        "priority": 6,
        "class": 0,
        "correlation_id": correlation,
        "app_specific": 77,
        "delivery": "recoverable",
        "transactional": False,
        "source_machine": server.ready["guid"],
        "authenticated": False,
        "acknowledge": 9,
        "journal": 3,
        "abort_count": 0,
        "move_count": 0,
    }
    assert {key: message[key] for key in expected} == expected


def test_higher_priorities_come_first_and_equals_in_order(server: Server, queue: str) -> None:
    for body, priority in (("a", "1"), ("b", "7"), ("c", "3"), ("d", "7")):
        server.ok("send", queue, "--body", body, "--priority", priority)
    bodies = [base64.b64decode(message["body_b64"]).decode() for message in server.messages(queue)]
    assert bodies == ["b", "d", "c", "a"]


def test_peek_leaves_the_message_and_lookup_walks(server: Server, queue: str) -> None:
    for body in "abc":
        server.ok("send", queue, "--body", body)
    seen = server.ok("receive", queue, "--peek", "--count", "3")
    assert [message["body_b64"] for message in seen] == ["YQ==", "Yg==", "Yw=="]
    first, middle, last = (str(message["lookup_id"]) for message in seen)
    assert server.ok("receive", queue, "--peek", "--lookup-id", middle, "--next")[0]["lookup_id"] == int(last)
    assert server.ok("receive", queue, "--peek", "--lookup-id", middle, "--prev")[0]["lookup_id"] == int(
        first
    )
    assert server.ok("receive", queue, "--lookup-id", middle)[0]["body_b64"] == "Yg=="
    assert "no message with this lookup id" in refused(
        server, Exit.NOT_FOUND, "receive", queue, "--lookup-id", middle
    )
    assert len(server.messages(queue)) == 2


def test_an_empty_queue_is_told_by_the_exit_code_and_a_wait_ends_with_a_message(
    server: Server, queue: str
) -> None:
    started = time.monotonic()
    done = server.run("receive", queue, "--timeout", "0.3")
    assert (done.returncode, done.stdout, done.stderr) == (Exit.EMPTY, b"", b"")
    assert time.monotonic() - started > 0.3


def test_bodies_come_from_files_and_stdin(server: Server, queue: str, tmp_path: Path) -> None:
    body = bytes(range(256)) * 100
    (tmp_path / "body").write_bytes(body)
    server.ok("send", queue, "--file", str(tmp_path / "body"))
    server.ok("send", queue, "-", stdin=body)
    assert [base64.b64decode(message["body_b64"]) for message in server.messages(queue)] == [body, body]


def test_many_messages(server: Server, queue: str) -> None:
    sent = server.ok("send", queue, "--body", "x" * 1024, "--count", "5000", "--recoverable")[0]
    assert sent["count"] == 5000
    received = server.messages(queue)
    assert len(received) == 5000
    assert len({message["message_id"] for message in received}) == 5000
    sequence = [message["arrival_seq"] for message in received]
    assert sequence == sorted(sequence)


def test_the_life_of_a_queue(server: Server) -> None:
    created = server.ok("queue", "create", "life", "--label", "one", "--quota", "100", "--journal")[0]
    assert created["name"].lower() == r"alpha\private$\life"
    assert (created["label"], created["quota_kb"], created["journal"]) == ("one", 100, True)
    changed = server.ok("queue", "set", "LIFE", "--label", "two", "--no-journal")[0]
    assert (changed["label"], changed["quota_kb"], changed["journal"]) == ("two", 100, False)
    server.ok("send", "life", "--body", "x", "--count", "3")
    assert server.ok("queue", "show", "life")[0]["messages"] == 3
    assert server.ok("queue", "purge", "life") == [{"purged": 3, "name": "life"}]
    assert created["name"] in [queue["name"] for queue in server.ok("queue", "list")]
    server.ok("queue", "delete", "life")
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in refused(server, Exit.NOT_FOUND, "queue", "show", "life")
    assert "nothing to set" in refused(server, Exit.USAGE, "queue", "set", "life")


def test_a_message_past_its_time_is_gone(server: Server, queue: str) -> None:
    server.ok("send", queue, "--body", "x", "--ttbr", "1")
    time.sleep(2.2)
    assert server.messages(queue) == []


def test_a_full_queue_refuses(server: Server, queue: str) -> None:
    server.ok("queue", "set", queue, "--quota", "1")
    shown = refused(server, Exit.REFUSED, "send", queue, "--body", "x" * 5000)
    assert "MQ_ERROR_INSUFFICIENT_RESOURCES" in shown or "QUOTA" in shown


@pytest.mark.parametrize("verb", ["send", "receive"])
def test_an_unknown_queue(server: Server, verb: str) -> None:
    assert "MQ_ERROR_QUEUE_NOT_FOUND" in refused(server, Exit.NOT_FOUND, verb, "nowhere")


def test_names_that_are_none(server: Server) -> None:
    assert "ILLEGAL_QUEUE_PATHNAME" in refused(server, Exit.REFUSED, "queue", "create", "a+b")
    assert "ILLEGAL_FORMATNAME" in refused(
        server, Exit.REFUSED, "send", "DIRECT=TCP:nowhere\\q", "--body", "x"
    )
    server.ok("queue", "create", "twice")
    assert "MQ_ERROR_QUEUE_EXISTS" in refused(server, Exit.REFUSED, "queue", "create", "TWICE")


def test_bodies_that_are_too_large(server: Server, queue: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(4 * 1024 * 1024 + 1))
    assert "larger than" in refused(server, Exit.REFUSED, "send", queue, "--file", str(tmp_path / "large"))
    assert "larger than" in refused(
        server, Exit.REFUSED, "send", queue, "-", stdin=bytes(4 * 1024 * 1024 + 1)
    )
    refused(server, Exit.REFUSED, "send", queue, "-", stdin=bytes(4 * 1024 * 1024))
    assert "No such file" in refused(server, Exit.FAILURE, "send", queue, "--file", str(tmp_path / "missing"))
    assert server.messages(queue) == []


def test_transactions(server: Server) -> None:
    server.ok("queue", "create", "ledger", "--transactional")
    assert "transactional" in refused(server, Exit.REFUSED, "send", "ledger", "--body", "x")
    server.ok("send", "ledger", "--body", "one", "--xact")
    server.ok("send", "ledger", "--body", "more", "--xact", "--count", "300")
    (first,) = server.ok("receive", "ledger", "--xact")
    assert (base64.b64decode(first["body_b64"]), first["transactional"], first["priority"]) == (
        b"one",
        True,
        0,
    )
    shown = server.ok("receive", "ledger", "--xact", "--count", "299")
    assert len(shown) == 299
    assert len(server.messages("ledger")) == 1
    assert "--peek" in refused(server, Exit.USAGE, "receive", "ledger", "--xact", "--peek")
    server.ok("send", "ledger", "--body", "bad", "--xact", "--deadletter")
    server.ok("receive", "ledger", "--reject")
    (dead,) = server.ok("receive", r".\system$;deadxact")
    assert (base64.b64decode(dead["body_b64"]), dead["class"]) == (b"bad", 0xC004)
    assert server.ok("transaction", "list") == []
    refused(server, Exit.REFUSED, "transaction", "abort", "00000000-0000-0000-0000-000000000000")
    server.ok("queue", "create", "plain")
    assert "transactional" in refused(server, Exit.REFUSED, "send", "plain", "--body", "x", "--xact")


def test_an_operator_ends_the_transaction_of_a_program(server: Server) -> None:
    server.ok("queue", "create", "held", "--transactional")
    for flags in ([], ["--json"]):
        with sync.connect(server.endpoint) as connection:
            transaction = connection.transaction().__enter__()
            with connection.open("held", Access.SEND) as queue:
                queue.send(b"never", transaction=transaction)
            done = server.run("transaction", "abort", transaction.identifier, *flags)
            with pytest.raises(errors.MSMQError):
                transaction.commit()
        assert done.returncode == Exit.OK
        shown = done.stdout.decode()
        if flags:
            assert json.loads(shown) == {"identifier": transaction.identifier, "state": "aborted"}
        else:
            assert [line.split()[1] for line in shown.splitlines()] == [transaction.identifier, "aborted"]
    assert server.messages("held") == []


def test_next_hops_are_a_list(server: Server) -> None:
    """One shape in the application protocol, the command line and the admin API."""
    server.ok("send", r"DIRECT=TCP:127.0.56.12\private$\far", "--body", "x")
    queues = server.ok("outgoing", "list")
    assert queues
    assert all(isinstance(queue["next_hops"], list) for queue in queues)


def test_no_server_behind_the_endpoint(tmp_path: Path) -> None:
    done = command("stats", "--endpoint", f"unix:{tmp_path}/none.sock")
    assert done.returncode == Exit.UNREACHABLE
    assert done.stderr.count(b"\n") == 1
    done = command("stats", "--endpoint", "ftp://x")
    assert done.returncode == Exit.USAGE


def test_tables_for_people_keep_control_characters_out(server: Server) -> None:
    server.ok("queue", "create", "table", "--label", "red\x1b[31m")
    shown = server.run("queue", "list").stdout.decode()
    columns = ["NAME", "MESSAGES", "BYTES", "TRANSACTIONAL", "JOURNAL", "QUOTA", "LABEL"]
    assert shown.splitlines()[0].split() == columns
    assert "\x1b" not in shown
    shown = server.run("stats").stdout.decode()
    assert f"guid: {server.ready['guid']}" in " ".join(shown.split())


def test_a_reader_that_goes_away_is_no_error(server: Server, queue: str) -> None:
    server.ok("send", queue, "--body", "x", "--count", "10")
    done = server.run("receive", queue, "--peek", "--count", "10", "--json")
    assert len(done.stdout.splitlines()) == 10


def test_backup_of_a_running_server_restore_and_compact(server: Server, tmp_path: Path) -> None:
    server.ok("queue", "create", "backed")
    server.ok("send", "backed", "--body", "kept", "--recoverable", "--count", "10")
    target, copy = tmp_path / "backup", tmp_path / "data"
    done = command("backup", str(target), "--data", str(server.data), "--json")
    assert done.returncode == Exit.OK, done
    assert json.loads(done.stdout)["backup"] == str(target)
    server.ok("send", "backed", "--body", "later", "--recoverable")
    assert command("restore", str(target), "--data", str(copy)).returncode == Exit.OK
    with data_directory() as data:
        copy.rename(data)
        shutil.copy2(server.data / "secrets.key", data)  # kept apart from the backup
        restored = Server(data, "--name", "ALPHA").start()
        try:
            assert len(restored.messages("backed")) == 10
            assert restored.ready["guid"] == server.ready["guid"]
            assert restored.ok("stats")[0]["incarnation"] > server.ok("stats")[0]["incarnation"]
            held = command("compact", "--data", str(data))
            assert held.returncode == Exit.IN_USE
            assert held.stderr.count(b"\n") == 1
            assert restored.stop() == 0
        finally:
            restored.kill()
        compacted = command("compact", "--data", str(data), "--json")
        assert compacted.returncode == Exit.OK
        figures = json.loads(compacted.stdout)
        assert figures["after"] <= figures["before"]
    assert command("restore", str(tmp_path / "none"), "--data", str(copy)).returncode == Exit.FAILURE
    assert command("backup", str(target), "--data", str(tmp_path / "none")).returncode == Exit.NOT_FOUND
