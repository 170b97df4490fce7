"""Why outgoing queues of real servers send nothing, and "try now"."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from msmq_fast.protocol.exits import Exit
from tests.support.processes.pair import drained, free_port
from tests.support.processes.servers import Server, data_directory, until

THERE = r"DIRECT=TCP:127.0.0.3\private$\orders"
NEVER = "3600"  # seconds: no attempt without a kick


@pytest.fixture
def patient() -> Iterator[tuple[Server, Server]]:
    """Two servers that do not try again by themselves."""
    port = str(free_port())
    environment = {"MSMQ_FAST_MQQB__RETRY_INTERVAL": NEVER, "MSMQ_FAST_MQQB__RETRY_MAX": NEVER}
    with data_directory() as first, data_directory() as second:
        a = Server(first, "--port", port, "--name", "ALPHA", host="127.0.0.2", environment=environment)
        b = Server(second, "--port", port, "--name", "BETA", host="127.0.0.3", environment=environment)
        try:
            yield a.start(), b
        finally:
            a.kill()
            b.kill()


def outgoing(server: Server, name: str) -> dict[str, Any]:
    (found,) = server.ok("outgoing", "show", name)
    return dict(found)


def stalled(server: Server, name: str, cause: str) -> dict[str, Any]:
    until(lambda: outgoing(server, name)["stalled"] == cause, what=cause)
    return outgoing(server, name)


def test_a_refused_connection_is_kicked_when_the_peer_is_back(patient: tuple[Server, Server]) -> None:
    sender, receiver = patient
    sender.ok("send", THERE, "--body", "x", "--recoverable")
    shown = stalled(sender, THERE, "connection refused")
    assert shown["reason"].startswith("127.0.0.3 refused the connection")
    assert shown["last_error"] == shown["reason"]
    assert shown["attempts"] == 1
    assert shown["next_attempt"] > shown["last_error_time"] >= shown["oldest"] > 0
    assert "refused the connection" in sender.run("status").stdout.decode()
    sender.ok("outgoing", "kick", THERE)
    until(lambda: outgoing(sender, THERE)["attempts"] == 2, what="a second attempt")
    receiver.start()
    receiver.ok("queue", "create", "orders")
    assert sender.ok("outgoing", "kick", THERE) == [{"kicked": THERE, "messages": 1}]
    until(lambda: drained(sender), what="the message at its receiver")
    shown = outgoing(sender, THERE)
    assert (shown["stalled"], shown["reason"], shown["attempts"], shown["oldest"]) == ("", "", 0, 0)
    assert "refused the connection" in shown["last_error"]


def test_what_a_receiver_does_not_acknowledge_has_the_time_of_its_resending(
    patient: tuple[Server, Server],
) -> None:
    sender, receiver = patient
    receiver.start().ok("queue", "create", "orders", "--transactional")
    sender.ok("send", THERE, "--body", "first", "--transaction")
    until(lambda: drained(sender), what="the OrderAck")
    assert receiver.process is not None
    receiver.process.send_signal(signal.SIGSTOP)
    try:
        sender.ok("send", THERE, "--body", "second", "--transaction")
        shown = stalled(sender, THERE, "not acknowledged")
        assert shown["reason"].startswith("the receiver has not acknowledged 1 message in order")
        assert shown["next_attempt"] == shown["resend_time"] > 0
    finally:
        receiver.process.send_signal(signal.SIGCONT)
    until(lambda: drained(sender), what="the second OrderAck")


def test_a_name_that_has_no_address(patient: tuple[Server, Server]) -> None:
    sender, _ = patient
    name = r"DIRECT=OS:nosuchhost.invalid\private$\orders"
    sender.ok("send", name, "--body", "x")
    assert "could not be resolved" in stalled(sender, name, "name not resolved")["reason"]


def test_a_destination_without_a_route(patient: tuple[Server, Server]) -> None:
    sender, _ = patient
    name = "PRIVATE=43cd8907-394c-8f11-4445-9078909ea0fc\\00000005"
    sender.ok("send", name, "--body", "x")
    assert "add one to [[routes]]" in stalled(sender, name, "no route")["reason"]


def test_a_transport_that_is_off(patient: tuple[Server, Server]) -> None:
    sender, _ = patient
    name = "DIRECT=HTTP://127.0.0.3/msmq/private$/orders"
    done = sender.run("send", name, "--body", "x")
    if done.returncode == Exit.OK:
        assert "srmp.sending" in stalled(sender, name, "transport off")["reason"]


def test_a_paused_queue_names_the_operator_and_is_not_kicked(patient: tuple[Server, Server]) -> None:
    sender, _ = patient
    sender.ok("send", THERE, "--body", "x")
    sender.ok("outgoing", "pause", THERE)
    shown = stalled(sender, THERE, "on hold")
    assert shown["paused_by"]
    assert f"paused by {shown['paused_by']}" in shown["reason"]
    done = sender.run("outgoing", "kick", THERE)
    assert done.returncode != Exit.OK
    assert b"on hold, paused by" in done.stderr
