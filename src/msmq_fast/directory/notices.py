"""Change notifications (MS-MQCN 2.2.4, version 2): the messages to the owner of a changed object."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from uuid import UUID

TIME_TO_REACH_S = 300  # TimeToReachQueue of the message; it is an express one
NOTIFY_QUEUE = 3  # number of the private queue that receives them

_VERSION = 2
_COUNT = 1


class Change(IntEnum):
    """The kind of change: the value of iOperation, and of Event in the body of the message."""

    QUEUE_CREATION = 1
    QUEUE_UPDATE = 2
    QUEUE_DELETION = 3
    QUEUE_MANAGER_UPDATE = 4


@dataclass(frozen=True, slots=True)
class Notice:
    """One notification. `identifier` is the GUID of the changed object, `server` the directory where it was
    changed.
    """

    change: Change
    identifier: UUID
    server: str


def encode_notice(notice: Notice) -> bytes:
    """Return the body of the message; its last byte has no meaning (3.3.5.3)."""
    text = (
        f"<Notification><Event>{int(notice.change)}</Event>"
        f"<ObjectGuid>{str(notice.identifier).upper()}</ObjectGuid>"
        f"<DomainController>{notice.server}</DomainController></Notification>"
    )
    return bytes((_VERSION, _COUNT)) + text.encode("utf-16-le") + b"\0"
