"""`session list` and `session close` over real servers: what each connection is, pages, and rights."""

from __future__ import annotations

import getpass
import http.client
import socket
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from msmq_fast.client import ConnectionLost, sync
from msmq_fast.protocol.errors import AccessDenied, InvalidParameter
from msmq_fast.protocol.exits import Exit
from msmq_fast.protocol.resources import SessionInfo
from tests.support.processes.pair import collect, pair
from tests.support.processes.servers import Server, data_directory, until

__all__ = ["pair"]


def all_sessions(connection: sync.Connection, kind: str = "") -> list[SessionInfo]:
    return list(connection.admin.sessions.page(kind, limit=1000).sessions)


def test_a_program_is_shown_with_what_it_has_open(server: Server) -> None:
    server.ok("queue", "create", "orders", "--transactional")
    with sync.connect(server.endpoint) as program, program.open("orders"), program.transaction() as open_one:
        with program.open("orders") as queue:
            queue.send(b"x", transaction=open_one)
            (mine,) = all_sessions(program, "program")
            assert (mine.queues, mine.transactions) == (2, 1)
        assert (mine.direction, mine.address, mine.state) == ("incoming", "local", "open")
        assert mine.user == getpass.getuser()
        rows = server.ok("session", "list", "--kind", "program")
        assert rows[0] == all_sessions(program, "program")[0].as_map()


def test_sessions_of_queue_managers_have_the_guid_of_the_other_end(pair: tuple[Server, Server]) -> None:
    alpha, beta = (server.start() for server in pair)
    beta.ok("queue", "create", "orders")
    alpha.ok("send", rf"DIRECT=TCP:{beta.host}\private$\orders", "--body", "x", "--recoverable")
    assert len(collect(beta, "orders", 1)) == 1
    (there,), (here,) = (server.ok("session", "list", "--kind", "mqqb") for server in (alpha, beta))
    assert (there["direction"], there["address"], there["state"]) == ("outgoing", beta.host, "open")
    assert (here["direction"], here["address"], here["state"]) == ("incoming", alpha.host, "open")
    assert (there["manager"], here["manager"]) == (beta.ready["guid"], alpha.ready["guid"])
    # A session that is closed at either end loses nothing: the sender connects again.
    for server in (alpha, beta):
        (session,) = server.ok("session", "list", "--kind", "mqqb")
        server.ok("session", "close", str(session["number"]))
        until(partial(not_listed, server, session["number"]), what="the end of the session")
        alpha.ok("send", rf"DIRECT=TCP:{beta.host}\private$\orders", "--body", "y", "--recoverable")
        assert len(collect(beta, "orders", 1)) == 1


def not_listed(server: Server, number: int) -> bool:
    return all(one["number"] != number for one in server.ok("session", "list"))


def test_connections_to_the_other_ports_are_listed_and_closed(server: Server) -> None:
    with ExitStack() as stack:
        for port in ("rpc", "admin", "mqqb"):
            stack.enter_context(socket.create_connection((server.host, server.port(port)), timeout=10))
        admin = http.client.HTTPConnection(server.host, server.port("admin"), timeout=10)
        stack.callback(admin.close)
        admin.request("GET", "/livez")
        admin.getresponse().read()
        connection = stack.enter_context(sync.connect(server.endpoint))
        found = {(one.kind, one.state): one for one in all_sessions(connection)}
        wanted = {("rpc", "silent"), ("admin", "silent"), ("admin", "idle"), ("mqqb", "handshake")}
        assert wanted <= set(found)
        for key in wanted:
            closed = connection.admin.sessions.close(found[key].number)
            assert (closed.kind, closed.direction) == (key[0], "incoming")
        until(lambda: len(all_sessions(connection)) == 1, what="the end of the others")


def test_a_closed_program_gets_its_messages_put_back(server: Server) -> None:
    server.ok("queue", "create", "held")
    server.ok("send", "held", "--body", "x")
    with (
        suppress(ConnectionLost),  # of the blocks that end
        sync.connect(server.endpoint) as program,
        program.open("held") as queue,
        queue.subscribe() as subscription,
    ):
        number = all_sessions(program, "program")[-1].number
        assert next(iter(subscription)).body == b"x"
        server.ok("session", "close", str(number))
        with pytest.raises(ConnectionLost):
            program.ping()
    assert len(server.messages("held")) == 1
    (entry,) = server.ok("audit", "list", "--operation", "close session", "--object", f"session {number}")
    assert (entry["result"], entry["detail"]) == ("done", f"incoming program local {getpass.getuser()}")


def test_a_program_that_closes_its_own_connection_gets_the_reply(server: Server) -> None:
    with sync.connect(server.endpoint) as program:
        number = all_sessions(program, "program")[-1].number
        assert program.admin.sessions.close(number).number == number
        with pytest.raises(ConnectionLost):
            program.ping()


def test_pages_follow_each_other(server: Server) -> None:
    with ExitStack() as stack:
        first, *_ = (stack.enter_context(sync.connect(server.endpoint)) for _ in range(5))
        numbers = [one.number for one in all_sessions(first, "program")]
        assert len(numbers) == 5
        assert numbers == sorted(numbers)
        after, seen = 0, []
        while True:
            page = first.admin.sessions.page("program", after=after, limit=2)
            assert page.total == 5
            seen += [one.number for one in page.sessions]
            if not page.next:
                break
            after = page.next
        assert seen == numbers
        listed = server.ok("session", "list", "--kind", "program", "--limit", "2", "--after", str(numbers[1]))
        assert [one["number"] for one in listed] == numbers[2:4]
        for wrong in (0, 1001):
            with pytest.raises(InvalidParameter):
                first.admin.sessions.page(limit=wrong)
        with pytest.raises(InvalidParameter, match="kind must be one of"):
            first.admin.sessions.page("ftp")


def test_an_unknown_number_is_refused(server: Server) -> None:
    done = server.run("session", "close", "999999999")
    assert done.returncode == Exit.REFUSED
    assert b"no session has the number 999999999" in done.stderr


CONFIG = """
[listen.app]
host = "127.0.0.1"
port = 0
[[users]]
name = "billing"
token_file = '{token}'
"""


def test_a_program_over_tcp_is_shown_but_may_neither_list_nor_close(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret-token-of-billing")
    (tmp_path / "msmq.toml").write_text(CONFIG.format(token=tmp_path / "token"))
    with data_directory() as data:
        running = Server(data, "--config", str(tmp_path / "msmq.toml"))
        try:
            endpoint = f"tcp://127.0.0.1:{running.start().port('app-tcp')}"
            with sync.connect(endpoint, token="s3cret-token-of-billing") as program:  # noqa: S106
                mine = running.ok("session", "list", "--kind", "program")[0]
                assert (mine["user"], mine["address"], mine["state"]) == ("billing", "127.0.0.1", "open")
                with pytest.raises(AccessDenied):
                    program.admin.sessions.page()
                with pytest.raises(AccessDenied):
                    program.admin.sessions.close(mine["number"])
                program.ping()
        finally:
            running.kill()
