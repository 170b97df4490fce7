"""The table of connections: limits of ports and addresses, what makes room, peers that say nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from msmq_fast.server.net.connections import Pool, Share, Slot, Standing


@dataclass
class Table:
    """A pool with two ports, whose connections are told what they do."""

    limit: int = 10
    per_address: int = 6
    now: float = 0.0
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        refuse = lambda *what, peer: self.refused.append(what)  # noqa: E731 - one line
        self.pool = Pool(self.limit, self.per_address, refuse, lambda: self.now, first_byte=10.0)
        self.one = self.pool.share("one", 8, 4)
        self.two = self.pool.share("two", 8, 4)

    def open(self, share: Share, address: str, standing: Standing = Standing.SETTLED) -> Connection:
        connection = Connection(self, address, standing)
        connection.slot = share.enter(address)
        if connection.slot is not None:
            connection.slot.follow(lambda: connection.standing, connection.close)
        return connection

    @property
    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.refused]


@dataclass(eq=False)
class Connection:
    table: Table
    address: str
    standing: Standing
    slot: Slot | None = None

    def close(self) -> None:
        self.table.closed.append(self.address)

    def leave(self) -> None:
        assert self.slot is not None
        self.slot.leave()


def test_no_number_is_given_twice() -> None:
    table = Table()
    first, second = (table.open(table.one, "10.0.0.1").slot for _ in range(2))
    table.now = 3.0
    assert first is not None
    assert second is not None
    first.leave()
    third = table.open(table.two, "10.0.0.2").slot
    assert third is not None
    assert [(slot.number, slot.since) for slot in (first, second, third)] == [(1, 0.0), (2, 0.0), (3, 3.0)]
    assert {slot.number for slot in table.pool} == {2, 3}


def test_a_connection_describes_itself_until_it_ends() -> None:
    slot = Table().one.enter("10.0.0.1")
    assert slot is not None
    assert (slot.followed, slot.described()) == (False, {})
    slot.follow(None, lambda: None, lambda: {"user": "billing"})
    assert (slot.followed, slot.described(), slot.standing) == (True, {"user": "billing"}, Standing.SETTLED)
    slot.leave()
    assert (slot.followed, slot.described()) == (False, {})


def test_a_share_has_a_limit_for_an_address_and_one_in_all() -> None:
    table = Table()
    kept = [table.open(table.one, "10.0.0.1") for _ in range(4)]
    assert table.open(table.one, "10.0.0.1").slot is None
    assert table.refused == [("one", "too many connections from one address", "10.0.0.1")]
    assert all(table.open(table.one, f"10.0.0.{n}").slot for n in range(2, 6))
    assert table.open(table.one, "10.0.0.6").slot is None
    assert table.reasons[1:] == ["too many connections"]
    kept[0].leave()
    kept[0].leave()  # twice is once
    assert (len(table.one), len(table.pool)) == (7, 7)
    assert table.open(table.one, "10.0.0.1").slot is not None


def test_an_address_is_limited_over_all_ports_and_so_are_all_addresses() -> None:
    table = Table()
    for share in (table.one, table.one, table.one, table.two, table.two, table.two):
        assert table.open(share, "10.0.0.1").slot is not None
    assert table.open(table.two, "10.0.0.1").slot is None
    assert table.reasons == ["too many connections from one address over all ports"]
    for n in range(4):
        assert table.open(table.two, f"10.0.1.{n}").slot is not None
    assert table.open(table.one, "10.0.2.1").slot is None
    assert table.reasons[1:] == ["too many connections over all ports"]


def test_an_ipv6_network_counts_as_one_address() -> None:
    table = Table()
    for n in range(1, 5):
        assert table.open(table.one, f"2001:db8::{n:x}:1").slot is not None
    assert table.open(table.one, "2001:db8::ffff").slot is None
    assert table.open(table.one, "2001:db8:0:1::1").slot is not None
    mapped = [table.open(table.two, address).slot for address in ("10.0.0.1", "::ffff:10.0.0.1") * 2]
    assert all(mapped)
    assert table.open(table.two, "10.0.0.1").slot is None


@pytest.mark.parametrize("standing", [Standing.SILENT, Standing.IDLE])
def test_the_idlest_connection_of_the_same_address_makes_room_first(standing: Standing) -> None:
    table = Table()
    table.open(table.one, "10.0.0.9", standing)  # older, but of another address
    table.open(table.one, "10.0.0.1", Standing.SETTLED)
    first = table.open(table.one, "10.0.0.1", standing)
    second = table.open(table.one, "10.0.0.1", standing)
    table.open(table.one, "10.0.0.1", Standing.BUSY)
    assert first.slot is not None
    first.slot.used()
    assert table.open(table.one, "10.0.0.1").slot is not None
    assert table.closed == ["10.0.0.1"]
    assert second.slot not in table.pool._slots
    assert table.reasons == ["made room for another connection"]
    assert (len(table.one), len(table.pool)) == (5, 5)


def test_the_idlest_of_all_makes_room_where_all_are_too_many() -> None:
    table = Table()
    for n in range(5):
        table.open(table.one, f"10.0.0.{n}", Standing.IDLE)
    for n in range(5):
        table.open(table.two, f"10.0.1.{n}", Standing.SETTLED)
    assert table.open(table.two, "10.0.2.1").slot is not None
    assert table.closed == ["10.0.0.0"]
    for n in range(4):
        assert table.open(table.two, f"10.0.3.{n}").slot is None or n < 2
    assert len(table.pool) == table.limit


def test_what_is_busy_is_passed_over_and_what_has_settled_is_never_asked_again() -> None:
    table = Table()
    asked = []
    for n in range(8):
        slot = table.one.enter(f"10.0.0.{n}")
        assert slot is not None
        standing = Standing.SETTLED if n < 4 else Standing.BUSY

        def tell(n: int = n, standing: Standing = standing) -> Standing:
            asked.append(n)
            return standing

        slot.follow(tell, lambda: None)
    for _ in range(2):
        assert table.one.enter("10.0.1.1") is None
    assert asked == [0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7]


def test_who_was_of_use_stays_longer_than_who_never_was() -> None:
    table = Table()
    useful = table.open(table.one, "10.0.0.1", Standing.IDLE)
    assert useful.slot is not None
    useful.slot.used()
    for n in range(20):
        assert table.open(table.one, f"10.0.1.{n}", Standing.SILENT).slot is not None
    assert "10.0.0.1" not in table.closed
    assert len(table.closed) == 13
    for n in range(20):
        table.open(table.one, f"10.0.2.{n}", Standing.SETTLED)
    assert table.closed[-1] == "10.0.0.1"


def test_making_room_asks_a_bounded_number() -> None:
    table = Table(limit=1000, per_address=1000)
    share = table.pool.share("many", 500, 500)
    asked = []
    for _ in range(500):
        slot = share.enter("10.0.0.1")
        assert slot is not None
        slot.follow(lambda: asked.append(1) or Standing.BUSY, lambda: None)  # type: ignore[func-returns-value]
    assert share.enter("10.0.0.2") is None
    assert len(asked) <= 64


def test_where_peers_resume_addresses_with_many_busy_connections_make_room_for_others() -> None:
    table = Table(limit=100, per_address=100)
    share = table.pool.share("three", 12, 6, resumes=True)
    for address in ("10.0.0.1", "10.0.0.2"):
        for _ in range(6):
            assert table.open(share, address, Standing.BUSY).slot
    for number in range(3, 7):
        for _ in range(2):
            assert table.open(share, f"10.0.0.{number}", Standing.BUSY).slot
    assert Counter(table.closed) == {"10.0.0.1": 4, "10.0.0.2": 4}
    assert len(share) == 12
    # All have the same now: none makes room for one more of them, but each for an address without any.
    assert table.open(share, "10.0.0.3", Standing.BUSY).slot is None
    assert table.open(share, "10.0.0.7", Standing.BUSY).slot
    # Over all ports, too.
    table.pool.limit = len(table.pool)
    assert table.open(table.one, "10.0.0.8").slot
    assert len(share) == 11


def test_a_margin_is_for_those_that_are_told_so() -> None:
    table = Table(limit=100, per_address=100)
    share = table.pool.share("polite", 2, 2, margin=2)
    for _ in range(2):
        assert table.open(share, "10.0.0.1").slot is not None
    assert [table.open(share, "10.0.0.1").slot is not None for _ in range(3)] == [True, True, False]
    idle = table.pool.share("idle", 2, 2, margin=2)
    for _ in range(6):
        assert table.open(idle, "10.0.0.1", Standing.IDLE).slot is not None
    assert len(idle) == 2


def test_connections_without_a_byte_are_closed() -> None:
    table = Table()
    assert table.pool.next_deadline() is None
    talking = table.open(table.one, "10.0.0.1", Standing.SILENT)
    table.now = 4.0
    table.open(table.one, "10.0.0.2", Standing.SILENT)
    talking.standing = Standing.IDLE
    assert table.pool.next_deadline() == 10.0
    table.pool.expire(9.9)
    table.pool.expire(10.0)
    assert table.closed == []
    assert table.pool.next_deadline() == 14.0
    table.pool.expire(14.0)
    assert table.closed == ["10.0.0.2"]
    assert table.refused == [("one", "no byte received in time", "10.0.0.2")]
    assert table.pool.next_deadline() is None
    assert len(table.pool) == 1


def test_nothing_is_kept_of_connections_that_have_gone() -> None:
    table = Table()
    for n in range(1000):
        table.open(table.one, f"10.{n >> 8}.{n & 255}.1", Standing.SILENT).leave()
    pool, share = table.pool, table.one
    for kept in (pool._slots, pool._counts, pool._young, share._order, share._groups, share._counts):
        assert not kept
