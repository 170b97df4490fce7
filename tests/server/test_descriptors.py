"""Descriptors: limits that fit into them, a reserve for operators, failures that show."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from msmq_fast.config.sections import Config
from msmq_fast.server.runtime.descriptors import LEAST, ConnectionLimits, ConnectionScale, divide
from tests.support.hostile.attacked import attacked
from tests.support.mqqb import wire
from tests.support.processes import forking
from tests.support.processes.servers import Server, data_directory, until

WANTED = ConnectionLimits.configured(Config())
HOST, CROWD, PEER = "127.0.54.20", "127.0.54.21", "127.0.54.22"


class Confined(Server):
    """A server that may open 512 files."""

    program = ("prlimit", "--nofile=512:512", *forking.PROGRAM)


@pytest.fixture
def confined() -> Iterator[Server]:
    with data_directory() as data:
        running = Confined(
            data, "--http-port", "0", host=HOST, environment={"MSMQ_FAST_LISTEN__ADMIN__HOST": HOST}
        )
        try:
            yield running.start()
        finally:
            running.kill()


def test_limits_stay_as_they_are_where_there_is_room() -> None:
    assert divide(WANTED, 65_536) == ConnectionScale()
    assert divide(WANTED, 1 << 30) == ConnectionScale()


@pytest.mark.parametrize("descriptors", [LEAST, 512, 1024, 4096, 13_000])
def test_limits_are_lowered_to_what_there_is_room_for(descriptors: int) -> None:
    scale = divide(WANTED, descriptors)
    network, outgoing = scale.network * WANTED.network, scale.outgoing * WANTED.outgoing
    programs, admin = scale.programs * WANTED.programs, scale.admin * WANTED.admin
    assert network + outgoing + programs + admin <= descriptors - 64
    assert min(network, outgoing, programs, admin) >= 10
    assert min(programs, admin) >= 15.9


def test_too_few_descriptors_are_one_clear_line() -> None:
    with pytest.raises(ValueError, match=r"LimitNOFILE") as refused:
        divide(WANTED, LEAST - 1)
    assert str(refused.value).startswith("255 open files")


def test_a_server_with_too_few_descriptors_does_not_start() -> None:
    class Hopeless(Server):
        program = ("prlimit", "--nofile=128:128", *forking.PROGRAM)

    with data_directory() as data:
        server = Hopeless(data)
        with pytest.raises(AssertionError, match="no ready line") as failed:
            server.start()
        assert "128 open files (RLIMIT_NOFILE) are too few" in str(failed.value)
        assert "Traceback" not in str(failed.value)


def test_the_soft_limit_is_raised() -> None:
    class Soft(Server):
        program = ("prlimit", "--nofile=300:20000", *forking.PROGRAM)

    with data_directory() as data:
        server = Soft(data)
        try:
            server.start()
            assert server.process is not None
            assert resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE) == (20_000, 20_000)
            assert "RLIMIT_NOFILE" not in server.log.read_text()
        finally:
            server.kill()


def admin(server: Server, path: str) -> tuple[int, str]:
    """What the admin port answers."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{server.port('admin')}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def open_session(server: Server) -> None:
    """A peer that has not been here before opens a session."""
    with socket.create_connection((HOST, server.port("mqqb")), 10, (PEER, 0)) as connection:
        connection.sendall(wire.establish(UUID(int=0x900D)) + wire.parameters())
        answer = b""
        while len(answer) < 604:
            chunk = connection.recv(604)
            assert chunk, "refused"
            answer += chunk


def test_idle_connections_at_all_ports_lock_nothing_out() -> None:
    """1,250 connections of one address, each port below its own limit."""
    flags = ("--http-port", "0")
    with attacked("", *flags, host=HOST, program=Confined.program) as scene, contextlib.ExitStack() as stack:
        confined = scene.server
        assert confined.log.read_text().count("RLIMIT_NOFILE") == 1
        for name in ("mqqb", "http", "epm", "rpc", "qm2qm"):
            for _ in range(250):
                with contextlib.suppress(OSError):
                    address = (HOST, confined.port(name))
                    stack.enter_context(socket.create_connection(address, 5, (CROWD, 0)))
        assert admin(confined, "/livez") == (200, "ok\n")
        assert admin(confined, "/readyz") == (200, "ok\n")
        stats = confined.ok("stats")[0]
        assert sum(stats["refusals"].values()) > 500
        open_session(confined)
        print(scene.check())


def descriptors(server: Server) -> list[int]:
    """The numbers of those that the process has open."""
    assert server.process is not None
    return [int(name) for name in os.listdir(f"/proc/{server.process.pid}/fd")]


def test_connections_that_cannot_be_accepted_show(confined: Server) -> None:
    """All descriptors are used up, by whatever else: the reserve still lets the operator in."""
    assert confined.process is not None
    pid = confined.process.pid
    with contextlib.ExitStack() as stack:
        most = max(descriptors(confined)) + 1
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, 512))
        for _ in range(most - len(descriptors(confined)) + 5):
            stack.enter_context(socket.create_connection((HOST, confined.port("mqqb")), 5, (CROWD, 0)))
        until(lambda: "cannot be accepted" in confined.log.read_text())
        status, reason = until(lambda: failing(confined))
        assert (status, reason) == (503, "a session cannot be accepted: Too many open files\n")
        assert admin(confined, "/livez") == (200, "ok\n")
        assert 'accept_failures_total{kind="session"}' in admin(confined, "/metrics")[1]
        assert confined.run("queue", "list").returncode == 0
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (512, 512))
    until(lambda: admin(confined, "/readyz")[0] == 200)
    open_session(confined)
    assert confined.log.read_text().count("cannot be accepted") == 1
    assert confined.stop() == 0


def failing(server: Server) -> tuple[int, str] | None:
    answer = admin(server, "/readyz")
    return answer if answer[0] == 503 else None


def test_spares_are_taken_back(tmp_path: Path) -> None:
    from msmq_fast.server.runtime.descriptors import SpareDescriptors

    before = len(os.listdir("/proc/self/fd"))
    spares = SpareDescriptors(3)
    assert [spares.give() for _ in range(4)] == [True, True, True, False]
    spares.refill()
    assert len(os.listdir("/proc/self/fd")) == before + 3
    spares.close()
    spares.refill()
    assert len(os.listdir("/proc/self/fd")) == before
