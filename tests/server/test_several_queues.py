"""Whole servers: messages for several queues, queues on hold over a restart, hardened mode, full memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.support.processes.servers import Server, data_directory, until

FAR = r"DIRECT=TCP:127.0.0.2\private$"


@contextmanager
def pair() -> Iterator[tuple[Server, Server]]:
    """Two servers; the first one, not started yet, dials the second one."""
    with ExitStack() as stack:
        near, far = (
            Server(stack.enter_context(data_directory()), "--name", name, host=host)
            for name, host in (("NEAR", "127.0.0.1"), ("FAR", "127.0.0.2"))
        )
        stack.callback(near.kill)
        stack.callback(far.kill)
        far.start()
        for name in ("q1", "q2"):
            far.ok("queue", "create", name)
        near.environment["MSMQ_FAST_MQQB__PEER_PORT"] = str(far.port("mqqb"))
        near.environment["MSMQ_FAST_MQQB__RETRY_INTERVAL"] = "0.2"
        yield near, far


def bodies(server: Server, queue: str) -> list[str]:
    return [message["body_b64"] for message in server.messages(queue)]


@pytest.mark.rule("DM-175", "DM-071")
def test_one_message_for_a_local_queue_and_two_queues_of_one_host() -> None:
    with pair() as (near, far):
        near.start()
        near.ok("queue", "create", "here")
        names = rf"here,{FAR}\q1,{FAR}\q2"
        for delivery in ((), ("--recoverable",)):
            near.ok("send", names, "--body", "hello", *delivery)
        assert bodies(near, "here") == ["aGVsbG8=", "aGVsbG8="]
        for queue in ("q1", "q2"):  # their host takes neither for a duplicate of the other
            until(lambda queue=queue: far.ok("queue", "show", queue)[0]["messages"] == 2, what=queue)
            assert bodies(far, queue) == ["aGVsbG8=", "aGVsbG8="]
        done = near.run("send", r"here,DIRECT=HTTP://far/msmq/private$/q1", "--body", "x")
        assert done.returncode != 0
        assert b"sending by HTTP is disabled on this server (srmp.sending)" in done.stderr
        assert near.run("receive", "here,q1").returncode != 0


@pytest.mark.rule("DM-209", "DM-210", "QB-381")
def test_a_queue_on_hold_stays_so_when_the_server_is_killed() -> None:
    with pair() as (near, far):
        near.start()
        name = rf"{FAR}\q1"
        near.ok("send", name, "--body", "first")
        until(lambda: far.ok("queue", "show", "q1")[0]["messages"] == 1, what="the first message")
        assert near.run("outgoing", "pause", name).returncode == 0
        near.ok("send", name, "--body", "second", "--recoverable")
        near.kill()
        near.start()
        shown = near.ok("outgoing", "show", name)[0]
        assert (shown["state"], shown["messages"]) == ("on_hold", 1)
        assert near.run("outgoing", "resume", name).returncode == 0
        until(lambda: far.ok("queue", "show", "q1")[0]["messages"] == 2, what="the second message")


@pytest.mark.rule("X-76", "DM-013")
def test_hardened_mode_ends_with_the_setting() -> None:
    with pair() as (near, far):
        near.environment["MSMQ_FAST_QUEUE_MANAGER__HARDENED"] = "on"
        near.start()
        assert "mqqb" not in near.ready
        assert "ping" not in near.ready
        name = rf"{FAR}\q1"
        near.ok("send", name, "--body", "x", "--recoverable")
        assert near.ok("outgoing", "show", name)[0]["state"] == "locked"
        assert near.stop() == 0
        del near.environment["MSMQ_FAST_QUEUE_MANAGER__HARDENED"]
        near.start()
        until(lambda: far.ok("queue", "show", "q1")[0]["messages"] == 1, what="the message")


@pytest.mark.rule("X-38", "DM-211", "DM-212")
def test_full_memory_is_seen_by_programs_and_in_the_figures(server: Server) -> None:
    server.environment["MSMQ_FAST_QUEUE_MANAGER__EXPRESS_MEMORY"] = "64 KiB"
    server.start()
    server.ok("queue", "create", "q")
    body = b"x" * 30_000
    sent = 0
    while server.run("send", "q", "-", stdin=body).returncode == 0:
        sent += 1
        assert sent < 9
    stats = server.ok("stats")[0]
    assert stats["throttled"] == 1
    assert stats["express_bytes"] > 65_536
    assert stats["flow_control"] == 1
    assert len(server.messages("q", 2)) == 2
    assert server.ok("stats")[0]["throttled"] == 0
    assert server.run("send", "q", "-", stdin=body).returncode == 0


@pytest.mark.long(seconds=7)
@pytest.mark.rule("QB-112")
def test_an_outgoing_queue_that_nobody_needs_goes_and_comes_again() -> None:
    with pair() as (near, far):
        near.start()
        far.ok("queue", "create", "exact", "--transactional")
        name = rf"{FAR}\exact"
        near.ok("send", name, "--body", "first", "--xact")
        until(lambda: far.ok("queue", "show", "exact")[0]["messages"] == 1, what="the first message")
        until(lambda: near.ok("outgoing", "show", name)[0]["messages"] == 0, what="its OrderAck")
        before = near.ok("stats")[0]["messages_out"]
        near.ok("outgoing", "delete", name)
        assert [queue["name"] for queue in near.ok("outgoing", "list")] == []
        assert near.ok("stats")[0]["messages_out"] == before
        near.ok("send", name, "--body", "second", "--xact")  # on the session that there is
        until(lambda: far.ok("queue", "show", "exact")[0]["messages"] == 2, what="the second message")
        near.environment["MSMQ_FAST_QUEUE_MANAGER__OUTGOING_IDLE"] = "2"
        until(lambda: near.ok("outgoing", "show", name)[0]["messages"] == 0, what="its OrderAck")
        near.kill()
        near.start()
        until(lambda: near.ok("outgoing", "list") == [], what="the end of the queue")
        near.ok("send", name, "--body", "third", "--xact")
        until(lambda: far.ok("queue", "show", "exact")[0]["messages"] == 3, what="the third message")
