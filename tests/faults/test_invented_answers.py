"""Answers to invented places: administration queues and senders that do not exist, named by one stranger."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from uuid import UUID

import pytest
import uvloop

from msmq_fast.packet.user import TransactionHeader
from tests.support.hostile.attacked import Scene, attacked
from tests.support.hostile.hostile_sessions import Raw
from tests.support.mqqb import wire
from tests.support.processes.servers import Server, data_directory, until

HOST, ATTACKER = "127.0.53.4", "127.0.53.66"
GUID = UUID(int=0xA77AC4)
PER_ADDRESS = 20
CONFIG = f"""
[limits]
answers_per_address = {PER_ADDRESS}
[mqqb]
order_ack_delay = 0.1
"""
MIB = 1 << 20
_RECEIVED = 2  # MQMSG_ACKNOWLEDGMENT_POS_RECEIVE


async def _flood(server: Server, packets: list[bytes]) -> None:
    peer = await Raw.open(server.host, server.port("mqqb"), client=GUID, source=ATTACKER)

    async def drain() -> None:
        while await peer.reader.read(1 << 16):
            pass

    drained = asyncio.create_task(drain())
    for at in range(0, len(packets), 32):
        peer.writer.write(b"".join(packets[at : at + 32]))
        await peer.writer.drain()
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.5)
    drained.cancel()
    peer.writer.close()


def invented_queues(count: int) -> list[bytes]:
    """Messages that want their acknowledgments in queues of computers that do not exist."""
    now = int(time.time())
    return [
        wire.message(
            number + 1,
            queue="OS:h\\private$\\q",
            recoverable=True,
            body=b"x",
            sent_time=now,
            source=GUID,
            ack_flags=1,
            admin=f"OS:no-such-host-{number}.invalid\\private$\\a{number}",
        )
        for number in range(count)
    ]


def invented_senders(count: int) -> list[bytes]:
    """The first transactional messages of as many senders, none of which exists."""
    header = TransactionHeader(
        sequence_ordinal=1,
        sequence_timestamp=1_700_000_000,
        sequence_number=1,
        previous_number=0,
        first=True,
        last=True,
    ).encode()
    now = int(time.time())
    return [
        wire.message(
            1,
            queue="OS:h\\private$\\tx",
            body=b"x",
            sent_time=now,
            source=UUID(int=number << 64 | 0xBADBAD),
            transaction=header,
        )
        for number in range(1, count + 1)
    ]


def outgoing(scene: Scene) -> list[dict[str, object]]:
    return list(json.loads(scene.get("/api/v1/outgoing?limit=1000"))["items"])


def delivered(server: Server, directory: Path) -> None:
    """A server that this one has never heard of sends a transactional message and hears of it."""
    port = str(server.port("mqqb"))
    new = Server(directory, "--port", port, "--name", "NEWCOMER", host="127.0.53.5")
    try:
        new.start()
        new.ok("send", rf"DIRECT=TCP:{server.host}\private$\tx", "--body", "x", "--xact")
        until(lambda: all(not q["messages"] for q in new.ok("outgoing", "list")), 30, "the OrderAck")
    finally:
        new.kill()


def queues_attack(count: int, grown: int) -> None:
    with attacked(CONFIG, host=HOST, queues=("q", "tx --transactional")) as scene, data_directory() as data:
        uvloop.run(_flood(scene.server, invented_queues(count)))
        until(lambda: len(outgoing(scene)) <= PER_ADDRESS + 20, 60, "few outgoing queues")
        stats = scene.stats()
        assert stats["acknowledgments"] >= PER_ADDRESS
        assert ATTACKER in stats["shortage"]
        assert ATTACKER in scene.get("/readyz").decode()
        assert scene.server.log.read_text().count(f"acknowledgments to {ATTACKER}") == 1
        delivered(scene.server, data)
        scene.server.ok("send", r"DIRECT=TCP:127.0.53.200\private$\zz", "--body", "x")
        report = scene.check()
        print(report)
        assert report.grown < grown


def test_invented_administration_queues_stay_few_and_take_nothing_from_others() -> None:
    queues_attack(300, 40 * MIB)


@pytest.mark.long(seconds=90)
def test_many_invented_administration_queues_stay_few_and_take_nothing_from_others() -> None:
    queues_attack(11_000, 60 * MIB)


def test_messages_that_a_peer_brings_in_our_own_name_are_not_answered() -> None:
    """What this computer sent is answered everywhere, without budget and time limit. After a restart nothing
    but the message itself tells where it came from.
    """
    with attacked(CONFIG, host=HOST, queues=("q",)) as scene:
        server, now = scene.server, int(time.time())
        places = [f"OS:no-such-host-{number}.invalid\\private$\\a" for number in range(PER_ADDRESS)]
        places += ["TCP:127.0.0.1\\private$\\a", "OS:localhost\\private$\\a"]
        packets = [
            wire.message(
                number,
                queue="OS:h\\private$\\q",
                recoverable=True,
                sent_time=now,
                source=UUID(server.ready["guid"]),
                ack_flags=_RECEIVED,
                admin=place,
            )
            for number, place in enumerate(places, 1)
        ]
        uvloop.run(_flood(server, packets))
        print(scene.check())
        assert server.stop(timeout=30) == 0
        server.start()
        server.ok("receive", "q", "--count", str(len(places)))
        assert server.ok("queue", "show", "q")[0]["messages"] == 0
        assert [queue["name"] for queue in outgoing(scene) if str(queue["name"]).endswith("\\a")] == []


def senders_attack(count: int, grown: int) -> None:
    with attacked(CONFIG, host=HOST, queues=("tx --transactional",)) as scene, data_directory() as data:
        uvloop.run(_flood(scene.server, invented_senders(count)))
        assert len(outgoing(scene)) < 40  # those of the witness
        delivered(scene.server, data)
        report = scene.check()
        print(report)
        assert report.grown < grown


def test_invented_senders_of_streams_have_one_outgoing_queue() -> None:
    senders_attack(500, 40 * MIB)


@pytest.mark.long(seconds=90)
def test_many_invented_senders_of_streams_do_not_hold_up_the_loop() -> None:
    senders_attack(9_900, 80 * MIB)  # more are refused by `limits.streams_per_address`
