"""Associations and their context handles."""

import pytest

from msmq_fast.rpc.association import AssociationTable
from msmq_fast.rpc.limits import Limits
from tests.support.rpc import wire
from tests.support.rpc.world import CLOSE, DEFER, IFACE, OPEN, USE, Client, World

MISMATCH = 0x1C00001A
NDR = wire.NDR


@pytest.fixture
def world() -> World:
    return World()


def join(world: World, group: int, address: str = "10.0.0.1") -> tuple[Client, wire.Answer]:
    client = world.connect(address)
    return client, client.ask(wire.bind([(0, IFACE, [NDR])], group=group))


@pytest.mark.rule("RP-05")
def test_a_connection_joins_the_association_that_it_names(world: World) -> None:
    _, first = join(world, 0)
    _, second = join(world, first.group)
    _, other = join(world, 0)
    assert second.group == first.group
    assert other.group not in (0, first.group)


@pytest.mark.rule("RP-05")
@pytest.mark.parametrize("address", ["10.0.0.2", "::1"])
def test_not_from_another_address(world: World, address: str) -> None:
    _, first = join(world, 0)
    client, answer = join(world, first.group, address)
    assert (answer.type, answer.reason) == (wire.BIND_NAK, 0)
    assert client.closed
    client.close()
    assert join(world, first.group)[1].type == wire.BIND_ACK


@pytest.mark.rule("RP-05", "RP-06")
def test_an_association_ends_with_its_last_connection(world: World) -> None:
    first, ack = join(world, 0)
    second, _ = join(world, ack.group)
    first.close()
    third, again = join(world, ack.group)
    assert again.group == ack.group
    second.close()
    third.close()
    assert join(world, ack.group)[1].type == wire.BIND_NAK
    assert join(world, 1)[1].type == wire.BIND_NAK
    assert len(world.server.associations) == 0


@pytest.mark.rule("RP-07", "QP-109")
def test_context_handles_belong_to_the_association(world: World) -> None:
    first, ack = join(world, 0)
    second, _ = join(world, ack.group)
    stranger, _ = join(world, 0)
    handle = first.call(OPEN, b"a\0queue")
    assert len(handle) == 20
    assert handle[:4] == bytes(4)
    assert second.call(USE, b"a" + handle) == b"queue"
    assert stranger.fault(wire.request(1, USE, b"a" + handle)).status == MISMATCH
    assert second.call(CLOSE, b"a" + handle) == b"queue"
    assert first.fault(wire.request(7, USE, b"a" + handle)).status == MISMATCH
    assert world.service.run_down == []


@pytest.mark.rule("RP-08", "QP-110")
@pytest.mark.parametrize("opnum", [USE, CLOSE])
def test_context_handles_have_a_type(world: World, opnum: int) -> None:
    client, _ = join(world, 0)
    handle = client.call(OPEN, b"a\0queue")
    assert client.fault(wire.request(5, opnum, b"b" + handle)).status == MISMATCH
    assert client.fault(wire.request(5, opnum, b"a" + bytes(20))).status == MISMATCH
    assert client.fault(wire.request(5, opnum, b"a" + handle[:-1] + b"\0")).status == MISMATCH
    assert client.call(USE, b"a" + handle, call_id=6) == b"queue"


@pytest.mark.rule("RP-06", "QP-182", "QP-186")
def test_rundown_with_the_last_connection_lower_orders_first(world: World) -> None:
    first, ack = join(world, 0)
    second, _ = join(world, ack.group)
    for name in (b"s\x02session", b"r\x01read", b"r\x01another read", b"x\x01closed"):
        handle = first.call(OPEN, name)
    second.call(CLOSE, b"x" + handle)
    first.close()
    assert world.service.run_down == []
    second.close()
    assert world.service.run_down == [b"read", b"another read", b"session"]


def test_a_rundown_that_fails_does_not_keep_the_others_from_theirs() -> None:
    table = AssociationTable(lambda size: bytes(range(size)), 9)
    association = table.join(0, "a")
    assert association is not None
    done: list[str] = []

    def fail(state: str) -> None:
        raise RuntimeError(state)

    association.handles._random = lambda size: bytes([len(done)]) * size
    association.handles.create("k", "one", fail, 0)
    done.append("")
    association.handles.create("k", "two", done.append, 1)
    table.leave(association)
    assert done == ["", "two"]


def test_a_handle_that_comes_after_the_end_is_run_down_at_once(world: World) -> None:
    client, _ = join(world, 0)
    client.send(wire.request(1, DEFER))
    (call,) = world.service.calls
    client.close()
    call.handles.create("k", b"late", world.service.run_down.append)
    assert world.service.run_down == [b"late"]


def test_number_of_context_handles() -> None:
    world = World(limits=Limits(handles=2))
    client, _ = join(world, 0)
    handles = {client.call(OPEN, b"a\0x") for _ in range(2)}
    assert len(handles) == 2
    assert client.fault(wire.request(3, OPEN, b"a\0x")).status == 0x1C00001B
    client.call(CLOSE, b"a" + handles.pop(), call_id=4)
    assert client.call(OPEN, b"a\0x", call_id=5) not in handles


def test_handles_are_counted_by_address_and_all_clients_leave_some_for_others() -> None:
    world = World(limits=Limits(handles=4))

    def taken(address: str) -> int:
        """How many handles a further client at this address gets."""
        client, _ = join(world, 0, address)
        for count in range(9):
            if client.ask(wire.request(2 + count, OPEN, b"a\0x")).type == wire.FAULT:
                return count
        return 9

    assert taken("2001:db8::1") == 4
    assert taken("2001:db8::2") == 0  # of the same /64
    # Four are left for all others; each takes half of the rest.
    assert [taken(f"10.0.0.{host}") for host in range(1, 5)] == [2, 1, 1, 0]


def test_handles_come_back_when_they_are_closed_and_with_the_last_connection() -> None:
    world = World(limits=Limits(handles=2))
    for _ in range(3):
        client, _ = join(world, 0)
        handles = [client.call(OPEN, b"a\0x") for _ in range(2)]
        client.call(CLOSE, b"a" + handles[0], call_id=4)
        client.call(OPEN, b"a\0x", call_id=5)
        client.close()
