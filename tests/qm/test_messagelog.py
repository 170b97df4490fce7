"""The log of messages that did not go their way: fields, and a bounded number of lines."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.outgoing.messagelog import LineLimit
from msmq_fast.qm.queues.outgoing import ConnectionStatus, OutgoingQueue
from tests.support.worlds.queue_manager import World

AWAY = r"DIRECT=TCP:10.0.0.9\private$\there"


def lines(caplog: pytest.LogCaptureFixture, **wanted: object) -> list[dict[str, Any]]:
    found = [record.fields for record in caplog.records if record.name == "msmq_fast.messages"]  # type: ignore[attr-defined]
    return [line for line in found if all(line.get(name) == value for name, value in wanted.items())]


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "msmq_fast.messages")
    return caplog


def away(world: World, **properties: Any) -> OutgoingQueue:
    world.finish(world.manager.open(AWAY, Access.SEND).send(Message(body=b"x", delivery=1, **properties)))
    queue = world.manager.outgoing_queues.find(parse_format_name(AWAY))
    assert queue is not None
    return queue


def test_expired_messages_are_named_up_to_a_number(world: World, log: pytest.LogCaptureFixture) -> None:
    for _ in range(20):
        world.send(b"x", delivery=1, time_to_be_received=5)
    world.advance(10)
    found = lines(log, reason="expired")
    assert len(found) == 5  # the limit of lines a second
    assert {line["more"] for line in found} == {"12"}
    assert {line["queue"] for line in found} == {r"HOST\private$\orders"}
    assert all(str(world.manager.guid) in line["message_id"] for line in found)


def test_a_stall_is_logged_once_for_each_cause_until_a_session_opens(
    world: World, log: pytest.LogCaptureFixture
) -> None:
    queue = away(world)
    for _ in range(3):
        queue.note(ConnectionStatus.DNS_FAILURE, 1)
        queue.note(ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, 1)
    assert [line["reason"] for line in lines(log, queue=AWAY)] == ["name not resolved", "no route"]
    assert lines(log, queue=AWAY)[0]["message_id"].startswith(f"{{{world.manager.guid}}}")
    queue.note(ConnectionStatus.ESTABLISHED, 2, addresses=("10.0.0.9",))
    queue.note(ConnectionStatus.ESTABLISHED, 3, addresses=("10.0.0.9",))
    queue.note(ConnectionStatus.DNS_FAILURE, 4)
    assert [line["reason"] for line in lines(log, queue=AWAY)][2:] == ["sends again", "name not resolved"]


def test_an_empty_queue_has_no_line_when_its_peer_is_down(
    world: World, log: pytest.LogCaptureFixture
) -> None:
    queue = away(world)
    world.manager.purge(queue)
    world.run()
    queue.note(ConnectionStatus.DNS_FAILURE, 1)
    assert not lines(log, queue=AWAY)


def test_a_dead_letter_names_its_reason_and_destination(world: World, log: pytest.LogCaptureFixture) -> None:
    world.send(b"x", delivery=1, time_to_be_received=5, journal=Journal.DEADLETTER)
    world.advance(10)
    (line,) = lines(log, what="dead letter")
    assert line["reason"] == "NACK_RECEIVE_TIMEOUT"
    assert line["queue"].endswith("orders")


def test_names_from_peers_are_escaped_and_bounded(world: World, log: pytest.LogCaptureFixture) -> None:
    world.manager.message_log.duplicate("{x}\\1", lambda: {"queue": "a\x1b[2J\n" + "b" * 1000, "peer": ""})
    (line,) = lines(log, reason="duplicate")
    assert line["queue"].isprintable()
    assert len(line["queue"]) == 512
    assert "peer" not in line


def test_the_limit_says_how_many_lines_were_left_out() -> None:
    now = 1.0
    limit = LineLimit(lambda: now, 2)
    assert [limit.admit() for _ in range(5)] == [0, 0, None, None, None]
    now = 2.5
    limit.set_rate(1)
    assert [limit.admit() for _ in range(2)] == [3, None]
