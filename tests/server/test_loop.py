"""The commit loop: one submit per loop iteration, one timer for all deadlines."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest
import uvloop

from msmq_fast.qm.faults import Faults
from msmq_fast.server.runtime.loop import CommitLoop


class Deadlines:
    def __init__(self) -> None:
        self.due: float | None = None
        self.ran: list[float] = []
        self.clock = asyncio.get_running_loop().time

    def next_deadline(self) -> float | None:
        return self.due

    def expire(self, now: float) -> None:
        self.ran.append(self.clock())
        self.due = None


def beat() -> tuple[CommitLoop, list[str]]:
    calls: list[str] = []
    loop = asyncio.get_running_loop()
    commit_loop = CommitLoop(
        loop,
        loop.time,
        tick=lambda: calls.append("tick"),
        submit=lambda: calls.append("submit"),
        submit_to_thread=lambda: calls.append("submit to thread"),
        faults=Faults(),
    )
    return commit_loop, calls


@pytest.fixture(params=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> asyncio.Runner:
    if request.param == "uvloop":
        return asyncio.Runner(loop_factory=uvloop.new_event_loop)
    return asyncio.Runner()


def test_a_loop_that_drains_commits_on_the_thread_of_the_writer(runner: asyncio.Runner) -> None:
    async def run() -> list[str]:
        commit_loop, calls = beat()
        commit_loop.touch()
        await asyncio.sleep(0)
        commit_loop.drain()
        commit_loop.touch()
        await asyncio.sleep(0)
        commit_loop.stop()
        return calls

    assert runner.run(run()) == ["tick", "submit", "tick", "submit to thread"]


def test_what_one_poll_brings_is_submitted_once(runner: asyncio.Runner) -> None:
    async def run() -> None:
        commit_loop, calls = beat()
        loop = asyncio.get_running_loop()
        pairs = [socket.socketpair() for _ in range(8)]
        for mine, _ in pairs:
            mine.setblocking(False)

            def readable(end: socket.socket = mine) -> None:
                end.recv(10)
                commit_loop.touch()

            loop.add_reader(mine, readable)
        for _, other in pairs:
            other.send(b"x")
        await asyncio.sleep(0.05)
        assert calls.count("submit") == 1
        for mine, other in pairs:
            loop.remove_reader(mine)
            mine.close()
            other.close()
        commit_loop.stop()

    with runner:
        runner.run(run())


def test_deadlines_run_when_due_also_when_one_becomes_nearer(runner: asyncio.Runner) -> None:
    async def run() -> None:
        commit_loop, _ = beat()
        first, second = Deadlines(), Deadlines()
        commit_loop.add(first)
        commit_loop.add(second)
        start = asyncio.get_running_loop().time()
        first.due = start + 30
        commit_loop.touch()
        await asyncio.sleep(0.01)
        second.due = start + 0.05
        commit_loop.touch()
        await asyncio.sleep(0.1)
        assert len(second.ran) == 1
        assert second.ran[0] >= start + 0.05 - 0.002
        assert first.ran == []
        commit_loop.stop()

    with runner:
        runner.run(run())


def test_a_deadline_of_right_now_runs_at_once(runner: asyncio.Runner) -> None:
    class Impatient(Deadlines):
        def next_deadline(self) -> float | None:
            return self.clock() if len(self.ran) < 3 else None

    async def run() -> None:
        commit_loop, _ = beat()
        impatient = Impatient()
        commit_loop.add(impatient)
        await asyncio.sleep(0.05)
        assert len(impatient.ran) == 3
        commit_loop.stop()

    with runner:
        runner.run(run())


def test_completions_are_told_and_followed_by_a_submit(runner: asyncio.Runner) -> None:
    class Disk:
        def __init__(self) -> None:
            self.event = os.eventfd(0, os.EFD_NONBLOCK)
            self.completed = 0

        def fileno(self) -> int:
            return self.event

        def complete(self) -> None:
            os.eventfd_read(self.event)
            self.completed += 1

    async def run() -> None:
        commit_loop, calls = beat()
        disk = Disk()
        commit_loop.watch(disk)
        os.eventfd_write(disk.event, 1)
        await asyncio.sleep(0.02)
        assert disk.completed == 1
        assert calls[-1] == "submit"
        commit_loop.stop()
        os.eventfd_write(disk.event, 1)
        await asyncio.sleep(0.02)
        assert disk.completed == 1
        os.close(disk.event)

    with runner:
        runner.run(run())
