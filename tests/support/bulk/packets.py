"""Packets of every shape, for hypothesis."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from msmq_fast.packet.base import BaseHeader
from msmq_fast.packet.fields import QueueField, destination_field, direct_wire
from msmq_fast.packet.multi import (
    ADMINISTRATION,
    DESTINATION,
    RESPONSE,
    Element,
    MQFAddressHeader,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from msmq_fast.packet.names import parse_format_name
from msmq_fast.packet.properties import DebugHeader, MessagePropertiesHeader
from msmq_fast.packet.soap import CompoundMessageHeader, SoapHeader, SRMPEnvelopeHeader
from msmq_fast.packet.user import SecurityHeader, TransactionHeader, UserHeader
from msmq_fast.packet.user_message import UserMessagePacket

ANY_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=[]), max_size=40)
GUIDS = st.uuids()
U32 = st.integers(0, 0xFFFFFFFF)
BYTES = st.binary(max_size=80)
BODIES = st.one_of(BYTES, st.integers(60_000, 140_000).map(lambda size: bytes((size & 0xFF,)) * size))

_NUMBER = st.binary(min_size=4, max_size=4)
_DIRECT = st.builds(lambda name: QueueField(7, direct_wire(name)), ANY_TEXT)
_PUBLIC = st.builds(lambda guid: QueueField(5, guid.bytes_le), GUIDS)
_PRIVATE = st.builds(lambda guid, number: QueueField(6, guid.bytes_le + number), GUIDS, _NUMBER)
_NONE = st.just(QueueField(0))


def _numbered(kind: int) -> st.SearchStrategy[QueueField]:
    return _NUMBER.map(lambda number: QueueField(kind, number))


DESTINATIONS = st.one_of(
    st.just(destination_field(parse_format_name(r"DIRECT=OS:HOST\private$\orders"))),
    _DIRECT,
    _PUBLIC,
    _numbered(3),
)
ADMINS = st.one_of(_NONE, _DIRECT, _PUBLIC, _PRIVATE, _numbered(2), _numbered(3))
RESPONSES = st.one_of(ADMINS, st.just(QueueField(1)), _numbered(4))
ELEMENTS = st.one_of(
    ANY_TEXT.map(lambda name: Element(3, name.encode("utf-16-le", "surrogatepass") + b"\0\0")),
    GUIDS.map(lambda guid: Element(1, guid.bytes_le)),
    GUIDS.map(lambda guid: Element(6, guid.bytes_le)),
    st.builds(lambda guid, number: Element(2, guid.bytes_le + number), GUIDS, _NUMBER),
)


def _lists(section: int) -> st.SearchStrategy[MQFAddressHeader]:
    return st.lists(ELEMENTS, max_size=3).map(lambda elements: MQFAddressHeader(section, elements))


MULTIPLE = st.builds(
    MultiQueueFormatHeader,
    _lists(DESTINATION),
    _lists(ADMINISTRATION),
    _lists(RESPONSE),
    st.builds(MQFSignatureHeader, BYTES),
)
TRANSACTIONS = st.builds(
    TransactionHeader,
    sequence_ordinal=U32,
    sequence_timestamp=U32,
    sequence_number=U32,
    previous_number=U32,
    transaction_id=st.integers(0, 0xFFFFF),
    first=st.booleans(),
    last=st.booleans(),
    connector_manager=st.none() | GUIDS,
)
SECURITY = st.builds(
    SecurityHeader,
    sender_id_type=st.integers(1, 2),
    authentication_level=st.integers(0, 5),
    encrypted=st.booleans(),
    sender_id=BYTES,
    encryption_key=BYTES,
    signature=BYTES,
    certificate=BYTES,
)


@st.composite
def packets(draw: Any) -> bytes:
    """A UserMessage packet as it is kept: express, recoverable or transactional, with any of its headers."""
    transaction = draw(st.none() | TRANSACTIONS)
    security = draw(st.none() | SECURITY)
    envelope = draw(st.none() | st.builds(SRMPEnvelopeHeader, ANY_TEXT))
    user = UserHeader(
        draw(GUIDS),
        draw(GUIDS),
        0xFFFFFFFF,
        draw(st.integers(1_600_000_000, 1_700_000_000)),
        draw(U32),
        delivery=1 if transaction else draw(st.integers(0, 1)),
        destination=draw(DESTINATIONS),
        admin=draw(ADMINS),
        response=draw(RESPONSES),
        connector=draw(st.none() | GUIDS),
    )
    properties = MessagePropertiesHeader(
        message_class=draw(st.sampled_from([0, 1, 2, 0x4000, 0x8005, 0xC002, 0x1234])),
        correlation_id=draw(st.binary(min_size=20, max_size=20)),
        body_type=draw(U32),
        app_specific=draw(U32),
        hash_algorithm=draw(U32),
        encryption_algorithm=draw(U32),
        label=draw(ANY_TEXT),
        extension=draw(BYTES),
        body=draw(BODIES),
    )
    return UserMessagePacket(
        BaseHeader(priority=draw(st.integers(0, 7)), trace=draw(st.booleans())),
        user,
        transaction,
        security,
        properties,
        draw(st.none() | st.builds(DebugHeader, st.none() | GUIDS)),
        envelope,
        CompoundMessageHeader(draw(BYTES)) if envelope else None,
        draw(st.none() | st.builds(SoapHeader, ANY_TEXT, ANY_TEXT)),
        draw(st.none() | MULTIPLE),
    ).encode()


def plain(
    body: bytes = b"", *, label: str = "", priority: int = 3, recoverable: bool = True, ordinal: int = 1
) -> bytes:
    """A packet that is nothing special."""
    return UserMessagePacket(
        BaseHeader(priority=priority),
        UserHeader(
            UUID(int=1),
            UUID(int=2),
            0xFFFFFFFF,
            1_700_000_000,
            ordinal,
            delivery=int(recoverable),
            destination=destination_field(parse_format_name(r"DIRECT=OS:HOST\private$\orders")),
        ),
        properties=MessagePropertiesHeader(label=label, body=body),
    ).encode()
