"""`queue move`, `queue copy` and `dlq` as processes: nothing lost, nothing twice, whatever is killed."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.cli.exportfile import read_export
from msmq_fast.client.connection import connect
from msmq_fast.client.exchange import Stored
from msmq_fast.packet.message import Message
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.frames import Access
from tests.cli.operators import (
    Watch,
    begin,
    count,
    fill,
    kill,
    numbers,
    on_terminal,
    running,
    transactional_packets,
    write_file,
)
from tests.support.processes.servers import Server, until

DEAD = r".\system$;deadletter"
HEAD = ["LOOKUP_ID", "REASON", "DESTINATION_QUEUE", "LABEL", "ARRIVED_TIME", "BYTES", "QUEUE"]
XACT = r".\system$;deadxact"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as running_server:
        yield running_server


def summary(server: Server, *arguments: str) -> dict[str, Any]:
    (line,) = server.ok(*arguments)
    return dict(line)


def test_a_move_takes_everything_with_its_identifiers(server: Server) -> None:
    fill(server, "from", 3000)
    server.ok("queue", "create", "to")
    before = server.ok("receive", "from", "--peek", "--count", "50")
    done = summary(server, "queue", "move", "from", "to")
    assert (done["moved"], done["refused"]) == (3000, 0)
    assert count(server, "from") == 0
    assert numbers(server, "to") == Counter(range(3000))
    after = server.ok("receive", "to", "--peek", "--count", "50")
    for name in ("message_id", "arrived_time", "sent_time", "label", "priority", "body_b64"):
        assert [message[name] for message in after] == [message[name] for message in before]
    assert {message["move_count"] for message in after} == {1}
    assert summary(server, "queue", "move", "from", "to")["moved"] == 0


def test_a_copy_leaves_everything(server: Server) -> None:
    fill(server, "original", 1500)
    server.ok("queue", "create", "duplicate")
    assert summary(server, "queue", "copy", "original", "duplicate")["copied"] == 1500
    assert numbers(server, "original") == numbers(server, "duplicate") == Counter(range(1500))
    # Finished work that is asked for again is new work.
    assert summary(server, "queue", "copy", "original", "duplicate")["copied"] == 1500


def test_a_copy_whose_end_nobody_heard_of_is_not_repeated(server: Server) -> None:
    fill(server, "unheard", 1500)
    server.ok("queue", "create", "heard")
    job = b"unheard of ends."

    async def attempt() -> int:
        async with await connect(server.endpoint) as connection:
            source = await connection.open("unheard", Access.PEEK)
            target = await connection.open("heard", Access.SEND)
            done = await connection.admin.messages.copy(source, target, job=job)
            copied = done.count
            while not done.finished:
                done = await connection.admin.messages.copy(
                    source, target, after=done.next, upto=done.upto, job=job
                )
                copied += done.count
        return copied

    async def heard() -> None:
        async with await connect(server.endpoint) as connection:
            await connection.admin.messages.end_job(job)

    assert [asyncio.run(attempt()), asyncio.run(attempt())] == [1500, 0]
    asyncio.run(heard())
    assert asyncio.run(attempt()) == 1500


def test_only_what_the_filter_means(server: Server) -> None:
    fill(server, "mixed", 100)
    server.ok("queue", "create", "some")
    assert summary(server, "queue", "copy", "mixed", "some", "--label", "label [12]")["copied"] == 20
    assert numbers(server, "some") == Counter(n for n in range(100) if n % 10 in (1, 2))
    assert summary(server, "queue", "copy", "mixed", "some", "--label", "LABEL*")["copied"] == 0
    assert summary(server, "queue", "move", "mixed", "some", "--class", "NACK_Q_PURGED")["moved"] == 0
    done = summary(server, "queue", "move", "mixed", "some", "--class", "normal", "--limit", "7")
    assert done["moved"] == 7
    assert count(server, "mixed") == 93
    # In the order of arrival, whatever the priority.
    assert numbers(server, "mixed") == Counter(range(7, 100))
    assert summary(server, "queue", "move", "mixed", "some", "--older", "3600")["moved"] == 0
    time.sleep(1.1)
    fill(server, "mixed", 5, start=500)
    assert summary(server, "queue", "move", "mixed", "some", "--older-than", "1s")["moved"] == 93
    assert numbers(server, "mixed") == Counter(range(500, 505))
    assert summary(server, "queue", "move", "mixed", "some", "--until", "2026-01-31")["moved"] == 0
    assert summary(server, "queue", "copy", "mixed", "some", "--since", "2026-01-31")["copied"] == 5
    both = ("--since", "2026-01-31", "--older-than", "1h")
    assert summary(server, "queue", "move", "mixed", "some", *both)["moved"] == 0
    assert summary(server, "queue", "move", "mixed", "some", "--newer-than", "1m")["moved"] == 5


def test_express_messages_move_too(server: Server) -> None:
    server.ok("queue", "create", "light")
    server.ok("queue", "create", "lighter")
    server.ok("send", "light", "--body", "x", "--count", "300")
    assert summary(server, "queue", "copy", "light", "lighter")["copied"] == 300
    assert summary(server, "queue", "move", "light", "lighter")["moved"] == 300
    assert (count(server, "light"), count(server, "lighter")) == (0, 600)


def test_what_the_target_refuses_stays(server: Server) -> None:
    fill(server, "much", 2000)
    server.ok("queue", "create", "little", "--quota", "100")
    done = server.run("queue", "move", "much", "little")
    assert done.returncode == Exit.REFUSED
    assert b"quota" in done.stderr
    assert 0 < count(server, "little") < 2000
    assert numbers(server, "much", "little") == Counter(range(2000))
    server.ok("queue", "create", "strict", "--transactional")
    done = server.run("queue", "move", "much", "strict")
    assert done.returncode == Exit.REFUSED
    assert b"transactional" in done.stderr
    assert count(server, "strict") == 0


def test_mistakes(server: Server) -> None:
    server.ok("queue", "create", "here")
    for words, code in (
        (("move", "here", "nowhere"), Exit.NOT_FOUND),
        (("move", "here", "here"), Exit.REFUSED),
        (("copy", "here", r"DIRECT=OS:elsewhere\private$\q"), Exit.REFUSED),
        (("move", "here", DEAD), Exit.REFUSED),
        (("move", "here", "there", "--class", "NOTHING"), Exit.USAGE),
        (("move", "here", "there", "--older", "-1"), Exit.USAGE),
    ):
        done = server.run("queue", *words)
        assert done.returncode == code, (words, done)
        assert done.stderr.count(b"\n") == 1, done.stderr


def test_progress_on_a_terminal(server: Server) -> None:
    fill(server, "seen", 3000)
    server.ok("queue", "create", "unseen")
    code, shown = on_terminal(server, "queue", "move", "seen", "unseen")
    assert code == Exit.OK
    assert "3000/3000" in shown


# ------------------------------------------------------------------------------------------ interruption


def interrupted(action: str, total: int, *, kill_server: bool, rounds: int = 1) -> int:
    """Move or copy while something is killed again and again; how often it was in the middle."""
    interruptions = 0
    everything = Counter(range(total))
    with running() as server:
        fill(server, "source", total, size=500)
        server.ok("queue", "create", "target")
        for number in range(rounds):
            reached = total * (number + 1) // (rounds + 2)
            with Watch(server) as watch:
                process = begin(server, "queue", action, "source", "target")
                interruptions += kill(process, watch, "target", reached, server if kill_server else None)
            there = numbers(server, "target")
            assert set(there.values()) <= {1}
            if action == "move":
                assert there + numbers(server, "source") == everything
        server.ok("queue", action, "source", "target")
        assert numbers(server, "target") == everything
        assert count(server, "source") == (0 if action == "move" else total)
    return interruptions


@pytest.mark.parametrize(("action", "kill_server"), [("move", True), ("copy", False)])
def test_a_kill_in_the_middle_loses_and_doubles_nothing(action: str, kill_server: bool) -> None:
    assert interrupted(action, 40_000, kill_server=kill_server) == 1


@pytest.mark.long(seconds=120)
@pytest.mark.parametrize("action", ["move", "copy"])
@pytest.mark.parametrize("kill_server", [False, True])
def test_kills_again_and_again(action: str, kill_server: bool) -> None:
    assert interrupted(action, 100_000, kill_server=kill_server, rounds=8) >= 4


def test_a_move_beside_readers_and_senders_ends_and_loses_nothing(server: Server) -> None:
    fill(server, "lively", 6000)
    server.ok("queue", "create", "calm")
    reader = begin(server, "receive", "lively", "--count", "1000", "--json")
    done = summary(server, "queue", "move", "lively", "calm")
    output, _ = reader.communicate(timeout=30)
    read = [json.loads(line)["message_id"] for line in output.splitlines()]
    assert len(set(read)) == len(read)
    assert done["moved"] + len(read) + count(server, "lively") == 6000


# ------------------------------------------------------------------------------------------ dead letters


def bury(server: Server, tmp_path: Path, queue: str) -> None:
    """What is in a queue becomes dead letters."""
    file = str(tmp_path / f"{queue}.dead")
    server.ok("export", queue, "--output", file)
    server.ok("import", file, "--queue", DEAD)
    server.ok("queue", "purge", queue)


def test_dead_letters_are_listed_and_sent_again(server: Server, tmp_path: Path) -> None:
    for queue in ("alive", "gone"):
        server.ok("queue", "create", queue)
        server.ok("send", queue, "--body", f"{queue} express", "--label", f"{queue} 1")
        server.ok("send", queue, "--body", f"{queue} kept", "--label", f"{queue} 2", "--recoverable")
    sent = {message["message_id"] for message in server.ok("receive", "alive", "--peek", "--count", "2")}
    bury(server, tmp_path, "alive")
    bury(server, tmp_path, "gone")
    server.ok("queue", "delete", "gone")
    rows = server.ok("dlq", "list")
    assert len(rows) == 4
    assert {row["message_id"] for row in rows} >= sent
    assert {row["reason"] for row in rows} == {"NORMAL"}
    assert all(row["queue"] == DEAD and "private$" in row["destination_queue"].lower() for row in rows)
    assert len(server.ok("dlq", "list", "--label", "gone*")) == 2
    assert len(server.ok("dlq", "list", "--limit", "1")) == 1
    table = server.run("dlq", "list").stdout.decode().splitlines()
    assert table[0].split() == HEAD
    assert len(table) == 5
    assert all(line.endswith(DEAD) for line in table[1:])
    assert server.run("dlq", "list", "--label", "none").stdout.decode().splitlines() == ["  ".join(HEAD)]
    done = server.run("dlq", "resubmit", "--queue", DEAD, "--label", "alive 2", "--json")
    assert json.loads(done.stdout)["resubmitted"] == 1
    done = server.run("dlq", "resubmit", "--queue", DEAD, "--json")
    assert done.returncode == Exit.REFUSED
    assert (json.loads(done.stdout)["resubmitted"], json.loads(done.stdout)["refused"]) == (1, 2)
    assert b"2 stay: MQ_ERROR_QUEUE_NOT_FOUND" in done.stderr
    back = server.ok("receive", "alive", "--count", "2")
    assert {message["label"] for message in back} == {"alive 1", "alive 2"}
    # A receiver may know the old identifiers.
    assert not {message["message_id"] for message in back} & sent
    server.ok("queue", "create", "gone")
    assert summary(server, "dlq", "resubmit", "--queue", DEAD)["resubmitted"] == 2
    assert count(server, DEAD) == 0
    assert count(server, "gone") == 2


def test_transactional_dead_letters_are_sent_again_as_transactions_of_one(
    server: Server, tmp_path: Path
) -> None:
    name = r"DIRECT=OS:ALPHA\private$\ledger"
    write_file(tmp_path / "file", "ledger", transactional_packets(name, 4), reason=0xC001)
    assert summary(server, "import", str(tmp_path / "file"), "--queue", XACT)["imported"] == 4
    assert {row["reason"] for row in server.ok("dlq", "list", "--queue", XACT)} == {"NACK_Q_PURGED"}
    server.ok("queue", "create", "ledger")
    refused = server.run("dlq", "resubmit", "--json")
    assert refused.returncode == Exit.REFUSED
    assert b"4 stay: MQ_ERROR_TRANSACTION_USAGE" in refused.stderr
    server.ok("queue", "delete", "ledger")
    server.ok("queue", "create", "ledger", "--transactional")
    assert summary(server, "dlq", "resubmit", "--class", "q-purged")["resubmitted"] == 4
    assert count(server, XACT) == 0
    assert numbers(server, "ledger") == Counter(range(4))
    server.ok("export", "ledger", "--output", str(tmp_path / "again"))
    with (tmp_path / "again").open("rb") as file:
        packets = [record.packet for record in read_export(file) if isinstance(record, Stored)]
    headers = [Message.from_packet(packet).transaction for packet in packets]
    assert all(header is not None and header.first and header.last for header in headers)
    assert {header.sequence_number for header in headers if header is not None} == {0}
    assert len({header.transaction_id for header in headers if header is not None}) == 4


def test_transactional_messages_stay_among_themselves(server: Server, tmp_path: Path) -> None:
    name = r"DIRECT=OS:ALPHA\private$\books"
    write_file(tmp_path / "file", "books", transactional_packets(name, 5))
    assert summary(server, "import", str(tmp_path / "file"))["created"] == 1
    server.ok("queue", "create", "shelf", "--transactional")
    server.ok("queue", "create", "desk")
    done = server.run("queue", "move", "books", "desk")
    assert done.returncode == Exit.REFUSED
    assert b"takes no transactional messages" in done.stderr
    assert summary(server, "queue", "move", "books", "shelf")["moved"] == 5
    assert [message["transactional"] for message in server.messages("shelf")] == [True] * 5


def test_dead_letters_for_other_hosts_go_into_outgoing_queues(server: Server, tmp_path: Path) -> None:
    name = r"DIRECT=TCP:127.0.0.9\private$\far"
    write_file(tmp_path / "file", "far", transactional_packets(name, 3))
    server.ok("import", str(tmp_path / "file"), "--queue", XACT)
    server.ok("send", name, "--body", "x", "--recoverable")
    server.ok("outgoing", "pause", name)
    assert summary(server, "dlq", "resubmit")["resubmitted"] == 3
    assert server.ok("outgoing", "show", name)[0]["messages"] == 4
    done = server.run("export", name, "--output", str(tmp_path / "none"))
    assert done.returncode == Exit.REFUSED
    assert b"outgoing queues are not exported" in done.stderr


def test_the_reason_of_a_dead_letter_is_shown_and_kept(server: Server, tmp_path: Path) -> None:
    server.ok("queue", "create", "brief")
    server.ok("send", "brief", "--body", "x", "--deadletter", "--ttbr", "1", "--recoverable")
    until(lambda: server.ok("dlq", "list", "--class", "receive-timeout"), what="the dead letter")
    (row,) = server.ok("dlq", "list", "--class", "NACK_RECEIVE_TIMEOUT")
    assert (row["reason"], row["class"]) == ("NACK_RECEIVE_TIMEOUT", 0xC002)
    server.ok("export", DEAD, "--output", str(tmp_path / "file"))
    server.ok("queue", "purge", DEAD)
    server.ok("import", str(tmp_path / "file"))
    (again,) = server.ok("dlq", "list", "--class", "NACK_RECEIVE_TIMEOUT")
    assert (again["reason"], again["message_id"]) == (row["reason"], row["message_id"])
    server.ok("queue", "purge", DEAD)


def test_resubmission_in_the_middle_of_a_kill(tmp_path: Path) -> None:
    total = 15_000
    with running() as server:
        fill(server, "orders", total)
        bury(server, tmp_path, "orders")
        process = begin(server, "dlq", "resubmit", "--queue", DEAD)
        with Watch(server) as watch:
            assert kill(process, watch, "orders", total // 10, server)
        assert numbers(server, "orders", DEAD) == Counter(range(total))
        server.ok("dlq", "resubmit", "--queue", DEAD)
        assert numbers(server, "orders") == Counter(range(total))
