"""A queue manager's worth of parts around a session, in memory, with time and disk in the hands of
the test."""

from __future__ import annotations

from array import array
from uuid import UUID

from msmq_fast._native.instream import InStreams
from msmq_fast._native.ledger import Ledger
from msmq_fast._native.memorystore import MemoryReader, MemoryTables, MemoryWriter
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.receive import head
from msmq_fast.mqqb.channel import Protect
from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.orderack import OrderAcks, load_streams
from msmq_fast.mqqb.peers import Peers
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName
from tests.support.mqqb import wire

OWN = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")


class Source:
    """An outgoing queue over a core."""

    protect: Protect | None = None

    def __init__(self, core: QueueCore, direct: bool = True, base_priority: int = 0) -> None:
        self.core = core
        self.direct = direct
        self.base_priority = base_priority
        self.sequence = core.sequence

    def head(self) -> tuple[int, int]:
        return head(self.core)

    def acknowledged(self, owner: int, lookup_ids: array[int]) -> None:
        self.core.acked(lookup_ids, owner)

    def released(self, owner: int, lookup_ids: array[int]) -> None:
        self.core.release(lookup_ids, owner)

    def expired(self, owner: int, lookup_ids: array[int]) -> None:
        self.core.release(lookup_ids, owner)
        self.core.ledger.expire()

    def transmitted(self, now: float) -> None:
        pass

    def ended(self, owner: int, *, idle: bool) -> None:
        pass


class Follower:
    """Keeps what the owner of sessions is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []

    def answered(self, session: Session) -> None:
        self.told.append(("answered", session.peer_guid))

    def opened(self, session: Session, now: float) -> None:
        self.told.append(("opened", now))

    def closed(self, session: Session, now: float) -> None:
        self.told.append(("closed", session.reason))

    def gone(self, session: Session) -> None:
        self.told.append(("gone", session.peer_guid))


PEER_OPTIONS = ("several_addresses", "pinned", "on_contest")


class Host:
    """One side: ledger, queues by the part of their direct name behind the host, session context."""

    streams_limit = 100_000
    batch_units = 4096

    def __init__(self, guid: UUID = OWN, *, tables: MemoryTables | None = None, **options: object) -> None:
        self.tables = MemoryTables() if tables is None else tables
        self.writer = MemoryWriter(self.tables, max_units=self.batch_units)
        self.ledger = Ledger(guid.bytes_le, self.writer, MemoryReader(self.tables))
        self.ledger.reserved(1 << 40)
        self.ledger.feed = False
        self.now = 100.0
        self.ledger.tick(2_000 * 1_000_000)
        self.acks: list[Message] = []
        self.damage: list[str] = []
        of_peers = {name: options.pop(name) for name in PEER_OPTIONS if name in options}
        peers = Peers(guid, **of_peers)  # type: ignore[arg-type]
        streams = InStreams(self.ledger, self.streams_limit, vouches=peers.vouches)
        load_streams(streams, self.tables.scan, lambda kind, text: self.damage.append(text))
        self.order_acks = OrderAcks(guid, self.ledger, streams, self.send, lambda: self.now, peers=peers)
        self.queues: dict[str, Destination] = {}
        self.refusals: list[tuple[str, str]] = []
        self.session_context = SessionContext(
            guid,
            self.ledger,
            self.resolve,
            on_refusal=lambda reason, about: self.refusals.append((reason, about.describe())),
            order_acks=self.order_acks,
            peers=peers,
            **options,  # type: ignore[arg-type]
        )
        self.ordinals = 0
        self.follower = Follower()
        self.woken: list[Session] = []
        self.add("q")

    def send(self, message: Message, _via: FormatName, _address: str) -> tuple[QueueCore, int]:
        """Where OrderAcks and FinalAcks go; they leave at once."""
        self.acks.append(message)
        return self["q"], 0

    def advance(self, seconds: float) -> None:
        """Later, with the OrderAcks that are due on the way."""
        until = self.now + seconds
        while True:
            due = self.order_acks.next_deadline()
            if due is None or due > until:
                break
            self._at(max(due, self.now))
            self.order_acks.expire(self.now)
        self._at(until)

    def _at(self, now: float) -> None:
        self.now = now
        self.ledger.tick(round((1_900 + now) * 1_000_000))

    def core(self, outgoing: bool = False) -> QueueCore:
        self.ordinals += 1
        return QueueCore(self.ledger, self.ordinals, outgoing=outgoing)

    def add(self, name: str, **demands: bool) -> QueueCore:
        core = self.core()
        self.queues[f"private$\\{name}"] = Destination(core, **demands)
        return core

    def resolve(self, dest_type: int, name: bytes) -> Destination | None:
        assert dest_type == 7
        count = int.from_bytes(name[:2], "little")
        return self.queues.get(name[2:count].decode("utf-16-le").partition("\\")[2].lower())

    def __getitem__(self, name: str) -> QueueCore:
        return self.queues[f"private$\\{name}"].core

    def commit(self) -> None:
        """The disk catches up."""
        self.writer.submit()
        self.writer.complete_all()

    def messages(self, name: str = "q") -> list[int]:
        """MessageIDs available in a queue, in order."""
        owner = self.ledger.new_owner()
        taken = self[name].take(1 << 20, 1 << 30, owner)
        self[name].release(array("Q", [m.lookup_id for m in taken]), owner)
        return [wire.ordinal(m.packet) for m in taken]

    def outgoing(self, packets: list[bytes]) -> Source:
        """An outgoing queue that holds these packets, durable."""
        source = Source(self.core(outgoing=True))
        self.put(source, packets)
        return source

    def put(self, source: Source, packets: list[bytes]) -> None:
        source.core.enqueue_packets(packets)
        self.commit()

    def accept(self, now: float = 100.0, address: str = "127.0.0.9", **options: object) -> Session:
        return self._session(address, now, initiator=False, **options)

    def dial(self, now: float = 100.0, address: str = "127.0.0.9", **options: object) -> Session:
        return self._session(address, now, initiator=True, **options)

    def _session(self, address: str, now: float, **options: object) -> Session:
        wake = self.woken.append
        return Session(self.session_context, address, now, owner=self.follower, wake=wake, **options)  # type: ignore[arg-type]

    def opened(
        self,
        now: float = 100.0,
        window: int = 64,
        recoverable: int = 500,
        ack: int = 20_000,
        *,
        peer: UUID = wire.PEER,
        address: str = "127.0.0.9",
    ) -> Session:
        """An accepted session in state OPEN whose handshake output was taken."""
        session = self.accept(now, address)
        session.receive(wire.establish(peer), now)
        session.receive(wire.parameters(recoverable, ack, window), now)
        assert session.state is SessionState.OPEN
        session.data_to_send()
        return session


def sent(session: Session) -> list[bytes]:
    """The packets that the session wants to send."""
    return wire.split(b"".join(session.data_to_send()))
