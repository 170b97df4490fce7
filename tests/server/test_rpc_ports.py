"""Where RPC listens: fixed ports that make way, a mapper that may be denied, and what turns all of it off."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from msmq_fast.rpc.idl.qm2qm import QM2QM
from tests.support.processes.servers import Server, command, data_directory, without_capability
from tests.support.rpc.socketreader import Caller

HOST = "127.0.0.91"


class Fixed(Server):
    """With the ports of RPC as they come."""

    free_ports = ("--port", "--ping-port", "--admin-port", "--epm-port")


class Incapable(Server):
    """Without the right to low ports, also where root runs the tests."""

    program = without_capability("net_bind_service")


@pytest.fixture
def fixed() -> Iterator[Fixed]:
    with data_directory() as data:
        running = Fixed(data, host=HOST)
        try:
            yield running
        finally:
            running.kill()


@pytest.fixture
def taken() -> Iterator[list[socket.socket]]:
    """Ports that somebody else has."""
    others: list[socket.socket] = []
    yield others
    for other in others:
        other.close()


def occupy(others: list[socket.socket], *ports: int) -> None:
    for port in ports:
        other = socket.socket()
        others.append(other)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind((HOST, port))
        other.listen()


@pytest.mark.rule("QP-002", "QP-006")
def test_the_default_ports(fixed: Fixed) -> None:
    fixed.start()
    assert (fixed.ready["rpc"], fixed.ready["qm2qm"]) == (f"{HOST}:2103", f"{HOST}:2105")
    for listener in ("rpc", "qm2qm", "epm"):
        socket.create_connection((HOST, fixed.port(listener)), timeout=5).close()


@pytest.mark.rule("QP-006")
def test_a_taken_port_is_left_to_whoever_has_it(fixed: Fixed, taken: list[socket.socket]) -> None:
    occupy(taken, 2103, 2105, 2116)
    fixed.start()
    assert (fixed.port("rpc"), fixed.port("qm2qm")) == (2114, 2127)
    log = fixed.log.read_text()
    assert f"remote read: {HOST}:2103 is taken by another process; it is at port 2114" in log
    assert f"remote read (qm2qm): {HOST}:2105 is taken by another process; it is at port 2127" in log


@pytest.mark.rule("QP-005", "QP-006")
def test_two_servers_on_one_computer(fixed: Fixed) -> None:
    fixed.start()
    with data_directory() as data:
        second = Fixed(data, host=HOST)
        try:
            second.start()
            assert (second.port("rpc"), second.port("qm2qm")) == (2114, 2116)
            for server in (fixed, second):
                reader = Caller(HOST, server.port("qm2qm"), QM2QM)
                told = [reader.call("get_port", dwPortType=kind).result for kind in (0, 1)]
                assert told == [server.port("rpc"), server.port("qm2qm")]
                reader.close()
        finally:
            second.kill()


def test_ports_that_another_mapper_knows_do_not_move(fixed: Fixed, taken: list[socket.socket]) -> None:
    occupy(taken, 2105)
    flags = ("--host", HOST, "--port", "0", "--ping-port", "0", "--admin-port", "off")
    done = command("serve", "--data", str(fixed.data), *flags, environment={"MSMQ_FAST_RPC__EPM": "external"})
    assert done.returncode == 7
    expected = f"msmq-fast serve: remote read (qm2qm): {HOST}:2105 is taken by another process\n"
    assert done.stderr.decode() == expected
    assert not fixed.data.exists()


def test_ipv4_and_ipv6_share_a_port(fixed: Fixed) -> None:
    fixed.host = "127.0.0.91,::1"
    fixed.environment["MSMQ_FAST_LISTEN__RPC__QM2QM_PORT"] = "off"
    fixed.flags = ("--rpc-port", "0")
    fixed.start()
    first, second = fixed.ready["rpc"].split(",")
    assert second.startswith("[::1]:")
    assert first.rsplit(":")[-1] == second.rsplit(":")[-1]
    assert "qm2qm" not in fixed.ready
    socket.create_connection(("::1", fixed.port("rpc")), timeout=5).close()


def test_listeners_of_rpc_may_have_addresses_of_their_own(server: Server) -> None:
    server.environment["MSMQ_FAST_LISTEN__RPC__HOST"] = "127.0.0.92"
    server.start()
    assert server.ready["mqqb"].startswith("127.0.0.1:")
    for listener in ("rpc", "qm2qm", "epm"):
        assert server.ready[listener].startswith("127.0.0.92:")


def test_a_taken_mapper_port_is_missed_in_one_line(server: Server, taken: list[socket.socket]) -> None:
    occupy(taken, 13135)
    server.host = HOST
    server.flags = ("--epm-port", "13135")
    server.start()
    assert "epm" not in server.ready
    assert {"rpc", "qm2qm"} <= set(server.ready)
    lines = [line for line in server.log.read_text().splitlines() if "mapper" in line]
    assert len(lines) == 1
    assert lines[0].endswith(
        f"RPC endpoint mapper: {HOST}:13135 is taken by another process; "
        "without it, Windows hosts cannot read queues here"
    )


@pytest.mark.needs("setpriv", rights=["protected ports"])
def test_a_mapper_port_without_the_right_to_it_is_missed_in_one_line() -> None:
    with data_directory() as data:
        server = Incapable(data, "--epm-port", "135")
        try:
            server.start()
            assert "epm" not in server.ready
            assert {"rpc", "qm2qm"} <= set(server.ready)
            lines = [line for line in server.log.read_text().splitlines() if "mapper" in line]
            assert len(lines) == 1
            assert lines[0].endswith(
                "RPC endpoint mapper: 127.0.0.1:135 is refused: ports below 1024 need root or "
                "CAP_NET_BIND_SERVICE; without it, Windows hosts cannot read queues here"
            )
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("flags", "listeners"),
    [
        (("--rpc-port", "off"), set()),
        (("--qm2qm-port", "off"), {"rpc", "epm"}),
        (("--epm-port", "off"), {"rpc", "qm2qm"}),
    ],
)
def test_what_is_off_does_not_listen(server: Server, flags: tuple[str, ...], listeners: set[str]) -> None:
    server.flags = flags
    server.start()
    assert set(server.ready) & {"rpc", "qm2qm", "epm"} == listeners


@pytest.mark.parametrize(
    ("settings", "listeners"),
    [
        ({"RPC__QM2QM": "off"}, {"rpc", "epm"}),
        ({"RPC__REMOTE_READ": "off"}, {"rpc", "qm2qm", "epm"}),
        ({"RPC__QM2QM": "off", "RPC__QMCOMM": "off"}, {"rpc", "epm"}),
        ({"RPC__QM2QM": "off", "RPC__QMCOMM": "off", "RPC__REMOTE_READ": "off"}, {"rpc", "epm"}),
        (
            {"RPC__QM2QM": "off", "RPC__QMCOMM": "off", "RPC__REMOTE_READ": "off", "RPC__QMMGMT": "off"},
            set(),
        ),
        ({"RPC__EPM": "off"}, {"rpc", "qm2qm"}),
        ({"RPC__EPM": "external"}, {"rpc", "qm2qm"}),
        ({"QUEUE_MANAGER__HARDENED": "on"}, set()),
    ],
)
def test_only_what_is_served_listens(server: Server, settings: dict[str, str], listeners: set[str]) -> None:
    server.environment |= {f"MSMQ_FAST_{name}": value for name, value in settings.items()}
    server.start()
    assert set(server.ready) & {"rpc", "qm2qm", "epm"} == listeners


@pytest.mark.long(seconds=3)
@pytest.mark.needs(modules=("gssapi",))
def test_a_keytab_that_cannot_be_used(server: Server, tmp_path: Path) -> None:
    keytab = tmp_path / "keytab"
    for content, complaint in (
        (None, f"{keytab}: No such file or directory"),
        (b"no keytab", f"there are no keys in {keytab}"),
    ):
        if content is not None:
            keytab.write_bytes(content)
        server.environment["MSMQ_FAST_RPC__KEYTAB"] = str(keytab)
        with pytest.raises(AssertionError) as caught:
            server.start()
        assert str(caught.value).splitlines()[-1] == f"msmq-fast serve: rpc.keytab: {complaint}"
        assert "Traceback" not in str(caught.value)


def test_qm2qm_needs_qmcomm() -> None:
    done = command("serve", environment={"MSMQ_FAST_RPC__QMCOMM": "off"})
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "msmq-fast serve: defaults: rpc.qm2qm needs rpc.qmcomm, with which its callers open queues\n"
    )
