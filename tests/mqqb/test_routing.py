"""Next hops: static routes, routing servers, site gates, least-cost paths (MS-MQBR)."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest

from msmq_fast.mqqb.handshake import NULL_GUID
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.routing import Machine, Router, SiteLink, routing_table


def guid(number: int) -> UUID:
    return UUID(int=number)


A, B, C, D = (guid(0xA0 + n) for n in range(4))  # sites
OWN, GOAL, R1, R2, R3, G1, G2, G3 = (guid(n) for n in range(1, 9))


class Directory:
    """An enterprise in a few lines."""

    def __init__(
        self, *machines: Machine, links: tuple[SiteLink, ...] = (), sites: tuple[UUID, ...] = ()
    ) -> None:
        self.known = {machine.guid: machine for machine in machines}
        self.all_links = links
        self.all_sites = sites or tuple({site for link in links for site in (link.first, link.second)})

    def machine(self, identifier: UUID) -> Machine | None:
        return self.known.get(identifier)

    def machines(self) -> list[Machine]:
        return list(self.known.values())

    def sites(self) -> tuple[UUID, ...]:
        return self.all_sites

    def links(self) -> tuple[SiteLink, ...]:
        return self.all_links


def machine(identifier: UUID, *sites: UUID, **fields: object) -> Machine:
    return Machine(identifier, f"host{identifier.int}", frozenset(sites), **fields)  # type: ignore[arg-type]


def router(directory: Directory, **options: object) -> Router:
    made = Router(OWN, directory, 0.0, **options)  # type: ignore[arg-type]
    made.refresh(0.0)
    return made


def hops(directory: Directory, goal: UUID = GOAL, **options: object) -> list[UUID]:
    return [target.guid for target in router(directory, **options).hops("", goal)]


# ---- the table


def example(ab: int, bc: int, bd: int, cd: int) -> tuple[SiteLink, ...]:
    """The enterprise of MS-MQBR section 4."""
    return (SiteLink(A, B, ab), SiteLink(C, B, bc), SiteLink(B, D, bd), SiteLink(C, D, cd))


@pytest.mark.rule("QB-366")
@pytest.mark.parametrize(("costs", "from_b_to_c"), [((3, 1, 1, 1), C), ((3, 3, 1, 1), D)])
def test_the_published_example(costs: tuple[int, int, int, int], from_b_to_c: UUID) -> None:
    links = example(*costs)
    assert routing_table([A], (A, B, C, D), links) == {B: B, C: B, D: B}
    assert routing_table([B], (A, B, C, D), links)[C] == from_b_to_c


def test_sites_that_no_link_reaches_have_no_row() -> None:
    assert routing_table([A], (A, B, C), (SiteLink(A, B, 1), SiteLink(B, guid(99), 1))) == {B: B}
    assert routing_table([], (A, B), (SiteLink(A, B, 1),)) == {}


@pytest.mark.parametrize("seed", range(40))
def test_tables_lead_along_paths_of_least_cost(seed: int) -> None:
    random = Random(seed)
    sites = [guid(n + 1) for n in range(random.randint(2, 9))]
    links = tuple(
        SiteLink(*random.sample(sites, 2), random.randint(1, 9)) for _ in range(random.randint(1, 16))
    )
    cost = {(x, y): 0 if x == y else 10**9 for x in sites for y in sites}
    for link in links:
        for pair in ((link.first, link.second), (link.second, link.first)):
            cost[pair] = min(cost[pair], link.cost)
    direct = dict(cost)
    for middle in sites:  # Floyd and Warshall
        for x in sites:
            for y in sites:
                cost[x, y] = min(cost[x, y], cost[x, middle] + cost[middle, y])
    for start in sites:
        table = routing_table([start], sites, links)
        assert set(table) == {site for site in sites if site != start and cost[start, site] < 10**9}
        for goal, first in table.items():
            assert direct[start, first] + cost[first, goal] == cost[start, goal]


# ---- GetNextHops


@pytest.mark.rule("QB-366")
def test_a_queue_manager_of_the_same_site_is_the_next_hop_itself() -> None:
    assert hops(Directory(machine(OWN, A), machine(GOAL, A, B))) == [GOAL]


def test_machines_without_a_site_are_near() -> None:
    assert hops(Directory(machine(OWN), machine(GOAL, A))) == [GOAL]
    assert hops(Directory(machine(OWN, A), machine(GOAL))) == [GOAL]


@pytest.mark.rule("QB-366")
def test_out_routing_servers_take_everything_in_their_order() -> None:
    own = machine(OWN, A, out_routers=(R2, R1))
    assert hops(Directory(own, machine(GOAL, A), machine(R1, A), machine(R2, A))) == [R2, R1]


@pytest.mark.rule("QB-366")
def test_in_routing_servers_of_the_destination_take_what_comes_from_its_site() -> None:
    goal = machine(GOAL, A, in_routers=(R1, R2))
    assert hops(Directory(machine(OWN, A), goal, machine(R1, A), machine(R2, A))) == [R1, R2]


def test_routing_servers_of_the_own_site_take_what_leaves_it() -> None:
    routers = [machine(R1, A, router=True), machine(R2, B, router=True), machine(R3, A, router=True)]
    found = hops(Directory(machine(OWN, A), machine(GOAL, B), machine(guid(50), A), *routers))
    assert sorted(found) == [R1, R3]


def test_without_a_routing_server_nothing_leaves_the_site() -> None:
    assert router(Directory(machine(OWN, A), machine(GOAL, B))).next_hops(GOAL) == ()
    assert router(Directory(machine(OWN, A), machine(GOAL, B))).hops("", GOAL) == (Target("", GOAL),)


def test_a_router_that_is_no_gate_hands_over_to_the_gates_of_its_site() -> None:
    links = (SiteLink(A, B, 1, (G1, G2)),)
    own = machine(OWN, A, router=True)
    assert hops(Directory(own, machine(GOAL, B), machine(G1, A), machine(G2, B), links=links)) == [G1]


@pytest.mark.rule("QB-366")
def test_a_router_delivers_inside_its_site() -> None:
    own = machine(OWN, A, router=True)
    assert hops(Directory(own, machine(GOAL, A))) == [GOAL]
    assert hops(Directory(own, machine(GOAL, A, in_routers=(R1,)), machine(R1, A))) == [R1]


def test_an_in_routing_server_delivers_itself() -> None:
    own = machine(OWN, A, router=True)
    assert hops(Directory(own, machine(GOAL, B, in_routers=(R1, OWN)), machine(R1, B))) == [GOAL]


def gated(*links: SiteLink, goal: Machine | None = None) -> Directory:
    """This queue manager is the gate of site A, G2 to G3 are those of B and C."""
    return Directory(
        machine(OWN, A, router=True),
        goal or machine(GOAL, C),
        machine(G2, B, router=True),
        machine(G3, C, router=True),
        links=links,
    )


@pytest.mark.rule("QB-366")
def test_a_site_gate_sends_to_the_gate_of_the_next_site_of_the_cheapest_path() -> None:
    far = (SiteLink(A, B, 1, (OWN, G2)), SiteLink(B, C, 1, (G2, G3)))
    assert hops(gated(*far, SiteLink(A, C, 5, (OWN, G3)))) == [G2]
    assert hops(gated(*far, SiteLink(A, C, 1, (OWN, G3)))) == [G3]


def test_a_site_gate_that_is_no_routing_server_is_none() -> None:
    directory = gated(SiteLink(A, C, 1, (OWN, G3)))
    directory.known[OWN] = machine(OWN, A)
    assert router(directory).table == {}
    assert router(directory).next_hops(GOAL) == ()


@pytest.mark.rule("QB-366")
def test_the_own_queue_manager_is_never_its_own_next_hop() -> None:
    assert hops(Directory(machine(OWN, A, out_routers=(OWN, R1)), machine(GOAL, A), machine(R1, A))) == [R1]


@pytest.mark.rule("QB-367")
def test_hops_that_the_directory_does_not_know_are_left_out() -> None:
    own = machine(OWN, A, out_routers=(R1, R2))
    assert router(Directory(own, machine(GOAL, A), machine(R2, A))).hops("", GOAL) == (Target("host4", R2),)
    assert router(Directory(own, machine(GOAL, A))).hops("", GOAL) == (Target("", GOAL),)


def test_the_table_is_read_again_every_hour_and_when_it_is_asked_for() -> None:
    directory = gated(SiteLink(A, C, 5, (OWN, G3)))
    made = router(directory)
    assert made.table == {C: C}
    directory.all_links = (SiteLink(A, B, 1, (OWN, G2)), SiteLink(B, C, 1, (G2, G3)))
    directory.all_sites = (A, B, C)
    assert not made.expire(3_599.0)
    assert made.table == {C: C}
    assert made.next_deadline() == 3_600.0
    assert made.expire(3_600.0)
    assert made.table == {B: B, C: B}
    assert made.next_deadline() == 7_200.0
    assert not made.refresh(3_700.0)


# ---- static routes


def test_static_routes_go_before_the_directory() -> None:
    directory = Directory(machine(OWN, A), machine(GOAL, A), machine(R1, A))
    static = {GOAL: (Target("10.0.0.9"), Target("", R1))}
    assert router(directory, static=static).hops("host2", GOAL) == (Target("10.0.0.9"), Target("host3", R1))


def test_static_routes_by_host_and_for_everything_else() -> None:
    static: dict[UUID | str, tuple[Target, ...]] = {"far": (Target("a"),), "*": (Target("b"),)}
    made = router(Directory(), static=static)
    assert made.hops("FAR", GOAL) == (Target("a"),)
    assert made.hops("near", GOAL) == (Target("b"),)
    assert made.hops("", None) == (Target("b"),)


def test_without_a_directory_the_destination_is_the_next_hop() -> None:
    made = router(Directory())
    assert made.hops("Far", GOAL) == (Target("far", GOAL),)
    assert made.hops("Far", None) == (Target("far", NULL_GUID),)
