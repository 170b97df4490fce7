"""`import` takes over what Export-Msmq.ps1 writes on a Windows host. The file windows/orders01.jsonl was
written by hand from the documentation of the cmdlets and of System.Messaging.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.cli.exportfile import BadFile, End, Header, Section, read_export
from msmq_fast.cli.windowsaccounts import translated
from msmq_fast.cli.windowsexport import KIND, Finding, WindowsQueue, read_windows
from msmq_fast.client.exchange import Stored
from msmq_fast.packet.message import Message
from msmq_fast.protocol.exits import Exit
from msmq_fast.security.sddl import parse_sddl
from tests.cli.operators import begin, count, kill_when, running
from tests.support.processes.servers import Server, command

FILE = Path(__file__).with_name("windows") / "orders01.jsonl"
SOURCE = UUID("3c9b2d44-2a31-4c6f-9f5e-aa0011223344")
DOMAIN = "S-1-5-21-1111111111-2222222222-3333333333"


Change = Callable[[list[dict[str, Any]]], object]


def records(data: bytes) -> list[Any]:
    return list(read_export(io.BytesIO(data), {KIND: read_windows}))


def changed(change: Change) -> bytes:
    """The file with its records changed."""
    lines = [json.loads(line) for line in FILE.read_bytes().splitlines()]
    change(lines)
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def test_the_records_of_a_file() -> None:
    found = records(FILE.read_bytes())
    header, *_, end = found
    assert isinstance(header, Header)
    assert (header.computer, header.created, len(header.export)) == ("ORDERS01", 1767312000, 16)
    messages = [Message.from_packet(record.packet) for record in found if isinstance(record, Stored)]
    assert end == End(4, 5, sum(len(record.packet) for record in found if isinstance(record, Stored)))
    first, second, booking, late, _ = messages
    assert (first.source_machine, first.message_id, first.label, first.priority) == (SOURCE, 2051, "first", 6)
    assert first.body == b'<?xml version="1.0"?>\r\n<string>hello</string>'
    assert (first.extension, first.app_specific, first.delivery) == (b"\x01\x02", 77, 1)
    assert first.correlation_id == SOURCE.bytes_le + (2050).to_bytes(4, "little")
    assert (int(first.acknowledge), int(first.journal), first.sent_time) == (5, 3, 1767300000)
    assert (str(first.response_queue), str(first.admin_queue), str(first.destination)) == (
        r"DIRECT=OS:ORDERS02\private$\answers",
        r"DIRECT=OS:ORDERS02\private$\admin",
        r"DIRECT=OS:ORDERS01\private$\orders",
    )
    assert (first.time_to_reach_queue, first.time_to_be_received) == (345600, 0xFFFFFFFF)
    assert first.security is not None
    assert (first.security.sender_id_type, len(first.security.sender_id)) == (1, 28)
    assert (second.label, second.body, second.body_type) == ("Übergröße", b"\x00\x01binary", 768)
    assert booking.transaction is not None
    assert (booking.transaction.first, booking.transaction.last) == (True, True)
    stored = [record for record in found if isinstance(record, Stored)]
    assert [record.reason for record in stored] == [0, 0, 0, 0x8002, 0]
    assert (stored[0].arrived_us, late.message_class) == (1767300001_000_000, 0)


def test_what_cannot_be_taken_over_has_one_line_each() -> None:
    lines = [str(record) for record in records(FILE.read_bytes()) if isinstance(record, Finding)]
    expected = (
        "the host: the host is in an Active Directory",
        "the host: messages over HTTP",
        "the host: triggers do not run here",
        "the host: MS-DTC transactions",
        "the host: 2 certificates of users",
        r"outgoing queue DIRECT=OS:far\private$\q: 3 messages",
        "registry value AllowNonauthenticatedRpc = 1: not taken over: set rpc.allow_unauthenticated",
        "registry value CleanupInterval = 120000: not taken over",
        r".\private$\orders: its multicast address",
        r".\private$\orders, message 3c9b2d44-2a31-4c6f-9f5e-aa0011223344\2053: left out: response_queue",
        r".\private$\orders: 1 message: was authenticated there",
        r".\private$\ledger: its access list could not be read",
        r".\private$\ledger: it accepts signed messages only",
        "trigger OnOrder: triggers do not run here",
        "rule StartImport: triggers do not run here",
        r".\private$\secret: Access to Message Queuing system is denied.",
    )
    assert len(lines) == len(expected)
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(start), line


def drop(key: str, at: int) -> Change:
    return lambda lines: lines[at].pop(key)


def put(key: str, value: Any, at: int) -> Change:
    return lambda lines: lines[at].update({key: value})


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (put("version", 2, 0), "a Windows export of version 2; this program reads version 1"),
        (put("export", "x", 0), "record 0: export is not a GUID"),
        (drop("computer", 0), "record 0: computer is missing"),
        (put("created", -1, 0), "record 0: created is not a number"),
        (put("outgoing", [1], 1), "record 1: outgoing is not an object"),
        (put("name", "orders", 2), "record 2: a queue needs a name such as"),
        (put("queue_kind", "strange", 2), "record 2: a queue needs a name"),
        (put("journal", "yes", 2), "record 2: journal has the wrong type"),
        (put("accounts", {"S-1-1-0": 5}, 2), "record 2: accounts"),
        (put("security", 5, 2), "record 2: security is not text"),
        (put("body_b64", "?", 3), "record 3: body_b64 is not base64"),
        (put("priority", 8, 3), "record 3: priority is not a number from 0 to 7"),
        (put("delivery", True, 3), "record 3: delivery is not a number"),
        (drop("message_id", 3), "record 3: message_id is missing"),
        (put("kind", "mail", 3), "record 3: unknown kind of record"),
        (lambda lines: lines.pop(), "the file was cut: it ends after 6 messages"),
        (lambda lines: lines.pop(4), "the file was changed: its counts do not match"),
        (lambda lines: lines.append({"kind": "end"}), "the file has data after the end"),
        (lambda lines: lines.insert(1, lines.pop(3)), "record 1: a message before the first queue"),
    ],
)
def test_a_wrong_file_is_told_by_its_record(
    change: Callable[[list[dict[str, Any]]], object], text: str
) -> None:
    with pytest.raises(BadFile, match="^" + text.replace("(", r"\(")):
        records(changed(change))


def test_what_the_file_says_is_printed_safely_and_briefly() -> None:
    data = changed(put("name", "\x1b[31m" + "x" * 5000, 12))
    (line,) = [str(each) for each in records(data) if isinstance(each, Finding) and "[31m" in each.subject]
    assert line.isprintable()
    assert len(line) < 400


def test_a_message_of_more_than_four_megabytes_is_left_out() -> None:
    big = base64.b64encode(bytes(5_000_000)).decode()
    lines = [str(each) for each in records(changed(put("body_b64", big, 3))) if isinstance(each, Finding)]
    assert any("left out: the message is larger" in line for line in lines)


def test_accounts_of_the_same_name_get_the_rights() -> None:
    (queue,) = [
        each for each in records(FILE.read_bytes()) if isinstance(each, WindowsQueue) and each.security
    ]
    known = {"alice": "S-1-5-21-9-9-9-1001"}
    text, findings = translated("orders", queue.security, queue.accounts, known)
    assert text == "D:" + "".join(
        f"(A;;{rights};;;{account})"
        for rights, account in (
            ("CCDCLCSWRPWPSDRCWDWO", "BA"),
            ("LCWP", "WD"),
            ("CCDCSWWP", "S-1-5-21-9-9-9-1001"),
        )
    )
    assert [str(each) for each in findings] == [
        r"orders: CONTOSO\svc-billing has no account here: its entries in the access list are left out"
    ]


@pytest.mark.parametrize("security", ["O:BA", "D:NO_ACCESS_CONTROL", "nonsense", "D:(A;;CC;;;NOBODY)"])
def test_an_access_list_that_is_none_never_opens_a_queue(security: str) -> None:
    text, (finding,) = translated("orders", security, {}, {})
    assert text == ""
    assert "the queue gets the default access list" in str(finding)


def test_an_owner_of_the_domain_is_left_out() -> None:
    text, (finding,) = translated("orders", f"O:{DOMAIN}-1104G:DUD:(A;;CC;;;WD)".replace("G:DU", ""), {}, {})
    assert parse_sddl(text).owner is None
    assert f"{DOMAIN}-1104" in str(finding)


# ---- with a server


@pytest.fixture
def server() -> Iterator[Server]:
    with running(name="ORDERS01") as server:
        words = ("user", "add", "alice", "--no-password", "--data", str(server.data))
        assert command(*words).returncode == 0
        yield server


def peeked(server: Server, queue: str) -> list[dict[str, Any]]:
    """The messages of a queue, which stay there."""
    return server.ok("peek", queue, "--count", "100")


def test_a_host_is_taken_over_once(server: Server, tmp_path: Path) -> None:
    done = server.run("import", str(FILE), "--json")
    assert done.returncode == Exit.OK, done.stderr
    summary = json.loads(done.stdout)
    assert {key: summary[key] for key in ("imported", "skipped", "queues", "created", "not_taken")} == {
        "imported": 5,
        "skipped": 0,
        "queues": 4,
        "created": 2,
        "not_taken": 17,
    }
    told = done.stderr.decode().splitlines()
    assert len(told) == 17
    assert sum("svc-billing has no account here" in line for line in told) == 1
    shown = server.ok("queue", "show", "orders")[0]
    assert (shown["label"], shown["journal"]) == ("Orders of the day", True)
    assert (shown["quota_kb"], shown["journal_quota_kb"]) == (0xFFFFFFFF, 1000)
    users = command("user", "list", "--json", "--data", str(server.data)).stdout.splitlines()
    sid = next(user["sid"] for user in map(json.loads, users) if user["name"] == "alice")
    assert sid in shown["security"]
    assert server.ok("queue", "show", "ledger")[0]["transactional"] is True
    messages = peeked(server, "orders")
    assert [message["label"] for message in messages] == ["first", "Übergröße"]
    assert messages[0]["message_id"] == f"{{{SOURCE}}}\\2051"
    assert [message["label"] for message in peeked(server, "orders;retry")] == ["again"]
    assert [message["label"] for message in peeked(server, "ledger")] == ["booking"]
    (late,) = server.ok("dlq", "list")
    assert (late["label"], late["class"]) == ("late", 0x8002)
    again = json.loads(server.run("import", str(FILE), "--json").stdout)
    assert (again["imported"], again["skipped"], again["created"]) == (0, 5, 0)
    assert len(peeked(server, "orders")) == 2


def test_a_queue_of_the_other_kind_stops_the_import_with_one_line(server: Server) -> None:
    server.ok("queue", "create", "ledger")
    done = server.run("import", str(FILE), "--json")
    assert done.returncode == Exit.REFUSED
    (line,) = [line for line in done.stderr.decode().splitlines() if "ledger: " in line and "--queue" in line]
    assert "transactional" in line
    done = server.run("import", str(FILE), "--queue", r".\private$\ledger=ledger2", "--json")
    assert done.returncode == Exit.OK, done.stderr
    assert [message["label"] for message in peeked(server, "ledger2")] == ["booking"]
    assert len(peeked(server, "orders")) == 2


def test_the_checklist_needs_no_server(tmp_path: Path) -> None:
    done = command("import", str(FILE), "--check", "--json")
    assert done.returncode == Exit.REFUSED
    assert json.loads(done.stdout) == {"queues": 4, "messages": 5, "not_taken": 18}
    told = done.stderr.decode().splitlines()
    assert len(told) == 18
    assert any(r"CONTOSO\alice: needs a user or group of this name" in line for line in told)
    plain = tmp_path / "plain.jsonl"
    lines = [json.loads(line) for line in FILE.read_bytes().splitlines()]
    kept = [lines[0], lines[8], lines[9], {"kind": "end", "queues": 1, "messages": 1}]
    plain.write_text("".join(json.dumps(line) + "\n" for line in kept))
    done = command("import", str(plain), "--check", "--json")
    assert (done.returncode, done.stderr) == (Exit.OK, b"")


def test_sections_are_the_queues() -> None:
    names = [each.name for each in records(FILE.read_bytes()) if isinstance(each, Section)]
    assert names == [
        r".\private$\orders",
        r".\private$\ledger",
        r".\system$;deadletter",
        r".\private$\orders;retry",
    ]


def test_an_interrupted_import_continues(server: Server, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in FILE.read_bytes().splitlines()]
    template = lines[4]
    many = [
        template | {"message_id": f"{SOURCE}\\{number}", "label": str(number)} for number in range(1, 3001)
    ]
    file = tmp_path / "many.jsonl"
    written = [lines[0], lines[2], *many, {"kind": "end", "queues": 1, "messages": len(many)}]
    file.write_text("".join(json.dumps(line) + "\n" for line in written))
    kill_when(begin(server, "import", str(file)), lambda: count(server, "orders") >= 500)
    first = count(server, "orders")
    assert 500 <= first < 3000
    server.ok("receive", "orders", "--count", "100")
    summary = json.loads(server.run("import", str(file), "--json").stdout)
    assert summary["earlier"] >= 500
    assert summary["imported"] + summary["earlier"] == 3000
    assert count(server, "orders") == 2900
