"""Outgoing queues and destinations of the queue manager as sessions use them."""

from __future__ import annotations

import pytest

from msmq_fast.mqqb.destination import destinations
from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.hops import Progress, Target
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sessionstate import SessionState
from msmq_fast.packet.names import QueuePart, Scope
from msmq_fast.qm.queues.outgoing import ConnectionStatus, OutgoingState
from msmq_fast.qm.queues.queue import Queue, QueueKind, QueueProperties
from tests.mqqb.outgoing import OTHER, opened, outgoing, put
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent


@pytest.mark.rule("DM-177")
def test_the_base_priority_of_a_queue_counts_with_that_of_its_messages() -> None:
    host = Host()
    session = host.opened()
    for number, base in ((1, 0), (2, 5), (3, 4), (4, -5)):
        source = host.outgoing([wire.message(number, source=OWN)])
        source.base_priority = base
        session.attach(source)
    session.pump(101.0)
    assert [wire.ordinal(packet) for packet in sent(session)] == [2, 3, 1, 4]


@pytest.mark.rule("QB-166", "QB-363", "QB-365")
@pytest.mark.parametrize(
    ("name", "target", "direct"),
    [
        (r"DIRECT=TCP:10.0.0.7\private$\q", Target("10.0.0.7"), True),
        (r"DIRECT=OS:Server\private$\q", Target("server"), True),
        (r"DIRECT=TCP:[fd00::1]\private$\q", Target("fd00::1"), True),
        (rf"PRIVATE={OTHER}\00000005", Target("", OTHER), False),
    ],
)
def test_targets(name: str, target: Target, direct: bool) -> None:
    _, source = outgoing(Host(), name)
    assert source.hops == (target,)
    assert source.direct is direct


@pytest.mark.rule("QB-102", "QB-165", "QB-177", "QB-186", "QB-191", "QB-192")
@pytest.mark.parametrize("address", ["10.0.0.7", "fd00::7"])
def test_state_and_history_of_a_connection(address: str) -> None:
    host, effects = Host(), []
    endpoint = Endpoint(host.session_context, effects.append, 0.0)
    queue, source = outgoing(host, rf"DIRECT=TCP:{address}\private$\q")
    put(host, queue, 1)
    endpoint.transfer.submit(source, 9.0)
    assert queue.outgoing_state is OutgoingState.WAITING
    assert [effect.address for effect in effects] == [address]  # type: ignore[attr-defined]
    session = opened(host, endpoint, effects)
    assert queue.outgoing_state is OutgoingState.CONNECTED
    assert queue.next_hops == (address,)
    session.close(CloseReason.DISCONNECTED, 11.0)
    assert queue.outgoing_state is OutgoingState.DISCONNECTED
    endpoint.expire(16.0)
    endpoint.transfer.failed(effects.pop().link, "refused", 16.0)  # type: ignore[attr-defined]
    assert [(event.status, event.time, event.addresses) for event in queue.history] == [
        (status, 2_000, (address,))
        for status in (
            ConnectionStatus.IN_PROCESS,
            ConnectionStatus.ESTABLISH_PACKET_RECEIVED,
            ConnectionStatus.ESTABLISHED,
            ConnectionStatus.SOCKET_SEND_FAILURE,  # the message was not acknowledged
            ConnectionStatus.IN_PROCESS,
            ConnectionStatus.SOCKET_CONNECT_FAILURE,
        )
    ]


@pytest.mark.rule("QB-165")
@pytest.mark.parametrize(
    ("progress", "status", "error"),
    [
        (Progress.DNS_FAILURE, ConnectionStatus.DNS_FAILURE, 0x80072AF9),  # WSAHOST_NOT_FOUND
        (Progress.ROUTE_FAILURE, ConnectionStatus.ROUTING_DATA_NOT_AVAILABLE, 0xC00E000D),
        (Progress.PING_FAILURE, ConnectionStatus.PING_FAILURE, 0xC00E0069),
        (Progress.CREATE_FAILURE, ConnectionStatus.SOCKET_CREATE_FAILURE, 0x80072728),  # WSAEMFILE
        (Progress.BIND_FAILURE, ConnectionStatus.SOCKET_BIND_FAILURE, 0x80072741),  # WSAEADDRNOTAVAIL
        (Progress.CONNECT_FAILURE, ConnectionStatus.SOCKET_CONNECT_FAILURE, 0x8007274D),  # WSAECONNREFUSED
        (Progress.NOT_ENABLED, ConnectionStatus.TCP_NOT_ENABLED, 0x8007273F),  # WSAEAFNOSUPPORT
        (Progress.LOW_RESOURCE, ConnectionStatus.LOW_RESOURCE, 0xC00E0027),
        (Progress.SEND_FAILURE, ConnectionStatus.SOCKET_SEND_FAILURE, 0x80072746),  # WSAECONNRESET
        (Progress.NOT_READY, ConnectionStatus.CONNECTION_NOT_READY, 0x8007274C),  # WSAETIMEDOUT
        (Progress.REFUSED, ConnectionStatus.CONNECTION_REFUSED, 0xC00E0069),
        (Progress.FAILURE, ConnectionStatus.UNKNOWN_FAILURE, 0xC00E0001),
    ],
)
def test_each_failure_has_its_status_and_error_in_the_history(
    progress: Progress, status: ConnectionStatus, error: int
) -> None:
    queue, source = outgoing(Host(), r"DIRECT=TCP:10.0.0.7\private$\q")
    source.progress(progress, "10.0.0.7", "")
    (event,) = queue.history
    assert (event.status, event.time, event.error, event.addresses) == (status, 2_000, error, ("10.0.0.7",))


@pytest.mark.rule("QB-192")
def test_a_queue_that_is_held_while_its_session_opens_stays_on_hold() -> None:
    host, effects = Host(), []
    endpoint = Endpoint(host.session_context, effects.append, 0.0)
    queue, source = outgoing(host, r"DIRECT=TCP:10.0.0.7\private$\q")
    put(host, queue, 1)
    endpoint.transfer.submit(source, 9.0)
    queue.hold(True)
    session = opened(host, endpoint, effects)
    assert session.state is SessionState.OPEN
    assert queue.outgoing_state is OutgoingState.ON_HOLD
    assert queue.history[-1].status is ConnectionStatus.ESTABLISHED


@pytest.mark.rule("QB-375", "QB-380", "QB-381", "QB-382", "QB-322")
def test_a_queue_on_hold_sends_nothing_until_it_is_resumed() -> None:
    host, effects = Host(), []
    endpoint = Endpoint(host.session_context, effects.append, 0.0)
    queue, source = outgoing(host, r"DIRECT=TCP:10.0.0.7\private$\q")
    put(host, queue, 1)
    endpoint.transfer.submit(source, 9.0)
    session = opened(host, endpoint, effects)
    sent(session)
    queue.hold(True)
    put(host, queue, 2, 3)
    session.pump(11.0)
    assert sent(session) == []
    session.close(CloseReason.DISCONNECTED, 12.0)
    endpoint.expire(30.0)
    assert effects == []
    assert queue.outgoing_state is OutgoingState.ON_HOLD
    queue.hold(False)
    endpoint.transfer.submit(source, 31.0)
    again = opened(host, endpoint, effects)
    assert [wire.ordinal(p) for p in sent(again) if wire.kind(p) == "MSG"] == [1, 2, 3]


@pytest.mark.rule("QB-380", "QB-382")
def test_a_resumed_queue_goes_on_with_the_open_session() -> None:
    host, effects = Host(), []
    endpoint = Endpoint(host.session_context, effects.append, 0.0)
    queue, source = outgoing(host, r"DIRECT=TCP:10.0.0.7\private$\q")
    put(host, queue, 1)
    endpoint.transfer.submit(source, 9.0)
    session = opened(host, endpoint, effects)
    session.receive(wire.session_ack(ack=1), 11.0)
    session.expire(310.0)
    sent(session)
    queue.hold(True)
    put(host, queue, 2)
    session.pump(310.5)
    assert sent(session) == []
    queue.hold(False)
    endpoint.transfer.submit(source, 311.0)
    assert [wire.ordinal(p) for p in sent(session)] == [2]
    session.receive(wire.session_ack(ack=2), 312.0)
    session.expire(610.0)
    assert session.alive
    session.expire(910.0)
    assert session.reason is CloseReason.IDLE


@pytest.mark.rule("QB-296")
@pytest.mark.parametrize("on_hold", [False, True])
def test_a_queue_is_disconnecting_until_the_transport_is_gone(on_hold: bool) -> None:
    host, effects = Host(), []
    endpoint = Endpoint(host.session_context, effects.append, 0.0)
    queue, source = outgoing(host, r"DIRECT=TCP:10.0.0.7\private$\q")
    put(host, queue, 1)
    endpoint.transfer.submit(source, 9.0)
    session = opened(host, endpoint, effects)
    if on_hold:
        queue.hold(True)
    states = []
    session.close(CloseReason.STOPPED, 11.0)
    states.append(queue.outgoing_state)
    session.gone()
    states.append(queue.outgoing_state)
    held = [OutgoingState.ON_HOLD, OutgoingState.ON_HOLD]
    assert states == (held if on_hold else [OutgoingState.DISCONNECTING, OutgoingState.DISCONNECTED])


@pytest.mark.rule("QB-167")
@pytest.mark.parametrize("on_hold", [False, True])
def test_a_queue_whose_host_is_not_found_needs_validation_and_is_tried_again(on_hold: bool) -> None:
    host, effects = Host(), []
    endpoint = Endpoint(host.session_context, effects.append, 0.0)
    queue, source = outgoing(host, r"DIRECT=OS:nowhere\private$\q")
    put(host, queue, 1)
    endpoint.transfer.submit(source, 9.0)
    queue.hold(on_hold)
    endpoint.transfer.failed(effects.pop().link, "unknown", 10.0)  # type: ignore[attr-defined]
    state = OutgoingState.ON_HOLD if on_hold else OutgoingState.NEED_VALIDATION
    assert queue.outgoing_state is state
    assert endpoint.transfer.next_deadline() == (None if on_hold else 15.0)


@pytest.mark.parametrize(
    ("kind", "properties", "plain"),
    [
        (QueueKind.PRIVATE, {}, True),
        (QueueKind.PRIVATE, {"transactional": True}, True),
        (QueueKind.PRIVATE, {"authenticated": True}, False),
        (QueueKind.PRIVATE, {"privacy": 2}, False),
        (QueueKind.SYSTEM, {}, None),
        (None, {}, None),
    ],
)
def test_destinations(kind: QueueKind | None, properties: dict[str, object], plain: bool | None) -> None:
    host = Host()
    queue = None
    if kind is not None:
        part = QueuePart(Scope.PRIVATE, "q")
        queue = Queue(host.ledger, 50, OTHER, part, "host", kind, QueueProperties.build(properties))
    found = destinations(lambda _type, _name: queue, lambda _queue: True)(7, b"")
    assert (found.plain if found is not None else None) is plain
