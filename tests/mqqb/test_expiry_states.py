"""TimeToReachQueue runs out in every state that a message of an outgoing queue can be in; virtual clock."""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest

from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.transfer import Connect
from msmq_fast.packet.message import Message
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Acknowledge, Delivery, Journal
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from tests.mqqb.transactional import DEADXACT, NAME, Sender
from tests.support.mqqb import wire

DEADLETTER = r".\system$;DEADLETTER"
LIFE = 100  # seconds to reach the queue; longer than an attempt to connect, shorter than an idle session
SHORT = 20


class Script(Sender):
    """A sender of messages of one kind; `late` is the one whose time runs out."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.life = LIFE
        super().__init__()
        self.world.create("acks")

    def put(self, body: bytes, **values: object) -> None:
        if self.kind == "transactional":
            self.send(body, **values)
        else:
            delivery = Delivery.EXPRESS if self.kind == "express" else Delivery.RECOVERABLE
            self.world.send(body, NAME, delivery=delivery, **values)

    def late(self) -> None:
        """The message that is to expire: it asks for everything that can follow."""
        self.put(
            b"late",
            time_to_reach_queue=self.life,
            journal=Journal.DEADLETTER,
            acknowledge=Acknowledge.NEGATIVE_ARRIVAL,
            admin_queue=self.manager.find("acks").format_name(self.manager.guid),
        )

    def wire_bodies(self) -> list[bytes]:
        """What the peer gets now."""
        self.world.run()
        assert self.session is not None
        packets = wire.split(b"".join(self.session.data_to_send()))
        return [Message.from_packet(packet).body for packet in packets if wire.kind(packet) == "MSG"]

    @property
    def waiting(self) -> int:
        return self.queue.messages


def unconnected(script: Script) -> None:
    script.late()


def connecting(script: Script) -> None:
    """The peer accepted the connection and says nothing: WAITING_ECR_MSG."""
    script.life = SHORT
    script.late()
    (effect,) = script.effects
    assert isinstance(effect, Connect)
    script.session = script.endpoint.connected(effect.link, script.now)


def behind_a_full_window(script: Script) -> None:
    script.life = SHORT
    script.put(b"first")
    session = script.connect()
    assert script.wire_bodies() == [b"first"]
    session.receive(wire.session_ack(0, window=1), script.now)
    script.late()
    assert script.wire_bodies() == []


def paused(script: Script) -> None:
    script.late()
    queue = script.queue
    assert isinstance(queue, OutgoingQueue)
    script.world.finish(script.manager.pause(queue))


def sent(script: Script) -> None:
    script.life = SHORT
    script.late()
    script.connect()
    assert script.wire_bodies() == [b"late"]


def kept_by_the_peer(script: Script) -> None:
    """A SessionAck is no OrderAck."""
    sent(script)
    script.keep(1)


def received_in_part(script: Script) -> None:
    """AckSequenceNumber covers a recoverable message that is not durable at the peer: marked only."""
    sent(script)
    assert script.session is not None
    script.session.receive(wire.session_ack(1), script.now)
    script.world.run()


def left_by_an_idle_session(script: Script) -> None:
    kept_by_the_peer(script)
    assert script.session is not None
    script.session.close(CloseReason.IDLE, script.now)
    script.world.run()


def reconnecting(script: Script) -> None:
    script.late()
    session = script.connect()
    assert script.wire_bodies() == [b"late"]
    session.close(CloseReason.DISCONNECTED, script.now)


def restarted(script: Script) -> None:
    script.late()
    script.connect()
    assert script.wire_bodies() == [b"late"]
    script.world.crash()
    script.restart()


STATES = {
    "express": [unconnected, connecting, behind_a_full_window, paused, sent, reconnecting],
    "recoverable": [
        unconnected,
        connecting,
        behind_a_full_window,
        paused,
        sent,
        received_in_part,
        reconnecting,
        restarted,
    ],
    "transactional": [
        unconnected,
        connecting,
        behind_a_full_window,
        paused,
        sent,
        kept_by_the_peer,
        left_by_an_idle_session,
        reconnecting,
        restarted,
    ],
}


@pytest.mark.rule("QB-328", "QB-329", "QB-330", "QB-331", "DM-215")
@pytest.mark.parametrize(("kind", "state"), [(kind, state) for kind in STATES for state in STATES[kind]])
def test_a_message_expires_on_time_in_every_state(kind: str, state: Callable[[Script], None]) -> None:
    script = Script(kind)
    state(script)
    before = script.waiting
    script.advance(script.life - 5)
    assert script.waiting == before
    assert script.world.bodies("acks") == []
    script.advance(8)
    assert script.waiting == before - 1
    assert script.world.bodies("acks") == [b"late"]  # a negative acknowledgment brings the body back
    dead = DEADXACT if kind == "transactional" else DEADLETTER
    assert script.world.bodies(dead) == [b"late"]
    (letter,) = script.manager.find(dead).core.take(5, 1 << 20, 77)
    assert letter.reason == MessageClass.NACK_REACH_QUEUE_TIMEOUT


@pytest.mark.rule("QB-328", "QB-331")
@pytest.mark.parametrize(
    ("kind", "state"), [(kind, state) for kind in STATES for state in (unconnected, paused)]
)
def test_what_expired_is_never_sent(kind: str, state: Callable[[Script], None]) -> None:
    script = Script(kind)
    state(script)
    script.advance(script.life + 5)
    script.put(b"next")
    if state is paused:
        script.world.finish(script.manager.resume(script.queue))
    script.advance(6)
    script.connect()
    assert script.wire_bodies() == [b"next"]


@pytest.mark.rule("QB-331", "QB-126")
def test_what_was_ordered_has_reached_its_queue_and_expires_no_more() -> None:
    script = Script("transactional")
    script.life = SHORT
    script.send(b"x", time_to_reach_queue=SHORT, journal=Journal.DEADLETTER)
    script.connect()
    (place,) = script.taken()
    script.keep(1)
    script.order(place)
    script.advance(10 * SHORT)
    assert script.waiting == 1
    assert script.world.bodies(DEADXACT) == []


@pytest.mark.rule("QB-331")
@pytest.mark.parametrize("word", ["acknowledged", "closed"])
@pytest.mark.parametrize("kind", ["express", "recoverable"])
def test_words_that_come_too_late(kind: str, word: str) -> None:
    """The message is in doubt: its dead letter stands, whatever its peer or the session says of it later."""
    script = Script(kind)
    script.life = SHORT
    script.put(b"before")
    script.connect()
    script.late()
    script.put(b"behind")
    assert script.wire_bodies() == [b"before", b"late", b"behind"]
    script.advance(SHORT + 5)
    assert (script.waiting, script.queue.core.used_bytes > 0) == (2, True)
    assert script.world.bodies("acks") == script.world.bodies(DEADLETTER) == [b"late"]
    session = script.session
    assert session is not None
    if word == "acknowledged":
        if kind == "express":
            session.receive(wire.session_ack(3), script.now)
        else:
            script.keep(3)
        script.world.run()
        assert session.alive
        again: list[bytes] = []
    else:
        session.close(CloseReason.DISCONNECTED, script.now)
        script.advance(5)
        script.connect()
        again = script.wire_bodies()
        script.world.run()
    assert again == ([] if word == "acknowledged" else [b"before", b"behind"])
    assert script.waiting == len(again)
    script.put(b"next")
    assert script.wire_bodies() == [b"next"]
    assert script.waiting == len(again) + 1
    assert script.world.bodies("acks") == script.world.bodies(DEADLETTER) == [b"late"]
    assert script.queue.core.expired_total == 1


@pytest.mark.rule("QB-331", "DM-124")
@pytest.mark.parametrize("kind", list(STATES))
def test_what_a_program_has_locked_expires_when_it_lets_go(kind: str) -> None:
    script = Script(kind)
    script.late()
    core = script.queue.core
    owner = script.manager.ledger.new_owner()
    (message,) = core.take(9, 1 << 20, owner)
    script.advance(2 * LIFE)
    assert script.waiting == 1
    core.release(array("Q", [message.lookup_id]), owner)
    script.advance(1)
    assert script.waiting == 0
    assert script.world.bodies("acks") == [b"late"]


@pytest.mark.rule("QB-328")
@pytest.mark.parametrize("kind", ["express", "recoverable"])
def test_what_was_acknowledged_in_time_expires_no_more(kind: str) -> None:
    script = Script(kind)
    script.life = SHORT
    script.late()
    session = script.connect()
    assert script.wire_bodies() == [b"late"]
    if kind == "express":
        session.receive(wire.session_ack(1), script.now)
    else:
        script.keep(1)
    script.advance(10 * SHORT)
    assert script.waiting == 0
    assert script.world.bodies("acks") == script.world.bodies(DEADLETTER) == []
