"""Messages: what a program gives them, and what it finds in those that come from the wire."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmq_fast import (
    Acknowledge,
    Delivery,
    Journal,
    Message,
    MessageClass,
    ReceivedMessage,
)
from msmq_fast.bodies import BodyError
from msmq_fast.client.message import to_wire
from msmq_fast.protocol.frames import IN_DEFAULTS, IN_FIELDS, LONG_LIVED, In, InFlag, Out

pytestmark = pytest.mark.smoke

GUID = UUID("0fb15084-af41-11ce-bd2b-204c4f4f5020")


def _fields(**values: Any) -> list[Any]:
    fields = list(IN_DEFAULTS)
    for name, value in values.items():
        fields[In[name]] = value
    return fields


def test_every_position_of_the_wire_has_a_name() -> None:
    named = {
        In.CLASS: "message_class",
        In.MESSAGE_ID: "id",
    }
    fields: list[Any] = list(range(100, 100 + IN_FIELDS))
    message = ReceivedMessage(fields)
    for position in In:
        assert getattr(message, named.get(position, position.name.lower())) == 100 + position


def test_versions_that_know_more_or_less_are_read() -> None:
    fields = _fields(LABEL="a", BODY=b"x")
    message = ReceivedMessage(fields, 3)
    assert ReceivedMessage([*fields, "of a later version"], 3) == message
    assert ReceivedMessage(fields[:3], 3) == message
    assert ReceivedMessage(fields[:3], 3).time_to_reach_queue == LONG_LIVED
    assert ReceivedMessage(fields, 4) != message


def test_numbers_have_names_and_unknown_ones_stay_numbers() -> None:
    message = ReceivedMessage(_fields(DELIVERY=1, ACKNOWLEDGE=5, JOURNAL=3, CLASS=0xC001, FLAGS=3))
    assert message.delivery is Delivery.RECOVERABLE
    assert message.acknowledge == Acknowledge.POSITIVE_ARRIVAL | Acknowledge.NEGATIVE_ARRIVAL
    assert message.journal == Journal.JOURNAL | Journal.DEADLETTER
    assert message.message_class is MessageClass.NACK_Q_PURGED
    assert message.flags == InFlag.TRANSACTIONAL | InFlag.AUTHENTICATED
    assert (message.recoverable, message.transactional, message.authenticated) == (True, True, True)
    strange = ReceivedMessage(_fields(DELIVERY=7, ACKNOWLEDGE=0x81, JOURNAL=0x40, CLASS=0x1234, FLAGS=0x80))
    assert (strange.delivery, strange.message_class) == (7, 0x1234)
    assert Acknowledge.POSITIVE_ARRIVAL in strange.acknowledge
    assert (int(strange.acknowledge), int(strange.journal), int(strange.flags)) == (0x81, 0x40, 0x80)
    assert strange.to_json()["class"] == 0x1234


def test_a_received_message_is_sent_again_without_what_belonged_to_its_delivery() -> None:
    received = ReceivedMessage(
        _fields(
            BODY=b"x", LABEL="l", DELIVERY=1, CLASS=2, MESSAGE_ID=bytes(20), ACKNOWLEDGE=1, EXTENSION=b"e"
        )
    )
    assert received.to_message() == Message(b"x", label="l", delivery=Delivery.RECOVERABLE, extension=b"e")
    assert "ReceivedMessage {00000000" in repr(received)
    assert "label='l'" in repr(received)


def test_copies_are_asked_for_by_name() -> None:
    message = Message(b"x")
    assert not message.use_journal_queue
    assert not message.use_dead_letter_queue
    message.use_journal_queue = True
    message.use_dead_letter_queue = True
    assert to_wire(message)[Out.JOURNAL] == 3
    message.use_journal_queue = False
    assert to_wire(message)[Out.JOURNAL] == 1


@pytest.mark.parametrize(
    ("formatter", "body_type", "kind"),
    [("xml", 0, "xml"), ("binary", 0x300, "net_binary"), ("activex", 72, "guid")],
)
def test_values_travel_in_the_form_of_a_formatter(formatter: str, body_type: int, kind: str) -> None:
    sent = Message.of(GUID, formatter, label="key")
    assert (sent.label, sent.body_type, sent.value) == ("key", body_type, GUID)
    received = ReceivedMessage(_fields(BODY=sent.body, BODY_TYPE=sent.body_type))
    assert received.value == GUID
    assert received.decoded.kind == kind
    assert Message.of([1, 2], type="int16[]").body.count(b"<short>") == 2


def test_a_damaged_body_is_an_error_of_value_alone() -> None:
    message = ReceivedMessage(_fields(BODY=b"<a", BODY_TYPE=0))
    assert message.body == b"<a"
    assert message.decoded.error is not None
    with pytest.raises(BodyError, match=r"^the body \(xml, body type 0\): the body is not XML"):
        _ = message.value


def test_headers_of_frameworks() -> None:
    assert ReceivedMessage(_fields(EXTENSION=b'{"rbs2-intent": "pub"}')).headers == {"rbs2-intent": "pub"}
    assert ReceivedMessage(_fields()).headers == {}
