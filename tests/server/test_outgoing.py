"""Which way messages leave: who is told of an outgoing queue."""

from __future__ import annotations

import asyncio

import pytest

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.server.outgoing import Dispatcher
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import Told, World

NAMES = {
    "mqqb": r"DIRECT=TCP:10.0.0.9\private$\there",
    "http": "DIRECT=HTTP://there.test/msmq/private$/there",
    "multicast": "MULTICAST=234.1.1.1:8001",
}


class Carrier:
    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def channel_of(self, queue: OutgoingQueue) -> Told:
        return Told(queue, self._work, self._held)

    def _work(self, queue: OutgoingQueue) -> None:
        self.told.append(("work", queue.name))

    def _held(self, queue: OutgoingQueue, on_hold: bool) -> None:
        self.told.append(("held" if on_hold else "released", queue.name))

    def removed(self, queue: OutgoingQueue) -> None:
        self.told.append(("removed", queue.name))


def send(world: World, name: str) -> OutgoingQueue:
    queue = world.manager.outgoing_queues.to(parse_format_name(name))
    queue.core.enqueue_packets([Message(body=b"x", sent_time=WALL).to_packet()])
    world.run()
    return queue


@pytest.mark.rule("DM-240", "QB-375")
def test_each_kind_of_name_has_its_carrier() -> None:
    world = World(http=True, multicast=True)
    carriers = {kind: Carrier() for kind in NAMES}
    asyncio.run(
        Dispatcher(world.manager, carriers["mqqb"], carriers["http"], carriers["multicast"]).listen({})
    )
    for name in NAMES.values():
        queue = send(world, name)
        world.manager.pause(queue)
        world.manager.resume(queue)
        world.run()
    for kind, carrier in carriers.items():
        assert {name for _, name in carrier.told} == {NAMES[kind]}
        assert [what for what, _ in carrier.told if what != "work"] == ["held", "released"]
        assert ("work", NAMES[kind]) in carrier.told


def test_without_a_carrier_messages_wait() -> None:
    world = World(http=True, multicast=True)
    usual = Carrier()
    asyncio.run(Dispatcher(world.manager, usual, None, None).listen({}))
    queues = [send(world, name) for name in NAMES.values()]
    assert [queue.messages for queue in queues] == [1, 1, 1]
    assert {name for _, name in usual.told} == {NAMES["mqqb"]}
