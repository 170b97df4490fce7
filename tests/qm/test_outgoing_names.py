"""Outgoing queues by names from the wire: they come back from the store, or never exist."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName, NameKind, direct_from_wire
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from tests.support.clocks import WALL
from tests.support.worlds.queue_manager import World

NULL = UUID(int=0)
PREFIXES = [
    "OS:",
    "TCP:",
    "TCP:fe80::1%",
    "TCP:[::1]",
    "TCP:10.0.0.9",
    "HTTP://",
    "HTTPS://h/msmq/",
    "os:h",
    "IPX:",
]
TAILS = [r"\q", r"\private$\q", r"\private$\q;sub", r"\system$;journal", r"/msmq/q", r";journal"]
TEXTS = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from(["", *PREFIXES]),
    st.text(st.characters(), max_size=40) | st.text("az09.%,;$\\/"),
    st.sampled_from(["", *TAILS]),
)
PACKET = Message(
    body=b"on its way",
    destination=direct_from_wire("OS:far\\q"),
    delivery=1,
    source_machine=UUID(int=9),
    sent_time=WALL,
).to_packet()
OLD = ["DIRECT=OS:müller\\private$\\q", r"DIRECT=OS:a,b\private$\q", "DIRECT=nonsense"]


def names(world: World) -> set[str]:
    return {queue.name for queue in world.manager.outgoing()}


def put(world: World, text: str) -> bool:
    """Pass a message on to a direct name of a packet; whether the name was taken."""
    try:
        queue = world.manager.outgoing_for(direct_from_wire(text), NULL)
    except MSMQError:
        return False
    queue.core.enqueue_packets([PACKET])
    world.run()
    return True


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_a_name_of_a_packet_survives_a_restart_or_is_refused(text: str) -> None:
    world = World()
    taken = put(world, text)
    there = names(world)
    assert bool(there) is taken
    world.crash()
    assert names(world) == there
    assert not world.manager.damage
    for queue in world.manager.outgoing():
        assert queue.destination == direct_from_wire(text)
        assert len(queue.core.positions.keys()) == 1


@pytest.mark.parametrize(
    "text",
    ["OS:h\ud800\\q", "OS:müller\\q", "TCP:fe80::1%\ud800\\q", r"OS:a,b\q", r"OS:h\a\b", "h" * 2000],
)
def test_a_name_that_breaks_the_rules_opens_no_outgoing_queue(text: str) -> None:
    world = World()
    assert not put(world, text)
    assert not names(world)


def test_a_queue_whose_record_cannot_be_written_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    name = direct_from_wire(r"OS:far\private$\q")
    with monkeypatch.context() as patched:
        patched.setattr(OutgoingQueue, "record", lambda _: {"destination": "\ud800"})
        with pytest.raises(UnicodeEncodeError):
            world.manager.outgoing_queues.to(name)
    assert not names(world)
    world.send(b"to another", r"DIRECT=OS:other\private$\q")  # writes, which would try such a record again
    world.advance(10.0)
    assert names(world) == {r"DIRECT=OS:other\private$\q"}
    world.crash()
    assert names(world) == {r"DIRECT=OS:other\private$\q"}


@pytest.mark.parametrize("name", OLD)
def test_queues_of_earlier_versions_come_back_with_their_messages(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions passed messages on to names that break the rules, and could not read the records."""
    world = World()
    with monkeypatch.context() as patched:
        record = OutgoingQueue.record
        patched.setattr(OutgoingQueue, "record", lambda queue: record(queue) | {"destination": name})
        assert put(world, r"OS:far\private$\q")
    world.crash()
    assert not world.manager.damage
    (queue,) = world.manager.outgoing()
    assert (queue.name, len(queue.core.positions.keys())) == (name, 1)
    assert not put(world, name.removeprefix("DIRECT="))
    world.finish(world.manager.purge(queue))
    world.crash()
    (queue,) = world.manager.outgoing()
    assert not queue.core.positions.keys()


def test_names_of_other_kinds_come_back() -> None:
    world = World()
    guid = UUID(int=5)
    for name in (FormatName(NameKind.PRIVATE, guid, 0xFFFFFFFF), FormatName(NameKind.PUBLIC, guid)):
        world.manager.outgoing_for(name, guid)
    world.run()
    there = names(world)
    assert len(there) == 2
    world.crash()
    assert names(world) == there
