"""What BROWSE selects, in the order of arrival and in batches, compared with a filter in Python."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmq_fast._native.framing import parse
from msmq_fast._native.operations import survey
from msmq_fast._native.queuebase import Received
from msmq_fast.qm.queues.browse import EVER, SEQUENCE_MASK, Selection, Stretch, browse, lookup_order
from tests.support.worlds.queue_manager import World

LABELS = ("a1", "a2", "b1", "[b]")
CORRELATIONS = (bytes(20), b"c" * 20, b"d" * 20)


def read(world: World, selection: Selection, limit: int = 1000) -> list[Received]:
    """Read all batches; each has at most `limit` messages, and none examines anything twice."""
    core, after, found = world.manager.find("q").core, 0, []
    while True:
        page = world.finish(browse(core, Stretch(selection, after, limit=limit)))
        assert len(page.messages) <= limit
        assert page.finished or page.next > after
        found += page.messages
        if page.finished:
            return found
        after = page.next


def identifier(message: Received) -> bytes:
    parsed = parse(message.packet)
    return bytes(parsed.source) + parsed.message_id.to_bytes(4, "little")


def expected(message: Received, selection: Selection) -> bool:
    """The model: whether a message matches, from its packet alone."""
    parsed = parse(message.packet)
    return (
        (selection.label is None or fnmatchcase(parsed.label, selection.label))
        and selection.message_class in (None, parsed.message_class)
        and selection.since_us <= message.arrived_us <= selection.until_us
        and selection.id in (None, identifier(message))
        and selection.correlation_id in (None, parsed.correlation_id)
        and selection.priority in (None, message.priority)
        and (selection.lookup_ids is None or message.lookup_id in selection.lookup_ids)
    )


def selections(messages: list[Received], random: Random) -> Selection:
    """A random selection that a part of the messages matches, most of the time."""
    ids = [message.lookup_id for message in messages]
    some = random.sample(ids, min(len(ids), random.randrange(6)))
    times = sorted(random.choice(messages).arrived_us for _ in range(2)) if messages else [0, EVER]
    values: dict[str, Any] = {
        "label": random.choice(("a*", "a1", "?1", "[[]b]", "none", "*")),
        "message_class": random.choice((0, 2)),
        "since_us": times[0],
        "until_us": times[1],
        "id": identifier(random.choice(messages)) if messages else bytes(20),
        "correlation_id": random.choice(CORRELATIONS),
        "priority": random.randrange(8),
        "lookup_ids": lookup_order([*some, 5 << 56 | 1 << 40, 200 << 56 | 3]),
    }
    chosen = random.sample(sorted(values), random.randrange(4))
    return Selection(**{name: values[name] for name in chosen})


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_against_a_model(seed: int) -> None:
    random = Random(seed)
    world = World()
    world.create("q")
    for number in range(random.randrange(30)):
        world.send(
            b"%d" % number,
            "q",
            priority=random.randrange(8),
            label=random.choice(LABELS),
            correlation_id=random.choice(CORRELATIONS),
        )
        world.advance(random.choice((0, 0, 1)))
    messages = read(world, Selection())
    assert [m.lookup_id for m in messages] == list(lookup_order(m.lookup_id for m in messages))
    for _ in range(20):
        selection = selections(messages, random)
        found = read(world, selection, random.choice((1, 2, 5, 1000)))
        wanted = filter(partial(expected, selection=selection), messages)
        assert [m.lookup_id for m in found] == [m.lookup_id for m in wanted], selection


def test_locked_messages_are_left_out() -> None:
    world = World()
    world.create("q")
    for number in range(4):
        world.send(b"%d" % number, "q")
    messages = read(world, Selection())
    core = world.manager.find("q").core
    held = core.take(2, 1 << 20, world.manager.ledger.new_owner())
    left = [m.lookup_id for m in messages[2:]]
    assert [m.lookup_id for m in held] == [m.lookup_id for m in messages[:2]]
    every = lookup_order(m.lookup_id for m in messages)
    assert [m.lookup_id for m in read(world, Selection(lookup_ids=every))] == left
    assert read(world, Selection(id=identifier(messages[0]))) == []


@pytest.mark.long(seconds=9)
def test_one_call_examines_a_bounded_number_of_messages() -> None:
    """A message that is far behind is found after several calls, each of which says where it stopped."""
    world = World()
    world.create("q")
    for number in range(33_000):
        world.send(b"", "q", label="x" if number < 32_999 else "last")
    (last,) = read(world, Selection(label="last"))
    core, wanted = world.manager.find("q").core, identifier(last)
    found, reached, finished = survey(core, 0, SEQUENCE_MASK, 10, identifier=wanted)
    assert (found, finished) == ([], False)
    found, _, finished = survey(core, reached, SEQUENCE_MASK, 10, identifier=wanted)
    assert ([key for key, _ in found], finished) == ([last.lookup_id], True)
    with pytest.raises(ValueError, match="20 bytes"):
        survey(core, 0, SEQUENCE_MASK, 10, identifier=b"short")
