"""The audit of the queue manager: what survives a crash, what a flood may cost, and what the ring holds."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from msmq_fast.protocol.errors import AccessDenied, MessageStorageFailed
from msmq_fast.protocol.resources import AuditEntry
from msmq_fast.qm.audit.limits import MOST_SOURCES, RATE, TOGETHER, EntryLimits
from msmq_fast.qm.audit.trail import DELAY
from msmq_fast.security.logons import Logon
from msmq_fast.security.sid import ADMINISTRATORS, Sid
from msmq_fast.security.token import Token
from msmq_fast.store.schema import NUMBER_KEY, Table
from tests.support.worlds.queue_manager import World

ALICE = Sid.build(5, 21, 1, 2, 3, 1000)
ROOT = Token(ALICE, frozenset((ALICE, ADMINISTRATORS)), "alice", address="10.0.0.7")
MALLORY = Token(Sid.build(5, 21, 1, 2, 3, 1001), frozenset(), "mallory", address="10.0.0.9")


def entries(
    world: World, kind: str = "", *, newest_first: bool = False, look: int = 1000
) -> list[AuditEntry]:
    """The durable entries of callers."""
    found: list[AuditEntry] = []
    start, finished = 0, False
    while not finished:
        page = world.manager.audit.page(start, look, newest_first=newest_first)
        assert len(page.entries) <= look
        found += page.entries
        start, finished = page.following, page.finished
    return [entry for entry in found if entry.kind == kind or not kind]


def deny(world: World, operation: str, token: Token = MALLORY) -> None:
    with pytest.raises(AccessDenied):
        world.manager.guard.administer(token, operation)


def test_an_acknowledged_act_has_its_entry_after_a_crash() -> None:
    world = World()
    done = world.manager.create_queue("orders", token=ROOT)
    world.writer.submit()
    assert world.writer.complete_one()  # one commit carries the queue and the entry
    assert done.done
    world.crash()
    (entry,) = entries(world, "act")
    assert (entry.caller, entry.sid, entry.address) == (f"alice ({ALICE})", str(ALICE), "10.0.0.7")
    assert (entry.operation, entry.object, entry.result) == (
        "create queue",
        r"HOST\private$\orders",
        "done",
    )
    assert entry.time == world.manager.ledger.now_s


def test_an_act_that_was_not_durable_has_no_entry() -> None:
    world = World()
    world.manager.create_queue("orders", token=ROOT)
    world.crash()
    assert entries(world, "act") == []


def test_an_act_that_fails_has_one_entry_that_says_so() -> None:
    world = World()
    world.writer.fail_commit(1, errno.ENOSPC)
    done = world.manager.create_queue("orders", token=ROOT)
    world.run()
    with pytest.raises(MessageStorageFailed):
        done.result()
    world.advance(5)
    (entry,) = entries(world, "act")
    assert entry.result == "failed"
    assert "the store failed" in entry.detail


def test_denials_are_written_together_within_a_second() -> None:
    world = World()
    for number in range(10):
        deny(world, f"operation {number}")
    world.run()
    assert entries(world) == []
    before = world.writer.statistics()["batches"]
    world.advance(DELAY)
    found = entries(world, "denial")
    assert [entry.operation for entry in found] == [f"operation {number}" for number in range(10)]
    assert {(entry.result, entry.address, entry.object) for entry in found} == {
        ("denied", "10.0.0.9", "the queue manager")
    }
    assert "needs MQSEC_SET_MACHINE_PROPERTIES" in found[0].detail
    assert world.writer.statistics()["batches"] == before + 1


def test_the_order_of_the_numbers_is_that_of_the_events() -> None:
    world = World()
    deny(world, "first")
    world.finish(world.manager.create_queue("orders", token=ROOT))
    deny(world, "last")
    world.advance(DELAY)
    assert [entry.operation for entry in entries(world)] == ["first", "create queue", "last"]


def test_a_stop_writes_what_waits() -> None:
    world = World()
    deny(world, "late")
    world.manager.stop()
    world.run()
    world.crash()
    assert [entry.operation for entry in entries(world)] == ["late"]


def test_a_flood_of_denials_is_counted_and_pushes_out_no_act() -> None:
    world = World(audit_entries=200)
    for number in range(60):
        world.finish(world.manager.create_queue(f"q{number}", token=ROOT))
    before = world.writer.statistics()
    for number in range(5000):
        deny(world, f"operation {number}")
        if number % 10 == 0:
            world.advance(0.01)
    world.advance(DELAY)
    after = world.writer.statistics()
    found = entries(world, "denial")
    assert len(found) == 50
    assert after["batches"] - before["batches"] <= 20
    assert len(entries(world, "act")) == 60
    world.advance(61)
    world.advance(DELAY)
    (last,) = entries(world, "denial")[50:]
    assert (last.operation, last.more) == ("operation 4999", 4949)


def test_a_flood_from_many_sources_is_limited_as_a_whole() -> None:
    limits = EntryLimits(burst=50, interval=60.0)
    entry = AuditEntry(kind="denial", caller="someone")
    seconds, admitted, left_out = 100, 0, 0
    for number in range(20_000):
        now = number * seconds / 20_000
        written = limits.admit((f"10.{number >> 8}.0.{number & 255}", ""), entry, now)
        admitted += written is not None
        left_out += written.more if written is not None else 0
    assert admitted <= TOGETHER + RATE * seconds + 1
    rest = limits.collect(1e6, everything=True)
    assert len(rest) <= MOST_SOURCES + 1
    assert admitted + left_out + sum(each.more + 1 for each in rest) == 20_000
    assert limits.next_deadline() is None


def test_log_ons_are_entries_without_the_names_of_unknown_accounts() -> None:
    world = World()
    audit = world.manager.audit
    audit.logged_on(Logon("billing", "10.0.0.5", "a token"))
    audit.logged_on(Logon("", "10.0.0.6", "a token", "wrong name or secret"))
    world.advance(DELAY)
    right, wrong = entries(world, "login")
    assert (right.caller, right.operation, right.result) == ("billing", "log on with a token", "accepted")
    assert (wrong.caller, wrong.address, wrong.result, wrong.detail) == (
        "unknown",
        "10.0.0.6",
        "refused",
        "wrong name or secret",
    )


def test_a_guesser_leaves_a_few_entries_and_a_count() -> None:
    world = World()
    for _ in range(1000):
        world.manager.audit.logged_on(Logon("", "10.0.0.6", "a token", "wrong name or secret"))
    world.advance(DELAY)
    assert len(entries(world, "login")) == 20
    world.advance(300)
    world.advance(DELAY)
    assert sum(1 + entry.more for entry in entries(world, "login")) == 1000


@pytest.mark.parametrize("crash", [False, True])
def test_the_ring_rotates(crash: bool) -> None:
    world = World(audit_entries=100)
    for number in range(130):
        world.finish(world.manager.create_queue(f"q{number}", token=ROOT))
    if crash:
        world.crash()
    names = [entry.object.rpartition("\\")[2] for entry in entries(world, "act")]
    # The surplus leaves with the next entry, or at start.
    assert names == [f"q{number}" for number in range(80 if crash else 79, 130)]
    assert len(world.store.tables.scan(Table.AUDIT, b"", None, 1000)) == len(names)
    world.finish(world.manager.create_queue("next", token=ROOT))
    assert entries(world, "act")[-1].object.endswith("next")
    assert len({entry.number for entry in entries(world)}) == len(entries(world))


def test_the_ring_is_limited_in_bytes() -> None:
    world = World(audit_size=20_000)
    for number in range(100):
        world.finish(world.manager.create_queue(f"q{number}" + "x" * 100, token=ROOT, label="y" * 100))
    records = world.store.tables.scan(Table.AUDIT, b"", None, 1000)
    assert 20 < len(records) < 60
    assert sum(len(value) for _, value in records) <= 10_000 + 1000


def test_a_smaller_ring_forgets_at_start() -> None:
    world = World()
    for number in range(30):
        world.finish(world.manager.create_queue(f"q{number}", token=ROOT))
    world.settings = replace(world.settings, audit_entries=10)
    world.crash()
    assert [entry.object[-3:] for entry in entries(world)] == ["q25", "q26", "q27", "q28", "q29"]


def test_both_directions_page_over_the_same_entries() -> None:
    world = World()
    for number in range(10):
        world.finish(world.manager.create_queue(f"q{number}", token=ROOT))
        deny(world, f"operation {number}")
    world.advance(DELAY)
    upwards = entries(world)
    assert len(upwards) == 20
    for look in (1, 3, 20, 1000):
        assert entries(world, look=look) == upwards
        assert entries(world, look=look, newest_first=True) == upwards[::-1]
    end = world.manager.audit.page(0, 1000, newest_first=False).following
    assert world.manager.audit.page(end, 10, newest_first=False).entries == []
    world.finish(world.manager.create_queue("later", token=ROOT))
    (later,) = world.manager.audit.page(end, 10, newest_first=False).entries
    assert later.object.endswith("later")


def test_texts_are_cut_and_printable() -> None:
    world = World()
    world.manager.audit.act(ROOT, "o" * 1000, "a\x1b[2Jb\udc80", "d" * 10_000)
    world.run()
    (entry,) = entries(world)
    assert (len(entry.operation), len(entry.detail)) == (100, 500)
    assert entry.detail.endswith("…")
    assert entry.object == r"a\x1b[2Jb\xdc80"


def test_a_user_cannot_push_out_acts_with_acts() -> None:
    world = World()
    for _ in range(1000):
        world.manager.audit.act(MALLORY, "purge", "own queue")
        world.manager.audit.act(ROOT, "purge", "orders")
        world.run()
    found = entries(world, "act")
    assert sum(entry.object == "orders" for entry in found) == 1000
    assert sum(entry.object == "own queue" for entry in found) == 200
    world.advance(11)
    world.advance(DELAY)
    assert sum(1 + entry.more for entry in entries(world) if entry.object == "own queue") == 1000


def test_a_long_act_has_one_entry() -> None:
    world = World()
    progress = world.manager.audit.progress(ROOT, "move messages", "a to b")
    progress.step(1000)
    world.run()
    (entry,) = entries(world)
    assert entry.detail == "messages: 1000"
    progress.step(1000)
    world.run()
    world.crash()
    (entry,) = entries(world)
    assert (entry.result, entry.detail) == ("done", "messages: 2000")


def test_a_damaged_record_is_reported_and_leaves_the_ring() -> None:
    world = World(audit_entries=20)
    world.finish(world.manager.create_queue("orders", token=ROOT))
    for number, value in ((100, b""), (101, b"\x01\xc1"), (102, b"\x01\x93\x01\x02\x03"), (103, b"\x07\x90")):
        with world.store.unit() as writer:
            writer.put_record(Table.AUDIT, NUMBER_KEY.pack(number), value)
    with world.store.unit() as writer:
        writer.put_record(Table.AUDIT, b"odd", b"\x01\x90")
    world.store.commit()
    world.crash()
    assert world.manager.damage["audit"] == 5
    assert [entry.operation for entry in entries(world)] == ["create queue"]
    for number in range(12):
        deny(world, f"operation {number}")
    world.advance(DELAY)
    world.finish(world.manager.create_queue("other", token=ROOT))
    keys = [key for key, _ in world.store.tables.scan(Table.AUDIT, b"", None, 1000)]
    assert NUMBER_KEY.pack(100) not in keys
    assert entries(world)[-1].number > 103


def test_entries_wait_for_a_store_without_room() -> None:
    world = World()
    deny(world, "during")
    world.writer.fail_commit(1, errno.ENOSPC)
    world.advance(DELAY)
    assert entries(world) == []
    world.advance(5)
    assert [entry.operation for entry in entries(world)] == ["during"]
