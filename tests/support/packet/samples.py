"""Valid UserMessage packets of every shape, as seeds for tests, mutation and fuzzing."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from msmq_fast.packet.base import BaseHeader
from msmq_fast.packet.fields import QueueField, direct_wire
from msmq_fast.packet.multi import (
    ADMINISTRATION,
    DESTINATION,
    RESPONSE,
    Element,
    MQFAddressHeader,
    MQFSignatureHeader,
    MultiQueueFormatHeader,
)
from msmq_fast.packet.properties import DebugHeader, MessagePropertiesHeader
from msmq_fast.packet.session import SessionHeader
from msmq_fast.packet.soap import CompoundMessageHeader, SoapHeader, SRMPEnvelopeHeader
from msmq_fast.packet.user import SecurityHeader, TransactionHeader, UserHeader
from msmq_fast.packet.user_message import UserMessagePacket

HERE = Path(__file__).parents[2] / "packet"
SOURCE = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
OTHER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
SID = bytes.fromhex("010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000")

QUEUE_FIELDS = {
    0: QueueField(0),
    1: QueueField(1),
    2: QueueField(2, b"\x0a\0\0\0"),
    3: QueueField(3, b"\x04\0\0\0"),
    4: QueueField(4, b"\x0b\0\0\0"),
    5: QueueField(5, OTHER.bytes_le),
    6: QueueField(6, OTHER.bytes_le + b"\x0c\0\0\0"),
    7: QueueField(7, direct_wire("OS:host\\private$\\queue")),
}


def published() -> list[dict[str, Any]]:
    """The frames of MS-MQQB section 4; `full_hex` completes the user message, which is cut in print."""
    frames: list[dict[str, Any]] = json.loads((HERE / "vectors" / "mqqb-section4.json").read_text())
    return frames


def frame(number: int) -> bytes:
    """The bytes of a published frame, 1 to 8."""
    found = published()[number - 1]
    return bytes.fromhex(found.get("full_hex") or found["hex"])


def multi() -> MultiQueueFormatHeader:
    elements = [
        Element(3, "OS:a\\q\0".encode("utf-16-le")),
        Element(1, OTHER.bytes_le),
        Element(3, "OS:bb\\q\0".encode("utf-16-le")),
        Element(2, OTHER.bytes_le + b"\x07\0\0\0"),
        Element(6, SOURCE.bytes_le),
        Element(3, "TCP:10.0.0.1\\q\0".encode("utf-16-le")),
    ]
    return MultiQueueFormatHeader(
        MQFAddressHeader(DESTINATION, elements),
        MQFAddressHeader(ADMINISTRATION),
        MQFAddressHeader(RESPONSE, elements[2:3]),
        MQFSignatureHeader(b"\x5a" * 21),
    )


OPTIONAL: dict[str, list[dict[str, Any]]] = {
    "transaction": [
        {"transaction": TransactionHeader(7, 8, 9, 8, 0xABCDE, True, True, True)},
        {"transaction": TransactionHeader(1, 2, 1, connector_manager=OTHER)},
    ],
    "security": [
        {"security": SecurityHeader(1, sender_id=SID)},
        {
            "security": SecurityHeader(
                2,
                encrypted=True,
                sender_id=OTHER.bytes_le,
                encryption_key=b"k" * 13,
                signature=b"s" * 65,
                certificate=b"c" * 331,
                provider_info=b"\x18\0\0\0P\0r\0\0\0",
            )
        },
    ],
    "debug": [{"debug": DebugHeader()}, {"debug": DebugHeader(OTHER)}],
    "srmp": [
        {
            "envelope": SRMPEnvelopeHeader("<se:Envelope/>"),
            "compound": CompoundMessageHeader(b"POST body", 5, 4),
        }
    ],
    "soap": [{"soap": SoapHeader("<h/>", "<body/>")}],
    "multi": [{"multi": multi()}],
    "session": [{"session": SessionHeader(3, 1, 5, 2, 1)}],
}


def build(**headers: Any) -> UserMessagePacket:
    """A small message with these headers."""
    delivery = 1 if "transaction" in headers else 0
    defaults: dict[str, Any] = {
        "base": BaseHeader(priority=4, time_to_reach_queue=600),
        "user": UserHeader(
            SOURCE, OTHER, 500, 1_700_000_000, 77, delivery=delivery, destination=QUEUE_FIELDS[7]
        ),
        "properties": MessagePropertiesHeader(
            15, 0x4000, b"c" * 20, 8, 42, label="lab", extension=b"xyz", body=b"hi!!"
        ),
    }
    return UserMessagePacket(**defaults | headers)


def combinations() -> Iterator[tuple[str, UserMessagePacket]]:
    """Every combination of optional headers, present (in its richest form) or absent."""
    for chosen in itertools.product((False, True), repeat=len(OPTIONAL)):
        names = [name for name, wanted in zip(OPTIONAL, chosen, strict=True) if wanted]
        headers: dict[str, Any] = {}
        for name in names:
            headers |= OPTIONAL[name][-1]
        yield "+".join(names) or "plain", build(**headers)


def seeds() -> list[tuple[str, bytes]]:
    """A short list that has every header, every variant of it and every queue name type somewhere."""
    found = [("published", frame(7)), ("plain", build().encode())]
    for name, variants in OPTIONAL.items():
        found += [(f"{name}-{index}", build(**headers).encode()) for index, headers in enumerate(variants)]
    everything: dict[str, Any] = {}
    for variants in OPTIONAL.values():
        everything |= variants[-1]
    found.append(("everything", build(**everything).encode()))
    found.append(("session-counted", build(**OPTIONAL["session"][0]).encode(count_session=True)))
    for dest, admin, response in (
        (0, 0, 0),
        (3, 2, 1),
        (5, 3, 4),
        (7, 5, 6),
        (3, 6, 7),
        (7, 7, 5),
        (5, 7, 2),
        (3, 0, 3),
    ):
        user = UserHeader(
            SOURCE,
            OTHER,
            destination=QUEUE_FIELDS[dest],
            admin=QUEUE_FIELDS[admin],
            response=QUEUE_FIELDS[response],
            connector=OTHER if dest == 3 else None,
        )
        found.append((f"queues-{dest}{admin}{response}", build(user=user).encode()))
    return found
