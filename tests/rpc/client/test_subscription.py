"""Subscriptions to queues of other computers."""

from __future__ import annotations

import pytest

from msmq_fast.protocol.errors import MSMQError, RemoteMachineNotAvailable
from msmq_fast.qm.reading.remote import RemoteMessage, RemoteQueue, RemoteSubscription
from msmq_fast.rpc.idl.remoteread import REMOTE_READ
from tests.support.rpc.fake_computers import Reader, RemoteReadComputer, packet
from tests.support.rpc.fakes import Later, Network

ACK, NACK = 2, 1


class Subscriber:
    def __init__(self, network: Network, *bodies: bytes, credit: int, acknowledge: bool = True) -> None:
        self.network = network
        self.computer = RemoteReadComputer(network, *bodies)
        self.queue: RemoteQueue = Reader(network).open()
        self.came: list[RemoteMessage] = []
        self.end: MSMQError | None = None
        self.subscription: RemoteSubscription = self.queue.subscribe(
            self.came.extend, credit, acknowledge=acknowledge, on_end=self._ended
        )
        network.run()

    def _ended(self, error: MSMQError) -> None:
        self.end = error

    @property
    def packets(self) -> list[bytes]:
        return [message.packet for message in self.came]

    @property
    def acks(self) -> list[int]:
        return [ack for _, ack in self.computer.ends]


@pytest.fixture
def network() -> Network:
    return Network()


def test_no_more_than_the_credit(network: Network) -> None:
    it = Subscriber(network, b"one", b"two", b"three", credit=2)
    assert it.packets == [packet(b"one"), packet(b"two")]
    assert it.acks == []
    assert sorted(it.computer.queue.locked.values()) == [1, 2]
    it.subscription.grant(5)
    network.run()
    assert it.packets == [packet(b"one"), packet(b"two"), packet(b"three")]
    it.computer.arrive(b"four")
    network.run()
    assert it.packets[-1] == packet(b"four")


def test_acknowledged_and_released(network: Network) -> None:
    it = Subscriber(network, b"one", b"two", b"three", credit=3)
    ids = [message.lookup_id for message in it.came]
    done = it.subscription.ack(ids[:2])
    assert it.subscription.release(ids[2:]) == 1
    assert not done.done
    network.run()
    assert done.result() == 2
    assert it.computer.queue.removed == [1, 2]
    assert list(it.computer.queue.messages) == [3]
    assert it.computer.queue.locked == {}


def test_closing_puts_back_what_is_not_acknowledged(network: Network) -> None:
    it = Subscriber(network, b"one", b"two", credit=4)
    it.subscription.close()
    network.run()
    assert it.acks == [NACK, NACK]
    assert it.computer.queue.waiting == {}, "the read that waited is cancelled"
    assert it.end is None


def test_closing_the_queue_closes_its_subscriptions(network: Network) -> None:
    it = Subscriber(network, b"one", credit=4)
    it.queue.close()
    network.run()
    assert it.acks == [NACK]
    assert it.computer.server.names()[-1] == "close_queue"


def test_without_acknowledging_messages_are_removed_first_and_keep_their_order(network: Network) -> None:
    it = Subscriber(network, *(b"%d" % number for number in range(20)), credit=30, acknowledge=False)
    assert it.packets == [packet(b"%d" % number) for number in range(20)]
    assert it.acks == [ACK] * 20
    assert it.computer.queue.messages == {}


def test_a_lost_connection_ends_it(network: Network) -> None:
    it = Subscriber(network, credit=1)
    it.computer.drop()
    network.run()
    assert isinstance(it.end, RemoteMachineNotAvailable)


def test_what_is_no_message_ends_it_and_goes_back(network: Network) -> None:
    it = Subscriber(network, credit=3)
    it.computer.queue.messages[1] = bytes(100)
    request_id = next(iter(it.computer.queue.waiting))
    args, later = it.computer.queue.waiting.pop(request_id)
    later.answer(it.computer.found(args, 1))
    network.run()
    assert it.end is not None
    assert it.acks == [NACK]
    assert it.came == []


def test_an_acknowledgment_whose_answer_is_lost_is_settled(network: Network) -> None:
    it = Subscriber(network, b"one", credit=1)
    end = it.computer.end

    def broken(args: object) -> None:
        end(args)
        it.computer.drop()

    it.computer.server.handlers["end_receive"] = broken
    done = it.subscription.ack([it.came[0].lookup_id])
    network.run()
    assert done.result() == 1


def test_an_acknowledgment_that_did_not_arrive_fails(network: Network) -> None:
    it = Subscriber(network, b"one", credit=1)
    it.computer.server.handlers["end_receive"] = lambda _: it.computer.drop()
    done = it.subscription.ack([it.came[0].lookup_id])
    network.run()
    assert isinstance(done.exception(), MSMQError)
    assert list(it.computer.queue.messages) == [1]


def test_what_the_line_broke_over_still_comes_when_it_was_removed(network: Network) -> None:
    it = Subscriber(network, credit=3, acknowledge=False)
    end = it.computer.end

    def broken(args: object) -> None:
        end(args)
        it.computer.drop()

    it.computer.server.handlers["end_receive"] = broken
    it.computer.arrive(b"one")
    network.run()
    assert it.computer.queue.removed == [1]
    assert it.packets == [packet(b"one")]
    assert isinstance(it.end, RemoteMachineNotAvailable), "and nothing after it"


def test_what_is_removed_behind_a_failure_still_comes(network: Network) -> None:
    it = Subscriber(network, credit=9, acknowledge=False)
    answers: list[Later] = []

    def late(args: object) -> Later:
        answers.append(Later())
        return answers[-1]

    it.computer.server.handlers["end_receive"] = late
    for number in (1, 2):
        it.computer.queue.messages[number] = packet(b"%d" % number)
    args, later = it.computer.queue.waiting.popitem()[1]
    later.answer(it.computer.found(args, 1))
    network.run()
    results = REMOTE_READ.op("end_receive").Results
    answers[0].answer(results(result=0xC00E0007))
    network.run()
    assert it.end is None, "the removal of the second one is under way"
    answers[1].answer(results())
    network.run()
    assert it.packets == [packet(b"2")]
    assert it.end is not None
