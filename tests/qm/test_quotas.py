"""Quotas of queues and of the queue manager, to the byte."""

from __future__ import annotations

import pytest

from msmq_fast.packet import Message
from msmq_fast.protocol import errors
from tests.support.worlds.queue_manager import World

pytestmark = pytest.mark.smoke


@pytest.mark.rule("DM-097", "X-31")
def test_queue_quota_to_the_byte(world: World) -> None:
    queue = world.manager.find("orders")
    packet = world.sender().stamp(Message(body=b"x" * 100, delivery=1)).to_packet()
    queue.core.quota_bytes = 3 * len(packet) - 1
    results, keys = world.finish(world.sender().send_packets([packet, packet, packet]))
    assert (results, keys[2]) == ([4, 4, 1], 0)
    queue.core.quota_bytes = 3 * len(packet)
    assert world.finish(world.sender().send_packets([packet]))[0] == [4]
    assert queue.bytes == 3 * len(packet)
    with pytest.raises(errors.InsufficientResources):
        world.sender().send(Message())


@pytest.mark.rule("X-30")
@pytest.mark.parametrize(
    ("kilobytes", "size"), [(0, 0), (1, 1024), (0xFFFF_FFFE, 0xFFFF_FFFE << 10), (0xFFFF_FFFF, (1 << 64) - 1)]
)
def test_the_four_quotas_are_in_kilobytes_and_one_value_is_no_limit(kilobytes: int, size: int) -> None:
    world = World(quota_kb=kilobytes, journal_quota_kb=kilobytes)
    queue = world.create(quota_kb=kilobytes, journal_quota_kb=kilobytes)
    assert queue.journal is not None
    system = world.manager.find(r".\system$;JOURNAL")
    found = (world.manager.ledger, queue.core, queue.journal.core, system.core)
    assert [each.quota_bytes for each in found] == [size] * 4


@pytest.mark.rule("DM-096", "X-30", "X-32")
def test_machine_quota_to_the_byte_and_before_the_queue_quota(world: World) -> None:
    world.create("second", quota_kb=0)
    packet = world.sender().stamp(Message(body=b"x" * 100)).to_packet()
    ledger = world.manager.ledger
    ledger.quota_bytes = 2 * len(packet)
    assert world.sender().send_packets([packet] * 3).result()[0] == [0, 0, 2]
    assert world.sender("second").send_packets([packet]).result()[0] == [2]
    ledger.quota_bytes += len(packet)
    assert world.sender("second").send_packets([packet]).result()[0] == [1]
    ledger.throttled = True
    assert world.sender().send_packets([packet]).result()[0] == [2]


def test_pending_messages_count_for_the_quota_and_not_for_total_bytes(world: World) -> None:
    queue = world.manager.find("orders")
    world.sender().send(Message(body=b"x", delivery=1))
    assert queue.core.used_bytes > 0
    assert queue.bytes == 0
    world.run()
    assert queue.bytes == queue.core.used_bytes == world.manager.ledger.bytes
