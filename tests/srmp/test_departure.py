"""Messages at the moment at which they leave by HTTP or by multicast: what is not sent any more, and how the
transport session ends.
"""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Journal
from msmq_fast.qm.queues.outgoing import OutgoingState
from msmq_fast.server.pgm.sending import PgmSending
from msmq_fast.srmp.channel import ChannelContext, HttpChannel
from msmq_fast.srmp.multicast import Feed
from msmq_fast.srmp.pgm.model import Group
from msmq_fast.srmp.pgm.packets import Spm, decode
from msmq_fast.srmp.pgm.settings import PgmSettings
from msmq_fast.srmp.pgm.source import Source
from msmq_fast.srmp.urls import Url
from tests.srmp.pgm.stage import SOURCE_IP, TSI
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

GROUP = "234.1.1.1:8001"
DEADLETTER = r".\system$;DEADLETTER"


class Multicasting:
    """An outgoing queue with a MULTICAST name, and its feed; the clock moves only where a test moves it."""

    def __init__(self, *bodies: bytes, reach: int = 30) -> None:
        self.world = World(multicast=True)
        manager = self.world.manager
        self.queue = manager.outgoing_queues.to(parse_format_name(f"MULTICAST={GROUP}"))
        for body in bodies:
            message = Message(
                body=body, sent_time=WALL, time_to_reach_queue=reach, journal=Journal.DEADLETTER
            )
            self.queue.core.enqueue_packets([message.to_packet()])
        self.world.run()
        self.refused: list[str] = []
        self.feed = Feed(
            manager,
            self.queue,
            manager.ledger.new_owner(),
            lambda packet, _: Message.from_packet(packet).body,
            lambda reason, *_: self.refused.append(reason),
            1 << 20,
        )
        group = Group("234.1.1.1", 8001)
        settings = PgmSettings(max_rate=1e6)
        self.feed.begin([lambda left: Source(settings, TSI, group, SOURCE_IP, Random(1), left, first=1)])

    def dead(self) -> list[bytes]:
        self.world.run()
        return self.world.bodies(DEADLETTER)


@pytest.mark.rule("SR-020")
def test_what_is_too_large_for_multicast_is_a_dead_letter() -> None:
    multicasting = Multicasting(bytes(65_537), bytes(65_536))
    multicasting.feed.pump(0.0)
    assert (multicasting.feed.under_way, multicasting.refused) == (1, ["too large for multicast"])
    assert [len(body) for body in multicasting.dead()] == [65_537]


@pytest.mark.rule("SR-193")
@pytest.mark.parametrize(("age", "sent"), [(30, True), (31, False)])
def test_what_is_too_late_is_not_multicast(age: int, sent: bool) -> None:
    """Also where the time ended since the queue manager last looked for what has expired."""
    multicasting = Multicasting(b"x")
    multicasting.world.clock.advance(age)
    multicasting.world.manager.tick()
    multicasting.feed.pump(0.0)
    assert bool(multicasting.feed.sources[0].backlog) is sent
    assert multicasting.dead() == ([] if sent else [b"x"])


@pytest.mark.rule("SR-193", "SR-194", "SR-126")
@pytest.mark.parametrize(("age", "sent"), [(30, True), (31, False)])
def test_what_is_too_late_is_not_posted(age: int, sent: bool) -> None:
    world = World(http=True)

    def encode(packet: bytes, url: Url, place: object) -> bytes:
        return Message.from_packet(packet).body

    name = "DIRECT=HTTP://server.test/msmq/private$/orders"
    world.send(b"x", name, time_to_reach_queue=30, journal=Journal.DEADLETTER)
    queue = world.manager.outgoing_queues.to(parse_format_name(name))
    never: Any = None
    of_channels = ChannelContext(
        never,
        world.manager,
        never,
        encode,
        lambda url: url,
        lambda: 0.0,
        lambda: WALL,
        never,
        never,
    )
    channel = HttpChannel(queue, of_channels)
    world.clock.advance(age)
    world.manager.tick()
    assert channel.take() == (b"x" if sent else None)
    world.run()
    assert world.bodies(DEADLETTER) == ([] if sent else [b"x"])
    if not sent:
        dead = world.finish(world.reader(DEADLETTER).receive(0, peek=True).completion)
        assert dead.reason == MessageClass.NACK_REACH_QUEUE_TIMEOUT


@pytest.mark.rule("SR-129", "SR-191")
def test_a_session_without_messages_ends_after_the_cleanup_interval() -> None:
    world = World(multicast=True)
    manager, sent = world.manager, []
    sockets: Any = SimpleNamespace(
        interfaces=[SimpleNamespace(address_towards=lambda _: SOURCE_IP)],
        send=lambda datagrams, _: sent.extend(decode(datagram.payload) for datagram in datagrams),
    )
    sending = PgmSending(
        manager,
        sockets,
        PgmSettings(),
        lambda packet, _: Message.from_packet(packet).body,
        lambda *_: None,
        lambda: WALL,
        Random(1),
        "host",
        300.0,
    )
    queue = manager.outgoing_queues.to(parse_format_name(f"MULTICAST={GROUP}"))
    queue.core.enqueue_packets([Message(body=b"x", sent_time=WALL).to_packet()])
    world.run()
    sending.has_work(queue)
    assert (queue.outgoing_state, queue.messages) == (OutgoingState.CONNECTED, 0)
    for seconds, state in ((299, OutgoingState.CONNECTED), (1, OutgoingState.DISCONNECTED)):
        sent.clear()
        world.clock.advance(seconds)
        sending.expire(manager.monotonic())
        sending.flush(manager.monotonic())
        assert queue.outgoing_state is state
        assert any(isinstance(each, Spm) and each.fin for each in sent) is (seconds == 1)


@pytest.mark.rule("SR-028")
@pytest.mark.parametrize("cancelled", [False, True])
def test_the_session_is_reset_only_if_messages_are_cancelled(cancelled: bool) -> None:
    multicasting = Multicasting(b"first", b"second")
    feed = multicasting.feed
    feed.pump(0.0)
    if not cancelled:
        feed.packets(0.0)
        feed.settle()
    (source,) = feed.end(1.0)
    said = [decode(datagram.payload) for datagram in source.packets(1.0)]
    spms = [spm for spm in said if isinstance(spm, Spm)]
    assert spms
    assert [(spm.fin, spm.rst is not None) for spm in spms] == [(not cancelled, cancelled)] * len(spms)
    assert multicasting.queue.messages == (2 if cancelled else 0)
