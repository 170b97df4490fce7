"""Journals, dead letters and acknowledgments are kept with their cause or not at all (X-65, X-69, DU-03,
DU-08, DU-16; invariants I1, I4, I6, I8): a fault at every store call, and commits that are not kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from msmq_fast._native.tables import StoreError
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.errors import IOTimeout, MessageStorageFailed
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.store import decode
from msmq_fast.store.schema import Table
from tests.support.worlds.queue_manager import World

ADMIN = parse_format_name(r"DIRECT=OS:HOST\private$\admin")
JOURNAL, DEADLETTER = r".\private$\orders;JOURNAL", r".\system$;DEADLETTER"
COUNT = 3
LONG = 400  # store calls that no scenario needs


@dataclass(frozen=True)
class Scenario:
    """What happens to `COUNT` messages; each ends in `copies` with one acknowledgment of `answer`."""

    name: str
    act: Callable[[World], None]
    copies: str
    answer: int


def _receive(world: World) -> None:
    for _ in range(COUNT):
        world.receive()


def _expire(world: World) -> None:
    world.advance(61)


def _purge(world: World) -> None:
    world.finish(world.manager.purge(world.manager.find("orders")))


SCENARIOS = (
    Scenario("receive with journal", _receive, JOURNAL, 0x4000),
    Scenario("expiry with dead letter", _expire, DEADLETTER, 0xC002),
    Scenario("purge with dead letter", _purge, DEADLETTER, 0xC001),
)


def prepared() -> World:
    world = World(purge_batch=2, expire_batch=2)
    world.create("orders", journaling=True)
    world.create("admin")
    for number in range(COUNT):
        world.send(
            b"%d" % number,
            journal=Journal.DEADLETTER,
            time_to_be_received=60,
            acknowledge=Acknowledge.POSITIVE_RECEIVE | Acknowledge.NEGATIVE_RECEIVE,
            admin_queue=ADMIN,
        )
    return world


def check(world: World, scenario: Scenario) -> int:
    """Each message is in its queue, or it is gone with one copy and one answer. How many are gone."""
    tables = world.writer.tables.tables
    held = {world.manager.find(name).ordinal: name for name in ("orders", "admin", scenario.copies)}
    found: dict[str, list[int]] = {"orders": [], "admin": [], scenario.copies: []}
    contents = {decode.content_key(key)[0] for key in tables[Table.CONTENT]}
    for key, value in sorted(tables[Table.POSITION].items()):
        position = decode.position(value)
        queue = held[decode.position_key(key)[0]]
        found[queue].append(position.ordinal if queue != "admin" else position.message_class)
        contents.remove(position.content_id)  # its own, and it is there
    assert not contents
    gone = found[scenario.copies]
    assert len(set(gone) | set(found["orders"])) == len(gone) + len(found["orders"]) == COUNT
    assert found["admin"] == [scenario.answer] * len(gone)
    for name in held.values():
        queue = world.manager.find(name)
        assert queue.messages == len(found[name])
        sizes = [
            decode.position(value).content_bytes
            for key, value in tables[Table.POSITION].items()
            if decode.position_key(key)[0] == queue.ordinal
        ]
        assert queue.bytes == sum(sizes)
    return len(gone)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.rule("X-65", "X-69", "DM-201", "DU-03", "DU-08", "DU-16")
def test_a_fault_at_every_store_call(scenario: Scenario) -> None:
    faults = 0
    outcomes = set()
    for call in range(1, LONG):
        world = prepared()
        world.writer.fail_call(call)
        with contextlib.suppress(StoreError):
            scenario.act(world)
        if not world.writer.reached:
            break
        faults += 1  # also where the act goes on, as when its entry of the audit cannot be written
        world.crash()
        outcomes.add(check(world, scenario))
    print(f"{scenario.name}: {faults} faults injected")
    assert faults > 3 * COUNT
    assert outcomes
    assert check(world, scenario) == COUNT


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
@pytest.mark.rule("X-65", "X-69")
def test_a_commit_that_the_store_does_not_keep(scenario: Scenario) -> None:
    """There is no room for the nth commit: what it carried comes later, once."""
    for commit in range(1, 8):
        world = prepared()
        world.writer.fail_commit(commit, -30792)
        for _ in range(3):
            try:
                scenario.act(world)
                break
            except (MessageStorageFailed, IOTimeout):
                continue  # the receiver or the purger is told
        for _ in range(4):
            world.advance(2)
        assert check(world, scenario) <= COUNT
        world.crash()
        check(world, scenario)
