"""Why an outgoing queue sends nothing, in words."""

from __future__ import annotations

import pytest

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.errors import QueueNotActive
from msmq_fast.qm.outgoing.stalls import failure_of, stall_of
from msmq_fast.qm.queues.outgoing import ConnectionEvent, ConnectionStatus, OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.stall import FLOWING, Stall, StallCause
from msmq_fast.security.sid import sid
from msmq_fast.security.token import Token
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World, tell

ALICE = Token(sid("S-1-5-21-1-2-3-1001"), frozenset(), "alice")
FAR = r"DIRECT=TCP:10.0.0.9\private$\there"


@pytest.fixture
def world() -> World:
    world = World()
    tell(world.manager)
    return world


def queue_with_message(world: World) -> OutgoingQueue:
    queue = world.manager.outgoing_queues.to(parse_format_name(FAR))
    queue.core.enqueue_packets([Message(body=b"x", sent_time=WALL).to_packet()])
    world.run()
    return queue


def fail(queue: OutgoingQueue, status: ConnectionStatus, error: int = 1, detail: str = "") -> None:
    queue.set_state(OutgoingState.WAITING)
    queue.note(status, WALL, error, ("10.0.0.9",), detail)


def test_a_queue_that_was_not_tried_yet_or_holds_nothing_is_not_stalled(world: World) -> None:
    queue = queue_with_message(world)
    assert stall_of(queue) == FLOWING
    fail(queue, ConnectionStatus.SOCKET_CONNECT_FAILURE, 0x8007274D)
    assert stall_of(queue).cause is StallCause.REFUSED
    queue.core.purge()
    world.run()
    assert stall_of(queue) == FLOWING


@pytest.mark.parametrize("status", [status for status in ConnectionStatus if status.is_failure])
def test_each_failure_has_a_cause_and_names_the_peer_or_what_to_do(status: ConnectionStatus) -> None:
    stall = failure_of(ConnectionEvent(status, WALL, 0xC00E0001, ("10.0.0.9",), "the detail"))
    assert stall.cause
    assert "the detail" in stall.reason
    assert "10.0.0.9" in stall.reason or "route" in stall.reason or "DNS" in stall.reason


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (0x8007274D, StallCause.REFUSED),
        (0x8007274C, StallCause.TIMED_OUT),
        (0x80072743, StallCause.UNREACHABLE),
        (0x80072751, StallCause.UNREACHABLE),
        (0x80072745, StallCause.FAILED),
    ],
)
def test_a_connection_that_cannot_be_opened_is_told_by_its_error(error: int, cause: StallCause) -> None:
    event = ConnectionEvent(ConnectionStatus.SOCKET_CONNECT_FAILURE, WALL, error, ("10.0.0.9",))
    assert failure_of(event).cause is cause


def test_failed_attempts_are_counted_until_a_session_opens(world: World) -> None:
    queue = queue_with_message(world)
    for count in (1, 2, 3):
        queue.note(ConnectionStatus.IN_PROCESS, WALL, 0, ("10.0.0.9",))
        fail(queue, ConnectionStatus.SOCKET_CONNECT_FAILURE, 0x8007274C)
        assert queue.attempts == count
        assert stall_of(queue).cause is StallCause.TIMED_OUT
    queue.set_state(OutgoingState.CONNECTED)
    queue.note(ConnectionStatus.ESTABLISHED, WALL, 0, ("10.0.0.9",))
    assert (queue.attempts, stall_of(queue)) == (0, FLOWING)
    assert queue.failure is not None
    queue.note(ConnectionStatus.CERTIFICATE_VALIDATION_FAILURE, WALL, 1)  # of one message on an open session
    assert queue.attempts == 0


def test_the_first_attempt_says_to_which_address(world: World) -> None:
    queue = queue_with_message(world)
    queue.set_state(OutgoingState.WAITING)
    queue.note(ConnectionStatus.IN_PROCESS, WALL, 0, ("10.0.0.9",))
    assert stall_of(queue) == Stall(StallCause.CONNECTING, "connecting to 10.0.0.9")


def test_a_name_of_this_computer_without_a_queue(world: World) -> None:
    queue = queue_with_message(world)
    queue.set_state(OutgoingState.NEED_VALIDATION)
    queue.note(ConnectionStatus.UNKNOWN_FAILURE, WALL, 0, ("127.0.0.1",))
    assert stall_of(queue).cause is StallCause.NO_QUEUE


def test_who_paused_a_queue_is_known_after_a_restart(world: World) -> None:
    queue = queue_with_message(world)
    world.finish(world.manager.pause(queue, token=ALICE))
    with pytest.raises(QueueNotActive, match="paused by alice"):
        world.manager.kick(queue)
    world.crash()
    (queue,) = world.manager.outgoing()
    assert queue.held_by == "alice"
    world.finish(world.manager.resume(queue))
    assert queue.held_by == ""


def test_without_a_transport_or_offline(world: World) -> None:
    queue = queue_with_message(world)
    world.manager.outgoing_queues.bring_online(False)
    assert stall_of(queue).cause is StallCause.OFFLINE
    bare = queue_with_message(World())
    assert stall_of(bare).cause is StallCause.NO_TRANSPORT


def test_hardened_mode() -> None:
    queue = queue_with_message(World(hardened=True))
    assert stall_of(queue).cause is StallCause.LOCKED


def test_a_kick_reaches_the_channel_and_the_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    worked: list[str] = []
    world = World()
    tell(world.manager, work=lambda queue: worked.append(queue.name))
    queue = queue_with_message(world)
    worked.clear()
    with caplog.at_level("INFO", "msmq_fast.audit"):
        world.manager.kick(queue, token=ALICE)
    assert worked == [FAR]
    assert caplog.records[-1].fields["operation"] == "kick outgoing queue"  # type: ignore[attr-defined]
    assert caplog.records[-1].fields["object"] == FAR  # type: ignore[attr-defined]
