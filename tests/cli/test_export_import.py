"""`export` and `import` as processes: everything comes back, once, whatever is killed in between."""

from __future__ import annotations

import base64
import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.cli.exportfile import MAGIC
from msmq_fast.client import sync
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.frames import Access
from tests.cli.operators import (
    Watch,
    begin,
    count,
    fill,
    kill,
    kill_when,
    numbers,
    on_terminal,
    peak_memory,
    running,
)
from tests.support.processes.servers import Server, until

FORMS = ("msgpack", "jsonl")
PLACE = ("lookup_id", "arrival_seq")  # what a message gets anew in another queue


@pytest.fixture(scope="module")
def alpha() -> Iterator[Server]:
    with running(name="ALPHA") as server:
        yield server


@pytest.fixture(scope="module")
def beta() -> Iterator[Server]:
    with running(name="BETA") as server:
        yield server


def export(server: Server, file: Path, *arguments: str) -> dict[str, Any]:
    (summary,) = server.ok("export", *arguments, "--output", str(file))
    return dict(summary)


def bring(server: Server, file: Path, *arguments: str) -> dict[str, Any]:
    (summary,) = server.ok("import", str(file), *arguments)
    return dict(summary)


def peeked(server: Server, queue: str) -> list[dict[str, Any]]:
    done = server.run("receive", queue, "--peek", "--count", "1000", "--json")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    return [{name: value for name, value in m.items() if name not in PLACE} for m in messages]


@pytest.mark.parametrize("form", FORMS)
def test_messages_come_back_with_everything_that_belongs_to_them(
    alpha: Server, beta: Server, tmp_path: Path, form: str
) -> None:
    queue, file = f"all-{form}", tmp_path / "file"
    alpha.ok("queue", "create", queue, "--label", "läbel", "--journal", "--quota", "5000")
    alpha.ok(
        *("send", queue, "--body", "bödy", "--label", "läbel", "--priority", "6", "--recoverable"),
        *("--admin-queue", r"DIRECT=OS:beta\private$\admin", "--ack", "reach", "--journal", "--deadletter"),
        *("--response-queue", r"DIRECT=TCP:10.0.0.7\private$\answers", "--correlation-id", "ab" * 20),
        *("--app-specific", "77", "--body-type", "30", "--extension", "0102ff", "--ttbr", "2000"),
    )
    for priority in (0, 7, 3, 7):
        alpha.ok("send", queue, "--body", f"express {priority}", "--priority", str(priority))
    before = peeked(alpha, queue)
    summary = export(alpha, file, queue, "--format", form)
    assert (summary["exported"], summary["queues"], summary["locked"]) == (5, 1, 0)
    assert peeked(alpha, queue) == before
    summary = bring(beta, file)
    assert (summary["imported"], summary["skipped"], summary["created"]) == (5, 0, 1)
    assert peeked(beta, queue) == before
    made, original = beta.ok("queue", "show", queue)[0], alpha.ok("queue", "show", queue)[0]
    for name in ("label", "journal", "quota_kb", "transactional"):
        assert made[name] == original[name]
    assert oct(file.stat().st_mode)[-3:] == "600"


def test_a_recoverable_import_outlives_a_kill(alpha: Server, tmp_path: Path) -> None:
    fill(alpha, "outlives", 300)
    export(alpha, tmp_path / "file", "outlives")
    with running(name="GAMMA") as gamma:
        bring(gamma, tmp_path / "file")
        before = peeked(gamma, "outlives")
        gamma.kill()
        gamma.start()
        assert peeked(gamma, "outlives") == before == peeked(alpha, "outlives")


def test_subqueues_and_journals_come_back(alpha: Server, beta: Server, tmp_path: Path) -> None:
    alpha.ok("queue", "create", "family", "--journal")
    fill(alpha, "family", 6)
    with sync.connect(alpha.endpoint) as connection:
        queue = connection.open("family", Access.RECEIVE)
        queue.receive()
        queue.move(queue.peek(), connection.open("family;later", Access.MOVE))
    names = ("family", "family;later", "family;journal")
    export(alpha, tmp_path / "file", *names)
    assert bring(beta, tmp_path / "file")["imported"] == 6
    for name, expected in zip(names, (4, 1, 1), strict=True):
        assert count(beta, name) == expected
        assert numbers(beta, name) == numbers(alpha, name)


@pytest.mark.parametrize("form", FORMS)
def test_the_largest_message_fits(alpha: Server, tmp_path: Path, form: str) -> None:
    queue = f"largest-{form}"
    alpha.ok("queue", "create", queue)
    body = bytes(range(256)) * ((4 << 20) // 256 - 1)
    alpha.ok("send", queue, "-", "--recoverable", stdin=body)
    export(alpha, tmp_path / "file", queue, "--format", form)
    bring(alpha, tmp_path / "file", "--queue", f"{queue}-2")
    (message,) = alpha.messages(f"{queue}-2")
    assert base64.b64decode(message["body_b64"]) == body


def test_lines_of_json_show_properties(alpha: Server, tmp_path: Path) -> None:
    alpha.ok("queue", "create", "lines")
    (sent,) = alpha.ok("send", "lines", "--body", "héllo", "--label", "one", "--priority", "5")
    export(alpha, tmp_path / "file", "lines", "--format", "jsonl")
    lines = [json.loads(line) for line in (tmp_path / "file").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["header", "queue", "message", "end"]
    assert lines[0]["manager"] == alpha.ready["guid"]
    assert lines[1]["definition"]["kind"] == "queue"
    assert lines[2]["message_id"] == sent["message_id"]
    assert base64.b64decode(lines[2]["body_b64"]).decode() == "héllo"
    assert (lines[2]["label"], lines[2]["priority"], lines[2]["class"]) == ("one", 5, 0)


def test_all_queues_and_other_names(alpha: Server, beta: Server, tmp_path: Path) -> None:
    fill(alpha, "one", 3)
    fill(alpha, "two", 4, start=100)
    summary = export(alpha, tmp_path / "all", "--all")
    assert summary["queues"] >= 4  # the system queues too
    export(alpha, tmp_path / "pair", "one", "two")
    done = beta.run("import", str(tmp_path / "pair"), "--queue", "both")
    assert done.returncode == Exit.USAGE
    assert b"several queues" in done.stderr
    bring(beta, tmp_path / "pair", "--queue", "one=uno", "--queue", "two=due")
    assert numbers(beta, "uno") == Counter(range(3))
    assert numbers(beta, "due") == Counter(range(100, 104))
    assert bring(beta, tmp_path / "pair", "--queue", "one=both", "--queue", "two=both")["imported"] == 7
    assert numbers(beta, "both") == numbers(beta, "uno", "due")


def test_through_a_pipe(alpha: Server, beta: Server) -> None:
    fill(alpha, "piped", 500)
    sent = alpha.run("export", "piped", "--output", "-")
    assert sent.stdout.startswith(MAGIC)
    done = beta.run("import", "-", "--json", stdin=sent.stdout)
    assert json.loads(done.stdout)["imported"] == 500
    cut = beta.run("import", "-", "--queue", "cut", stdin=sent.stdout[:-30])
    assert cut.returncode == Exit.FAILURE
    assert b"was cut" in cut.stderr
    # What came is there, and the whole file completes it.
    whole = beta.run("import", "-", "--queue", "cut", "--json", stdin=sent.stdout)
    assert whole.returncode == Exit.OK, whole
    assert numbers(beta, "cut") == Counter(range(500))


def test_the_same_file_twice(alpha: Server, beta: Server, tmp_path: Path) -> None:
    fill(alpha, "twice", 700)
    export(alpha, tmp_path / "file", "twice")
    bring(beta, tmp_path / "file")
    again = beta.run("import", str(tmp_path / "file"))
    assert again.returncode == Exit.REFUSED
    assert b"holds a message with this identifier" in again.stderr
    assert again.stderr.count(b"\n") == 1
    assert bring(beta, tmp_path / "file", "--skip-existing")["skipped"] == 700
    assert numbers(beta, "twice") == Counter(range(700))
    beta.messages("twice", 100)
    assert bring(beta, tmp_path / "file", "--skip-existing")["imported"] == 100
    assert numbers(beta, "twice") == Counter(range(700))


@pytest.mark.parametrize("form", FORMS)
def test_a_cut_or_changed_file_brings_nothing(alpha: Server, beta: Server, tmp_path: Path, form: str) -> None:
    file, queue = tmp_path / "file", f"cut-{form}"
    fill(alpha, queue, 50)
    export(alpha, file, queue, "--format", form)
    whole = file.read_bytes()
    middle = len(whole) // 2
    wrong = {
        "cut": whole[:middle],
        "end": whole[: -len(whole) // 100],
        "byte": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
        "twice": whole + whole,
        "empty": b"",
        "other": b"lookup_id,label\n1,2\n",
    }
    for content in list(wrong.values())[: 3 if form == "jsonl" else None]:
        file.write_bytes(content)
        done = beta.run("import", str(file))
        assert done.returncode == Exit.FAILURE, done
        assert done.stderr.count(b"\n") == 1, done.stderr
        assert b"Traceback" not in done.stderr
        assert count(beta, queue) == 0


def test_mistakes(alpha: Server, tmp_path: Path) -> None:
    for arguments, code in (
        (("export",), Exit.USAGE),
        (("export", "--all", "one"), Exit.USAGE),
        (("export", "nowhere"), Exit.NOT_FOUND),
        (("export", "one", "--output", str(tmp_path / "none" / "file")), Exit.FAILURE),
        (("export", "one", "--json"), Exit.USAGE),
        (("import", str(tmp_path / "missing")), Exit.FAILURE),
        (("import", "-", "--queue", "a=b", "--queue", "a=c"), Exit.USAGE),
    ):
        done = alpha.run(*arguments)
        assert done.returncode == code, (arguments, done)
        assert done.stderr.count(b"\n") == 1, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_messages_that_no_queue_of_that_kind_takes(alpha: Server, beta: Server, tmp_path: Path) -> None:
    fill(alpha, "plain", 5)
    export(alpha, tmp_path / "file", "plain")
    beta.ok("queue", "create", "strict", "--transactional")
    done = beta.run("import", str(tmp_path / "file"), "--queue", "strict")
    assert done.returncode == Exit.REFUSED
    assert b"TRANSACTION_USAGE" in done.stderr
    assert count(beta, "strict") == 0


def test_a_full_queue_keeps_what_it_took_and_goes_on_later(
    alpha: Server, beta: Server, tmp_path: Path
) -> None:
    fill(alpha, "large", 3000)
    export(alpha, tmp_path / "file", "large")
    beta.ok("queue", "create", "large", "--quota", "300")
    done = beta.run("import", str(tmp_path / "file"))
    assert done.returncode == Exit.REFUSED
    assert b"quota" in done.stderr
    assert done.stderr.count(b"\n") == 1, done.stderr
    taken = count(beta, "large")
    assert 0 < taken < 3000
    beta.ok("queue", "set", "large", "--quota", "100000")
    summary = bring(beta, tmp_path / "file")
    assert (summary["earlier"], summary["imported"]) == (taken, 3000 - taken)
    assert numbers(beta, "large") == Counter(range(3000))


def test_progress_on_a_terminal(alpha: Server, tmp_path: Path) -> None:
    fill(alpha, "shown", 2000)
    code, shown = on_terminal(alpha, "export", "shown", "--output", str(tmp_path / "file"))
    assert code == Exit.OK
    assert "2000/2000" in shown
    assert alpha.run("export", "shown", "--output", str(tmp_path / "file")).stderr == b""


# ------------------------------------------------------------------------------------------ interruption


def interrupted_import(tmp_path: Path, total: int, *, kill_server: bool, rounds: int = 1) -> int:
    """Import while something is killed and messages are consumed; how many attempts were interrupted."""
    file = tmp_path / "file"
    interruptions = 0
    with running() as server:
        fill(server, "source", total, size=500)
        export(server, file, "source")
        server.ok("queue", "create", "target")
        consumed: Counter[int] = Counter()
        for number in range(rounds):
            reached = total * (number + 1) // (rounds + 2) - consumed.total()
            with Watch(server) as watch:
                process = begin(server, "import", str(file), "--queue", "target")
                interruptions += kill(process, watch, "target", reached, server if kill_server else None)
            for message in server.messages("target", 50):
                consumed[int(base64.b64decode(message["body_b64"])[:8])] += 1
        summary = bring(server, file, "--queue", "target")
        assert summary["earlier"] + summary["imported"] == total
        if interruptions:
            assert summary["earlier"] > 0
        assert numbers(server, "target") + consumed == Counter(range(total))
    return interruptions


def test_an_import_whose_client_was_killed_goes_on(tmp_path: Path) -> None:
    assert interrupted_import(tmp_path, 8000, kill_server=False) == 1


def test_an_import_whose_server_was_killed_goes_on(tmp_path: Path) -> None:
    assert interrupted_import(tmp_path, 20_000, kill_server=True) == 1


@pytest.mark.long(seconds=120)
@pytest.mark.parametrize("kill_server", [False, True])
def test_imports_killed_again_and_again(tmp_path: Path, kill_server: bool) -> None:
    assert interrupted_import(tmp_path, 100_000, kill_server=kill_server, rounds=8) >= 4


def test_an_export_that_was_killed_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with running() as server:
        fill(server, "source", 12_000, size=1000)
        part = file.with_name("file.part")
        process = begin(server, "export", "source", "--output", str(file))
        assert kill_when(process, lambda: part.exists() and part.stat().st_size > 100_000)
        assert not file.exists()
        done = server.run("import", str(part), "--queue", "target")
        assert done.returncode == Exit.FAILURE
        assert b"was cut" in done.stderr
        assert export(server, file, "source")["exported"] == 12_000
        process = begin(server, "export", "source", "--output", str(tmp_path / "second"))
        until(lambda: (tmp_path / "second.part").exists() or process.poll() is not None)
        server.kill()
        process.communicate()
        assert process.returncode in (Exit.OK, Exit.UNREACHABLE)
        assert (tmp_path / "second").exists() == (process.returncode == Exit.OK)


def test_an_export_beside_senders_comes_to_an_end(tmp_path: Path) -> None:
    with running() as server:
        fill(server, "busy", 3000)
        sender = begin(server, "send", "busy", "--body", "x" * 100, "--count", "10000000")
        try:
            summary = export(server, tmp_path / "file", "busy")
        finally:
            sender.kill()
            sender.communicate()
        assert summary["exported"] >= 3000


@pytest.mark.long(seconds=180)
@pytest.mark.parametrize("form", FORMS)
def test_a_million_messages_need_no_more_memory_than_a_few(tmp_path: Path, form: str) -> None:
    file = tmp_path / "file"
    total = 1_000_000 if form == "msgpack" else 200_000
    with running() as server:
        fill(server, "million", total, size=50)
        for verb in (
            ("export", "million", "--output", str(file), "--format", form),
            ("import", str(file), "--queue", "target"),
        ):
            process = begin(server, *verb)
            assert peak(process) < 150 << 20
            assert process.returncode == Exit.OK
        assert count(server, "target") == total


def peak(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a process; its peak memory in bytes, as last seen."""
    seen = 0
    while process.poll() is None:
        try:
            seen = max(seen, peak_memory(process))
        except (OSError, IndexError):
            break
        with_timeout(process)
    process.communicate()
    return seen


def with_timeout(process: subprocess.Popen[bytes]) -> None:
    """A moment, or until the process ends."""
    try:
        process.wait(0.1)
    except subprocess.TimeoutExpired:
        return
