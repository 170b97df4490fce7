"""Streams against senders that follow the rules, over a full disk, sessions that end, and crashes."""

from __future__ import annotations

import struct
from errno import ENOSPC
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.packet.acks import OrderAck
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host

STAMP = 5


class Narrow(Host):
    """Batches hold few units, so that several are on their way at a time."""

    batch_units = 3

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        rows = self.tables.scan(Table.POSITION, b"", None, 1 << 20)
        self.ledger.sequence = max((decode.position(value).arrival_seq for _key, value in rows), default=0)
        self.add("t", transactional=True)


class Sender:
    """The sending half of MS-MQQB 3.1.7.1.3 in plain Python; MessageIDs count on over its sequences."""

    def __init__(self, index: int) -> None:
        self.guid = UUID(int=1000 + index)
        self.sequence = 1000 * index
        self.before: dict[int, int] = {}  # messages of earlier sequences, by sequence
        self.made = 0
        self.acked = 0
        self.sent = 0  # on this session
        self.session: Session | None = None
        self.begin(0)

    def begin(self, before: int) -> None:
        self.sequence += 1
        self.before[self.sequence] = before
        self.made = self.acked = self.sent = 0

    def packet(self, number: int) -> bytes:
        place = struct.pack("<IIIII", 0, self.sequence, STAMP, number, max(number - 1, self.acked))
        ordinal = self.before[self.sequence] + number
        return wire.message(ordinal, queue="OS:h\\private$\\t", source=self.guid, transaction=place)

    def heard(self, ack: OrderAck) -> None:
        if ack.sequence_ordinal != self.sequence:
            return
        assert ack.sequence_number <= self.made
        self.acked = max(self.acked, ack.sequence_number)
        if self.acked == self.made:
            self.begin(self.before[self.sequence] + self.made)

    @property
    def total(self) -> int:
        return self.before[self.sequence] + self.made


class Play:
    """Both sides, and the faults between them."""

    def __init__(self, random: Random, plain: bool) -> None:
        self.random = random
        self.plain = plain
        self.senders = [Sender(0), Sender(1)]
        self.host = Narrow()

    def send(self, sender: Sender, *, make: bool = True) -> None:
        now = self.host.now
        if sender.session is None or sender.session.state is not SessionState.OPEN:
            sender.session = self.host.accept(now)
            sender.session.receive(wire.establish(client=sender.guid) + wire.parameters(), now)
            sender.session.receiver.plain = self.plain
            sender.sent = sender.acked
        sender.sent = max(sender.sent, sender.acked)
        if make and self.random.random() < 0.7:
            sender.made += self.random.randint(1, 6)
        for number in range(sender.sent + 1, sender.made + 1):
            if make and self.random.random() < 0.2:
                break
            sender.session.receive(sender.packet(number), now)
            sender.sent = number

    def pump(self) -> None:
        for sender in self.senders:
            if sender.session is not None:
                sender.session.pump(self.host.now)
                sender.session.data_to_send()

    def hear(self, *, lost: bool = False) -> None:
        self.host.advance(0.6)
        for message in self.host.acks:
            ack = OrderAck.decode_body(message.body)
            self.check_ack(ack)
            if not lost:
                self.senders[ack.sequence_ordinal // 1000].heard(ack)
        self.host.acks.clear()

    def crash(self) -> None:
        self.host = Narrow(tables=self.host.writer.crash())
        for sender in self.senders:
            sender.session = None
        self.check()

    def turn(self) -> None:
        choice = self.random.random()
        sender = self.random.choice(self.senders)
        if choice < 0.55:
            self.send(sender)
        elif choice < 0.65:
            self.host.writer.submit()
        elif choice < 0.8:
            self.host.writer.complete_one()
        elif choice < 0.85:
            self.host.writer.fail_commit(self.random.randint(1, 3), ENOSPC)
        elif choice < 0.9:
            sender.session = None  # it comes back on another one, and sends what was not acknowledged
        elif choice < 0.98:
            self.hear(lost=self.random.random() < 0.3)
        else:
            self.crash()
        self.pump()

    def settle(self) -> None:
        """No more faults: the resend timer goes off until everything is acknowledged."""
        self.host.writer.fail_commit(1 << 40, ENOSPC)
        for _ in range(5):
            self.host.commit()
            self.pump()
            self.hear()
            for sender in self.senders:
                sender.session = None
                self.send(sender, make=False)
        self.host.commit()
        self.hear()

    # ---- what must hold

    def stored(self, sender: Sender) -> list[int]:
        """MessageIDs of what is durable, in the order of the queue."""
        rows = self.host.tables.scan(Table.POSITION, b"", None, 1 << 20)
        records = [decode.position(value) for _key, value in rows]
        return [record.ordinal for record in records if record.source == sender.guid.bytes_le]

    def check_ack(self, ack: OrderAck) -> None:
        sender = self.senders[ack.sequence_ordinal // 1000]
        assert len(self.stored(sender)) >= sender.before[ack.sequence_ordinal] + ack.sequence_number

    def check(self) -> None:
        for sender in self.senders:
            stored = self.stored(sender)
            assert stored == list(range(1, len(stored) + 1))
            streams = [one for one in self.host.session_context.streams if one.source == sender.guid.bytes_le]
            kept = [
                sender.before[one.durable_identifier & 0xFFFFFFFF] + one.durable_number for one in streams
            ]
            assert kept == ([len(stored)] if stored else [])


def play(seed: int, turns: int, plain: bool) -> None:
    run = Play(Random(seed), plain)
    for _ in range(turns):
        run.turn()
    run.settle()
    run.crash()
    for sender in run.senders:
        assert len(run.stored(sender)) == sender.total


@pytest.mark.rule("QB-121", "QB-268", "QB-272", "KV-10")
@given(seed=st.integers(0, 1 << 32), plain=st.booleans())
@settings(max_examples=40, deadline=None)
def test_whatever_fails_each_message_is_kept_once_and_in_order(seed: int, plain: bool) -> None:
    play(seed, 80, plain)


@pytest.mark.long(seconds=60)
@pytest.mark.rule("QB-121", "QB-268", "QB-272", "KV-10")
def test_long_runs_keep_each_message_once_and_in_order() -> None:
    for seed in range(300):
        play(seed, 600, seed % 2 == 0)
