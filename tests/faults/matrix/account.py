"""What a store holds, read past the queue manager, and the invariants I1 … I8 of what it holds.

I1 (nothing acknowledged is lost), I3 (all or nothing) and I8 (one acknowledgment of the right class for each
message) are judged by comparing what is there, acknowledgments included, with what each step of a scenario
says to be there before and after it; the others hold for every store.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from msmq_fast.packet import Message
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.queues.queue import QueueKind
from msmq_fast.qm.queues.system import SYSTEM_QUEUES
from msmq_fast.store import decode
from msmq_fast.store.schema import PositionFlag, Table
from tests.faults.matrix.host import Host

SEQUENCE = (1 << 56) - 1
TRANSACTION_ROWS = b"txn\x00"

_UNORDERED = (
    "admin",
    "orders;journal",
    "system$;deadletter",
)  # what follows from several messages that go together

State = dict[str, list[str]]


@dataclass
class Stored:
    """One message, from its position record and its packet."""

    queue: int
    key: int
    record: decode.Position
    message: Message

    @property
    def identifier(self) -> tuple[bytes, int]:
        return self.record.source, self.record.ordinal


@dataclass
class Numbers:
    """I5: the greatest numbers that were ever given out."""

    sequence: int = 0
    message: int = 0
    queue: int = 0
    incarnations: list[int] = field(default_factory=list)

    def take(self, host: Host) -> None:
        """Whatever the host has given out, durable or not."""
        manager = host.manager
        self.sequence = max(self.sequence, manager.ledger.sequence)
        self.message = max(self.message, manager.message_ordinals.last)
        self.queue = max(self.queue, *(queue.ordinal for queue in manager.queues()))

    def check(self, host: Host) -> None:
        """What a host that has just recovered will give out was never given out."""
        manager = host.manager
        assert manager.ledger.sequence >= self.sequence, "I5: lookup identifiers are used again"
        assert manager.message_ordinals.last >= self.message, "I5: message identifiers are used again"
        assert manager.registry.new_ordinal() > self.queue, "I5: queue ordinals are used again"


def stored(host: Host) -> list[Stored]:
    """Every message in the store, in key order. I4: each has its content."""
    found: list[Stored] = []
    for key, value in host.store.scan(Table.POSITION):
        queue, lookup_id = decode.position_key(key)
        record = decode.position(value)
        chunks = host.store.tables.scan(
            Table.CONTENT,
            decode.CONTENT_KEY.pack(record.content_id, 0),
            decode.CONTENT_KEY.pack(record.content_id, 0xFFFF),
        )
        packet = decode.content([chunk for _key, chunk in chunks], record.content_bytes)
        found.append(Stored(queue, lookup_id, record, Message.from_packet(packet)))
    return found


def observe(host: Host) -> State:
    """Queues and what is in them, as texts: the body; of an acknowledgment its class and what it is about.

    Only queues of programs are there when they are empty.
    """
    messages = stored(host)
    bodies = {
        one.message.source_machine.bytes_le + one.message.message_id.to_bytes(4, "little"): one.message.body
        for one in messages
    }
    bodies.update(host_bodies(host))
    contents: defaultdict[int, list[str]] = defaultdict(list)
    for one in messages:
        text = one.message.body.decode()
        if one.message.message_class != MessageClass.NORMAL:
            about = bodies.get(one.message.correlation_id, b"?").decode()
            text = f"{MessageClass(one.message.message_class).name} {about}"
        contents[one.queue].append(text)
    state: State = {}
    for queue in host.manager.queues():
        quiet = queue.kind not in (QueueKind.PRIVATE, QueueKind.PUBLIC)
        inside = contents.pop(queue.ordinal, [])
        if inside or not quiet:
            name = queue.name.rpartition("\\")[2].lower()
            state[name] = sorted(inside) if name in _UNORDERED else inside
    assert not contents, f"messages of queues that are not there: {dict(contents)}"
    doubt = [item for item in host.manager.transactions if item.state.name == "PREPARED"]
    if doubt:
        state["in doubt"] = [str(len(item.operations)) for item in doubt]
    return state


def host_bodies(host: Host) -> dict[bytes, bytes]:
    """Bodies of messages that are gone, by identifier, remembered by `remember`."""
    known: dict[bytes, bytes] = host.__dict__.setdefault("bodies", {})
    return known


def remember(host: Host) -> None:
    """Keep in mind which identifier belongs to which body."""
    for one in stored(host):
        if one.message.message_class == MessageClass.NORMAL:
            identifier = one.message.source_machine.bytes_le + one.message.message_id.to_bytes(4, "little")
            host_bodies(host)[identifier] = one.message.body


def check(host: Host, *, recovered: bool = False) -> None:
    """I2, I4, I6 and I7, of a host at rest. Records of deleted queues are gone when it has `recovered`."""
    messages = stored(host)
    manager = host.manager
    live = {queue.ordinal: queue for queue in manager.queues()}
    by_queue: defaultdict[int, list[Stored]] = defaultdict(list)
    for one in messages:
        by_queue[one.queue].append(one)
    for ordinal, inside in by_queue.items():
        twice = [key for key, count in Counter(one.identifier for one in inside).items() if count > 1]
        assert not twice, f"I2: twice in queue {ordinal}: {twice}"
        assert ordinal in live, f"messages of queue {ordinal}, which is not there"
        for one in inside:
            assert one.key >> 56 == 7 - one.record.priority, "I7: priority"
            assert one.record.flags & PositionFlag.RECOVERABLE
    staged = staged_contents(host)
    contents = {decode.content_key(key)[0] for key, _value in host.store.scan(Table.CONTENT)}
    wanted = Counter(one.record.content_id for one in messages)
    assert all(count == 1 for count in wanted.values()), "a content of two positions"
    assert contents - staged == set(wanted), f"I4: contents {contents}, positions {set(wanted)}, {staged}"
    total = 0
    reserved = 0
    for ordinal, queue in live.items():
        core = queue.core
        inside = by_queue[ordinal]
        size = sum(one.record.content_bytes for one in inside)
        keys = list(core.positions.keys())
        assert keys == [one.key for one in inside] == sorted(keys), f"I7: the list of {queue.name}"
        arrivals = [(7 - one.record.priority, one.key & SEQUENCE) for one in inside]
        assert arrivals == sorted(arrivals), f"I7: the order of {queue.name}"
        assert core.bytes == size, f"I6: {queue.name} has {size} bytes and says {core.bytes}"
        total += size
        reserved += core.reserved_bytes
    assert manager.ledger.bytes == total + reserved, f"I6: {total} + {reserved}, not {manager.ledger.bytes}"
    assert bool(reserved) <= bool(len(manager.transactions)), "a reservation of nobody"
    assert not manager.damage, manager.damage
    known = {queue.ordinal for queue in SYSTEM_QUEUES} | set(live)
    records = {decode.queue_key(key) for key, _value in host.store.scan(Table.QUEUE)}
    assert records <= known or not recovered, f"records of queues that are not there: {records - known}"


def staged_contents(host: Host) -> set[int]:
    """Contents that a prepared transaction has written ahead: what it will send when it commits."""
    rows = list(host.store.scan(Table.META, TRANSACTION_ROWS, TRANSACTION_ROWS[:-1] + b"\x01"))
    if not rows:
        return set()
    positions = {decode.position(value).content_id for _key, value in host.store.scan(Table.POSITION)}
    return {decode.content_key(key)[0] for key, _value in host.store.scan(Table.CONTENT)} - positions
