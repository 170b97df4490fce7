"""What an outgoing queue is told of its connection: why there is none, and how it ended; virtual clock."""

from __future__ import annotations

import pytest

from msmq_fast.mqqb.hops import Progress
from msmq_fast.mqqb.reasons import CloseReason
from tests.mqqb.transfers import Bench


def test_why_there_was_no_connection_is_told() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    bench.transfer.failed(1, "too many files", 10.0, Progress.CREATE_FAILURE)
    assert queue.told[-1] == (Progress.CREATE_FAILURE, "10.0.0.7")
    assert bench.transfer.next_deadline() == 15.0


@pytest.mark.rule("QB-296")
@pytest.mark.parametrize(
    ("reason", "told"),
    [
        (CloseReason.IDLE, [Progress.DISCONNECTING]),
        (CloseReason.STOPPED, [Progress.DISCONNECTING]),
        (CloseReason.DISCONNECTED, [Progress.SEND_FAILURE, Progress.DISCONNECTED]),
        (CloseReason.SLOW_READER, [Progress.SEND_FAILURE, Progress.DISCONNECTING]),
        (CloseReason.STORE_FAILED, [Progress.LOW_RESOURCE, Progress.DISCONNECTING]),
        (CloseReason.ACK_TIMEOUT, [Progress.FAILURE, Progress.DISCONNECTING]),
        (CloseReason.HANDSHAKE_TIMEOUT, [Progress.NOT_READY, Progress.DISCONNECTING]),
    ],
)
def test_the_end_of_a_session_is_told_in_two_steps(reason: CloseReason, told: list[Progress]) -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    queue.told.clear()
    session.close(reason, 11.0)
    assert [progress for progress, _ in queue.told] == told
    queue.told.clear()
    session.gone()
    gone = [] if reason is CloseReason.DISCONNECTED else [(Progress.GONE, "10.0.0.7")]
    assert queue.told == gone
    session.gone()
    assert queue.told == gone


def test_a_connection_that_breaks_under_messages_is_a_failure_to_send() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0)
    session.close(CloseReason.DISCONNECTED, 11.0, "Connection reset by peer")
    assert [progress for progress, _ in queue.told[-2:]] == [Progress.SEND_FAILURE, Progress.DISCONNECTED]


@pytest.mark.parametrize(
    ("opened", "detail", "told"),
    [
        (False, "", [Progress.NOT_READY, Progress.DISCONNECTED]),
        (False, "reset", [Progress.NOT_READY, Progress.DISCONNECTED]),
        (True, "", [Progress.SEND_FAILURE, Progress.DISCONNECTED]),
        (True, "reset", [Progress.SEND_FAILURE, Progress.DISCONNECTED]),
    ],
)
def test_a_connection_that_is_lost(opened: bool, detail: str, told: list[Progress]) -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    session = bench.connect(10.0) if opened else bench.endpoint.connected(1, 10.0)
    assert session is not None
    queue.told.clear()
    session.close(CloseReason.DISCONNECTED, 11.0, detail)
    assert [progress for progress, _ in queue.told] == told


def test_an_end_with_a_detail_is_no_lost_connection() -> None:
    bench = Bench()
    queue = bench.queue("10.0.0.7")
    bench.transfer.submit(queue, 10.0)
    bench.connect(10.0).close(CloseReason.COUNT_MISMATCH, 11.0, "3 and 4")
    assert [progress for progress, _ in queue.told[-2:]] == [Progress.FAILURE, Progress.DISCONNECTING]
