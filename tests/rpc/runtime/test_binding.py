"""bind and alter_context: presentation contexts, syntaxes, features, sizes, versions."""

import pytest

from msmq_fast.rpc.limits import Limits
from tests.support.rpc import wire
from tests.support.rpc.world import ECHO, IFACE, OTHER, WHO, RawService, World

NDR, NDR64 = wire.NDR, wire.NDR64
ACCEPTED, REJECTED, NEGOTIATED = 0, 2, 3
NO_ABSTRACT, NO_TRANSFER = 1, 2


@pytest.fixture
def world() -> World:
    return World(others=[RawService(OTHER)])


def results(answer: wire.Answer) -> list[tuple[int, int]]:
    return [(result, reason) for result, reason, _ in answer.results]


def nak(world: World, raw: bytes, reason: int) -> None:
    client = world.connect()
    answer = client.ask(raw)
    assert (answer.type, answer.reason, answer.versions) == (wire.BIND_NAK, reason, [(5, 0)])
    assert client.closed
    assert len(world.refused) == 1
    assert world.server.counters.refused.total() == 1


@pytest.mark.rule("RP-02", "RP-25", "RP-31", "RP-32")
@pytest.mark.parametrize("big", [False, True])
def test_bind_then_alter_then_calls_in_both_byte_orders(world: World, big: bool) -> None:
    client = world.connect()
    ack = client.bind([(7, IFACE, [NDR])], call_id=3, big=big)
    assert (ack.call_id, ack.flags, results(ack)) == (3, wire.WHOLE, [(ACCEPTED, 0)])
    assert ack.results[0][2] == wire.syntax(NDR)
    assert ack.group != 0
    assert ack.secondary == b"2105\0"
    answer = client.ask(wire.alter([(8, OTHER, [NDR])], call_id=4, big=big))
    assert (answer.type, answer.call_id, results(answer)) == (wire.ALTER_RESPONSE, 4, [(ACCEPTED, 0)])
    assert answer.secondary == b""
    assert answer.group == ack.group
    sent = b"abcd" if not big else b"dcba"
    assert client.call(ECHO, sent, context_id=7, big=big) == b"abcd"
    assert client.call(ECHO, sent, context_id=8, big=big) == b"abcd"


@pytest.mark.rule("RP-03")
@pytest.mark.parametrize(
    ("contexts", "expected", "ndr64"),
    [
        ([(0, IFACE, [NDR]), (1, IFACE, [NDR64])], [(REJECTED, NO_TRANSFER), (ACCEPTED, 0)], {1: True}),
        ([(0, IFACE, [NDR64, NDR])], [(ACCEPTED, 0)], {0: True}),
        ([(0, IFACE, [wire.NOTHING, NDR])], [(ACCEPTED, 0)], {0: False}),
        ([(0, IFACE, [NDR]), (1, IFACE, [NDR])], [(ACCEPTED, 0), (REJECTED, NO_TRANSFER)], {0: False}),
        ([(0, IFACE, [wire.NOTHING])], [(REJECTED, NO_TRANSFER)], {}),
        ([(0, (IFACE[0], 2, 0), [NDR])], [(REJECTED, NO_ABSTRACT)], {}),
        ([(0, (IFACE[0], 1, 1), [NDR])], [(REJECTED, NO_ABSTRACT)], {}),
        ([(0, (OTHER[0], 3, 1), [NDR]), (9, IFACE, [NDR])], [(ACCEPTED, 0), (ACCEPTED, 0)], {0: False}),
        ([(0, NDR, [NDR]), (1, IFACE, [NDR64])], [(REJECTED, NO_ABSTRACT), (ACCEPTED, 0)], {1: True}),
    ],
)
def test_one_transfer_syntax_for_each_interface(
    world: World, contexts: list[wire.Context], expected: list[tuple[int, int]], ndr64: dict[int, bool]
) -> None:
    client = world.connect()
    ack = client.bind(contexts)
    assert results(ack) == expected
    for result, _, syntax in ack.results:
        assert (syntax == bytes(20)) == (result != ACCEPTED)
    for identifier, wide in ndr64.items():
        assert client.call(WHO, context_id=identifier).endswith(b"|%d" % wide)
    for identifier, *_ in contexts:
        if identifier not in ndr64 and identifier != 9:
            assert client.fault(wire.request(99, ECHO, context_id=identifier)).status == 0x1C010003


@pytest.mark.rule("RP-04")
@pytest.mark.parametrize(("offered", "agreed"), [(0, 0), (1, 1), (2, 2), (3, 3), (0xFF, 3)])
def test_bind_time_features(world: World, offered: int, agreed: int) -> None:
    client = world.connect()
    ack = client.bind([(0, IFACE, [NDR]), (1, IFACE, [wire.features(offered)])])
    assert results(ack) == [(ACCEPTED, 0), (NEGOTIATED, agreed)]
    assert ack.results[1][2] == bytes(20)
    assert client.connection.features == agreed
    assert client.call(ECHO, b"x") == b"x"


@pytest.mark.rule("RP-04")
def test_bind_time_features_only_where_they_are_the_first_syntax(world: World) -> None:
    ack = world.connect().bind([(0, wire.NOTHING, [wire.NOTHING, wire.features(1)])])
    assert results(ack) == [(REJECTED, NO_ABSTRACT)]
    nak(world, wire.bind([(0, IFACE, [wire.features(1)]), (1, IFACE, [wire.features(2)])]), 0)


@pytest.mark.rule("RP-01")
@pytest.mark.parametrize(
    ("major", "minor", "accepted"), [(5, 0, True), (5, 1, True), (5, 2, False), (4, 0, False)]
)
def test_versions_of_the_protocol(world: World, major: int, minor: int, accepted: bool) -> None:
    raw = wire.bind([(0, IFACE, [NDR])], major=major, minor=minor)
    if not accepted:
        nak(world, raw, 4)
        return
    client = world.connect()
    assert client.ask(raw).type == wire.BIND_ACK
    assert client.ask(wire.request(1, ECHO, b"x", minor=minor)).stub == b"x"


def test_another_protocol_is_answered_as_windows_does(world: World) -> None:
    """The probe by which nmap finds SMB servers, and what it knows "Microsoft Windows RPC" by."""
    probe = bytes.fromhex("000000a4ff534d4272000000000801400000000000000000000000000000400600000100")
    client = world.connect()
    client.send(probe + bytes(132))
    answer = b"".join(client.connection.data_to_send())
    assert answer == bytes.fromhex("05000d0310000000180000000008014004000105") + bytes(4)
    assert client.closed


@pytest.mark.rule("RP-01")
def test_a_request_in_another_version_ends_the_connection(world: World) -> None:
    client = world.bound()
    assert client.fault(wire.request(1, ECHO, major=6)).status == 0x1C01000B
    assert client.closed


@pytest.mark.rule("RP-02")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (wire.bind([]), 0),
        (wire.pdu(wire.BIND, 0, wire.bind_body([])[:-3]), 0),
        (wire.bind([(0, IFACE, [])]), 0),
        (wire.pdu(wire.BIND, 0, wire.bind_body([(0, IFACE, [NDR])])[:-1]), 4),
        (wire.pdu(wire.BIND, 0, b""), 4),
        (wire.bind([], auth_length=8), 4),
    ],
)
def test_binds_that_are_refused(world: World, raw: bytes, reason: int) -> None:
    nak(world, raw, reason)


def test_a_second_bind_is_refused(world: World) -> None:
    client = world.bound()
    answer = client.ask(wire.bind([(1, OTHER, [NDR])], call_id=5))
    assert (answer.type, answer.call_id, answer.reason) == (wire.BIND_NAK, 5, 0)
    assert client.closed


@pytest.mark.rule("RP-31", "RP-34")
@pytest.mark.parametrize(
    "contexts",
    [
        [],
        [(1, IFACE, [])],
        [(0, OTHER, [NDR])],
        [(0, IFACE, [wire.NOTHING, NDR64])],
        [(0, IFACE, [NDR, NDR64])],
    ],
)
def test_an_alter_context_that_contradicts_what_was_negotiated(
    world: World, contexts: list[wire.Context]
) -> None:
    client = world.bound()
    fault = client.fault(wire.alter(contexts, call_id=9))
    assert (fault.call_id, fault.status, fault.context_id) == (9, 0x1C01000B, 0)
    assert fault.flags == wire.WHOLE | wire.DID_NOT_EXECUTE
    assert fault.alloc_hint == 32
    assert client.closed


@pytest.mark.rule("RP-31")
def test_an_alter_context_repeats_and_what_it_is_refused_stays(world: World) -> None:
    client = world.bound()
    assert results(client.ask(wire.alter([(0, IFACE, [NDR])]))) == [(ACCEPTED, 0)]
    assert results(client.ask(wire.alter([(0, IFACE, [OTHER])]))) == [(REJECTED, NO_TRANSFER)]
    assert results(client.ask(wire.alter([(1, IFACE, [wire.features(3)])]))) == [(REJECTED, NO_TRANSFER)]
    assert results(client.ask(wire.alter([(4, IFACE, [NDR]), (0, IFACE, [NDR])]))) == [
        (ACCEPTED, 0),
        (REJECTED, NO_TRANSFER),
    ]
    assert client.call(ECHO, b"x") == b"x"
    assert client.call(ECHO, b"y", context_id=4) == b"y"


@pytest.mark.rule("RP-10")
@pytest.mark.parametrize(
    ("xmit", "recv", "both"),
    [
        (0xFFFF, 0xFFFF, 5840),
        (0, 0xFFFF, 2048),
        (0xFFFF, 0, 2048),
        (3199, 0xFFFF, 3192),
        (0xFFFF, 3199, 3192),
        (4280, 4280, 4280),
    ],
)
def test_sizes_of_fragments(world: World, xmit: int, recv: int, both: int) -> None:
    client = world.connect()
    ack = client.bind([(0, IFACE, [NDR])], xmit=xmit, recv=recv)
    assert (ack.xmit, ack.recv) == (both, both)
    answer = client.ask(wire.alter([(0, IFACE, [NDR])], xmit=100, recv=100, group=0xDEAD))
    assert (answer.xmit, answer.recv, answer.group) == (both, both, ack.group)
    client.send(*wire.fragmented(1, ECHO, bytes(20000), 5840 - 24))
    answers = client.read()
    assert max(len(answer.raw) for answer in answers) == 24 + (both - 24) // 8 * 8
    assert wire.response(answers) == bytes(20000)


@pytest.mark.rule("RP-09", "RP-21")
@pytest.mark.parametrize("offered", [0, wire.MPX, wire.HEADER_SIGN, 0xFC])
def test_flags_that_are_agreed_on(world: World, offered: int) -> None:
    client = world.connect()
    ack = client.bind([(0, IFACE, [NDR])], flags=wire.WHOLE | offered)
    assert ack.flags == wire.WHOLE | offered & (wire.MPX | wire.HEADER_SIGN)
    answer = client.ask(wire.alter([(0, IFACE, [NDR])], flags=0xFF))
    assert answer.flags == wire.WHOLE | wire.HEADER_SIGN


@pytest.mark.rule("RP-27")
def test_number_of_presentation_contexts() -> None:
    world = World(limits=Limits(presentation_contexts=3), others=[RawService(OTHER)])
    client = world.bound()
    for identifier in range(1, 6):
        answer = client.ask(wire.alter([(identifier, IFACE, [NDR])]))
        assert results(answer) == [(ACCEPTED, 0)]
    assert results(client.ask(wire.alter([(5, IFACE, [NDR])]))) == [(ACCEPTED, 0)]
    answer = client.ask(wire.alter([(6, IFACE, [NDR])]))
    assert (answer.type, answer.reason) == (wire.BIND_NAK, 2)
    assert client.closed


@pytest.mark.rule("RP-02")
@pytest.mark.parametrize("ptype", [wire.RESPONSE, wire.FAULT, wire.BIND_ACK, wire.SHUTDOWN, 1, 20, 255])
def test_pdus_that_only_servers_send_end_the_connection(world: World, ptype: int) -> None:
    client = world.bound()
    client.send(wire.pdu(ptype, 1, bytes(64)))
    assert client.read() == []
    assert client.closed
    assert world.refused == [("rpc connection", "PDU type", f"10.0.0.1: type {ptype}")]


@pytest.mark.rule("RP-34")
@pytest.mark.parametrize("raw", [wire.request(4, ECHO), wire.alter([(0, IFACE, [NDR])], call_id=4)])
def test_nothing_but_a_bind_comes_first(world: World, raw: bytes) -> None:
    client = world.connect()
    fault = client.fault(raw)
    assert (fault.call_id, fault.status, fault.flags) == (4, 0x1C01000B, wire.WHOLE | wire.DID_NOT_EXECUTE)
    assert client.closed
