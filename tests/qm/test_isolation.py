"""One fault harms one thing: deadlines, items of work lists, readers, and what follows from a message."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast._native.queuebase import Received
from msmq_fast._native.tables import StoreError
from msmq_fast.mqqb.ping import Inquirer
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.faults import Faults, for_each
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.timed import LONGEST, TimedGroup
from msmq_fast.store.schema import Table
from tests.support.worlds.queue_manager import World


class Member:
    """Due at `due`; raises while `broken`."""

    def __init__(self, due: float | None = 0.0, *, broken: bool = False) -> None:
        self.due = due
        self.broken = broken
        self.asked_broken = False
        self.ran: list[float] = []

    def next_deadline(self) -> float | None:
        if self.asked_broken:
            raise ValueError("asked")
        return self.due

    def expire(self, now: float) -> None:
        self.ran.append(now)
        if self.broken:
            raise ValueError("broken")


def test_members_behind_one_that_raises_have_their_turn() -> None:
    faults = Faults()
    group = TimedGroup(faults)
    first, second = Member(broken=True), Member()
    group.add("first", first)
    group.add("second", second)
    group.expire(10.0)
    assert (first.ran, second.ran) == ([10.0], [10.0])
    assert faults.counts == {"deadline of first": 1}


def test_a_member_that_raises_again_and_again_is_asked_ever_less_often() -> None:
    group = TimedGroup(Faults())
    broken, sound = Member(broken=True), Member()
    group.add("broken", broken)
    group.add("sound", sound)
    now, turns = 100.0, 0
    while now < 220.0:
        group.expire(now)
        turns += 1
        now += 0.05
    assert len(sound.ran) == turns
    pauses = [later - earlier for earlier, later in zip(broken.ran, broken.ran[1:], strict=False)]
    assert pauses[0] == pytest.approx(0.1, abs=0.06)
    assert pauses == sorted(pauses)
    assert pauses[-1] == pytest.approx(LONGEST, abs=0.06)
    broken.broken = False
    group.expire(now + 2 * LONGEST)
    broken.ran.clear()
    group.expire(now + 2 * LONGEST + 0.01)
    assert broken.ran, "the first success ends the pause"


def test_the_deadline_of_a_member_that_pauses_is_the_end_of_its_pause() -> None:
    group = TimedGroup(Faults())
    group.add("broken", Member(5.0, broken=True))
    assert group.next_deadline() == 5.0
    group.expire(10.0)
    assert group.next_deadline() == pytest.approx(10.1)


def test_a_member_that_cannot_say_its_deadline_hides_no_other_one() -> None:
    faults = Faults()
    group = TimedGroup(faults, lambda: 50.0)
    mute, sound = Member(), Member(60.0)
    mute.asked_broken = True
    group.add("mute", mute)
    group.add("sound", sound)
    group.expire(50.0)
    assert group.next_deadline() == pytest.approx(50.1)
    assert faults.total == 1, "while it pauses it is not counted again"
    sound.due = 50.0
    group.expire(50.0)
    assert sound.ran == [50.0]


def test_a_cause_is_logged_once_and_counted_each_time(caplog: pytest.LogCaptureFixture) -> None:
    faults = Faults()
    for _ in range(3):
        try:
            raise ValueError("x")
        except ValueError as error:
            faults.note("a place", error)
    faults.note("another", KeyError("y"))
    assert faults.counts == {"a place": 3, "another": 1}
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "fault in a place",
        "fault in another",
    ]
    assert caplog.records[0].exc_info is not None


def test_each_of_a_group_counts() -> None:
    faults = Faults()
    done: list[int] = []

    def step(item: int) -> None:
        done.append(item)
        if item % 2:
            raise ValueError(item)

    with pytest.raises(ExceptionGroup) as raised:
        for_each([1, 2, 3], step)
    faults.note("three items", raised.value)
    assert (done, faults.total) == ([1, 2, 3], 2)


def counting(**settings: object) -> World:
    return World(faults=Faults, **settings)


def test_an_acknowledgment_that_cannot_be_made_keeps_no_message_from_expiring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = counting()
    world.create("admin")
    world.create()
    for number in range(3):
        world.send(
            b"%d" % number,
            time_to_be_received=10,
            admin_queue=world.manager.find("admin").format_name(world.manager.guid),
            acknowledge=0x08 | 0x04,
        )

    def broken(*_: object) -> bool:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    monkeypatch.setattr(world.manager.ack_policy, "_acknowledge", broken)
    world.advance(11)
    assert world.manager.find("orders").messages == 0
    assert world.manager.faults.counts == {"an acknowledgment": 3}
    world.crash()
    assert world.manager.find("orders").messages == 0


def test_a_message_whose_expiry_raises_holds_up_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """They share a slot of the timer wheel; the one that raised is tried again a minute later."""
    world = counting()
    world.create()
    for number in range(5):
        world.send(b"%d" % number, time_to_be_received=10, journal=1)
    decide, failing = world.manager.ack_policy.__call__, [True]

    def on_removed(role: int, packet: bytes, *rest: object) -> object:
        if b"2" in packet[-8:] and failing[0]:
            raise RuntimeError("this one")
        return decide(role, packet, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(world.manager.ledger, "on_removed", on_removed, raising=False)
    world.advance(11)
    assert world.bodies() == [b"2"]
    assert world.manager.faults.total == 1
    failing[0] = False
    world.advance(61)
    assert world.bodies() == []


def test_transactions_time_out_while_housekeeping_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in one part of the queue manager stops the timers of no other part."""
    world = counting(transaction_idle=60)
    world.create(transactional=True)
    transaction = world.manager.transactions.begin()
    monkeypatch.setattr(world.manager._housekeeping, "expire", lambda now: 1 / 0)
    monkeypatch.setattr(world.manager._housekeeping, "next_deadline", lambda: 0.0)
    for _ in range(70):
        world.clock.advance(1)
        world.manager.expire(world.clock.monotonic())
    with pytest.raises(MSMQError):
        world.manager.transactions.find(transaction.identifier)
    assert world.manager.faults.counts["deadline of housekeeping"] < 20


def test_a_queue_record_that_cannot_be_written_is_set_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was to be written again after a full disk; it stops neither the others nor any commit."""
    world = counting()
    bad, good = world.create("bad"), world.create("good")
    records = world.manager._queue_records
    records._unwritten.update({bad.ordinal: bad, good.ordinal: good})
    monkeypatch.setattr(bad, "record", lambda: {"label": "\ud800"})
    world.send(b"x", "good")
    world.advance(5)
    assert records._unwritten == {}
    assert world.manager.damage["queue"] == 1
    assert world.manager.faults.total == 1


def test_the_store_that_takes_nothing_is_no_fault_of_each_message() -> None:
    world = counting()
    world.create()
    for number in range(4):
        world.send(b"%d" % number, time_to_be_received=10)
    world.writer.fail_call(1)
    world.clock.advance(11)
    world.manager.tick()
    with pytest.raises(StoreError):
        world.manager.ledger.expire()


def test_a_ping_whose_answer_is_not_borne_holds_up_no_other_one() -> None:
    numbers = iter((1, 2))
    inquirer = Inquirer(UUID(int=9), 5.0, lambda: next(numbers))
    ended: list[int] = []
    inquirer.ask(lambda *_: 1 / 0, 0.0)
    inquirer.ask(lambda *_: ended.append(2), 0.0)
    with pytest.raises(ExceptionGroup):
        inquirer.expire(6.0)
    assert ended == [2]


def test_an_idle_queue_that_cannot_be_looked_at_keeps_no_other_one(monkeypatch: pytest.MonkeyPatch) -> None:
    world = counting(outgoing_idle=800.0)
    for number in range(1, 4):
        world.send(b"x", rf"DIRECT=TCP:10.0.0.{number}\private$\q")
    for queue in world.manager.outgoing():
        world.manager.purge(queue)
    world.run()
    hindrance = world.manager.outgoing_queues.hindrance

    def broken(queue: OutgoingQueue) -> str:
        if "10.0.0.2" in queue.name:
            raise RuntimeError("this one")
        return hindrance(queue)

    monkeypatch.setattr(world.manager.outgoing_queues, "hindrance", broken)
    for _ in range(24):
        world.advance(100)
    assert [queue.name for queue in world.manager.outgoing()] == [r"DIRECT=TCP:10.0.0.2\private$\q"]
    assert world.manager.faults.counts["an idle outgoing queue"] > 0


def test_a_message_that_cannot_be_given_back_keeps_no_purged_one_in_the_store() -> None:
    world = counting()
    core = world.create().core
    world.create("other")
    world.send(b"x", delivery=0)
    got: list[Received] = []
    core.receive_bulk(1, 1 << 20, lambda messages, _: got.extend(messages))
    ledger = world.manager.ledger
    ledger.express_low = ledger.express_mid = 0

    def short(level: int) -> None:
        if level:
            raise RuntimeError("memory is short")

    ledger.on_memory = short
    with pytest.raises(RuntimeError):
        core.requeue(got)
    for number in range(5):
        world.send(b"%d" % number, "other", delivery=1)
    world.manager.purge(world.manager.find("other"))
    world.advance(5)
    assert world.writer.tables.count(Table.CONTENT) == 0
    assert ledger.returned == 1
    assert 0 < world.manager.faults.total < 20
