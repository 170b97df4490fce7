"""Staged publishing compared with a model in a few lines: stages, attempts, publications repeated, crashes
and deaths in between.
"""

from __future__ import annotations

from random import Random

import pytest

from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.bulk.staging import Fenced, StageNotFound
from tests.support.worlds.queue_manager import World
from tests.support.worlds.stages import Row, bodies, counts, staged

QUEUES = ("plain", "exact", r"DIRECT=TCP:10.9.9.9\private$\far")
WRITERS = ("one", "two")
LIFETIME = 600.0


class Model:
    def __init__(self) -> None:
        self.queues: dict[str, list[bytes]] = {name: [] for name in QUEUES}
        self.stages: dict[str, tuple[str, int, int, list[Row], float]] = {}
        self.fences: dict[str, tuple[int, int]] = {}
        self.now = 0.0

    def expire(self) -> None:
        last: dict[tuple[str, int], float] = {}
        for writer, batch, *_, brought in self.stages.values():
            last[writer, batch] = max(last.get((writer, batch), 0.0), brought)
        self.stages = {
            name: stage for name, stage in self.stages.items() if last[stage[:2]] + LIFETIME > self.now
        }

    def publish(self, writer: str, epoch: int, batch: int, names: list[str]) -> str:
        fence = self.fences.get(writer)
        if fence is not None and epoch < fence[0]:
            return "fenced"
        of_batch = {name for name, stage in self.stages.items() if stage[:2] == (writer, batch)}
        if fence is not None and (epoch, batch) <= fence:
            for name in of_batch | {n for n in names if n in self.stages and self.stages[n][0] == writer}:
                del self.stages[name]
            return "dup"
        if any(name not in self.stages for name in names):
            return "unknown"
        chosen = [self.stages[name] for name in names]
        if any(stage[:2] != (writer, batch) for stage in chosen):
            return "wrong"
        if len({stage[2] for stage in chosen}) < len(chosen):
            return "wrong"
        for stage in chosen:
            for name, body in stage[3]:
                self.queues[name].append(body)
        for name in of_batch:
            del self.stages[name]
        self.fences[writer] = (epoch, batch)
        return "published"


class Play:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.world = World(stage_lifetime=LIFETIME)
        self.world.create("plain")
        self.world.create("exact", transactional=True)
        self.model = Model()
        self.body = 0

    def step(self) -> None:
        random = self.random
        act = random.choices(
            (self.stage, self.publish, self.discard, self.crash, self.interrupt, self.wait, self.receive),
            (8, 6, 1, 1, 2, 1, 2),
        )[0]
        act()
        self.model.expire()
        self.check()

    def stage(self) -> None:
        random = self.random
        writer, batch, number = random.choice(WRITERS), random.randrange(4), random.randrange(3)
        rows: list[Row] = []
        for _ in range(1500 if random.random() < 0.05 else random.choice((0, 1, 3, 10, 30, 40))):
            self.body += 1
            rows.append((random.choice(QUEUES), b"%d" % self.body))
        name = staged(
            self.world, rows, writer, batch, number, random.randrange(3), whole=random.random() < 0.2
        )
        self.model.stages[name] = (writer, batch, number, rows, self.model.now)

    def wanted(self) -> tuple[str, int, int, list[str]]:
        random, model = self.random, self.model
        writer, batch = random.choice(WRITERS), random.randrange(4)
        epoch = model.fences.get(writer, (0, 0))[0] + random.choice((0, 0, 0, 1, -1))
        names = [name for name, stage in model.stages.items() if stage[:2] == (writer, batch)]
        parts = {model.stages[name][2]: name for name in names}
        names = list(parts.values()) if random.random() < 0.8 else names
        random.shuffle(names)
        if random.random() < 0.1:
            names.append(random.choice([*model.stages, 32 * "0"]))
        return writer, max(epoch, 0), batch, list(dict.fromkeys(names))

    def publish(self) -> None:
        wanted = self.wanted()
        told = self.told(*wanted)
        assert told == self.model.publish(*wanted)

    def told(self, writer: str, epoch: int, batch: int, names: list[str]) -> str:
        try:
            done = self.world.manager.staging.publish(writer, epoch, batch, names)
            self.world.run()
            return "dup" if done.result().dup else "published"
        except Fenced:
            return "fenced"
        except StageNotFound:
            return "unknown"
        except ValueError:
            return "wrong"

    def interrupt(self) -> None:
        """A publication whose process dies; the client asks again."""
        wanted = self.wanted()
        world, manager = self.world, self.world.manager
        try:
            manager.staging.publish(*wanted)
        except (ValueError, MSMQError):
            return
        for _ in range(self.random.randrange(6)):
            manager.tick()
            manager.expire(manager.monotonic())
            world.writer.submit()
            world.writer.complete_one()
        world.crash()
        self.publish_again(wanted)

    def publish_again(self, wanted: tuple[str, int, int, list[str]]) -> None:
        before = self.model.fences.get(wanted[0])
        told, expected = self.told(*wanted), self.model.publish(*wanted)
        if told == "dup" and expected == "published":
            return
        assert (told, before) == (expected, before)

    def discard(self) -> None:
        names = [name for name in self.model.stages if self.random.random() < 0.3]
        assert self.world.finish(self.world.manager.staging.discard(names)) == len(names)
        for name in names:
            del self.model.stages[name]

    def crash(self) -> None:
        self.world.crash()

    def wait(self) -> None:
        seconds = self.random.choice((1.0, 200.0))
        self.model.now += seconds
        self.world.advance(seconds)

    def receive(self) -> None:
        name = self.random.choice(QUEUES[:2])
        if self.model.queues[name]:
            assert self.world.receive(name) == self.model.queues[name].pop(0)

    def check(self) -> None:
        world, model = self.world, self.model
        world.run()
        for name in QUEUES:
            if world.manager.registry.resolve(name).local or model.queues[name]:
                assert bodies(world, name) == model.queues[name]
        assert len(world.manager.staging) == len(model.stages)
        messages = sum(map(len, model.queues.values()))
        positions, contents, _ = counts(world)
        assert positions == messages
        assert contents == messages + sum(len(stage[3]) for stage in model.stages.values())
        assert sum(queue.core.used_bytes for queue in world.manager.queues()) == world.manager.ledger.bytes
        if not model.stages:
            assert counts(world)[2] == 0
            assert not any(queue.core.reserved_bytes for queue in world.manager.queues())


def test_a_few_stories() -> None:
    for seed in range(4):
        play(seed, 25)


@pytest.mark.long(seconds=60)
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_many_stories(first: int) -> None:
    for seed in range(first, first + 20):
        play(1000 + seed, 60)


def play(seed: int, steps: int) -> None:
    story = Play(seed)
    for number in range(steps):
        try:
            story.step()
        except BaseException as problem:
            problem.add_note(f"seed {seed}, step {number}")
            raise
