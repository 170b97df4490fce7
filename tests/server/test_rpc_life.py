"""Remote readers of a running server: who is let in, what a stop and a lost client leave behind."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from msmq_fast.rpc.idl.mgmt import MGMT
from msmq_fast.rpc.idl.qm2qm import QM2QM
from msmq_fast.rpc.idl.qmcomm import QMCOMM
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from tests.support.http.admin import http, refusals
from tests.support.processes.servers import Server, until
from tests.support.rpc import wire
from tests.support.rpc.remotereader import opening
from tests.support.rpc.socketreader import ACK, INFINITE, NACK, Caller, Fault, RemoteQueue, readable, reading

ACCESS_DENIED = 0xC00E0025
CANCELLED = 0xC00E0008
TCP_REPAIR = 19


def bodies(server: Server, name: str) -> list[str]:
    return [str(message["body_b64"]) for message in server.messages(name)]


@pytest.mark.rule("QP-007", "QP-016")
def test_a_reader_without_a_name_reads_what_the_list_of_the_queue_lets_it(server: Server) -> None:
    server.start()
    readable(server, "orders")
    server.ok("queue", "create", "secret")
    server.ok("send", "orders", "--body", "a", "--recoverable", "--count", "2")
    with reading(server, "orders") as queue:
        queue.start()
        read = queue.reader.receive()
        assert read.result == 0
        assert b"a" in bytes(read.lpRemoteReadDesc2.pRemoteReadDesc.lpBuffer)
        assert queue.end(read, ACK) == 0
    assert len(server.messages("orders")) == 1
    with pytest.raises(PermissionError, match="C00E0025"):
        RemoteQueue(server, "secret")


@pytest.mark.rule("QP-005", "QP-160", "QP-161")
def test_the_port_methods_tell_the_live_ports(server: Server) -> None:
    server.start()
    reader = Caller(server.host, server.port("qm2qm"), QM2QM)
    ports = [reader.call("get_port", dwPortType=kind).result for kind in range(4)]
    assert ports == [server.port("rpc"), server.port("qm2qm"), 0, 0]
    opener = Caller(server.host, server.port("rpc"), QMCOMM)
    assert [opener.call("get_rtqm_server_port", fIP=kind).result for kind in range(4)] == ports


@pytest.mark.rule("QP-010", "QP-011")
def test_a_least_level_keeps_callers_out_who_do_not_authenticate(server: Server) -> None:
    server.environment |= {"MSMQ_FAST_RPC__QM2QM_LEVEL": "integrity"}
    server.start()
    reader = Caller(server.host, server.port("qm2qm"), QM2QM)
    assert reader.call("get_port", dwPortType=1).result == server.port("qm2qm")
    assert reader.call("close_cursor", hQueue=1, hCursor=1).result == ACCESS_DENIED


@pytest.mark.rule("MP-005")
def test_callers_without_a_name_can_be_kept_out(server: Server) -> None:
    server.environment |= {"MSMQ_FAST_RPC__ANONYMOUS": "off"}
    server.start()
    reader = Caller(server.host, server.port("qm2qm"), QM2QM)
    assert reader.call("get_port", dwPortType=1).result == server.port("qm2qm")
    assert reader.call("close_cursor", hQueue=1, hCursor=1).result == ACCESS_DENIED
    opener = Caller(server.host, server.port("rpc"), QMCOMM)
    assert opener.call("get_rtqm_server_port", fIP=0).result == server.port("rpc")
    with pytest.raises(Fault, match="00000005"):
        opener.call("close_remote_queue_context", pphContext=None)
    anybody = Caller(server.host, server.port("rpc"), MGMT)
    assert anybody.call("is_server_listening").result == 1


# ------------------------------------------------------------------------------------------ ends of clients


@pytest.mark.rule("QP-180", "QP-181")
def test_what_a_lost_reader_had_is_there_for_the_next(server: Server) -> None:
    server.start()
    readable(server, "orders")
    server.ok("send", "orders", "--body", "a", "--recoverable")
    lost = RemoteQueue(server, "orders")
    lost.start()
    assert lost.reader.receive().result == 0
    assert server.messages("orders") == []
    # As a process that dies: the kernel resets its connections.
    lost.reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    lost.close()
    until(lambda: bodies(server, "orders") == ["YQ=="], what="the message")
    until(lambda: server.ok("stats")[0]["rpc_connections"] == 0, what="the end of the connections")


@pytest.mark.rule("QP-184")
def test_hosts_are_asked_if_they_are_still_there(server: Server) -> None:
    server.environment |= {"MSMQ_FAST_RPC__KEEP_ALIVE": "20"}
    server.start()
    port = server.port("rpc")
    client = Caller(server.host, port, MGMT)
    assert server.process is not None
    own = client.socket.getsockname()[1]
    # /proc/net/tcp: timer 2 is that of keep-alive, with what is left of it in hundredths of a second.
    with open(f"/proc/{server.process.pid}/net/tcp") as table:
        rows = [line.split() for line in table]
    ends = [f":{port:04X}", f":{own:04X}"]
    (row,) = (row for row in rows if [end[-5:] for end in row[1:3]] == ends)
    kind, left = row[5].split(":")
    assert kind == "02"
    assert 15 <= int(left, 16) / 100 <= 20


@pytest.mark.rule("QP-184")
@pytest.mark.needs(rights=["net admin"])
def test_messages_come_back_from_a_host_that_died_without_a_word(server: Server) -> None:
    server.environment |= {"MSMQ_FAST_RPC__KEEP_ALIVE": "1"}
    server.start()
    readable(server, "orders")
    server.ok("send", "orders", "--body", "a", "--recoverable")
    dead = RemoteQueue(server, "orders")
    dead.start()
    assert dead.reader.receive().result == 0
    for caller in (dead.reader, dead.opener):
        caller.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)  # nothing is sent again
        caller.socket.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)  # closed like this, it says nothing
    dead.close()
    until(lambda: bodies(server, "orders") == ["YQ=="], what="the message")


# ------------------------------------------------------------------------------------------------- stopping


@pytest.mark.rule("QP-012")
def test_who_gets_in_gets_an_answer(server: Server) -> None:
    server.start()
    server.stop()
    ports = [server.port(name) for name in ("rpc", "qm2qm", "epm")]
    flags = zip(("--rpc-port", "--qm2qm-port", "--epm-port"), map(str, ports), strict=True)
    server.flags = tuple(word for pair in flags for word in pair)
    connected = False

    def start_while_somebody_knocks() -> None:
        nonlocal connected
        deadline = time.monotonic() + 20
        while not connected and time.monotonic() < deadline:
            try:
                reader = Caller(server.host, ports[1], QM2QM, timeout=20)
            except ConnectionRefusedError:
                time.sleep(0.002)
                continue
            assert reader.call("get_version").pMajor == 6
            connected = True
            reader.close()

    knocking = threading.Thread(target=start_while_somebody_knocks)
    knocking.start()
    server.start()
    knocking.join(25)
    assert connected


def test_a_stop_answers_waiting_reads_and_gives_back_what_was_not_acknowledged(server: Server) -> None:
    server.start()
    for name in ("full", "empty"):
        readable(server, name)
    server.ok("send", "full", "--body", "a", "--recoverable", "--count", "2")
    with reading(server, "full") as full, reading(server, "empty") as empty:
        full.start()
        delivered = full.reader.receive()
        assert delivered.result == 0
        assert full.end(delivered, ACK) == 0
        full.start()
        assert full.reader.receive().result == 0  # and this one is never acknowledged
        empty.start(timeout=INFINITE)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 8  # neither the read nor its connection holds it up
        assert empty.reader.receive().result == CANCELLED
        for caller in (full.reader, empty.reader, full.opener):
            with pytest.raises(ConnectionError):
                caller.pdu()
    server.flags = ()
    server.start()
    assert bodies(server, "full") == ["YQ=="]
    assert "Traceback" not in server.log.read_text()


def test_a_stop_does_not_wait_for_who_does_not_take_a_reply(server: Server, tmp_path: Path) -> None:
    server.start()
    readable(server, "orders")
    body = tmp_path / "body"
    body.write_bytes(bytes(4_000_000))
    server.ok("send", "orders", "--file", str(body), "--recoverable")
    with reading(server, "orders") as queue:
        queue.reader.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        queue.start()
        until(lambda: _readers(server) == {("orders", 0, 1)}, what="the delivery")
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 8
    server.flags = ()
    server.start()
    assert len(server.messages("orders")) == 1
    assert "Traceback" not in server.log.read_text()


def test_a_kill_loses_nothing_that_was_not_acknowledged(server: Server) -> None:
    server.start()
    readable(server, "orders")
    server.ok("send", "orders", "--body", "a", "--recoverable", "--count", "3")
    with reading(server, "orders") as queue:
        for ack in (ACK, NACK):
            queue.start()
            assert queue.end(queue.reader.receive(), ack) == 0
        queue.start()
        assert queue.reader.receive().result == 0
        server.kill()
    server.start()
    assert len(server.messages("orders")) == 2


# --------------------------------------------------------------------------------------------------- limits


def test_connections_beyond_the_limits_are_refused_and_counted(server: Server) -> None:
    server.environment |= {
        "MSMQ_FAST_LISTEN__RPC__MAX_CONNECTIONS": "2",
        "MSMQ_FAST_LISTEN__RPC__MAX_CONNECTIONS_PER_ADDRESS": "1",
    }
    server.start()
    kept = Caller(server.host, server.port("rpc"), MGMT)
    elsewhere = Caller(server.host, server.port("qm2qm"), MGMT)  # each port for itself
    with pytest.raises(ConnectionError):
        Caller(server.host, server.port("rpc"), MGMT)
    assert refusals(server) == {"rpc connection: too many connections from one address": 1}
    kept.close()
    until(lambda: server.ok("stats")[0]["rpc_connections"] == 1, what="a free place")
    Caller(server.host, server.port("rpc"), MGMT).close()
    elsewhere.close()


def test_a_connection_without_a_bind_is_cut_off_and_counted(server: Server) -> None:
    server.environment["MSMQ_FAST_RPC__BIND_TIMEOUT"] = "0.3"
    server.start()
    with socket.create_connection((server.host, server.port("epm")), timeout=5) as silent:
        assert silent.recv(1) == b""
    assert refusals(server) == {"rpc connection: handshake timeout": 1}


def test_a_connection_without_calls_is_cut_off_unless_something_is_open(server: Server) -> None:
    server.environment["MSMQ_FAST_RPC__IDLE_TIMEOUT"] = "1"
    server.start()
    readable(server, "orders")
    with reading(server, "orders") as queue:
        idle = Caller(server.host, server.port("rpc"), MGMT)
        with pytest.raises(ConnectionError):
            idle.pdu()
        queue.start(timeout=1)
        assert queue.reader.receive().result == 0xC00E001B  # IO_TIMEOUT: it is still there


def test_noise_is_refused_and_counted(server: Server) -> None:
    server.environment["MSMQ_FAST_RPC__BIND_TIMEOUT"] = "0.5"
    server.start()
    for noise in (bytes(100), b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
        for listener in ("rpc", "qm2qm", "epm"):
            with socket.create_connection((server.host, server.port(listener)), timeout=5) as stranger:
                stranger.sendall(noise)
                while stranger.recv(4096):
                    pass
    counted = refusals(server)
    assert sum(count for what, count in counted.items() if what.startswith("rpc connection: ")) == 6
    assert "refused rpc connection: " in server.log.read_text()


def test_handles_are_bounded(server: Server) -> None:
    server.environment["MSMQ_FAST_RPC__HANDLES"] = "2"
    server.start()
    readable(server, "orders")
    queues = [RemoteQueue(server, "orders") for _ in range(2)]  # two clients, one handle at each port
    for queue in queues:
        queue.close()
    with reading(server, "orders") as queue:
        server.ok("send", "orders", "--body", "x", "--count", "2")
        queue.start()
        assert queue.reader.receive().result == 0
        queue.start()
        with pytest.raises(Fault, match="1C00001B"):
            queue.reader.receive()
    until(lambda: len(server.messages("orders")) == 2, what="both messages")


def test_the_metrics_tell_of_remote_readers(server: Server) -> None:
    server.start()
    readable(server, "orders")
    with reading(server, "orders") as queue:
        with pytest.raises(Fault):
            queue.reader.call("purge_queue", hQueue=1)
        text = http(server, "/metrics")[1]
        for line in (
            'msmq_fast_rpc_calls_total{interface="qm2qm"} 2.0',
            'msmq_fast_rpc_calls_total{interface="qmcomm"} 1.0',
            'msmq_fast_rpc_faults_total{status="0xC00E0007"} 1.0',
            "msmq_fast_rpc_open_queues 1.0",
            "msmq_fast_rpc_connections 2.0",
            "msmq_fast_rpc_associations 2.0",
        ):
            assert line in text.splitlines(), line
    until(lambda: "msmq_fast_rpc_open_queues 0.0" in http(server, "/metrics")[1], what="no open queue")


def test_the_admin_port_shows_who_reads_what(server: Server) -> None:
    server.start()
    for name in ("full", "empty"):
        readable(server, name)
    server.ok("send", "full", "--body", "a")
    with reading(server, "full") as full, reading(server, "empty") as empty:
        full.start()
        assert full.reader.receive().result == 0
        empty.start(timeout=INFINITE)
        until(lambda: _readers(server) == {("full", 0, 1), ("empty", 1, 0)}, what="both readers")
        both = json.loads(http(server, "/api/v1/readers")[1])
        assert server.ok("session", "readers") == both
        one = both[0]
        told = {name: one[name] for name in ("access", "caller", "address", "authentication", "level")}
        assert told == {
            "access": "receive",
            "caller": "",
            "address": "127.0.0.1",
            "authentication": "none",
            "level": "none",
        }
    until(lambda: _readers(server) == set(), what="the end of both")


def _readers(server: Server) -> set[tuple[str, int, int]]:
    shown = json.loads(http(server, "/api/v1/readers")[1])
    return {
        (reader["queue"].rpartition("\\")[2], reader["waiting"], reader["unacknowledged"]) for reader in shown
    }


def test_the_fragment_size_is_offered(server: Server) -> None:
    server.environment["MSMQ_FAST_RPC__FRAGMENT"] = "4096"
    server.start()
    with socket.create_connection((server.host, server.port("rpc")), timeout=5) as client:
        interface = (str(MGMT.uuid), *MGMT.version)
        client.sendall(wire.bind([(0, interface, [wire.NDR])]))
        answer = wire.read(client.recv(4096))
    assert (answer.xmit, answer.recv) == (4096, 4096)


@pytest.mark.rule("RR-080")
def test_a_reader_that_does_not_end_its_read_in_time(server: Server) -> None:
    server.environment |= {"MSMQ_FAST_RPC__REMOTE_READ_LEVEL": "none", "MSMQ_FAST_RPC__END_TIMEOUT": "1"}
    server.start()
    readable(server, "orders")
    server.ok("send", "orders", "--body", "a", "--recoverable")
    reader = Caller(server.host, server.port("rpc"), REMOTE_READ)
    context = reader.call("open_queue", **opening(r"DIRECT=OS:.\private$\orders")).pphContext
    started = {"phContext": context, "LookupId": 0, "hCursor": 0, "ulAction": 0, "ulTimeout": 0}
    sizes = {"dwMaxBodySize": INFINITE, "dwMaxCompoundMessageSize": INFINITE}
    assert reader.call("start_receive", dwRequestId=1, **started, **sizes).result == 0
    until(lambda: bodies(server, "orders") == ["YQ=="], what="the message")
    assert reader.call("end_receive", phContext=context, dwAck=ACK, dwRequestId=1).result >> 31
