"""The base class of the groups of operators' requests, such as `connection.admin.queues`."""

from __future__ import annotations

from msmq_fast.client.transport import Requester


class Subject:
    """A group of operators' requests that concern one kind of object, such as queues."""

    def __init__(self, link: Requester) -> None:
        self._link = link
