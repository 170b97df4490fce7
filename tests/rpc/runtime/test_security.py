"""Security contexts: legs, their failures, what is protected, and verification trailers."""

from __future__ import annotations

import itertools
import struct

import pytest

from msmq_fast.rpc.limits import Limits
from tests.support.rpc import wire
from tests.support.rpc.world import (
    ECHO,
    IFACE,
    NOTHING,
    OTHER,
    WHO,
    Client,
    RawService,
    Secured,
    World,
    flip,
    nobody,
)

ACCESS_DENIED, PACKAGE_ERROR, PROTOCOL_ERROR = 5, 0x721, 0x1C01000B
CONNECT, CALL, PKT, INTEGRITY, PRIVACY = 2, 3, 4, 5, 6
CONTEXTS = [(0, IFACE, [wire.NDR])]


@pytest.fixture
def world() -> World:
    return World(others=[RawService(OTHER)])


def refused_fault(
    client: Client, fault: wire.Answer, status: int, *, executed: bool, context_id: int = 0
) -> None:
    assert (fault.type, fault.status, fault.context_id) == (wire.FAULT, status, context_id)
    assert fault.flags == (wire.WHOLE if executed else wire.WHOLE | wire.DID_NOT_EXECUTE)
    assert fault.auth is None
    assert client.closed


# ------------------------------------------------------------------------------------------------------ legs


@pytest.mark.rule("RP-18", "RP-19", "RP-20", "RP-23")
@pytest.mark.parametrize(
    ("auth_type", "level"), [*itertools.product([9, 10, 16], [CONNECT, PKT, INTEGRITY, PRIVACY]), (10, CALL)]
)
def test_three_legs_and_the_caller_is_known(world: World, auth_type: int, level: int) -> None:
    secured = Secured(world.connect(), 5, level, auth_type)
    secured.establish("alice")
    if level == CONNECT:
        assert secured.client.call(WHO) == b"alice|%d|2|10.0.0.1|0" % auth_type
    else:
        assert secured.call(1, WHO) == b"alice|%d|%d|10.0.0.1|0" % (auth_type, level)


@pytest.mark.rule("RP-20", "RP-31")
def test_legs_by_alter_context_end_with_an_empty_token(world: World) -> None:
    secured = Secured(world.connect(), 5, INTEGRITY, 9)
    secured.client.bind(CONTEXTS, auth=secured.auth(b"hello"))
    answer = secured.client.ask(wire.alter(CONTEXTS, auth=secured.auth(b"more")))
    assert answer.type == wire.ALTER_RESPONSE
    assert answer.auth == wire.Auth(9, INTEGRITY, 5, b"go on", 0)
    answer = secured.client.ask(wire.alter(CONTEXTS, auth=secured.auth(b"I am bob")))
    assert answer.auth == wire.Auth(9, INTEGRITY, 5, b"", 0)
    assert secured.call(1, ECHO, b"x") == b"x"


@pytest.mark.rule("RP-18", "RP-19")
@pytest.mark.parametrize(
    ("auth_type", "level", "token", "reason"),
    [
        (11, INTEGRITY, b"hello", 8),
        (0, INTEGRITY, b"hello", 8),
        (1, CALL, b"hello", 8),
        (9, CALL, b"hello", 9),
        (10, 0, b"hello", 0),
        (10, 1, b"hello", 0),
        (10, 7, b"hello", 0),
        (10, INTEGRITY, b"rubbish", 9),
        (10, INTEGRITY, b"I am mallory", 9),
    ],
)
def test_binds_whose_authentication_fails(
    world: World, auth_type: int, level: int, token: bytes, reason: int
) -> None:
    client = world.connect()
    answer = client.ask(wire.bind(CONTEXTS, auth=wire.Auth(auth_type, level, 1, token)))
    assert (answer.type, answer.reason) == (wire.BIND_NAK, reason)
    assert client.closed
    assert len(world.refused) == 1


@pytest.mark.rule("RP-20", "RP-34")
@pytest.mark.parametrize(
    ("auth", "status"),
    [
        (wire.Auth(10, PRIVACY, 1, b"I am alice"), ACCESS_DENIED),
        (wire.Auth(9, INTEGRITY, 1, b"I am alice"), PACKAGE_ERROR),
        (wire.Auth(0, INTEGRITY, 1, b"I am alice"), ACCESS_DENIED),
        (wire.Auth(10, INTEGRITY, 2, b"I am alice"), PROTOCOL_ERROR),
        (wire.Auth(10, INTEGRITY, 1, b"rubbish"), PACKAGE_ERROR),
        (wire.Auth(10, INTEGRITY, 1, b"I am mallory"), ACCESS_DENIED),
    ],
)
def test_an_alter_context_that_is_not_the_next_leg(world: World, auth: wire.Auth, status: int) -> None:
    client = world.connect()
    client.bind(CONTEXTS, auth=wire.Auth(10, INTEGRITY, 1, b"hello"))
    fault = client.fault(wire.alter(CONTEXTS, call_id=8, auth=auth))
    assert fault.call_id == 8
    refused_fault(client, fault, status, executed=False)


@pytest.mark.rule("RP-18")
def test_an_alter_context_with_an_unknown_authentication_type(world: World) -> None:
    client = world.bound()
    fault = client.fault(wire.alter(CONTEXTS, auth=wire.Auth(33, INTEGRITY, 1, b"hello")))
    refused_fault(client, fault, 0x6D3, executed=False)


@pytest.mark.rule("RP-20")
@pytest.mark.parametrize("token", [b"I am mallory", b"rubbish", b"more", b"I am talkative"])
@pytest.mark.parametrize("level", [CONNECT, INTEGRITY])
def test_that_auth3_failed_shows_in_the_first_request(world: World, token: bytes, level: int) -> None:
    secured = Secured(world.connect(), level=level)
    secured.client.bind(CONTEXTS, auth=secured.auth(b"hello"))
    secured.client.send(wire.auth3(secured.auth(token)))
    assert secured.client.read() == []
    assert not secured.client.closed
    fault = secured.client.fault(secured.pdu(1, ECHO, b"x"))
    refused_fault(secured.client, fault, ACCESS_DENIED, executed=True)


def test_a_logon_that_failed_at_level_connect_also_without_a_trailer(world: World) -> None:
    secured = Secured(world.connect(), level=CONNECT)
    secured.client.bind(CONTEXTS, auth=secured.auth(b"hello"))
    secured.client.send(wire.auth3(secured.auth(b"I am mallory")))
    fault = secured.client.fault(wire.request(1, ECHO, b"x"))
    refused_fault(secured.client, fault, ACCESS_DENIED, executed=True)


@pytest.mark.rule("RP-34")
def test_no_request_before_the_last_leg(world: World) -> None:
    secured = Secured(world.connect(), level=CONNECT)
    secured.client.bind(CONTEXTS, auth=secured.auth(b"hello"))
    fault = secured.client.fault(wire.request(1, ECHO))
    refused_fault(secured.client, fault, PROTOCOL_ERROR, executed=False)
    assert world.service.calls == []


@pytest.mark.rule("RP-34")
@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (wire.auth3(wire.Auth(10, INTEGRITY, 1, b"I am alice")), PROTOCOL_ERROR),
        (wire.pdu(wire.AUTH3, 0, bytes(4)), PROTOCOL_ERROR),
        (wire.auth3(wire.Auth(10, INTEGRITY, 1, b"I am alice", pad=1)), 0x1C00001B),
        (wire.alter(CONTEXTS, auth=wire.Auth(10, INTEGRITY, 1, b"hello")), ACCESS_DENIED),
    ],
)
def test_nothing_is_built_twice(world: World, raw: bytes, status: int) -> None:
    secured = Secured(world.connect())
    secured.establish()
    refused_fault(secured.client, secured.client.fault(raw), status, executed=False)


@pytest.mark.rule("RP-17")
def test_padding_that_is_more_than_there_can_be(world: World) -> None:
    client = world.connect()
    most = len(wire.bind(CONTEXTS)) - 24
    for pad in (most, most + 1):
        auth = wire.Auth(10, INTEGRITY, 1, b"hello", pad=pad)
        answer = world.connect().ask(wire.bind(CONTEXTS, auth=auth))
        assert answer.type == (wire.BIND_ACK if pad == most else wire.BIND_NAK)
    assert answer.reason == 4
    client = world.bound()
    fault = client.fault(wire.alter(CONTEXTS, auth=wire.Auth(10, INTEGRITY, 1, b"hello", pad=most + 1)))
    refused_fault(client, fault, PROTOCOL_ERROR, executed=False)


@pytest.mark.rule("RP-27")
def test_several_security_contexts_up_to_a_limit() -> None:
    world = World(limits=Limits(security_contexts=3))
    client = world.bound()
    all_of_them = []
    for number in (7, 0xFFFFFFFF, 0):
        secured = Secured(client, number, level=PRIVACY if number else CONNECT)
        assert client.ask(wire.alter(CONTEXTS, auth=secured.auth(b"hello"))).auth is not None
        client.ask(wire.alter(CONTEXTS, auth=secured.auth(b"I am number %d" % number)))
        all_of_them.append(secured)
    assert all_of_them[1].call(1, WHO).startswith(b"number 4294967295|10|6")
    assert all_of_them[0].call(2, WHO).startswith(b"number 7|10|6")
    assert client.call(WHO, call_id=3).startswith(b"|0|1")
    assert all_of_them[0].call(4, WHO).startswith(b"number 7|10|6")
    fault = client.fault(wire.alter(CONTEXTS, auth=Secured(client, 8).auth(b"hello")))
    refused_fault(client, fault, PROTOCOL_ERROR, executed=False)


def test_legs_that_may_block_are_done_on_a_thread() -> None:
    pool = nobody()
    world = World(offload=pool.offload)
    secured = Secured(world.connect(), auth_type=16)
    client = secured.client
    client.send(wire.bind(CONTEXTS, auth=secured.auth(b"hello")))
    client.send(wire.alter(CONTEXTS, auth=secured.auth(b"I am alice")))
    assert client.read() == []
    assert not client.connection.reading
    pool.run()
    assert [answer.type for answer in client.read()] == [wire.BIND_ACK]
    pool.run()
    assert [answer.type for answer in client.read()] == [wire.ALTER_RESPONSE]
    assert client.wakes == 2
    assert secured.call(1, WHO).startswith(b"alice|16|5")
    other = Secured(world.connect(), auth_type=16)
    other.client.send(wire.bind(CONTEXTS, auth=other.auth(b"rubbish")))
    pool.run()
    assert other.client.read()[0].reason == 9
    late = Secured(world.connect(), auth_type=16)
    late.client.send(wire.bind(CONTEXTS, auth=late.auth(b"hello")))
    late.client.close()
    pool.run()
    assert late.client.read() == []


# ------------------------------------------------------------------------------------------------- protection


@pytest.mark.rule("RP-17", "RP-19", "RP-21", "RP-22")
@pytest.mark.parametrize("sign_header", [False, True])
@pytest.mark.parametrize("level", [PKT, INTEGRITY, PRIVACY])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 40_000])
def test_requests_and_responses_are_protected(world: World, level: int, sign_header: bool, size: int) -> None:
    stub = (bytes(range(256)) * 160)[:size]
    secured = Secured(world.connect(), level=level)
    secured.establish(flags=wire.WHOLE | (wire.HEADER_SIGN if sign_header else 0))
    for call_id in (1, 2):
        if size <= 5000:
            secured.client.send(secured.pdu(call_id, ECHO, stub))
        else:
            pieces = [stub[at : at + 4000] for at in range(0, size, 4000)]
            for i, piece in enumerate(pieces):
                flags = (wire.FIRST if i == 0 else 0) | (wire.LAST if i == len(pieces) - 1 else 0)
                secured.client.send(secured.pdu(call_id, ECHO, piece, flags=flags, alloc_hint=0))
        answers = secured.client.read()
        assert all(len(answer.raw) <= 5840 for answer in answers)
        for answer in answers:
            assert answer.auth is not None
            assert (answer.auth.type, answer.auth.level, answer.auth.id) == (10, level, 1)
            assert (len(answer.raw) - 24 - 8 - 12) % 16 == 0
        assert b"".join(secured.open(answer) for answer in answers) == stub
        assert answers[0].alloc_hint == size


@pytest.mark.rule("RP-19", "RP-21")
@pytest.mark.parametrize(
    ("sign_header", "place", "noticed"),
    [
        (False, 24, True),  # the stub
        (True, 24, True),
        (False, -1, True),  # the token
        (False, 16, False),  # alloc_hint
        (True, 16, True),
        (True, -18, True),  # the padding length in the sec_trailer
    ],
)
def test_what_was_changed_on_the_way_is_not_executed(
    world: World, sign_header: bool, place: int, noticed: bool
) -> None:
    secured = Secured(world.connect())
    secured.establish(flags=wire.WHOLE | (wire.HEADER_SIGN if sign_header else 0))

    def change(raw: bytes) -> bytes:
        at = place % len(raw)
        return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]

    answer = secured.client.ask(secured.pdu(1, NOTHING, b"0123456789", change))
    if noticed:
        refused_fault(secured.client, answer, PACKAGE_ERROR, executed=True)
        assert world.refused[-1][1] == "authentication signature"
    else:
        assert answer.type == wire.RESPONSE


@pytest.mark.rule("RP-21")
def test_header_signing_is_switched_on_for_the_whole_connection_by_any_alter_context(world: World) -> None:
    secured = Secured(world.connect())
    secured.establish()
    assert secured.call(1, ECHO, b"x") == b"x"
    secured.client.ask(wire.alter(CONTEXTS, flags=wire.WHOLE | wire.HEADER_SIGN))
    secured.header_sign = True
    assert secured.call(2, ECHO, b"y") == b"y"
    late = Secured(world.connect())
    late.client.bind(CONTEXTS, auth=late.auth(b"hello"))
    late.client.send(wire.auth3(late.auth(b"I am bob"), flags=wire.WHOLE | wire.HEADER_SIGN))
    assert late.call(1, ECHO, b"x") == b"x"


@pytest.mark.rule("RP-19")
def test_privacy_encrypts(world: World) -> None:
    secured = Secured(world.connect(), level=PRIVACY)
    secured.establish()
    raw = secured.pdu(1, ECHO, b"a secret of some length")
    assert flip(b"a secret") in raw
    answer = secured.client.ask(raw)
    assert flip(b"a secret") in answer.raw
    assert secured.open(answer) == b"a secret of some length"


@pytest.mark.rule("RP-19", "RP-23")
@pytest.mark.parametrize(
    ("established", "auth"),
    [
        (None, wire.Auth(10, INTEGRITY, 1, bytes(12))),
        (None, wire.Auth(0, 1, 0, b"none")),
        (CONNECT, wire.Auth(10, PKT, 1, bytes(16))),
        (PKT, wire.Auth(10, CONNECT, 1, bytes(16))),
        (INTEGRITY, wire.Auth(10, INTEGRITY, 2, bytes(12))),
        (INTEGRITY, wire.Auth(9, INTEGRITY, 1, bytes(12))),
        (INTEGRITY, wire.Auth(10, PRIVACY, 1, bytes(12))),
    ],
)
def test_a_request_in_a_security_context_that_there_is_not(
    world: World, established: int | None, auth: wire.Auth
) -> None:
    client = world.connect()
    if established is None:
        client.bind(CONTEXTS)
    else:
        Secured(client, level=established).establish()
    fault = client.fault(wire.request(1, ECHO, auth=auth))
    refused_fault(client, fault, ACCESS_DENIED, executed=True)
    assert world.service.calls == []


@pytest.mark.rule("RP-19")
def test_at_level_connect_the_token_of_a_request_does_not_count(world: World) -> None:
    secured = Secured(world.connect(), level=CONNECT)
    secured.establish()
    answer = secured.client.ask(wire.request(1, WHO, auth=wire.Auth(10, CONNECT, 1, b"\1" + bytes(15))))
    assert answer.auth is None
    assert answer.stub.startswith(b"alice|10|2")


@pytest.mark.rule("RP-23")
def test_a_request_without_a_trailer_is_anonymous_where_packets_are_protected(world: World) -> None:
    secured = Secured(world.connect())
    secured.establish()
    assert secured.client.call(WHO) == b"|0|1|10.0.0.1|0"
    assert secured.call(2, WHO).startswith(b"alice|10|5")


@pytest.mark.rule("RP-13", "RP-17")
@pytest.mark.parametrize(
    ("auth", "status"), [(None, PROTOCOL_ERROR), (wire.Auth(10, INTEGRITY, 1, bytes(12)), PACKAGE_ERROR)]
)
def test_every_fragment_is_protected(world: World, auth: wire.Auth | None, status: int) -> None:
    client = world.connect()
    secured = Secured(client)
    secured.establish()
    client.send(secured.pdu(1, ECHO, bytes(16), flags=wire.FIRST))
    fault = client.fault(wire.request(1, ECHO, bytes(16), flags=wire.LAST, auth=auth))
    refused_fault(client, fault, status, executed=True)


def test_a_call_that_is_refused_counts_in_the_sequence(world: World) -> None:
    secured = Secured(world.connect())
    secured.establish()
    assert secured.client.fault(secured.pdu(1, ECHO, b"x", context_id=9)).status == 0x1C010003
    assert secured.client.fault(secured.pdu(2, 99, b"x")).status == 0x1C010002
    first = secured.pdu(3, ECHO, b"x", context_id=9, flags=wire.FIRST)
    second = secured.pdu(3, ECHO, b"x", context_id=9, flags=wire.LAST)
    assert secured.client.fault(first, second).status == 0x1C010003
    assert secured.call(4, ECHO, b"x") == b"x"


# --------------------------------------------------------------------------------------- verification trailer

SIGNATURE = bytes.fromhex("8ae3137102f43671")
END, MUST = 0x4000, 0x8000


def command(number: int, data: bytes) -> bytes:
    return struct.pack("<HH", number, len(data)) + data


def header2(call_id: int, opnum: int = ECHO, context_id: int = 0, drep: bytes = b"\x10\0\0\0") -> bytes:
    return struct.pack("<BBH4sIHH", 0, 7, 7, drep, call_id, context_id, opnum)


PCONTEXT = wire.syntax(IFACE) + wire.syntax(wire.NDR)


@pytest.mark.rule("RP-24")
@pytest.mark.parametrize(
    ("trailer", "accepted"),
    [
        (command(1 | END, struct.pack("<I", 0)), True),
        (command(1 | END, struct.pack("<I", 1)), False),  # header signing, which the bind did not offer
        (command(1 | END, struct.pack("<I", 0xFFFFFFFE)), True),
        (command(2 | END | MUST, PCONTEXT), True),
        (command(2 | END, wire.syntax(OTHER) + wire.syntax(wire.NDR)), False),
        (command(2 | END, wire.syntax(IFACE) + wire.syntax(wire.NDR64)), False),
        (command(3 | END, header2(1)), True),
        (command(3 | END, header2(2)), False),
        (command(3 | END, header2(1, opnum=NOTHING)), False),
        (command(3 | END, header2(1, context_id=1)), False),
        (command(3 | END, header2(1, drep=bytes(4))), False),
        (command(3, header2(1)) + command(2, PCONTEXT) + command(1 | END, bytes(4)), True),
        (command(3, header2(1)) + command(3 | END, header2(1)), False),
        (command(77, b"unknown!") + command(1 | END, bytes(4)), True),
        (command(77 | MUST, b"unknown!") + command(1 | END, bytes(4)), False),
        (command(2 | END, PCONTEXT[:-4]), False),
    ],
)
@pytest.mark.parametrize("fragmented", [False, True])
def test_verification_trailers(world: World, trailer: bytes, accepted: bool, fragmented: bool) -> None:
    client = world.bound()
    stub = b"stub data...".ljust(12 + 20 * fragmented, b".")
    whole = stub + SIGNATURE + trailer
    client.send(*wire.fragmented(1, ECHO, whole, 32 if fragmented else 500))
    (answer,) = client.read()
    if accepted:
        assert wire.response([answer]) == stub
    else:
        assert (answer.type, answer.status) == (wire.FAULT, ACCESS_DENIED)
        assert world.service.calls == []
    assert client.call(ECHO, b"x", call_id=2) == b"x"


@pytest.mark.rule("RP-24")
def test_the_trailer_names_header_signing_where_the_bind_did(world: World) -> None:
    client = world.bound(flags=wire.WHOLE | wire.HEADER_SIGN)
    assert client.call(ECHO, b"data" + SIGNATURE + command(1 | END, struct.pack("<I", 1))) == b"data"


@pytest.mark.rule("RP-24")
def test_the_trailer_of_a_big_endian_request_is_little_endian(world: World) -> None:
    client = world.bound()
    trailer = SIGNATURE + command(3, header2(1, drep=bytes(4))) + command(2 | END, PCONTEXT)
    assert client.call(ECHO, b"data" + trailer, big=True, call_id=1) == b"atad"


@pytest.mark.rule("RP-24")
@pytest.mark.parametrize(
    "data",
    [
        SIGNATURE,
        b"x" + SIGNATURE + command(1 | END, struct.pack("<I", 1)),
        SIGNATURE + command(1 | END, struct.pack("<I", 1)) + b"more data",
        SIGNATURE + struct.pack("<HH", 1 | END, 2000),
        SIGNATURE + command(1, bytes(4)),
        SIGNATURE + command(2 | END, PCONTEXT)[:-1],
    ],
)
def test_data_that_looks_like_a_trailer_is_data(world: World, data: bytes) -> None:
    assert world.bound().call(ECHO, data) == data


@pytest.mark.rule("RP-24")
def test_trailers_under_encryption(world: World) -> None:
    secured = Secured(world.connect(), level=PRIVACY)
    secured.establish()
    trailer = SIGNATURE + command(3, header2(1)) + command(2 | END, PCONTEXT)
    assert secured.call(1, ECHO, b"data" + trailer) == b"data"
