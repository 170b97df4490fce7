"""Remote readers of both interfaces that start, end, cancel, close, disconnect and die, and a server that
crashes, in an order drawn from a seed: nothing is lost, nothing is handed out again, nothing stays locked.

The model knows what was sent, and of each message what its readers were told. A message whose reader did not
hear of the end may be gone or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

import pytest

from msmq_fast.packet import Message
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.rpc.services.reads import Ack, Action
from tests.support.rpc.peers import MadeCall, Peer, Reader, RemoteWorld
from tests.support.rpc.remotereader import NONE, RemoteReader, remote_peer
from tests.support.worlds.queue_manager import World

STEPS = 40
TIME_OUTS = (0, 0, 5_000, 0xFFFFFFFF)
CANCELLED = (0xC00E0008, 0x400E03E9)
NOTHING = (0xC00E001B, 0xC00E0088, 0xC00E001C, 0xC00E001D, 0xC00E0050, 0xC00E009C)


class SlowWorld(World):
    """A world that stands still while it is held: disks are slow."""

    held = False

    def run(self) -> None:
        if not self.held:
            super().run()


@dataclass(eq=False)
class Held:
    """A message that a reader was handed and has not ended."""

    text: bytes
    request: int
    context: bytes | None
    transactional: bool


@dataclass(eq=False)
class ReadingClient:
    """One open queue of one client."""

    peer: Peer
    qm2qm: Reader | None = None
    remote: RemoteReader | None = None
    cursors: list[int] = field(default_factory=list)
    waiting: dict[int, tuple[MadeCall, int, bool]] = field(default_factory=dict)
    held: list[Held] = field(default_factory=list)
    ending: list[tuple[MadeCall, Held, int]] = field(default_factory=list)
    stale: list[Held] = field(default_factory=list)
    requests: int = 0

    def start(self, action: int, timeout: int, cursor: int, transaction: UUID | bytes | None) -> None:
        """A read, with a new request identifier."""
        self.requests += 1
        number = self.requests
        if self.qm2qm is not None:
            start = self.qm2qm.start if number % 3 else self.qm2qm.start0
            call = start(action, request=number, timeout=timeout, hCursor=cursor)
        else:
            assert self.remote is not None
            call = self.remote.start(
                action, request=number, timeout=timeout, cursor=cursor, transaction=transaction
            )
        self.waiting[number] = (call, action, transaction is not None)

    def end(self, held: Held, ack: int) -> MadeCall:
        """The call that ends a read."""
        if self.qm2qm is not None:
            return self.peer.begin("end_receive", pphContext=held.context, dwAck=ack)
        assert self.remote is not None
        name = "end_transactional_receive" if held.transactional else "end_receive"
        return self.peer.begin(name, phContext=self.remote.context, dwAck=ack, dwRequestId=held.request)

    def cancel(self, request: int) -> int:
        """Cancel a read."""
        reader = self.qm2qm or self.remote
        assert reader is not None
        return reader.cancel(request)

    def close(self) -> None:
        """Close the queue."""
        reader = self.qm2qm or self.remote
        assert reader is not None
        assert reader.close() == 0


class Matrix:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.transactional = self.random.random() < 0.4
        self.world = SlowWorld(seed=seed)
        self.remote = RemoteWorld(
            self.world, ndr64=self.random.random() < 0.5, transactional=self.transactional
        )
        self.clients: list[ReadingClient] = []
        self.sent: list[bytes] = []
        self.there: set[bytes] = set()
        self.gone: set[bytes] = set()
        self.unsure: set[bytes] = set()
        self.delivered = 0

    # ---- steps

    def run(self) -> None:
        steps: list[tuple[int, Callable[[], None]]] = [
            (6, self.send),
            (4, self.open),
            (14, self.start),
            (12, self.end),
            (4, self.cancel),
            (3, self.abandon),
            (2, self.close),
            (2, self.lose),
            (4, self.wait),
            (1, self.end_stale),
            (1, self.purge),
            (1, self.crash),
        ]
        weights = [weight for weight, _ in steps]
        for _ in range(STEPS):
            self.world.held = self.random.random() < 0.4
            self.random.choices([step for _, step in steps], weights)[0]()
            self.settle()
            self.check_locks()
        self.finish()

    def pick(self) -> ReadingClient | None:
        return self.random.choice(self.clients) if self.clients else None

    def send(self) -> None:
        self.world.held = False
        text = f"message {len(self.sent)}".encode()
        size = self.random.choice((0, 0, 0, 3000))
        text = text.ljust(size, b".")
        sender = self.world.sender()
        if self.transactional:
            transaction = self.world.manager.transactions.begin()
            TransactedQueue(sender, transaction).send(Message(body=text))
            self.world.finish(transaction.commit())
        else:
            self.world.finish(sender.send(Message(body=text, delivery=1, priority=self.random.randrange(8))))
        sender.close()
        self.sent.append(text)
        self.there.add(text)

    def open(self) -> None:
        if len(self.clients) >= 6:
            return
        mate = self.pick()
        if self.random.random() < 0.5:
            same = mate is not None and mate.qm2qm is not None and self.random.random() < 0.4
            peer = mate.peer if same and mate is not None else self.remote.peer()
            self.clients.append(ReadingClient(peer, qm2qm=Reader(self.remote, peer, self.remote.opened())))
        else:
            same = mate is not None and mate.remote is not None and self.random.random() < 0.4
            peer = mate.peer if same and mate is not None else remote_peer(self.remote)
            self.clients.append(ReadingClient(peer, remote=RemoteReader(peer)))

    def start(self) -> None:
        client = self.pick()
        if client is None:
            return
        action = self.random.choice((Action.RECEIVE,) * 5 + (Action.PEEK_CURRENT,))
        cursor = 0
        if self.random.random() < 0.2:
            if not client.cursors:
                reader = client.qm2qm or client.remote
                assert reader is not None
                client.cursors.append(reader.cursor())
            cursor = client.cursors[0]
        transaction: UUID | bytes | None = None
        if client.remote is not None and self.random.random() < 0.5:
            unknown = self.transactional and action == Action.RECEIVE and self.random.random() < 0.7
            transaction = UUID(int=self.random.getrandbits(128)) if unknown else NONE
        client.start(action, self.random.choice(TIME_OUTS), cursor, transaction)

    def end(self) -> None:
        holding = [client for client in self.clients if client.held]
        if not holding:
            return
        client = self.random.choice(holding)
        held = client.held.pop(self.random.randrange(len(client.held)))
        ack = self.random.choice((Ack.ACK, Ack.ACK, Ack.ACK, Ack.NACK))
        client.ending.append((client.end(held, ack), held, ack))

    def end_stale(self) -> None:
        """What is over cannot be ended again."""
        for client in self.clients:
            while client.stale:
                call = client.end(client.stale.pop(), Ack.ACK)
                assert call.fault_status is not None or call.results.result >> 31

    def cancel(self) -> None:
        client = self.pick()
        if client is None or not client.waiting:
            return
        number = self.random.choice(list(client.waiting))
        call, _, _ = client.waiting[number]
        waits = not call.done
        if client.cancel(number) == 0:
            assert waits
            assert call.results.result in CANCELLED

    def abandon(self) -> None:
        """One call is cancelled by RPC, or its connection is lost while others live."""
        client = self.pick()
        if client is None or not client.waiting:
            return
        number = self.random.choice(list(client.waiting))
        call, _, _ = client.waiting[number]
        if not call.done:
            del client.waiting[number]
            call.abandon()

    def close(self) -> None:
        client = self.pick()
        if client is None:
            return
        for call, held, _ in client.ending:
            if not call.done:
                self.unsure.add(held.text)
        client.ending.clear()
        for call, _, _ in client.waiting.values():
            call.written = None  # nobody reads it any more
        client.close()
        self.clients.remove(client)

    def lose(self) -> None:
        client = self.pick()
        if client is not None:
            self.leave(client.peer)

    def leave(self, peer: Peer) -> None:
        """A client process dies, with all that it has open."""
        for client in [client for client in self.clients if client.peer is peer]:
            self.clients.remove(client)
            self.unsure.update(held.text for _, held, ack in client.ending if ack == Ack.ACK)
        peer.lose()

    def wait(self) -> None:
        seconds = self.random.choice((1, 6, 6, 301))
        self.world.held = False
        self.settle()
        self.world.advance(seconds)
        self.remote.remote_read.expire(self.world.clock.monotonic())
        self.world.run()
        if seconds == 301:
            for client in self.clients:
                if client.remote is not None:
                    client.stale += client.held
                    client.held.clear()

    def purge(self) -> None:
        """Everything goes, what readers have when they end it."""
        self.world.held = False
        self.world.run()
        self.settle()
        self.world.finish(self.world.manager.purge(self.world.manager.find("orders")))
        self.gone |= self.there
        self.there.clear()
        self.unsure.clear()
        for client in self.clients:
            client.stale.clear()

    def crash(self) -> None:
        for client in self.clients:
            self.unsure.update(held.text for _, held, ack in client.ending if ack == Ack.ACK)
        self.clients.clear()
        self.world.held = False
        self.world.crash()
        self.remote.begin()

    # ---- what readers were told

    def settle(self) -> bool:
        """Take note of what calls have brought; False if there was nothing."""
        heard = False
        for client in list(self.clients):
            for number, (call, action, transactional) in list(client.waiting.items()):
                if call.done:
                    heard = True
                    del client.waiting[number]
                    self.found(client, number, call, action, transactional)
            for entry in list(client.ending):
                call, held, ack = entry
                if call.done:
                    heard = True
                    client.ending.remove(entry)
                    self.ended(call, held, ack)
        return heard

    def found(
        self, client: ReadingClient, number: int, call: MadeCall, action: int, transactional: bool
    ) -> None:
        results = call.results
        assert call.fault_status is None
        if results.result:
            assert results.result in (*NOTHING, *CANCELLED), hex(results.result)
            return
        text = text_of(results)
        self.delivered += 1
        if action != Action.RECEIVE:
            # Somebody may have taken it while it was read.
            assert text in self.sent
            assert call.written is None
            return
        assert text in self.there | self.unsure, text
        if self.random.random() < 0.1:
            call.deliver(False)
            return
        call.deliver()
        if self.random.random() < 0.05:
            call.deliver()
        context = getattr(results, "pphContext", None)
        client.held.append(Held(text, number, context, transactional))

    def ended(self, call: MadeCall, held: Held, ack: int) -> None:
        assert call.fault_status is None
        result = call.results.result
        if result == 0xC00E0051 and held.text in self.gone:
            return  # it was purged, and there is nothing left to be ended
        assert result == 0, hex(result)
        if ack == Ack.ACK:
            self.there.discard(held.text)
            self.unsure.discard(held.text)
            self.gone.add(held.text)

    def check_locks(self) -> None:
        """Nobody has what another one has; what nobody has is not locked, and nobody waits for nobody."""
        texts = [held.text for client in self.clients for held in client.held]
        texts += [held.text for client in self.clients for _, held, ack in client.ending if ack == Ack.ACK]
        assert len(texts) == len(set(texts))
        if self.world.held:
            return
        self.world.run()
        while self.settle():
            self.world.run()
        positions = self.world.manager.find("orders").core.positions
        locked = len(list(positions.keys())) - positions.available
        assert locked == sum(len(client.held) for client in self.clients)
        assert locked == sum(len(queue.delivered) for queue in self.remote.queues)
        waiting = sum(not call.done for client in self.clients for call, _, _ in client.waiting.values())
        assert waiting == sum(len(queue.pending) for queue in self.remote.queues)

    # ---- the account

    def finish(self) -> None:
        self.world.held = False
        self.world.run()
        self.settle()
        for client in list(self.clients):
            if client in self.clients:
                self.leave(client.peer)
        self.world.run()
        assert len(self.remote.queues) == 0
        assert self.remote.remote_read.next_deadline() is None
        assert len(self.world.manager.transactions) == 0
        positions = self.world.manager.find("orders").core.positions
        assert positions.available == len(list(positions.keys()))
        for _ in range(2):
            found = self.world.bodies()
            assert len(found) == len(set(found))
            assert set(found) <= self.there
            assert self.there - self.unsure <= set(found)
            self.world.crash()


def text_of(results: Any) -> bytes:
    """The body of the message that a read got."""
    sections = getattr(results, "ppPacketSections", None)
    if sections is not None:
        packet = bytes(sections[0].pSectionBuffer)
    else:
        both = getattr(results, "lpRemoteReadDesc2", None)
        desc = results.lpRemoteReadDesc if both is None else both.pRemoteReadDesc
        packet = bytes(desc.lpBuffer)
    return Message.from_packet(packet[: int.from_bytes(packet[8:12], "little")]).body


def play(seeds: range) -> None:
    delivered = 0
    for seed in seeds:
        matrix = Matrix(seed)
        try:
            matrix.run()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
        delivered += matrix.delivered
    assert delivered > 2 * len(seeds)


@pytest.mark.rule("QP-020", "QP-021", "QP-127", "QP-181", "QP-183")
def test_readers_of_all_kinds() -> None:
    play(range(300))


@pytest.mark.long(seconds=150)
@pytest.mark.timeout(900)
@pytest.mark.rule("QP-020", "QP-021", "QP-127", "QP-181", "QP-183")
def test_readers_of_all_kinds_for_long() -> None:
    play(range(1_000, 11_000))
