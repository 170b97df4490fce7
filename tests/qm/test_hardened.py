"""Hardened mode: which outgoing queues are locked, across restarts."""

from __future__ import annotations

from dataclasses import asdict, replace
from uuid import UUID

import pytest

from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.queues.outgoing import OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.queue import Privacy
from msmq_fast.security.defaults import queue_descriptor
from tests.support.worlds.queue_manager import World, tell

REMOTE = r"DIRECT=TCP:10.0.0.9\private$\far"
HTTP = "DIRECT=HTTP://far.example.net/msmq/private$/q"


def outgoing(world: World) -> OutgoingQueue:
    (queue,) = world.manager.outgoing()
    return queue


def restart(world: World, *, hardened: bool) -> OutgoingQueue:
    world.settings = replace(world.settings, hardened=hardened)
    world.crash()
    return outgoing(world)


@pytest.mark.rule("DM-013", "ST-4", "X-76", "DM-080", "DM-208", "DM-209", "DM-210", "QB-375", "REC-10")
def test_queues_are_locked_while_the_mode_lasts_and_wait_afterwards() -> None:
    world = World(hardened=True)
    told: list[OutgoingQueue] = []
    tell(world.manager, told.append)
    world.send(b"x", REMOTE)
    queue = outgoing(world)
    assert queue.outgoing_state is OutgoingState.LOCKED
    assert not queue.may_send
    assert told == []
    queue.set_state(OutgoingState.CONNECTED)
    assert queue.outgoing_state is OutgoingState.LOCKED
    for change in (world.manager.pause, world.manager.resume):
        world.finish(change(queue))
        assert queue.outgoing_state is OutgoingState.LOCKED
    assert restart(world, hardened=True).outgoing_state is OutgoingState.LOCKED
    queue = restart(world, hardened=False)
    assert queue.outgoing_state is OutgoingState.WAITING
    tell(world.manager, told.append)
    world.run()
    assert told[:1] == [queue]


@pytest.mark.rule("DM-013", "ST-4", "DM-209", "DM-210", "KV-06")
def test_a_queue_on_hold_stays_so_over_a_restart_and_is_locked_by_the_mode() -> None:
    world = World()
    world.send(b"x", REMOTE)
    world.finish(world.manager.pause(outgoing(world)))
    assert restart(world, hardened=False).outgoing_state is OutgoingState.ON_HOLD
    assert restart(world, hardened=True).outgoing_state is OutgoingState.LOCKED
    assert restart(world, hardened=False).outgoing_state is OutgoingState.ON_HOLD
    world.finish(world.manager.resume(outgoing(world)))
    assert outgoing(world).outgoing_state is OutgoingState.INACTIVE
    assert restart(world, hardened=False).outgoing_state is OutgoingState.INACTIVE


@pytest.mark.rule("DM-044", "DM-209", "DM-210")
def test_only_a_change_is_told() -> None:
    world = World()
    world.send(b"x", REMOTE)
    told: list[bool] = []
    tell(world.manager, held=lambda queue, on_hold: told.append(on_hold))
    for change in (world.manager.resume, world.manager.pause, world.manager.pause, world.manager.resume):
        world.finish(change(outgoing(world)))
    assert told == [True, False]


@pytest.mark.rule("DM-013")
def test_what_leaves_by_http_is_not_locked() -> None:
    world = World()
    for ordinal, name, state in ((900, HTTP, OutgoingState.INACTIVE), (901, REMOTE, OutgoingState.LOCKED)):
        queue = OutgoingQueue(
            world.manager.ledger, ordinal, world.manager.guid, parse_format_name(name), history_length=1
        )
        queue.harden(True)
        assert queue.outgoing_state is state


@pytest.mark.rule("DM-199", "X-76")
def test_what_nobody_set_has_its_default() -> None:
    world = World()
    assert world.settings.hardened is False
    queue = world.create()
    assert asdict(queue.properties) == {
        "label": "",
        "type": UUID(int=0),
        "journaling": False,
        "quota_kb": 0xFFFFFFFF,
        "journal_quota_kb": 0xFFFFFFFF,
        "authenticated": False,
        "privacy": Privacy.OPTIONAL,
        "transactional": False,
        "multicast_address": "",
        "base_priority": 0,
        "poison_after": 0,
    }
    assert queue.security == queue_descriptor(world.manager.guard.policy, None)
