"""Queues of acknowledgments and what arrives in them."""

from __future__ import annotations

from array import array

from msmq_fast.packet import Message
from tests.support.worlds.queue_manager import World

HERE = r"DIRECT=OS:HOST\private$\admin"


def answers(world: World, admin: str) -> list[Message]:
    """What is in the admin queue, local or outgoing; nothing if there is no such outgoing queue."""
    queues = {str(q.name): q for q in world.manager.queues()}
    if admin != HERE and admin not in queues:
        return []
    core = world.manager.find(admin).core
    core.head_in_memory()
    world.run()
    taken = core.take(100, 1 << 30, 77)
    core.release(array("Q", [message.lookup_id for message in taken]), 77)
    return [Message.from_packet(message.packet) for message in taken]


def classes(world: World, name: str = "admin") -> list[int]:
    core = world.manager.find(name).core
    found: list[int] = []
    for key in core.positions.keys():  # noqa: SIM118 - no mapping
        core.peek(key, lambda message, _: found.append(Message.from_packet(message.packet).message_class))
    return found
