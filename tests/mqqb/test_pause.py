"""Pause and resume of outgoing queues, and windows while resources are short, seen from the wire."""

from __future__ import annotations

import pytest

from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.endpoint import Endpoint
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session
from msmq_fast.mqqb.shortage import WindowSizes
from msmq_fast.mqqb.transfer import Connect
from msmq_fast.qm.queues.outgoing import OutgoingQueue, OutgoingState
from tests.mqqb.outgoing import OTHER, opened, outgoing, put
from tests.support.mqqb import wire
from tests.support.worlds.hosts import OWN, Host, sent


class Side:
    """A queue manager with one outgoing queue whose first message has been sent and acknowledged."""

    def __init__(self, name: str = "q") -> None:
        self.host = Host()
        self.effects: list[object] = []
        self.endpoint = Endpoint(self.host.session_context, self.effects.append, 0.0)
        self.queue, self.source = self.another(name)
        put(self.host, self.queue, 1)
        self.endpoint.transfer.submit(self.source, 9.0)
        self.session = opened(self.host, self.endpoint, self.effects)
        sent(self.session)
        self.session.receive(wire.session_ack(ack=1), 11.0)

    def another(self, name: str) -> tuple[OutgoingQueue, OutgoingChannel]:
        return outgoing(self.host, rf"DIRECT=TCP:10.0.0.7\private$\{name}")

    def pause(self) -> None:
        assert self.queue.hold(True)
        self.endpoint.transfer.hold(self.source)

    def resume(self, now: float) -> None:
        assert self.queue.hold(False)
        self.endpoint.transfer.release(self.source, now)


def ordinals(session: Session) -> list[int]:
    return [wire.ordinal(packet) for packet in sent(session) if wire.kind(packet) == "MSG"]


@pytest.mark.rule("QB-379", "QB-380")
def test_a_pause_sends_a_last_acknowledgment_with_a_window_of_one_and_the_session_idles_out() -> None:
    side = Side()
    session = side.session
    session.receive(wire.message(5), 12.0)
    assert sent(session) == []
    side.pause()
    assert side.queue.outgoing_state is OutgoingState.ON_HOLD
    assert sent(session) == [wire.session_ack(ack=1, sent=1, window=1)]
    session.expire(12.0 + 20.0)  # the acknowledgment timer was stopped
    assert sent(session) == []
    put(side.host, side.queue, 2)
    session.pump(40.0)
    assert sent(session) == []
    # The messages of before the pause do not count as activity any more.
    session.expire(310.0)
    assert session.reason is CloseReason.IDLE
    side.endpoint.expire(400.0)
    assert side.effects == []


@pytest.mark.rule("QB-379", "QB-382")
def test_a_resume_restores_the_window_with_the_next_header_and_sends_what_waited() -> None:
    side = Side()
    session = side.session
    side.pause()
    assert sent(session) == [wire.session_ack(sent=1, window=1)]
    put(side.host, side.queue, 2, 3)
    session.receive(wire.message(5), 20.0)
    session.expire(30.0)
    assert sent(session)[-1] == wire.session_ack(ack=1, sent=1, window=1)
    side.resume(31.0)
    assert ordinals(session) == [2, 3]
    session.receive(wire.message(6), 32.0)
    session.expire(33.0)
    assert sent(session)[-1] == wire.session_ack(ack=2, sent=3, window=64)
    session.receive(wire.session_ack(ack=3, sent=2), 34.0)
    session.expire(310.0)
    assert session.alive


@pytest.mark.rule("QB-382")
def test_a_resume_without_a_backlog_is_activity_and_restores_the_window_too() -> None:
    side = Side()
    side.pause()
    sent(side.session)
    side.resume(20.0)
    side.session.expire(310.0)
    assert side.session.alive
    side.session.receive(wire.message(5), 320.0)
    side.session.expire(321.0)
    assert sent(side.session) == [wire.session_ack(ack=1, sent=1, window=64)]


@pytest.mark.rule("QB-379")
def test_a_session_that_serves_another_queue_too_says_nothing_of_a_pause() -> None:
    side = Side()
    queue, source = side.another("r")
    put(side.host, queue, 2)
    side.endpoint.transfer.submit(source, 12.0)
    assert ordinals(side.session) == [2]
    side.pause()
    assert sent(side.session) == []
    put(side.host, queue, 3)
    put(side.host, side.queue, 4)
    side.endpoint.transfer.submit(source, 13.0)
    assert ordinals(side.session) == [3]
    side.session.receive(wire.message(9), 14.0)
    side.session.expire(15.0)
    assert wire.read_header(sent(side.session)[-1])[5] == 64


@pytest.mark.rule("QB-379")
def test_a_queue_that_joins_a_paused_session_has_the_whole_window() -> None:
    side = Side()
    side.pause()
    sent(side.session)
    queue, source = side.another("r")
    put(side.host, queue, 2)
    side.endpoint.transfer.submit(source, 12.0)
    assert ordinals(side.session) == [2]
    side.session.receive(wire.message(9), 14.0)
    side.session.expire(15.0)
    assert wire.read_header(sent(side.session)[-1])[5] == 64


@pytest.mark.rule("QB-379")
def test_nothing_is_said_before_the_session_is_open_or_about_a_queue_it_does_not_serve() -> None:
    side = Side()
    queue, source = side.another("r")
    queue.hold(True)
    side.endpoint.transfer.hold(source)
    assert sent(side.session) == []
    assert side.session.window.size == 64
    early = Side()
    early.session.close(CloseReason.DISCONNECTED, 12.0)
    put(early.host, early.queue, 2)
    early.endpoint.transfer.submit(early.source, 12.0)
    effect = early.effects.pop()
    assert isinstance(effect, Connect)
    dialled = early.endpoint.connected(effect.link, 13.0)
    assert dialled is not None
    sent(dialled)
    early.pause()
    assert sent(dialled) == []
    dialled.receive(wire.establish(client=OWN, server=wire.PEER, stamp=13_000), 13.0)
    assert [wire.kind(packet) for packet in sent(dialled)] == ["CP"]
    dialled.receive(wire.parameters(), 13.0)
    assert sent(dialled) == []  # OPEN, and nothing of the paused queue is sent


@pytest.mark.rule("QB-381")
@pytest.mark.parametrize("backlog", [True, False])
def test_a_resume_connects_if_messages_are_present(backlog: bool) -> None:
    side = Side()
    side.pause()
    side.session.close(CloseReason.DISCONNECTED, 12.0)
    if backlog:
        put(side.host, side.queue, 2)
    side.endpoint.expire(100.0)
    assert side.effects == []
    assert side.queue.outgoing_state is OutgoingState.ON_HOLD
    side.resume(101.0)
    assert [type(effect) for effect in side.effects] == [Connect] * backlog
    if not backlog:
        assert side.queue.outgoing_state is OutgoingState.INACTIVE


# ------------------------------------------------------------------------------------------------- shortage


def window_after(session: Session, now: float) -> int:
    """The window in the answer to one more message."""
    number = session.window.received + 1
    session.receive(wire.message(1000 + number), now)
    session.expire(now + 1)
    return wire.read_header(sent(session)[-1])[5]


@pytest.mark.rule("QB-142")
def test_a_shortage_reduces_the_window_to_one_which_then_doubles_every_thirty_seconds() -> None:
    host = Host()
    endpoint = Endpoint(host.session_context, lambda _: None, 0.0)
    session = endpoint.accept("10.0.0.7", 1.0)
    session.receive(wire.establish() + wire.parameters(), 1.0)
    assert wire.split(b"".join(session.data_to_send()))[1] == wire.parameters(window=64)
    assert window_after(session, 2.0) == 64
    endpoint.shortage(True, 10.0)
    assert window_after(session, 11.0) == 1
    late = endpoint.accept("10.0.0.8", 12.0)
    late.receive(wire.establish(client=OTHER) + wire.parameters(), 12.0)
    assert wire.split(b"".join(late.data_to_send()))[1] == wire.parameters(window=1)
    endpoint.expire(100.0)
    assert window_after(session, 100.0) == 1  # still short
    endpoint.shortage(False, 101.0)
    seen = [window_after(session, 102.0)]
    for step in range(1, 9):
        due = 101.0 + 30 * step
        endpoint.expire(due - 0.01)
        assert window_after(session, due - 0.01) == seen[-1]
        endpoint.expire(due)
        seen.append(window_after(session, due))
    assert seen == [1, 2, 4, 8, 16, 32, 64, 64, 64]
    assert late.window.size == 64
    assert host.session_context.windows.next_deadline() is None


@pytest.mark.rule("QB-142")
def test_a_shortage_while_the_window_grows_begins_anew() -> None:
    windows = WindowSizes(48, 30.0)
    windows.enough(0.0)
    assert windows.next_deadline() is None
    windows.short()
    windows.enough(10.0)
    assert windows.next_deadline() == 40.0
    assert windows.expire(40.0)
    windows.short()
    assert (windows.size, windows.next_deadline()) == (1, None)
    assert not windows.expire(500.0)
    windows.enough(500.0)
    for step in range(1, 6):
        assert windows.expire(500.0 + 30 * step)
    assert windows.size == 32
    assert windows.expire(680.0)
    assert (windows.size, windows.next_deadline()) == (48, None)


@pytest.mark.rule("QB-379")
def test_a_pause_during_a_shortage_keeps_the_smaller_window() -> None:
    side = Side()
    side.endpoint.shortage(True, 12.0)
    side.pause()
    sent(side.session)
    side.endpoint.shortage(False, 13.0)
    side.endpoint.expire(43.0)
    assert side.session.window.size == 1
    side.resume(44.0)
    assert side.session.window.size == 2
