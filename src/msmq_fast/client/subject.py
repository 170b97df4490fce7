"""The base class of the subjects of `connection.admin`."""

from __future__ import annotations

from msmq_fast.client.transport import Requester


class Subject:
    """Operators' requests about one kind of object."""

    def __init__(self, link: Requester) -> None:
        self._link = link
