"""What the subjects of `connection.admin` have in common."""

from __future__ import annotations

from msmq_fast.client.transport import Requester


class Subject:
    """Operators' requests about one kind of things."""

    def __init__(self, link: Requester) -> None:
        self._link = link
