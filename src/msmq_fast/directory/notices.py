"""Change notifications (MS-MQCN 2.2.4, version 2): what the owner of a changed object is told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

TIME_TO_REACH_S = 300  # TimeToReachQueue of the message; it is an express one
NOTIFY_QUEUE = 3  # number of the private queue that takes them

_VERSION = 2
_COUNT = 1
_LONGEST = 4096  # bytes
_BODY = re.compile(
    r"<Notification><Event>([1-4])</Event><ObjectGuid>([0-9A-Fa-f-]{36})</ObjectGuid\s*>"
    r"<DomainController>([\x21-\x7E]{1,256})</DomainController></Notification>\x00*"
)


class Change(IntEnum):
    """iOperation, and the Event of the message."""

    QUEUE_CREATION = 1
    QUEUE_UPDATE = 2
    QUEUE_DELETION = 3
    QUEUE_MANAGER_UPDATE = 4


@dataclass(frozen=True, slots=True)
class Notice:
    """`identifier` is the changed object's, `server` the directory where it was changed."""

    change: Change
    identifier: UUID
    server: str


def encode_notice(notice: Notice) -> bytes:
    """The body of the message; its last byte means nothing (3.3.5.3)."""
    text = (
        f"<Notification><Event>{int(notice.change)}</Event>"
        f"<ObjectGuid>{str(notice.identifier).upper()}</ObjectGuid>"
        f"<DomainController>{notice.server}</DomainController></Notification>"
    )
    return bytes((_VERSION, _COUNT)) + text.encode("utf-16-le") + b"\0"


def parse_notice(body: bytes) -> Notice:
    """The notice in a message body; ValueError says what is wrong with it."""
    if len(body) < 2 or len(body) > _LONGEST:
        raise ValueError(f"a change notification does not have {len(body)} bytes")
    if (body[0], body[1]) != (_VERSION, _COUNT):
        raise ValueError(f"a change notification of version {body[0]} with {body[1]} updates")
    data = body[2 : len(body) - len(body) % 2]
    found = _BODY.fullmatch(data.decode("utf-16-le", "replace"))
    if found is None:
        raise ValueError("the change notification does not have the form of MS-MQCN 2.2.5")
    return Notice(Change(int(found[1])), UUID(found[2]), found[3])
