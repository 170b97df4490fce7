"""How often hosts that do not answer are dialled, how many at a time, and what a turn costs with many."""

from __future__ import annotations

from itertools import pairwise
from uuid import UUID

import pytest

from msmq_fast.mqqb.dialing import Backoff
from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.limits import Limits
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.transfer import Connect, LinkState, Resolve
from tests.mqqb.transfers import Bench, Outgoing, ordinals, ping
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN

HOST = "10.0.0.7"


def turn(bench: Bench, now: float) -> list[object]:
    """Deadlines that are due, one turn; the effects."""
    due = bench.transfer.next_deadline()
    if due is not None and due <= now:
        bench.transfer.expire(now)
    return bench.take()


def run(bench: Bench, now: float) -> tuple[list[object], int]:
    """All turns that are due; the effects, and how many turns."""
    effects, turns = turn(bench, now), 1
    while (due := bench.transfer.next_deadline()) is not None and due <= now:
        effects += turn(bench, now)
        turns += 1
    return effects, turns


def down(bench: Bench, now: float, until: float) -> list[float]:
    """The peer refuses every connection from now on; when it was dialled."""
    dialled = []
    while now <= until:
        for effect in bench.take():
            assert isinstance(effect, Connect)
            dialled.append(now)
            bench.transfer.failed(effect.link, "refused", now)
        due = bench.transfer.next_deadline()
        assert due is not None
        now = due
        bench.transfer.expire(now)
    return dialled


def answers(bench: Bench, host: str, guid: UUID = NULL_GUID) -> Outgoing:
    queue = bench.queue(host, guid=guid)
    queue.for_answers = True
    return queue


def test_a_host_that_does_not_answer_is_dialled_ever_less_often() -> None:
    bench = Bench()
    queue = bench.queue(HOST)
    bench.transfer.submit(queue, 10.0)
    times = down(bench, 10.0, 4000.0)
    waits = [after - before for before, after in pairwise(times)]
    assert waits[0] == 5.0
    for number, wait in enumerate(waits):
        longest = min(5.0 * 2**number, 600.0)
        assert longest * 0.75 <= wait <= longest
    assert len(set(waits[-4:])) == 4  # each is another one
    assert queue.waits[0] == 5.0  # and operators are told
    assert max(queue.waits) > 450.0


@pytest.mark.parametrize("how", ["session", "ping", "resume", "success"])
def test_a_host_that_is_there_again_is_reached_soon(how: str) -> None:
    bench = Bench()
    queue = bench.queue(HOST)
    bench.transfer.submit(queue, 10.0)
    down(bench, 10.0, 2000.0)
    bench.take()
    now = 2001.0
    if how == "session":
        assert ordinals(bench.accepted(HOST, now)) == [1]
        return
    if how == "ping":
        bench.transfer.failed(bench.transfer.links[0].number, "refused", now)
        assert bench.endpoint.answer_ping(ping(0, 4), HOST, 40_000, 3527, now) is not None
        assert turn(bench, now + 5.0) == [Connect(1, HOST)]
        return
    bench.transfer.failed(bench.transfer.links[0].number, "refused", now)
    assert turn(bench, now + 100.0) == []
    if how == "resume":
        bench.transfer.release(queue, now + 100.0)
        assert turn(bench, now + 100.0) == [Connect(1, HOST)]
        return
    bench.transfer.release(queue, now + 100.0)
    assert bench.transfer.next_deadline() is not None
    bench.transfer.expire(now + 100.0)
    bench.connect(now + 100.0).close(CloseReason.DISCONNECTED, now + 200.0)
    assert turn(bench, now + 205.0) == [Connect(1, HOST)]


def test_pings_do_not_make_a_host_dialled_more_often_than_at_first() -> None:
    """The source of a ping can be forged."""
    bench = Bench()
    bench.transfer.submit(bench.queue(HOST), 10.0)
    down(bench, 10.0, 2000.0)
    now, dialled = 3000.0, 0
    for _ in range(1000):
        now += 0.1
        for effect in bench.take():
            assert isinstance(effect, Connect)
            dialled += 1
            bench.transfer.failed(effect.link, "refused", now)
        bench.transfer.heard_from(HOST, now)
        turn_due = bench.transfer.next_deadline()
        if turn_due is not None and turn_due <= now:
            bench.transfer.expire(now)
    assert dialled <= 100 / 5 + 1


def test_a_new_message_does_not_dial_a_host_that_was_down_just_now() -> None:
    bench = Bench()
    queue = bench.queue(HOST)
    bench.transfer.submit(queue, 10.0)
    bench.take()
    bench.transfer.withdraw(queue)
    bench.transfer.failed(1, "refused", 11.0)
    assert bench.transfer.links == ()
    bench.transfer.submit(queue, 12.0)
    assert bench.take() == []
    assert turn(bench, 16.0) == [Connect(2, HOST)]


def test_connections_that_are_tried_at_a_time_are_bounded_and_all_have_their_turn() -> None:
    bench = Bench(limits=Limits(dials=4))
    queues = [bench.queue(f"10.0.1.{number}") for number in range(10)]
    for queue in queues:
        bench.transfer.submit(queue, 10.0)
    seen: list[str] = []
    under_way = run(bench, 10.0)[0]
    while under_way:
        assert len(under_way) <= 4
        for effect in under_way:
            assert isinstance(effect, Connect)
            seen.append(effect.address)
            bench.transfer.failed(effect.link, "no answer in time", 10.0)
        under_way = run(bench, 10.0)[0]
    assert sorted(seen) == sorted(f"10.0.1.{number}" for number in range(10))


def test_answers_keep_no_program_waiting() -> None:
    bench = Bench(limits=Limits(dials=4))
    for number in range(200):
        bench.transfer.submit(answers(bench, f"10.1.0.{number}"), 10.0)
        bench.transfer.submit(answers(bench, f"named-{number}"), 10.0)
    effects = bench.take()
    assert len([effect for effect in effects if isinstance(effect, Connect)]) == 2  # half as many
    assert len([effect for effect in effects if isinstance(effect, Resolve)]) == 2  # resolvers are few
    bench.transfer.submit(bench.queue("10.0.0.9"), 10.0)
    bench.transfer.submit(bench.queue("own-server"), 10.0)
    program, named = bench.take()
    assert isinstance(program, Connect)
    assert (program.address, type(named)) == ("10.0.0.9", Resolve)


def test_a_program_that_sends_where_answers_wait_does_not_wait_among_them() -> None:
    bench = Bench(limits=Limits(dials=2))
    for number in range(50):
        bench.transfer.submit(answers(bench, f"10.1.0.{number}"), 10.0)
    bench.take()
    bench.transfer.submit(bench.queue("10.1.0.40"), 10.0)
    assert [effect.address for effect in run(bench, 10.0)[0] if isinstance(effect, Connect)] == ["10.1.0.40"]


class Counting(Outgoing):
    """Counts how often it is asked where it leads."""

    asked = 0

    def relocate(self) -> bool:
        Counting.asked += 1
        return super().relocate()


def test_what_has_no_address_is_looked_up_when_routes_change_and_hardly_ever_else() -> None:
    bench = Bench()
    Counting.asked = 0
    queue = Counting(bench.host, Target("", wire.PEER), [wire.message(1, source=OWN)])
    bench.transfer.submit(queue, 10.0)
    first = Counting.asked
    for second in range(20, 3600, 5):
        turn(bench, float(second))
    assert Counting.asked - first <= 3600 / 450 + 8
    before = Counting.asked
    queue.later = Target(HOST, wire.PEER)
    bench.transfer.routes_changed(3600.0)
    assert turn(bench, 3600.0) == [Connect(2, HOST)]
    assert Counting.asked <= before + 2  # in the old place and in the new one


def test_a_turn_looks_at_a_hundred_links_however_many_there_are() -> None:
    bench = Bench()
    Counting.asked = 0
    for number in range(2000):
        target = Target("", UUID(int=number + 1))
        bench.transfer.submit(Counting(bench.host, target, [wire.message(1, source=OWN)]), 10.0)
    asked = Counting.asked
    while (due := bench.transfer.next_deadline()) is not None and due <= 15.0:
        bench.transfer.expire(15.0)
        assert Counting.asked - asked <= 100
        asked = Counting.asked
    assert asked == 4000  # all had their turn, once


def test_a_session_costs_nothing_for_links_that_lead_elsewhere() -> None:
    bench = Bench()
    asked: list[UUID] = []

    class Watched(Outgoing):
        def head(self) -> tuple[int, int]:
            asked.append(self.hops[0].guid)
            return super().head()

    for number in range(1000):
        target = Target("", UUID(int=number + 1))
        bench.transfer.submit(Watched(bench.host, target, [wire.message(1, source=OWN)]), 10.0)
    mine = Watched(bench.host, Target("", wire.PEER), [wire.message(7, source=OWN)])
    bench.transfer.submit(mine, 10.0)
    asked.clear()
    session = bench.accepted(HOST, 11.0)
    assert ordinals(session) == [7]
    session.close(CloseReason.DISCONNECTED, 12.0)
    assert set(asked) == {wire.PEER}
    states = [link.state for link in bench.transfer.links if link.target.guid == wire.PEER]
    assert states == [LinkState.WAITING]


def test_failures_of_ways_that_nobody_takes_any_more_are_forgotten() -> None:
    backoff = Backoff(5.0, 600.0, lambda: 0.0)
    for number in range(20_000):
        backoff.failed(number, 0.0)
    assert backoff.until(0, 1.0) is None
    assert backoff.until(19_999, 1.0) == 5.0
