"""Reads change notifications as MS-MQCN 2.2.4 and 2.2.5 describe them."""

from __future__ import annotations

import re
from uuid import UUID

from msmq_fast.directory.notices import Change, Notice

_VERSION, _COUNT = 2, 1
_LONGEST = 4096  # bytes
_BODY = re.compile(
    r"<Notification><Event>([1-4])</Event><ObjectGuid>([0-9A-Fa-f-]{36})</ObjectGuid\s*>"
    r"<DomainController>([\x21-\x7E]{1,256})</DomainController></Notification>\x00*"
)


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
