"""How much a client may use up, how long, and replies that leave as the transport takes them."""

import gc
import tracemalloc
import weakref

import pytest

from msmq_fast.rpc.auth.context import AuthError, AuthFailure
from msmq_fast.rpc.limits import Limits
from tests.support.rpc import wire
from tests.support.rpc.world import DEFER, ECHO, IFACE, NOTHING, OPEN, Client, Secured, SeeThrough, World

MPX = wire.WHOLE | wire.MPX


@pytest.mark.rule("RP-11", "RP-10")
@pytest.mark.parametrize("size", [2048, 4280, 5840])
def test_a_large_reply_leaves_piece_by_piece(size: int) -> None:
    world = World()
    client = world.bound(xmit=size, recv=size)
    stub = bytes(range(256)) * (0x420000 // 256)
    client.send(wire.request(1, DEFER))
    world.service.calls[0].reply(stub, world.service.written.append)
    assert client.wakes == 1
    stream = b""
    rounds = 0
    while data := client.connection.data_to_send():
        assert world.service.written == [True] * (client.connection.next_deadline() is not None)
        assert sum(map(len, data)) <= 1 << 18
        stream += b"".join(data)
        rounds += 1
    assert rounds > 15
    assert world.service.written == [True]
    answers = [wire.read(raw) for raw in wire.split(stream)]
    assert wire.response(answers) == stub
    assert all(len(answer.raw) <= size for answer in answers)
    assert len(answers) == -(-len(stub) // ((size - 24) // 8 * 8))
    assert world.server.counters.pdus_out == 1 + len(answers)


def test_requests_wait_while_replies_do() -> None:
    world = World(limits=Limits(output=10_000))
    client = world.bound(flags=MPX)
    client.send(wire.request(1, DEFER))
    world.service.calls[0].reply(bytes(20_000))
    assert not client.connection.reading
    client.send(wire.request(2, ECHO, b"x"))
    assert len(world.service.calls) == 1
    assert client.connection.next_deadline() is None
    first = client.connection.data_to_send()
    assert len(b"".join(first)) > 20_000
    assert client.connection.reading
    assert client.connection.go_on()
    assert len(world.service.calls) == 2
    assert wire.response(client.read()) == b"x"
    assert not client.connection.go_on()


def test_a_reply_that_never_leaves_is_reported() -> None:
    world = World()
    client = world.bound()
    client.send(wire.request(1, DEFER))
    world.service.calls[0].reply(bytes(1 << 20), world.service.written.append)
    client.connection.data_to_send()
    client.close()
    assert world.service.written == [False]


@pytest.mark.parametrize(
    ("opens", "after", "reason"),
    [
        (b"", 10.0, "handshake timeout"),
        (wire.bind([(0, IFACE, [wire.NDR])])[:20], 5.0, "slow writer"),
    ],
)
def test_connections_without_a_bind_end(opens: bytes, after: float, reason: str) -> None:
    world = World(limits=Limits(handshake=10.0, slow_writer=5.0))
    client = world.connect()
    client.send(opens)
    assert client.connection.next_deadline() == world.now + after
    client.connection.expire(world.now + after - 0.1)
    assert not client.closed
    client.connection.expire(world.now + after)
    assert client.closed
    assert world.refused == [("rpc connection", reason, "10.0.0.1")]


def test_security_contexts_that_are_not_completed_end() -> None:
    world = World(limits=Limits(handshake=10.0))
    client = world.connect()
    world.now += 8
    secured = Secured(client)
    client.bind([(0, IFACE, [wire.NDR])], auth=secured.auth(b"hello"))
    assert client.connection.next_deadline() == world.now + 10
    client.send(wire.auth3(secured.auth(b"I am bob")))
    assert client.connection.next_deadline() == world.now + 900


def test_what_is_sent_by_half_ends() -> None:
    world = World(limits=Limits(slow_writer=20.0))
    client = world.bound()
    first, second = wire.fragmented(1, ECHO, bytes(10), 5)
    world.now += 1
    client.send(first)
    begun = world.now
    world.now += 15
    client.send(second[:10])
    assert client.connection.next_deadline() == begun + 20
    client.send(second[10:])
    client.read()
    assert client.connection.next_deadline() == world.now + 900
    client.send(wire.request(2, ECHO)[:10])
    client.connection.expire(world.now + 20)
    assert world.refused[0][1] == "slow writer"


def test_a_client_that_takes_nothing_is_given_up() -> None:
    world = World(limits=Limits(slow_reader=60.0))
    client = world.bound()
    client.send(wire.request(1, DEFER))
    world.service.calls[0].reply(bytes(1 << 20), world.service.written.append)
    client.connection.data_to_send()
    client.connection.pause_sending(world.now)
    client.connection.pause_sending(world.now + 30)
    assert client.connection.next_deadline() == world.now + 60
    client.connection.resume_sending()
    assert client.connection.next_deadline() is None
    client.connection.pause_sending(world.now + 50)
    client.connection.expire(world.now + 110)
    assert client.closed
    assert world.service.written == [False]


def test_idle_connections_end_but_not_those_that_have_something() -> None:
    world = World(limits=Limits(idle=300.0))
    client = world.bound(flags=MPX)
    assert client.connection.next_deadline() == world.now + 300
    client.send(wire.request(1, DEFER))
    assert client.connection.next_deadline() is None
    world.service.calls[0].reply(b"")
    client.read()
    world.now += 100
    client.send(wire.request(2, NOTHING))
    client.read()
    assert client.connection.next_deadline() == world.now + 300
    client.call(OPEN, b"a\0queue", call_id=3)
    assert client.connection.next_deadline() is None


def half_bound(world: World) -> Client:
    """All of a large bind but its last byte."""
    client = world.connect()
    client.send(wire.bind([(0, IFACE, [wire.NDR])], auth=wire.Auth(10, 6, 0, bytes(60_000)))[:-1])
    return client


def test_large_binds_that_do_not_arrive_in_full_share_little_memory() -> None:
    tracemalloc.start()
    try:
        world = World()
        half_bound(world)
        before = tracemalloc.get_traced_memory()[0]
        clients = [half_bound(world) for _ in range(768)]
        refused = [client for client in clients if client.closed]
        for client in refused:
            client.connection.connection_lost()
        assert tracemalloc.get_traced_memory()[0] - before < (8 << 20) + 768 * 4096
    finally:
        tracemalloc.stop()
    assert 600 < len(refused) < 700
    assert {reason for _, reason, _ in world.refused} == {"too many unfinished binds"}
    assert world.bound().call(ECHO, b"small") == b"small"
    for client in clients:
        client.connection.connection_lost()
    assert world.server.handshakes.held < 64 << 10, "of the first one"
    assert not half_bound(world).closed


def test_what_is_bound_is_no_handshake() -> None:
    world = World(limits=Limits(handshakes=20_000))
    client = world.connect()
    secured = Secured(client)
    many = [(number, IFACE, [wire.NDR]) for number in range(250)]
    raw = wire.bind(many, auth=secured.auth(b"hello"))
    client.send(raw[:9_000])
    assert 0 < world.server.handshakes.held <= 20_000
    client.send(raw[9_000:])
    assert client.read()[0].type == wire.BIND_ACK
    client.send(wire.auth3(secured.auth(b"I am bob")))
    assert world.server.handshakes.held == 0
    bound = world.bound(flags=MPX)
    for number, size in enumerate((9_000, 70_000)):
        bound.send(*wire.fragmented(number, ECHO, bytes(size), 5000))
        assert wire.response(bound.read()) == bytes(size)
        assert world.server.handshakes.held == 0
    assert not bound.closed


def test_a_connection_that_we_close_is_gone_in_time() -> None:
    world = World(limits=Limits(slow_reader=60.0))
    client = world.bound()
    client.send(wire.request(1, DEFER))
    world.service.calls[0].reply(bytes(1 << 20))
    client.connection.close()
    assert not client.closed
    assert client.connection.next_deadline() == world.now + 60
    client.connection.expire(world.now + 60)
    assert client.closed


def test_what_is_left_of_a_connection_needs_no_garbage_collection() -> None:
    world = World()
    client = world.bound()
    client.send(wire.request(1, ECHO, b"x"), wire.request(2, ECHO, bytes(3000))[:2000])
    world.service.calls.clear()
    left = weakref.ref(client.connection)
    client.close()
    del client
    gc.disable()
    try:
        assert left() is None
    finally:
        gc.enable()


def test_numbers_of_connections() -> None:
    world = World(limits=Limits(connections=3, connections_per_address=2))
    first = world.connect()
    world.connect()
    assert world.server.open_connection("10.0.0.1", 0) is None
    world.connect("10.0.0.2")
    assert world.server.open_connection("10.0.0.3", 0) is None
    assert [why for _, why, _ in world.refused] == [
        "too many connections from one address",
        "too many connections",
    ]
    first.close()
    first.close()
    world.connect()
    assert len(list(world.server.connections)) == 3


def test_four_addresses_with_all_they_may_have_leave_some_to_others() -> None:
    world = World(limits=Limits(connections=40, connections_per_address=10))
    for number in range(4):
        while world.server.open_connection(f"10.0.0.{number}", 0) is not None:
            pass
    assert len(list(world.server.connections)) == 35
    assert world.server.open_connection("10.0.1.1", 0) is not None


def test_which_connections_make_room_for_others() -> None:
    """Without a bind at any time; bound after a minute of silence, and never with something under way."""
    world = World()

    def spare(client: Client, seconds: float) -> bool:
        return client.connection.spare(world.now + seconds, 60.0)

    stranger = world.connect()
    assert stranger.connection.silent
    assert spare(stranger, 0)
    world.now += 1
    bound = world.bound()
    waiting, holding = world.bound("10.0.0.2"), world.bound("10.0.0.3")
    waiting.send(wire.request(1, DEFER, b"x"))
    holding.call(OPEN, b"a\0queue")
    assert not bound.connection.silent
    assert [spare(bound, seconds) for seconds in (0, 59.9, 60)] == [False, False, True]
    assert not spare(waiting, 1000)
    assert not spare(holding, 1000)


def test_a_client_that_never_pauses_is_no_slow_writer() -> None:
    world = World(limits=Limits(slow_writer=20.0))
    client = world.bound(flags=MPX)
    pdus = [wire.request(number, NOTHING) for number in range(1, 5)]
    client.send(pdus[0][:10])
    for number in range(3):
        world.now += 15
        client.connection.expire(world.now)
        client.send(pdus[number][10:] + pdus[number + 1][:10])
        client.read()
    assert world.server.counters.calls_in == 3
    assert not client.closed
    client.connection.expire(world.now + 20)
    assert client.closed


def test_a_call_that_cannot_be_abandoned_keeps_nobody_else() -> None:
    world = World()
    client = world.bound(flags=MPX)
    client.send(wire.request(1, DEFER), wire.request(2, DEFER))
    world.service.stubborn.append(world.service.calls[0])
    client.close()
    assert world.service.abandoned == [world.service.calls[1]]
    assert len(list(world.server.connections)) == 0
    assert len(world.server.associations) == 0
    assert world.server.counters.failures == 1


def test_a_reply_that_cannot_be_protected_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    secured = Secured(world.connect())
    secured.establish()
    secured.client.send(secured.pdu(1, DEFER, b""))

    def expired(*args: object, **options: object) -> None:
        raise AuthError(AuthFailure.SIGNATURE, "the ticket has expired")

    monkeypatch.setattr(SeeThrough, "protect_pdus", expired)
    world.service.calls[0].reply(b"message", world.service.written.append)
    assert secured.client.read() == []
    assert secured.client.closed
    assert world.service.written == [False]
