"""The base class of the groups of operators' requests, such as `connection.admin.queues`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msmq_fast.client.transport import Requester


class Subject:
    """A group of operators' requests that concern one kind of object, such as queues."""

    def __init__(self, link: Requester) -> None:
        self._link = link


def expecting(expected: Sequence[str] | None, *fields: Any) -> list[Any]:
    """Return the payload of a request that may name the versions of which the settings must have one; without
    them it is the same as before there were versions.
    """
    return [*fields] if expected is None else [*fields, list(expected)]
