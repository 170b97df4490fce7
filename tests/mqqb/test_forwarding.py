"""Messages that pass through queue managers which are neither their source nor their destination."""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from uuid import UUID

import pytest

from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.mqqb.forwarding import MAX_UNROUTED
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.reasons import CloseReason, Refusal
from msmq_fast.packet.message import Message
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.security.sid import sid
from tests.mqqb.forwarding import opened, private
from tests.mqqb.stations import Network, Station
from tests.support.clocks import WALL
from tests.support.mqqb import wire
from tests.support.worlds.hosts import sent

SENDER, ROUTER, RECEIVER = "10.0.0.1", "10.0.0.2", "10.0.0.3"


class Line:
    """A sender, a router, a receiver; static routes, no directory in common."""

    def __init__(self) -> None:
        self.network = Network()
        self.receiver = self.network.add("RECEIVER", RECEIVER)
        self.queue = self.receiver.make("inbox")
        guid = self.receiver.manager.guid
        self.router = self.network.add("ROUTER", ROUTER, static={guid: (Target(RECEIVER),)}, routes=True)
        self.sender = self.network.add("SENDER", SENDER, static={guid: (Target(ROUTER),)})
        self.name = str(self.queue.format_name(guid))

    def arrived(self) -> list[Message]:
        return self.receiver.read(self.queue)


def packets(station: Station, name: str) -> list[bytes]:
    """The packets in an outgoing queue."""
    core = station.outgoing()[name].core
    found: list[bytes] = []
    for key in core.positions.keys():  # noqa: SIM118 - no mapping
        core.peek(key, lambda message, _status: found.append(message.packet))
        station.store.reader.complete()
    return found


def reached(station: Station) -> list[str]:
    """Where its outgoing queues lead now."""
    return [address for queue in station.manager.outgoing() for address in queue.next_hops]


@pytest.mark.rule("QB-234", "QB-264", "QB-365", "QB-366", "QB-168")
@pytest.mark.parametrize("delivery", [Delivery.EXPRESS, Delivery.RECOVERABLE])
def test_a_message_by_a_private_name_goes_through_a_router(delivery: Delivery) -> None:
    line = Line()
    assert line.name.startswith("PRIVATE=")
    line.sender.post(line.name, b"one", b"two", delivery=delivery)
    line.network.pass_time(1.0)
    arrived = line.arrived()
    assert [message.body for message in arrived] == [b"one", b"two"]
    assert {message.hops for message in arrived} == {1}
    assert {message.source_machine for message in arrived} == {line.sender.manager.guid}
    assert {message.destination_manager for message in arrived} == {line.receiver.manager.guid}
    assert [
        session.receiver.relayed for session in line.router.endpoint.sessions if not session.initiator
    ] == [2]
    assert (SENDER, RECEIVER) not in line.network.dialled
    assert [
        queue.messages for station in (line.sender, line.router) for queue in station.manager.outgoing()
    ] == [0, 0]


@pytest.mark.rule("QB-234")
def test_too_many_hops_end_a_journey_with_an_acknowledgment() -> None:
    line = Line()
    answers = line.sender.make("answers")
    admin = answers.format_name(line.sender.manager.guid)
    line.router.static[line.sender.manager.guid] = (Target(SENDER),)
    line.router.connect()
    line.sender.post(
        line.name,
        b"x",
        hops=0x1D,
        acknowledge=Acknowledge.NEGATIVE_ARRIVAL,
        admin_queue=admin,
        journal=Journal.DEADLETTER,
        delivery=1,
    )
    line.sender.post(line.name, b"y", hops=0x1C, delivery=1)
    line.network.settle()
    assert [message.body for message in line.arrived()] == [b"y"]
    (answer,) = line.sender.read(answers)
    assert answer.message_class == MessageClass.NACK_HOP_COUNT_EXCEEDED
    assert [reason for reason, _ in line.router.refusals] == ["too many hops"]
    assert line.router.bodies(".\\system$;deadletter") == [b"x"]
    assert line.sender.outgoing()[line.name].messages == 0


def test_a_message_is_not_sent_back_to_where_it_came_from() -> None:
    line = Line()
    sender = line.sender.manager.guid
    line.router.static[line.receiver.manager.guid] = (Target(SENDER, sender),)
    line.router.connect()
    line.sender.post(line.name, b"x", delivery=1)
    line.network.settle()
    assert [reason for reason, _ in line.router.refusals] == ["routing loop"]
    assert line.sender.outgoing()[line.name].messages == 0
    assert line.router.outgoing()[line.name].messages == 0


def test_a_message_of_our_own_that_comes_back_is_refused() -> None:
    """Static routes by address do not say who is there: the message itself shows the loop."""
    line = Line()
    line.router.static[line.receiver.manager.guid] = (Target(SENDER),)
    line.router.connect()
    line.sender.routes = True
    line.sender.connect()
    line.sender.post(line.name, b"x", delivery=1)
    line.network.settle()
    assert [reason for reason, _ in line.sender.refusals] == ["routing loop"]
    assert not any(queue.messages for queue in line.router.manager.outgoing())


@pytest.mark.rule("QB-223", "QB-224")
def test_what_was_passed_on_before_is_not_passed_on_again_unless_it_is_transactional() -> None:
    network = Network()
    router = network.add("ROUTER", ROUTER, routes=True)
    goal = UUID(int=77)
    queue = f"PRIVATE={goal}\\00000001"
    sequence = bytes(4) + struct.pack("<IIII", 7, 0, 1, 0)

    def arrive() -> None:
        session = opened(router)
        session.receive(private(1, goal) + private(2, goal, transaction=sequence), router.now)
        router.run()
        session.close(CloseReason.DISCONNECTED, router.now)

    arrive()
    held = Counter(wire.ordinal(packet) for packet in packets(router, queue))
    assert held == {1: 1, 2: 1}
    core = router.outgoing()[queue].core
    owner = router.manager.ledger.new_owner()
    core.acked(array("Q", [message.lookup_id for message in core.take(9, 1 << 20, owner)]), owner)
    router.run()
    arrive()
    assert Counter(wire.ordinal(packet) for packet in packets(router, queue)) == {2: 1}
    assert [reason for reason, _ in router.refusals] == ["duplicate"]


@pytest.mark.rule("QB-223")
def test_a_router_passes_on_a_transactional_message_again_when_the_first_copy_has_left() -> None:
    """The duplicate history holds only messages outside of sequences; the receiver drops what it has."""
    network = Network()
    router = network.add("ROUTER", ROUTER, routes=True)
    goal = UUID(int=77)
    queue = f"PRIVATE={goal}\\00000001"
    sequence = bytes(4) + struct.pack("<IIII", 7, 0, 1, 0)
    session = opened(router)
    for _ in range(2):
        session.receive(private(2, goal, transaction=sequence), router.now)
        router.run()
        assert Counter(wire.ordinal(packet) for packet in packets(router, queue)) == {2: 1}
        core = router.outgoing()[queue].core
        owner = router.manager.ledger.new_owner()
        core.acked(array("Q", [message.lookup_id for message in core.take(9, 1 << 20, owner)]), owner)
        router.run()
        assert packets(router, queue) == []


@pytest.mark.parametrize("ends", ["crash", "purge"])
def test_a_transactional_message_that_still_waits_is_not_put_beside_its_repetitions(ends: str) -> None:
    """Its source sends it again with every step of the ladder, also when the way on is closed for days."""
    network = Network()
    router = network.add("ROUTER", ROUTER, routes=True)
    goal = UUID(int=77)
    queue = f"PRIVATE={goal}\\00000001"
    sequence = bytes(4) + struct.pack("<IIII", 7, 0, 1, 0)
    session = opened(router)
    for _ in range(3):
        session.receive(private(2, goal, transaction=sequence), router.now)
        router.run()
    assert len(packets(router, queue)) == 1
    assert (session.window.pending, session.window.recoverable) == (0, 3)
    if ends == "crash":
        router.crash()
        router.connect()
    else:
        router.manager.purge(router.outgoing()[queue])
        router.run()
        assert packets(router, queue) == []
    session = opened(router)
    session.receive(private(2, goal, transaction=sequence), router.now)
    router.run()
    assert len(packets(router, queue)) == 1


@pytest.mark.rule("QB-114", "QB-234")
def test_nothing_but_the_hop_count_changes_on_the_way() -> None:
    network = Network()
    router = network.add("ROUTER", ROUTER, routes=True)
    goal = UUID(int=77)
    sequence = bytes(4) + struct.pack("<IIII", 7, 0, 1, 0)
    sent = [
        private(
            n, goal, transaction=sequence if n % 2 else b"", recoverable=True, hops=n, label="x", priority=5
        )
        for n in range(1, 7)
    ]
    session = opened(router)
    session.receive(b"".join(sent), router.now)
    router.run()
    kept = packets(router, f"PRIVATE={goal}\\00000001")
    for packet in kept:
        number = wire.ordinal(packet)
        original = bytearray(sent[number - 1])
        original[60] += 1
        assert packet == bytes(original)
    assert len(kept) == 6
    assert session.receiver.relayed == 6


@pytest.mark.rule("QB-225")
def test_a_message_that_cannot_be_kept_ends_the_session_unacknowledged() -> None:
    network = Network()
    router = network.add("ROUTER", ROUTER, routes=True, quota_kb=0)
    session = opened(router)
    session.receive(private(1, UUID(int=77), recoverable=True), router.now)
    assert session.reason is CloseReason.QUOTA
    assert not [packet for packet in sent(session) if wire.kind(packet) == "ACK"]


@pytest.mark.parametrize("fields", [{"reach": 10, "sent_time": WALL - 11}, {"hops": 0x1D}])
@pytest.mark.rule("QB-225")
def test_a_message_whose_dead_letter_cannot_be_kept_ends_the_session_unacknowledged(
    fields: dict[str, int],
) -> None:
    router = Network().add("ROUTER", ROUTER, routes=True)
    message = Message.from_packet(private(1, UUID(int=77), recoverable=True, **fields))
    message.journal = Journal.DEADLETTER
    router.manager.flow.begin("the disk is full")
    session = opened(router)
    session.receive(message.to_packet(), router.now)
    assert session.reason is CloseReason.QUOTA
    assert not [packet for packet in sent(session) if wire.kind(packet) == "ACK"]
    router.manager.flow.end("the disk is full")
    session = opened(router)
    session.receive(message.to_packet(), router.now)
    router.run()
    assert router.bodies(r".\system$;deadletter") == [message.body]


def test_a_recoverable_message_is_acknowledged_when_it_is_durable_and_survives_a_crash() -> None:
    network = Network()
    router = network.add("ROUTER", ROUTER, routes=True)
    goal = UUID(int=77)
    session = opened(router)
    session.receive(private(1, goal, recoverable=True), router.now)
    assert session.window.acknowledgeable == 0
    router.run()
    session.pump(router.now)
    (ack,) = sent(session)
    assert wire.read_header(ack)[:3] == (1, 1, 1)
    router.crash()
    router.connect()
    assert router.outgoing()[f"PRIVATE={goal}\\00000001"].messages == 1


def test_messages_for_destinations_that_nobody_knows_wait_and_are_bounded() -> None:
    network = Network()
    router = network.add("ROUTER", ROUTER, routes=True)
    session = opened(router)
    for number in range(MAX_UNROUTED):
        session.receive(private(number + 1, UUID(int=1_000 + number)), router.now)
    assert session.alive
    session.receive(private(MAX_UNROUTED + 1, UUID(int=999)), router.now)
    assert session.reason is CloseReason.UNROUTED
    assert len(list(router.manager.outgoing())) == MAX_UNROUTED + 1


def test_what_has_no_destination_is_refused() -> None:
    router = Network().add("ROUTER", ROUTER, routes=True)
    session = opened(router)
    packet = bytearray(private(1, UUID(int=77), recoverable=True))
    session.receive(bytes(packet[:61]) + bytes((packet[61] & ~0x1C,)) + bytes(packet[62:]), router.now)
    assert not list(router.manager.outgoing())


def test_a_message_whose_time_is_over_is_passed_on_no_more() -> None:
    router = Network().add("ROUTER", ROUTER, routes=True)
    session = opened(router)
    session.receive(private(1, UUID(int=77), reach=10, sent_time=WALL - 11), router.now)
    session.receive(private(2, UUID(int=77), reach=12, sent_time=WALL - 11), router.now)
    assert [wire.ordinal(packet) for packet in packets(router, f"PRIVATE={UUID(int=77)}\\00000001")] == [2]
    assert [reason for reason, _ in router.refusals] == ["time to reach queue passed"]


@pytest.mark.rule("QB-306", "QB-367", "QB-191")
def test_a_second_router_takes_over_when_the_first_is_down() -> None:
    line = Line()
    spare = "10.0.0.4"
    guid = line.receiver.manager.guid
    line.network.add("SPARE", spare, static={guid: (Target(RECEIVER),)}, routes=True)
    line.sender.static[guid] = (Target(ROUTER), Target("spare"))
    line.network.names["spare"] = [spare]
    line.sender.connect()
    line.network.cut(ROUTER)
    line.sender.post(line.name, b"x", delivery=1)
    line.network.settle()
    assert not line.arrived()
    line.network.pass_time(5.1)
    assert [message.body for message in line.arrived()] == [b"x"]
    assert reached(line.sender) == [spare]


def test_messages_of_a_public_queue_name_its_queue_manager_so_that_routers_can_find_it() -> None:
    line = Line()
    directory = line.sender.manager.directory
    machine = {"Identifier": line.receiver.manager.guid, "ComputerName": "RECEIVER"}
    line.sender.finish(directory.create(DirectoryObject(ObjectType.QUEUE_MANAGER, machine)))
    public = line.receiver.finish(line.receiver.manager.create_queue(".\\public"))
    known = {"Identifier": public.guid, "Pathname": "RECEIVER\\public"}
    line.sender.finish(directory.create(DirectoryObject(ObjectType.QUEUE, known)))
    line.sender.post(f"PUBLIC={public.guid}", b"x", delivery=1)
    line.network.settle()
    (message,) = line.receiver.read(public)
    assert message.hops == 1
    assert message.destination_manager == line.receiver.manager.guid


def test_a_router_keeps_no_journal_for_others() -> None:
    line = Line()
    line.sender.post(line.name, b"x", journal=Journal.JOURNAL, delivery=1)
    line.network.pass_time(1.0)
    journals = [station.manager.find(".\\system$;journal").messages for station in (line.sender, line.router)]
    assert journals == [1, 0]


def test_what_went_round_in_a_circle_is_found_whatever_came_before() -> None:
    line = Line()
    guid = line.receiver.manager.guid
    session = opened(line.router)
    session.receive(private(1, guid), line.router.now)
    session.receive(private(2, guid, source=line.router.manager.guid), line.router.now)
    assert [reason for reason, _ in line.router.refusals] == [Refusal.LOOP.value]


def test_nobody_claims_in_a_dead_letter_that_it_is_authenticated() -> None:
    line = Line()
    claim = struct.pack("<HHHHII", 0x0301, 28, 0, 0, 0, 0) + sid("S-1-5-21-7-8-9-1001").data
    packet = bytearray(private(1, line.receiver.manager.guid, hops=0x1D, security=claim))
    packet[61] |= 1  # JN
    opened(line.router).receive(bytes(packet), line.router.now)
    (letter,) = line.router.read(line.router.manager.find(r".\system$;deadletter"))
    assert letter.security is not None
    assert letter.security.authentication_level == 0


def test_ways_that_others_open_are_bounded() -> None:
    """Names are what senders claim, and each one takes a queue that stays."""
    network = Network()
    router = network.add("ROUTER", ROUTER, static={"*": (Target(RECEIVER),)}, routes=True)
    router.manager.outgoing_queues.most = 3
    session = opened(router)
    for number in range(1, 4):
        session.receive(private(number, UUID(int=number)), router.now)
    assert session.reason is None
    session.receive(private(4, UUID(int=4)), router.now)
    assert session.reason is CloseReason.UNROUTED
    assert len(list(router.manager.outgoing())) == 3


@pytest.mark.parametrize("authenticated", [True, False])
def test_a_name_of_the_router_itself_is_no_way_into_its_queues(authenticated: bool) -> None:
    """Addressed to somebody else, a message passes through until its name turns out to mean this computer."""
    router = Network().add("ROUTER", ROUTER, routes=True)
    inbox = router.make("inbox", authenticated=authenticated)
    claim = struct.pack("<HHHHII", 0x0301, 28, 0, 0, 0, 0) + sid("S-1-5-21-7-8-9-1001").data
    packet = wire.message(1, queue="OS:alias\\private$\\inbox", address=UUID(int=5), security=claim)
    opened(router).receive(packet, router.now)
    (way,) = router.manager.outgoing()
    way.deliver_locally()
    router.run()
    found = router.read(inbox)
    assert len(found) == (not authenticated)
    assert all(one.security is not None and not one.security.authentication_level for one in found)
