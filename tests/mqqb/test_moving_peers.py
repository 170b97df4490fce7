"""Senders that change their address while messages are under way: each message arrives once."""

from __future__ import annotations

from random import Random

import pytest

from msmq_fast.mqqb.reasons import CloseReason
from tests.mqqb.stations import Network, Station

NAME = r"DIRECT=TCP:10.0.0.8\private$\orders"
ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]


def move(network: Network, station: Station, address: str) -> None:
    """Its connections break without a word; from now on it calls from another address."""
    now = network.clock.monotonic()
    for first, second, pipe in network.pipes:
        if station.address in (first, second):
            for end in pipe.ends:
                end.close(CloseReason.DISCONNECTED, now)
    del network.stations[station.address]
    station.address = address
    network.stations[address] = station


def some_steps(network: Network, chance: Random) -> None:
    """Part of what would happen now, so that acknowledgments are lost."""
    for _ in range(chance.randint(0, 6)):
        for station in list(network.stations.values()):
            station.run()
            network._execute(station)
        for _, _, pipe in list(network.pipes):
            if chance.random() < 0.7:
                pipe.carry(network.clock.monotonic())
    network.pipes = [entry for entry in network.pipes if all(end.alive for end in entry[2].ends)]


@pytest.mark.parametrize("seed", range(3))
def test_every_message_arrives_once_whatever_address_its_sender_has(seed: int) -> None:
    chance = Random(seed)
    network = Network()
    senders = [network.add(f"S{number}", f"10.0.1.{number}") for number in range(2)]
    receiver = network.add("RECEIVER", "10.0.0.8")
    queue = receiver.make("orders")
    sent = 0
    for _ in range(30):
        for sender in senders:
            sender.post(NAME, *(b"%d" % number for number in range(sent, sent + 3)), delivery=1)
        sent += 3
        some_steps(network, chance)
        mover = chance.choice(senders)
        free = [address for address in ADDRESSES if address not in network.stations]
        move(network, mover, chance.choice(free))
        if chance.random() < 0.3:
            network.pass_time(chance.choice([1.0, 10.0, 200.0]))
    network.pass_time(600.0)
    for sender in senders:
        assert [each.messages for each in sender.manager.outgoing()] == [0]
    found = receiver.read(queue)
    for sender in senders:
        bodies = [int(each.body) for each in found if each.source_machine == sender.manager.guid]
        assert sorted(bodies) == list(range(sent))
    assert "duplicate" in {reason for reason, _ in receiver.refusals}
