"""The sending engine on a clock of its own: states, timers, answers (MC-MQSRM 3.1.2, 3.1.6, 3.1.7)."""

from __future__ import annotations

import pytest

from msmq_fast.config.sections import SrmpConfig
from msmq_fast.srmp.endpoint import Endpoint, Progress
from msmq_fast.srmp.transfer import Close, Drop, Effect, Reach, Stage, Timers, Transfer, judge
from tests.srmp.transfers import SERVER, Queue


class World:
    def __init__(self) -> None:
        self.now = 1000.0
        self.effects: list[Effect] = []
        self.transfer: Transfer[str] = Transfer(self.effects.append, Timers())

    def reached(self) -> int:
        """The number of the queue that wanted a connection last."""
        effect = self.effects.pop()
        assert isinstance(effect, Reach), effect
        return effect.number

    def send(self, queue: Queue) -> int:
        """Connect; the request is under way."""
        self.transfer.submit(queue, self.now)
        number = self.reached()
        assert self.transfer.opened(number, "10.0.0.1", self.now) is not None
        return number

    def answer(self, number: int, status: int) -> bool:
        keep = self.transfer.answered(number, status, self.now)
        self.transfer.proceed(number, self.now)
        return keep

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while (due := self.transfer.next_deadline()) is not None and due <= until:
            self.now = max(due, self.now)
            self.transfer.expire(self.now)
        self.now = until


@pytest.mark.rule("SR-125", "SR-129")
def test_the_timers_are_those_of_the_document_unless_told_otherwise() -> None:
    assert Timers() == Timers(retransmission=20.0, cleanup=300.0, response=60.0)
    config = SrmpConfig()
    assert Timers(config.retry_interval, config.idle_timeout, config.response_timeout) == Timers()


@pytest.mark.rule("SR-125")
@pytest.mark.parametrize(
    ("status", "meaning"),
    [(200, True), (204, True), (202, True), (400, False), (413, False)]
    + [(status, None) for status in (301, 302, 401, 403, 404, 405, 407, 408, 429, 500, 502, 503, 599)],
)
def test_what_answers_mean(status: int, meaning: bool | None) -> None:
    assert judge(status) is meaning


@pytest.mark.rule("SR-208", "SR-209")
def test_answers_end_messages_and_keep_the_connection() -> None:
    world, queue = World(), Queue("a", "b", "c")
    number = world.send(queue)
    assert world.answer(number, 200)
    assert queue.done == [("a", True)]
    assert world.reached() == number  # the next one, at once
    assert world.transfer.opened(number, "10.0.0.1", world.now) == "b"
    assert world.answer(number, 400)
    assert queue.done == [("a", True), ("b", False)]
    assert queue.heard == [Progress.IN_PROCESS, Progress.ESTABLISHED]


@pytest.mark.rule("SR-125", "SR-126", "SR-187", "SR-210", "SR-219")
@pytest.mark.parametrize("status", [500, 503, 404, 401])
def test_a_failure_is_tried_again_after_twenty_seconds(status: int) -> None:
    world, queue = World(), Queue("a")
    number = world.send(queue)
    assert queue.waiting
    assert not world.answer(number, status)  # closed
    assert not queue.waiting  # the wait timer is cancelled
    assert queue.messages == ["a"]
    assert queue.heard[-1] is Progress.ANSWERED_BADLY
    world.transfer.submit(queue, world.now)  # more messages do not hurry it
    world.wait(19.9)
    assert world.effects == []
    world.wait(0.2)
    assert world.transfer.opened(world.reached(), "10.0.0.1", world.now) == "a"
    assert world.answer(number, 200)
    assert queue.done == [("a", True)]
    world.wait(100.0)
    assert world.effects == []


@pytest.mark.rule("SR-192")
@pytest.mark.parametrize("progress", [Progress.SEND_FAILURE, Progress.REFUSED, Progress.DNS_FAILURE])
def test_without_an_answer_or_a_connection_it_is_tried_again(progress: Progress) -> None:
    world, queue = World(), Queue("a")
    world.transfer.submit(queue, world.now)
    number = world.reached()
    if progress is Progress.SEND_FAILURE:
        world.transfer.opened(number, "10.0.0.1", world.now)
    for _ in range(3):
        world.transfer.failed(number, progress, "so", world.now)
        assert queue.messages == ["a"]
        assert queue.heard[-1] is progress
        world.wait(19.9)
        assert world.effects == []
        world.wait(0.1)
        world.reached()
    assert world.transfer.stage(queue) is Stage.REACHING


@pytest.mark.rule("SR-125")
def test_an_answer_that_does_not_come() -> None:
    world, queue = World(), Queue("a")
    number = world.send(queue)
    world.wait(59.0)
    assert world.effects == []
    world.wait(1.0)
    assert world.effects == [Drop(number)]
    assert queue.messages == ["a"]
    assert queue.heard[-1] is Progress.NO_ANSWER
    assert not world.transfer.answered(number, 200, world.now)  # too late: it is sent again
    world.wait(20.0)
    assert world.reached() == number


@pytest.mark.rule("SR-129", "SR-191")
@pytest.mark.parametrize(
    "status",
    [
        pytest.param(200, marks=pytest.mark.rule("SR-208")),
        pytest.param(400, marks=pytest.mark.rule("SR-209")),
    ],
)
def test_idle_connections_are_cleaned_up(status: int) -> None:
    world, queue = World(), Queue("a")
    number = world.send(queue)
    world.wait(30.0)
    world.answer(number, status)
    world.wait(200.0)
    queue.messages.append("b")
    world.transfer.submit(queue, world.now)
    world.transfer.opened(world.reached(), "10.0.0.1", world.now)
    world.answer(number, status)  # the timer begins anew
    world.wait(299.0)
    assert world.effects == []
    assert queue.heard[-1] is Progress.ESTABLISHED
    world.wait(1.0)
    assert world.effects == [Close(SERVER)]
    assert queue.heard[-1] is Progress.CLEANED_UP
    world.effects.clear()
    queue.messages.append("c")
    world.transfer.submit(queue, world.now)
    world.reached()
    assert queue.heard[-1] is Progress.IN_PROCESS


@pytest.mark.rule("SR-221")
def test_the_cleanup_timer_starts_with_the_connection() -> None:
    world, queue = World(), Queue("a")
    world.transfer.submit(queue, world.now)
    number = world.reached()
    queue.messages.clear()  # it has expired meanwhile
    assert world.transfer.opened(number, "10.0.0.1", world.now) is None
    world.wait(299.0)
    assert world.effects == []
    world.wait(1.0)
    assert world.effects == [Close(SERVER)]


def test_a_cleanup_that_is_due_before_an_answer_would_be() -> None:
    world, queue = World(), Queue("a", "b")
    world.transfer = Transfer(world.effects.append, Timers(20.0, 2.0, 60.0))
    world.answer(world.send(queue), 200)
    number = world.reached()
    world.transfer.opened(number, "10.0.0.1", world.now)
    world.wait(59.0)
    assert world.effects == []
    world.answer(number, 200)
    world.wait(2.0)
    assert world.effects == [Close(SERVER)]


def test_a_connection_that_another_queue_uses_is_not_cleaned_up() -> None:
    world, queue, other = World(), Queue("a"), Queue("x")
    number = world.send(queue)
    world.answer(number, 200)
    world.wait(200.0)
    beside = world.send(other)
    world.answer(beside, 200)
    world.wait(101.0)
    assert queue.heard[-1] is Progress.CLEANED_UP
    assert world.effects == []


@pytest.mark.rule("SR-216", "SR-217", "SR-219")
def test_a_queue_on_hold_sends_nothing() -> None:
    world, queue = World(), Queue("a", "b")
    number = world.send(queue)
    assert not world.answer(number, 500)
    world.transfer.hold(queue)
    assert not queue.waiting
    assert world.transfer.next_deadline() is None  # no timer runs
    world.effects.clear()
    world.transfer.submit(queue, world.now)
    world.wait(600.0)
    assert world.effects == []
    world.transfer.release(queue, world.now)
    assert queue.waiting
    assert world.transfer.opened(world.reached(), "10.0.0.1", world.now) == "a"


@pytest.mark.rule("SR-216")
def test_the_request_under_way_at_a_pause_is_waited_for() -> None:
    world, queue = World(), Queue("a", "b")
    number = world.send(queue)
    world.transfer.hold(queue)
    assert world.effects == []
    assert not world.answer(number, 200)  # and then closed
    assert queue.done == [("a", True)]
    assert world.effects == [Close(SERVER)]
    assert world.transfer.next_deadline() is None
    world.effects.clear()
    world.wait(600.0)
    assert world.effects == []
    cut, lost = Queue("c"), World()
    number = lost.send(cut)
    lost.transfer.hold(cut)
    lost.wait(60.0)
    assert cut.messages == ["c"]
    assert lost.transfer.next_deadline() is None


@pytest.mark.rule("SR-219", "SR-220")
def test_nothing_is_under_way_twice() -> None:
    """A-27, A-28: an inactive queue connects; what is under way is not sent again whatever happens."""
    world, queue = World(), Queue("a")
    number = world.send(queue)
    for _ in range(3):
        world.transfer.submit(queue, world.now)
        world.wait(15.0)
    assert world.effects == []
    assert world.transfer.opened(number, "10.0.0.1", world.now) is None
    world.answer(number, 200)
    assert world.transfer.stage(queue) is Stage.IDLE
    assert world.effects == []


def test_what_was_answered_is_durable_before_more_is_sent() -> None:
    world, queue = World(), Queue("a")
    queue.ready = False
    world.transfer.submit(queue, world.now)
    assert world.effects == []
    assert queue.settled is not None
    queue.settled(28)  # the disk is full
    world.wait(19.0)
    assert world.effects == []
    queue.ready = False
    world.wait(1.5)
    queue.settled(0)
    queue.ready = True
    world.wait(0.1)
    world.reached()


def test_a_queue_that_is_gone() -> None:
    world, queue = World(), Queue("a")
    number = world.send(queue)
    world.transfer.withdraw(queue)
    assert world.effects == [Drop(number)]
    assert not world.transfer.answered(number, 200, world.now)
    assert world.transfer.next_deadline() is None


def test_a_host_that_a_peer_named_is_asked_ever_less_often() -> None:
    """And one that the configuration or a program named as often as ever."""
    for only, expected in ((None, [20.0] * 9), ("192.0.2.1", [20.0 * (1 << min(n, 7)) for n in range(9)])):
        effects: list[Effect] = []
        transfer: Transfer[str] = Transfer(effects.append, Timers())
        queue = Queue("a", endpoint=Endpoint("http", "host", 80, only))
        now = 0.0
        transfer.submit(queue, now)
        waits = []
        for _ in range(9):
            reach = effects[-1]
            assert isinstance(reach, Reach)
            transfer.failed(reach.number, Progress.CONNECT_FAILURE, "", now)
            due = transfer.next_deadline()
            assert due is not None
            waits.append(due - now)
            now = due
            transfer.expire(now)
        assert waits == expected
        reach = effects[-1]
        assert isinstance(reach, Reach)
        assert transfer.opened(reach.number, "192.0.2.1", now) == "a"
        transfer.answered(reach.number, 200, now)
        queue.messages.append("b")
        transfer.proceed(reach.number, now)
        transfer.failed(reach.number, Progress.CONNECT_FAILURE, "", now)
        due = transfer.next_deadline()
        assert due == now + 20.0, "an answer forgives all"


def test_an_operator_ends_the_pause_after_a_failure() -> None:
    world, queue = World(), Queue("a")
    number = world.send(queue)
    assert not world.answer(number, 503)
    assert queue.pauses == [20.0]
    world.transfer.kick(queue, world.now)
    world.wait(0.1)
    assert world.transfer.opened(world.reached(), "10.0.0.1", world.now) == "a"
    world.transfer.kick(queue, world.now)  # a request is under way
    world.wait(0.1)
    assert world.effects == []
