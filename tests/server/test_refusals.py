"""What an operator learns of messages that were refused, on both sides, and of those that only came again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvloop

from tests.support.hostile.hostile_sessions import Raw
from tests.support.mqqb import wire
from tests.support.processes.pair import free_port
from tests.support.processes.servers import Server, data_directory, until

HERE, THERE = "127.0.53.2", "127.0.53.3"
JSON_LOG = {"MSMQ_FAST_LOG__FORMAT": "json", "MSMQ_FAST_LOG__LEVEL": "info"}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Server, Server]]:
    port = str(free_port())
    with data_directory() as first, data_directory() as second:
        a = Server(first, "--port", port, "--name", "ALPHA", host=HERE, environment=JSON_LOG)
        b = Server(second, "--port", port, "--name", "BETA", host=THERE, environment=JSON_LOG)
        try:
            b.start()
            a.start()
            b.ok("queue", "create", "plain")
            yield a, b
        finally:
            a.kill()
            b.kill()


def lines(server: Server, **wanted: object) -> list[dict[str, Any]]:
    """Lines of a JSON log with these fields."""
    found = [json.loads(line) for line in server.log.read_text().splitlines() if line.startswith("{")]
    return [line for line in found if all(line.get(name) == value for name, value in wanted.items())]


def test_the_receiver_names_queue_peer_label_and_reason(pair: tuple[Server, Server]) -> None:
    a, b = pair
    name = rf"DIRECT=TCP:{THERE}\private$\nosuch"
    a.ok("send", name, "--body", "n1", "--recoverable", "--label", "an invoice\x1b[2J")
    until(lambda: lines(b, reason="unknown queue"), what="a line of the log")
    (line,) = lines(b, reason="unknown queue")
    assert (line["what"], line["queue"], line["peer"]) == ("message", name, HERE)
    assert line["message_id"] == line["detail"]
    assert line["message"].count(line["message_id"]) == 1
    assert line["label"] == r'"an invoice\x1b[2J"'
    for text in (name, HERE, "an invoice", line["detail"]):
        assert text in line["message"]


def test_the_sender_of_a_transactional_message_names_queue_peer_and_reason(
    pair: tuple[Server, Server],
) -> None:
    a, _ = pair
    name = rf"DIRECT=TCP:{THERE}\private$\plain"
    a.ok("send", name, "--body", "n2", "--xact")
    until(lambda: lines(a, what="sent message"), what="a line of the log")
    (line,) = lines(a, what="sent message")
    assert (line["reason"], line["queue"], line["peer"]) == ("NACK_NOT_TRANSACTIONAL_Q", name, THERE)
    assert line["detail"].startswith("{" + str(a.ready["guid"]))
    assert a.ok("stats")[0]["refusals"]["sent message: NACK_NOT_TRANSACTIONAL_Q"] == 1


def test_a_message_that_comes_again_is_neither_a_warning_nor_a_refusal(pair: tuple[Server, Server]) -> None:
    _, b = pair

    async def twice() -> None:
        for _ in range(2):  # the second session brings again what the first one brought
            peer = await Raw.open(THERE, b.port("mqqb"), client=wire.PEER, source=HERE)
            packet = wire.message(
                7, queue="OS:b\\private$\\plain", recoverable=True, sent_time=int(time.time())
            )
            peer.writer.write(packet)
            await peer.reader.readexactly(36)  # a SessionAck
            peer.writer.close()

    uvloop.run(twice())
    stats = b.ok("stats")[0]
    assert stats["repeated_messages"] == 1
    assert not [name for name in stats["refusals"] if "duplicate" in name]
    (line,) = lines(b, reason="duplicate")
    assert (line["level"], line["what"], line["peer"]) == ("info", "message", HERE)
    assert line["message_id"].endswith("\\7")
    assert line["queue"].endswith("plain")
    assert len(b.messages("plain")) == 1


def test_an_empty_queue_is_not_an_error_of_programs(pair: tuple[Server, Server]) -> None:
    _, b = pair
    before = b.ok("stats")[0]["app_errors"]
    b.ok("queue", "create", "empty")
    assert b.run("receive", "empty", "--count", "10").returncode == 4
    assert b.ok("stats")[0]["app_errors"] == before
    assert b.run("receive", "nosuch").returncode != 0
    assert b.ok("stats")[0]["app_errors"] > before
