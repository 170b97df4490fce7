"""Faults at every call of the store, every commit that finds no room, death before and after every commit: a
client that repeats what it was not told of has its batch published once, and nothing is left behind.
"""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from msmq_fast._native.tables import StoreError
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.bulk.staging import StageNotFound
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import Row, counts, staged

REMOTE = r"DIRECT=TCP:10.9.9.9\private$\far"
ROWS: list[Row] = [(("plain", "exact", REMOTE)[n % 3], b"%d" % n) for n in range(6)]
NEVER = 1 << 40
MOST = 500


class Died(Exception):
    pass


class Fragile(World):
    """Dies when it is told to."""

    commits_left = NEVER
    died_after = False
    still_to_fail = False  # the script was over before the call of the store that was to fail
    full = False  # a commit found no room
    lived = False  # through the whole script

    def run(self) -> None:
        quiet = 0
        while quiet < 3:
            self.manager.tick()
            self.manager.before_submit()
            quiet = 0 if self.writer.needs_commit else quiet + 1
            self.writer.submit()
            while self.writer.flying:
                self._commit()
            self.store.reader.complete()
            due = self.manager.next_deadline()
            if due is not None and due <= self.clock.seconds:
                self.manager.expire(self.manager.monotonic())

    def _commit(self) -> None:
        self.commits_left -= self.commits_left < NEVER
        if not self.commits_left and not self.died_after:
            raise Died
        self.writer.complete_one()
        if not self.commits_left:
            raise Died


class Client:
    """Brings one batch, and another that it discards; repeats what it has no answer to."""

    def __init__(self, world: Fragile) -> None:
        self.world = world
        self.stages: list[str] = []
        self.published = False
        self.attempt = 0

    def bring(self) -> None:
        while not self.published:
            if not self.stages:
                self.attempt += 1
                self.stages = [
                    staged(self.world, ROWS[:3], number=0, attempt=self.attempt),
                    staged(self.world, ROWS[3:], number=1, attempt=self.attempt),
                ]
                staged(self.world, ROWS[:2], number=1, attempt=self.attempt + 100)
                dropped = staged(self.world, ROWS[:1], batch=1, attempt=self.attempt)
                self.world.finish(self.world.manager.staging.discard([dropped]))
            done = self.world.manager.staging.publish("w", 0, 0, self.stages)
            for _ in range(3):
                self.world.run()
                if not done.done:
                    self.world.advance(1.5)  # what the store did not keep is tried again
            try:
                done.result()
            except StageNotFound:
                self.stages = []
            else:
                self.published = True


def small_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few messages make a unit that a handful of them makes several."""
    monkeypatch.setattr("msmq_fast.qm.bulk.rollforward._UNIT", 1)
    monkeypatch.setattr("msmq_fast.qm.bulk.rollforward._PAGE", 1)


def started() -> tuple[Fragile, Client]:
    world = Fragile(stage_lifetime=600.0)
    world.create("plain")
    world.create("exact", transactional=True)
    return world, Client(world)


def survive(world: Fragile, client: Client) -> None:
    """After the fault: a restart if the store or the process is gone; the client goes on until it has its
    answer.
    """
    for _ in range(8):
        try:
            if client.published:
                break
            client.bring()
        except (StoreError, MSMQError):
            world.commits_left = NEVER
            if world.writer.failed:
                world.writer.fail_call(NEVER)
                world.crash()
            else:
                world.advance(1.5)
        except Died:
            world.commits_left = NEVER
            world.crash()
    assert client.published
    world.advance(2.0)
    world.advance(700.0)
    world.full = bool(world.writer.statistics()["failed_batches"])
    try:
        world.writer.when_durable(bool)
    except StoreError:
        world.still_to_fail = True
    world.lived = world.commits_left < NEVER
    world.commits_left = NEVER
    judge(world)
    world.crash()
    judge(world)


def judge(world: World) -> None:
    for name in ("plain", "exact", REMOTE):
        assert world.bodies(name) == [body for wanted, body in ROWS if wanted == name]
    assert counts(world) == (6, 6, 0)
    held = sum(queue.core.bytes for queue in world.manager.queues())
    assert (
        sum(queue.core.used_bytes for queue in world.manager.queues()) == held == world.manager.ledger.bytes
    )
    assert len(world.manager.staging) == 0
    assert not world.manager.damage


def faults(inject: Callable[[Fragile, int], None], over: Callable[[Fragile], bool]) -> int:
    """The n-th of something goes wrong, for every n; how many there were."""
    for nth in range(1, MOST):
        world, client = started()
        inject(world, nth)
        try:
            survive(world, client)
            if over(world):
                return nth - 1
        except BaseException as problem:
            problem.add_note(f"fault {nth}")
            raise
    raise AssertionError("the script has no end")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    small_rows(monkeypatch)


def test_every_call_of_the_store_fails_once() -> None:
    def inject(world: Fragile, nth: int) -> None:
        world.writer.fail_call(nth)

    assert faults(inject, lambda world: world.still_to_fail) >= 60


def test_every_commit_finds_no_room_once() -> None:
    def inject(world: Fragile, nth: int) -> None:
        world.writer.fail_commit(nth, errno.ENOSPC)

    assert faults(inject, lambda world: not world.full) >= 8


@pytest.mark.parametrize("after", [False, True])
def test_death_at_every_commit(after: bool) -> None:
    def inject(world: Fragile, nth: int) -> None:
        world.died_after = after
        world.commits_left = nth

    assert faults(inject, lambda world: world.lived) >= 8
