"""Durability: what was told to be kept is kept, with what joined it, and nothing else is."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import pytest

from msmq_fast._native.memorystore import MemoryWriter
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.protocol.errors import MessageStorageFailed, QueueExists
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.support.worlds.directories import World, queue

KEY = b"joined"


def joined(world: World) -> bytes | None:
    return world.store.tables.get(Table.META, KEY)


def put(world: World, value: bytes) -> None:
    world.store.writer.put_record(Table.META, KEY, value)


@pytest.mark.rule("DS-27", "DU-10", "DU-17")
def test_nothing_is_told_before_it_is_durable() -> None:
    world = World()
    done = world.directory.create(queue(r"HOST\q"), join=lambda _: put(world, b"1"))
    assert not done.done
    world.restart()
    assert (world.objects(), joined(world)) == ([], None)


@pytest.mark.rule("DS-27", "DU-10")
def test_an_object_and_what_joins_it_are_kept_together() -> None:
    world = World()
    seen: list[object] = []

    def join(identifier: object) -> None:
        seen.append(identifier)
        put(world, b"1")

    identifier = world.finish(world.directory.create(queue(r"HOST\q"), join=join))
    assert seen == [identifier]
    world.restart()
    assert [item.identifier for item in world.objects()] == [identifier]
    assert joined(world) == b"1"


@pytest.mark.rule("DS-27")
@pytest.mark.parametrize("operation", ["create", "write", "delete"])
def test_what_fails_to_join_undoes_the_change(operation: str) -> None:
    world = World()
    if operation != "create":
        world.finish(world.directory.create(queue(r"HOST\q", Label="old")))
    before = world.objects()

    def join(_: object) -> None:
        put(world, b"1")
        raise QueueExists("the core refuses")

    done = getattr(world.directory, operation)(queue(r"HOST\q", Label="new"), join=join)
    with pytest.raises(QueueExists):
        done.result()
    world.run()
    assert world.objects() == before
    world.restart()
    assert (world.objects(), joined(world)) == (before, None)


@pytest.mark.rule("DS-27")
@pytest.mark.parametrize("operation", ["create", "write", "delete"])
def test_a_commit_that_fails_takes_the_change_back(operation: str) -> None:
    world = World()
    if operation != "create":
        world.finish(world.directory.create(queue(r"HOST\q", Label="old")))
    before = world.objects()
    writer = world.store.writer
    assert isinstance(writer, MemoryWriter)
    writer.fail_commit(1, 28)  # no space
    done = getattr(world.directory, operation)(queue(r"HOST\q", Label="new"))
    with pytest.raises(MessageStorageFailed):
        world.finish(done)
    assert world.objects() == before
    world.finish(getattr(world.directory, operation)(queue(r"HOST\q", Label="later")))
    after = [item["Label"] for item in world.objects()]
    assert after == ([] if operation == "delete" else ["later"])


def test_a_change_built_on_a_failed_commit_is_seen_as_stored() -> None:
    world = World()
    world.finish(world.directory.create(queue(r"HOST\q", Label="a")))
    writer = world.store.writer
    assert isinstance(writer, MemoryWriter)
    writer.fail_commit(1, 28)
    first = world.directory.write(queue(r"HOST\q", Quota=1))
    writer.flush()  # sealed: the next change goes into another commit
    second = world.directory.write(queue(r"HOST\q", Label="b"))
    world.run()
    assert first.exception() is not None
    second.result()
    live = world.objects()
    world.restart()
    assert world.objects() == live


@pytest.mark.rule("DS-27")
def test_every_store_call_may_fail() -> None:
    injected = 0
    for operation in ("create", "write", "delete"):
        for nth in itertools.count(1):
            world = World()
            if operation != "create":
                world.finish(world.directory.create(queue(r"HOST\q", Label="old")))
            before = world.objects()
            writer = world.store.writer
            assert isinstance(writer, MemoryWriter)
            writer.fail_call(nth)
            try:
                done = getattr(world.directory, operation)(
                    queue(r"HOST\q", Label="new"), join=lambda _, world=world: put(world, b"1")
                )
                failed = done.exception() is not None
            except Exception:
                failed = True
            if not failed:
                break
            injected += 1
            assert world.objects() == before
            world.restart()
            assert (world.objects(), joined(world)) == (before, None)
    assert injected >= 6


@pytest.mark.rule("DS-27", "DU-17")
@pytest.mark.parametrize("seed", range(12))
def test_crashes_between_random_changes(seed: int) -> None:
    """After a crash everything is there that was told to be kept, and each object as one change left it."""
    world = World()
    random = Random(seed)
    kept: dict[str, str] = {}
    for _round in range(6):
        pending: list[tuple[str, str | None, object]] = []
        states: dict[str, list[str | None]] = {name: [kept.get(name)] for name in "abcd"}
        for step in range(random.randint(1, 8)):
            name = random.choice("abcd")
            path, label = rf"HOST\{name}", f"{_round}.{step}"
            match random.choice(("create", "write", "delete")):
                case "create":
                    done: object = world.directory.create(queue(path, Label=label))
                case "write":
                    done = world.directory.write(queue(path, Label=label))
                case _:
                    label, done = "", world.directory.delete(queue(path))
            pending.append((name, label or None, done))
            if done.exception() is None:  # type: ignore[attr-defined]
                states[name].append(label or None)
            writer = world.store.writer
            assert isinstance(writer, MemoryWriter)
            if random.random() < 0.4:
                writer.flush()
            if random.random() < 0.3:
                writer.complete_one()
        for name, label, done in pending:
            if done.done and done.exception() is None:  # type: ignore[attr-defined]
                states[name] = states[name][states[name].index(label) :]
        world.restart()
        found = {item["Pathname"][5:]: item["Label"] for item in world.objects()}
        for name, possible in states.items():
            assert found.get(name) in possible
        kept = found


@pytest.mark.rule("KV-02")
def test_the_record_of_an_object() -> None:
    world = World()
    identifier = world.finish(world.directory.create(queue(r"HOST\q", Quota=7)))
    ((key, value),) = world.store.tables.scan(Table.DIRECTORY)
    assert key == bytes((2,)) + identifier.bytes
    record = decode.cold(value)
    assert (record["Identifier"], record["Pathname"], record["Quota"]) == (identifier.bytes_le, r"HOST\q", 7)
    assert record["ModifyTime"] == world.now


def test_the_records_of_an_unknown_type_are_left_alone() -> None:
    world = World()
    key = bytes((200,)) + bytes(16)
    world.store.writer.put_record(Table.DIRECTORY, key, b"\x01\x80")
    world.run()
    world.restart()
    assert world.objects() == []
    assert world.store.tables.get(Table.DIRECTORY, key) == b"\x01\x80"


def test_a_store_on_disk(tmp_path: Path) -> None:
    world = World(tmp_path / "store")
    world.finish(world.directory.create(queue(r"HOST\q", Label="a"), join=lambda _: put(world, b"1")))
    world.finish(world.directory.create(DirectoryObject(ObjectType.SITE, {"Name": "s"})))
    before = (world.objects(), world.objects(ObjectType.SITE))
    world.restart()
    assert (world.objects(), world.objects(ObjectType.SITE)) == before
    assert joined(world) == b"1"


@pytest.mark.parametrize(
    "damage",
    [
        lambda key, value: (key, value[:-1]),
        lambda key, value: (key, b"\x09" + value[1:]),
        lambda key, value: (key, b""),
        lambda key, value: (key, b"\x01\x90"),
        lambda key, value: (key, b"\x01\x80"),
        lambda key, value: (key[:-1], value),
        lambda key, value: (key[:-1] + b"\xff", value),
    ],
)
def test_damaged_records_are_set_aside(damage) -> None:  # type: ignore[no-untyped-def]
    world = World()
    for name in "ab":
        world.finish(world.directory.create(queue(rf"HOST\{name}")))
    first, second = world.objects()
    key = bytes((ObjectType.QUEUE,)) + first["Identifier"].bytes
    value = world.store.tables.get(Table.DIRECTORY, key)
    world.store.writer.delete_record(Table.DIRECTORY, key)
    world.store.writer.put_record(Table.DIRECTORY, *damage(key, value))
    world.run()
    world.restart()
    assert world.objects() == [second]
    assert len(world.corrupt) == 1
    assert "damaged" in world.corrupt[0]
