"""Requests: fragments, their limits, calls that overlap, and what each mistake is answered with."""

import itertools
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmq_fast.rpc.faults import wire_status
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.limits import Limits
from tests.support.rpc import wire
from tests.support.rpc.world import (
    CRASH,
    DEFER,
    ECHO,
    FAIL_QM,
    FAIL_RPC,
    IFACE,
    NOTHING,
    OBSOLETE,
    RawService,
    World,
)

PROTOCOL_ERROR = 0x1C01000B
ACCESS_DENIED = 5
MPX = wire.WHOLE | wire.MPX
MIB = 1 << 20


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.rule("RP-11", "RP-32")
@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("size", [1, 7, 100, 5000])
def test_a_fragmented_request_is_put_together(world: World, size: int, big: bool) -> None:
    stub = bytes(range(256)) * 10
    client = world.bound()
    client.send(*wire.fragmented(1, ECHO, stub, size, big=big))
    assert wire.response(client.read()) == (stub[::-1] if big else stub)
    assert world.server.incomplete.held == 0


@given(st.lists(st.integers(0, 30000)), st.integers(1, 3000), st.booleans())
def test_any_cut_of_the_stream_gives_the_same_replies(cuts: list[int], size: int, big: bool) -> None:
    world = World()
    client = world.connect()
    stub = bytes(range(256)) * 20
    stream = wire.bind([(0, IFACE, [wire.NDR])], big=big) + b"".join(
        [*wire.fragmented(1, ECHO, stub, size, big=big), wire.request(2, NOTHING, b"xyz", big=big)]
    )
    edges = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        client.send(stream[start:end])
    answers = client.read()
    assert [answer.type for answer in answers] == [wire.BIND_ACK, *[wire.RESPONSE] * (len(answers) - 1)]
    assert wire.response(answers[1:-1]) == (stub[::-1] if big else stub)
    assert wire.response(answers[-1:]) == b""


@pytest.mark.rule("RP-12")
def test_four_mebibytes_of_stub_and_not_one_more(world: World) -> None:
    client = world.bound()
    stub = bytes(4 * MIB)
    client.send(*wire.fragmented(1, NOTHING, stub, 5816))
    assert wire.response(client.read()) == b""
    *most, last = wire.fragmented(2, NOTHING, stub + b"x", 5816, hint=False)
    client.send(*most)
    assert client.read() == []
    fault = client.fault(last)
    assert (fault.status, fault.flags, fault.context_id) == (ACCESS_DENIED, wire.WHOLE, 0)
    assert client.closed


@pytest.mark.rule("RP-12")
def test_a_request_that_announces_too_much_is_refused_at_once(world: World) -> None:
    client = world.bound()
    first = wire.request(1, NOTHING, b"x", flags=wire.FIRST, alloc_hint=4 * MIB + 1)
    assert client.fault(first).status == ACCESS_DENIED
    assert client.closed
    again = world.bound()
    assert wire.response([again.ask(wire.request(1, ECHO, b"x", alloc_hint=0xFFFFFFFF))]) == b"x"


@pytest.mark.rule("RP-10")
def test_a_fragment_that_is_too_large(world: World) -> None:
    client = world.bound()
    assert client.call(NOTHING, bytes(5840 - 24)) == b""
    fault = client.fault(wire.request(2, NOTHING, bytes(5840 - 23)))
    assert (fault.status, fault.call_id, fault.context_id) == (PROTOCOL_ERROR, 2, 0)
    assert client.closed


@pytest.mark.rule("RP-14")
def test_call_ids_do_not_decrease(world: World) -> None:
    client = world.bound()
    for call_id in (0, 5, 5, 6, 0x7FFFFFFF):
        assert client.call(ECHO, b"x", call_id=call_id) == b"x"
    assert client.fault(wire.request(0x7FFFFFFE, ECHO, b"x")).status == PROTOCOL_ERROR
    assert client.closed


@pytest.mark.rule("RP-14")
def test_call_ids_have_31_bits(world: World) -> None:
    client = world.bound()
    assert client.fault(wire.request(0x80000000, ECHO, b"x")).status == PROTOCOL_ERROR
    assert client.closed


@pytest.mark.rule("RP-13")
@pytest.mark.parametrize(
    ("flags", "second", "call_id", "context_id", "blamed"),
    [
        (wire.WHOLE, wire.FIRST, 5, 3, 5),  # a first fragment twice
        (wire.WHOLE, wire.FIRST, 6, 3, 5),  # another request before the end of the first
        (wire.WHOLE, wire.LAST, 6, 3, 5),
        (wire.WHOLE, wire.WHOLE, 6, 3, 5),
        (MPX, wire.FIRST, 5, 3, 5),
        (MPX, wire.FIRST, 6, 0, 6),  # with concurrent multiplexing the new one is at fault
        (MPX, 0, 6, 0, 6),
    ],
)
def test_protocol_errors_in_the_middle_of_a_request_are_answered_at_once(
    world: World, flags: int, second: int, call_id: int, context_id: int, blamed: int
) -> None:
    client = world.connect()
    client.bind([(3, IFACE, [wire.NDR])], flags=flags)
    client.send(wire.request(5, ECHO, b"begin", context_id=3, flags=wire.FIRST))
    assert client.read() == []
    fault = client.fault(wire.request(call_id, ECHO, b"more", context_id=3, flags=second))
    assert (fault.status, fault.call_id, fault.context_id) == (PROTOCOL_ERROR, blamed, context_id)
    assert fault.flags == wire.WHOLE
    assert client.closed
    assert world.service.calls == []


@pytest.mark.rule("RP-13")
@pytest.mark.parametrize("flags", [0, wire.LAST, wire.LAST | wire.MAYBE])
def test_a_request_without_its_first_fragment(world: World, flags: int) -> None:
    client = world.bound()
    fault = client.fault(wire.request(2, ECHO, b"x", flags=flags))
    assert (fault.status, fault.context_id) == (PROTOCOL_ERROR, 0)
    assert client.closed


def test_late_fragments_of_an_old_call_are_ignored(world: World) -> None:
    client = world.bound()
    client.call(NOTHING, call_id=200)
    client.send(wire.request(51, ECHO, b"late", flags=wire.LAST))
    assert client.read() == []
    assert client.call(ECHO, b"x", call_id=201) == b"x"
    assert client.fault(wire.request(51, ECHO, b"too late", flags=wire.LAST)).status == PROTOCOL_ERROR


def test_a_request_that_is_cancelled_when_it_begins(world: World) -> None:
    client = world.bound()
    fault = client.fault(wire.request(2, ECHO, b"x", flags=wire.FIRST | wire.PENDING_CANCEL))
    assert (fault.status, fault.context_id) == (0x6BD, 0)
    assert fault.flags == wire.WHOLE | wire.DID_NOT_EXECUTE
    assert client.closed


def test_what_later_fragments_say_of_context_and_operation_does_not_count(world: World) -> None:
    client = world.bound()
    client.send(wire.request(1, ECHO, b"ab", flags=wire.FIRST))
    client.send(wire.request(1, CRASH, b"cd", context_id=77, flags=wire.PENDING_CANCEL))
    client.send(wire.request(1, 999, b"ef", context_id=78, flags=wire.LAST | wire.MAYBE))
    assert wire.response(client.read()) == b"abcdef"


@pytest.mark.rule("RP-34")
def test_unknown_presentation_contexts_and_operations_leave_the_connection_open(world: World) -> None:
    client = world.connect()
    client.bind([(0x1234, IFACE, [wire.NDR])])
    fault = client.fault(wire.request(1, ECHO, context_id=4))
    assert (fault.status, fault.context_id) == (0x1C010003, 0)
    assert fault.flags == wire.WHOLE | wire.DID_NOT_EXECUTE
    for opnum in (11, OBSOLETE, 0xFFFF):
        fault = client.fault(wire.request(2, opnum, context_id=0x1234))
        assert (fault.status, fault.context_id) == (0x1C010002, 0x1234)
        assert fault.flags == wire.WHOLE | wire.DID_NOT_EXECUTE
    assert client.call(ECHO, b"x", call_id=3, context_id=0x1234) == b"x"
    assert world.server.counters.refused == {"presentation context": 1, "opnum": 3}
    assert world.refused == []


def test_the_rest_of_a_request_that_was_refused_is_ignored(world: World) -> None:
    client = world.bound()
    first, *rest = wire.fragmented(1, ECHO, bytes(1000), 100, context_id=9)
    assert client.fault(first).status == 0x1C010003
    client.send(*rest)
    assert client.read() == []
    assert client.call(ECHO, b"x", call_id=2) == b"x"
    assert world.server.incomplete.held == 0


def test_responses_have_the_lower_half_of_the_context_identifier(world: World) -> None:
    client = world.connect()
    client.bind([(0x1234, IFACE, [wire.NDR])])
    assert client.ask(wire.request(1, ECHO, b"x", context_id=0x1234)).context_id == 0x34


@pytest.mark.rule("RP-33", "RP-32")
@pytest.mark.parametrize("big", [False, True])
def test_object_uuids(world: World, big: bool) -> None:
    uuid = "00112233-4455-6677-8899-aabbccddeeff"
    client = world.bound()
    client.send(wire.request(1, ECHO, b"abc", object_uuid=uuid, big=big))
    assert wire.response(client.read()) == (b"cba" if big else b"abc")
    client.send(wire.request(2, ECHO, b"abc"))
    assert [call.object_uuid for call in world.service.calls] == [UUID(uuid), None]


@pytest.mark.rule("RP-15")
@pytest.mark.parametrize(
    ("opnum", "stub", "status"),
    [
        (FAIL_RPC, 0xC00E0025.to_bytes(4, "little"), 0xC00E0025),
        (FAIL_RPC, 0x1C00001A.to_bytes(4, "little"), 0x1C00001A),
        (FAIL_RPC, 0xC0000005.to_bytes(4, "little"), 0x1C000012),
        (FAIL_RPC, bytes(4), 0x1C000012),
        (CRASH, b"", 0x1C000012),
        (ECHO, b"bad", 0x6F7),
        (ECHO, b"unencodable", 0x1C000012),
    ],
)
def test_faults_of_methods_leave_the_connection_open(
    world: World, opnum: int, stub: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stub == b"unencodable":
        monkeypatch.setattr(type(world.service.table.ops[0]), "encode_response", None)
    client = world.bound()
    fault = client.fault(wire.request(1, opnum, stub))
    assert (fault.status, fault.flags, fault.context_id) == (status, wire.WHOLE, 0)
    monkeypatch.undo()
    assert client.call(ECHO, b"x", call_id=2) == b"x"
    assert world.server.counters.faults == {status: 1}
    assert world.server.counters.failures == (opnum == CRASH)


@pytest.mark.rule("RP-15")
def test_statuses_that_are_never_sent() -> None:
    forbidden = (
        *(0, 0x80000001, 0x80000002, 0x80000003, 0xC0000005, 0xC0000006, 0xC000001D, 0xC0000096),
        *(0xC00000AA, 0xC00000FD, 0xC0000194, 0xC0000235, 0xC0000409, 0xC0000420),
    )
    assert {wire_status(status) for status in forbidden} == {0x1C000012}
    assert wire_status(-0x3FF1FFDB) == 0xC00E0025


def test_errors_of_the_queue_manager_become_results(world: World) -> None:
    assert world.bound().call(FAIL_QM) == b"result C00E0003"


# ------------------------------------------------------------------------------------ calls that overlap


@pytest.mark.rule("RP-09", "QP-079")
def test_calls_overlap_with_concurrent_multiplexing(world: World) -> None:
    client = world.bound(flags=MPX)
    client.send(*(wire.request(i, DEFER) for i in (1, 2, 3)))
    assert client.call(ECHO, b"meanwhile", call_id=4) == b"meanwhile"
    first, second, third = world.service.calls[:3]
    second.reply(b"two")
    first.reply(b"one")
    assert client.wakes == 2
    assert [(answer.call_id, answer.stub) for answer in client.read()] == [(2, b"two"), (1, b"one")]
    third.fault(0xC00E0008)
    (fault,) = client.read()
    assert (fault.call_id, fault.status) == (3, 0xC00E0008)


@pytest.mark.rule("RP-09")
def test_one_call_at_a_time_without_it(world: World) -> None:
    client = world.bound()
    client.send(wire.request(1, DEFER))
    fault = client.fault(wire.request(2, ECHO, b"x"))
    assert (fault.status, fault.call_id) == (PROTOCOL_ERROR, 2)
    assert client.closed
    assert world.service.abandoned == world.service.calls


@pytest.mark.rule("RP-09")
def test_a_call_id_that_is_under_way_is_not_used_again(world: World) -> None:
    client = world.bound(flags=MPX)
    client.send(wire.request(1, DEFER))
    assert client.fault(wire.request(1, ECHO)).status == PROTOCOL_ERROR


def test_number_of_calls_under_way() -> None:
    world = World(limits=Limits(calls=2))
    client = world.bound(flags=MPX)
    client.send(wire.request(1, DEFER), wire.request(2, DEFER))
    fault = client.fault(wire.request(3, DEFER))
    assert (fault.status, fault.flags) == (0x1C010014, wire.WHOLE | wire.DID_NOT_EXECUTE)
    world.service.calls[0].reply(b"one")
    assert wire.response(client.read()) == b"one"
    assert client.call(ECHO, b"x", call_id=4) == b"x"


@pytest.mark.rule("RP-26")
def test_co_cancel_ends_a_call_under_way_with_a_fault(world: World) -> None:
    client = world.bound()
    client.send(wire.request(1, DEFER))
    (call,) = world.service.calls
    fault = client.fault(wire.cancel(1))
    assert (fault.call_id, fault.status) == (1, 0x1C00000D)
    assert world.service.abandoned == [call]
    assert not call.alive
    call.reply(b"late", world.service.written.append)
    assert client.read() == []
    assert world.service.written == [False]
    assert client.call(ECHO, b"x", call_id=2) == b"x"


@pytest.mark.rule("RP-26")
@pytest.mark.parametrize("big", [False, True])
def test_orphaned_ends_a_call_without_a_reply(world: World, big: bool) -> None:
    client = world.bound()
    client.send(wire.request(1, DEFER), wire.orphaned(1, big))
    (call,) = world.service.calls
    assert world.service.abandoned == [call]
    call.fault(5)
    assert client.read() == []
    assert client.call(ECHO, b"x", call_id=2) == b"x"


@pytest.mark.rule("RP-26")
@pytest.mark.parametrize("make", [wire.cancel, wire.orphaned])
def test_cancels_of_what_is_not_under_way_are_ignored(world: World, make: object) -> None:
    client = world.bound()
    assert callable(make)
    client.send(make(3), wire.request(1, ECHO, b"ab", flags=wire.FIRST), make(1))
    assert client.read() == []
    client.send(wire.request(1, ECHO, b"cd", flags=wire.LAST))
    assert wire.response(client.read()) == b"abcd"


def test_a_call_is_answered_once(world: World) -> None:
    client = world.bound()
    client.send(wire.request(1, DEFER))
    (call,) = world.service.calls
    call.reply(b"one", world.service.written.append)
    call.reply(b"two", world.service.written.append)
    call.fault(5)
    assert wire.response(client.read()) == b"one"
    assert sorted(world.service.written) == [False, True]
    assert world.service.abandoned == []


def test_calls_are_abandoned_when_the_connection_is_lost(world: World) -> None:
    client = world.bound(flags=MPX)
    client.send(wire.request(1, DEFER), wire.request(2, DEFER))
    world.service.calls[0].reply(b"never read", world.service.written.append)
    client.close()
    assert world.service.written == [False]
    assert world.service.abandoned == world.service.calls[1:]
    world.service.calls[1].reply(b"late", world.service.written.append)
    assert world.service.written == [False, False]
    assert len(list(world.server.connections)) == 0


def test_incomplete_requests_of_all_connections_have_a_limit() -> None:
    world = World(limits=Limits(incomplete=100_000))
    clients = [world.bound() for _ in range(4)]
    begun = wire.fragmented(1, ECHO, bytes(40_000), 5000)
    for client in clients[:2]:
        client.send(*begun[:-1])
        assert client.read() == []
    assert clients[2].fault(*begun[:-1]).status == 0x1C010014
    assert clients[2].closed
    clients[0].send(begun[-1])
    assert wire.response(clients[0].read()) == bytes(40_000)
    clients[3].send(*begun[:-1])
    assert clients[3].read() == []
    for client in clients:
        client.close()
    assert world.server.incomplete.held == 0


def test_policies_of_interfaces() -> None:
    strict = RawService(policy=InterfacePolicy(minimum_level=5, exempt=frozenset([NOTHING])))
    client = World(strict).bound()
    assert client.call(ECHO, b"x") == b"result C00E0025"
    assert client.call(NOTHING) == b""
    nameless = RawService(policy=InterfacePolicy(anonymous=False, refuse_by_fault=True, obsolete_status=5))
    client = World(nameless).bound()
    assert client.fault(wire.request(1, ECHO, b"x")).status == ACCESS_DENIED
    assert client.fault(wire.request(2, OBSOLETE)).status == 5
    assert nameless.calls == strict.calls == []
