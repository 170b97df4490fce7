"""Messages as they come from the wire."""

from __future__ import annotations

from typing import Any

from msmq_fast.client.message import Message, from_wire
from msmq_fast.protocol.frames import IN_FIELDS


def test_a_delivered_message_has_every_field() -> None:
    """Also those that are not on the wire. Positions of a later version are ignored, those that an earlier
    one lacks have their defaults.
    """
    fields: list[Any] = [f"field {number}" for number in range(IN_FIELDS)]
    expected = Message(*fields[1:], lookup_id=fields[0], tag=3)
    assert from_wire(fields, 3) == expected
    assert from_wire([*fields, "of a later version"], 3) == expected
    assert from_wire(fields[:22], 3) == Message(*fields[1:22], lookup_id=fields[0], tag=3)
