"""Messages from other computers that arrive at a queue manager in memory."""

from __future__ import annotations

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.mqqb.destination import Destination, destinations
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.reasons import Refusal
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.mqqb.sessionstate import SessionState
from tests.support.clocks import WALL
from tests.support.mqqb import wire
from tests.support.worlds.queue_manager import World

NEGATIVE_ARRIVAL, ALL = 4, 15
ADMIN = r"OS:HOST\private$\admin"


class Inbound:
    """A queue manager and an open session to it."""

    def __init__(self, *, insecure: bool = False, protection: Refusing | None = None) -> None:
        self.world = World(insecure_nacks=insecure)
        self.world.create("orders")
        self.world.create("transacted", transactional=True)
        self.world.create("admin")
        manager = self.world.manager
        self.session_context = SessionContext(
            manager.guid,
            manager.ledger,
            destinations(manager.find_field, lambda queue: queue.part.queue != "guarded"),  # type: ignore[union-attr]
            nack=manager.ack_policy.reject,
            hooks=Hooks(must_wait=manager.ack_policy.must_wait, protection=protection),  # type: ignore[arg-type]
        )
        self.connect()

    def connect(self) -> None:
        self.session = Session(self.session_context, "127.0.0.9", 100.0, initiator=False)
        self.session.receive(wire.establish(), 100.0)
        self.session.receive(wire.parameters(500, 20_000, 64), 100.0)
        assert self.session.state is SessionState.OPEN
        self.session.data_to_send()

    def arrive(self, number: int = 1, queue: str = "orders", **fields: object) -> None:
        values: dict[str, object] = {"sent_time": WALL, "ack_flags": ALL, "admin": ADMIN, "recoverable": True}
        packet = wire.message(number, queue=rf"OS:HOST\private$\{queue}", **(values | fields))  # type: ignore[arg-type]
        self.session.receive(packet, 100.0)

    def acknowledged(self, now: float) -> int:
        """Bits of recoverable messages in the SessionAcks that have gone out by now."""
        self.session.pump(now)
        self.session.expire(now + 1)
        packets = wire.split(b"".join(self.session.data_to_send()))
        packets = [packet for packet in packets if wire.kind(packet) == "ACK"]
        return max((bin(wire.read_header(packet)[2]).count("1") for packet in packets), default=0)


class Refusing:
    """A protection that opens no message, always for the same reason."""

    opened = 0

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal

    def open(self, message: ParsedMessage, target: Destination) -> Refusal:
        return self._refusal
