"""The access check for arriving messages (MS-MQQB 3.1.5.8.3, AMB-22, AMB-23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.security.authorizer import QUEUE, Authorizer
from msmq_fast.security.masks import QueueRight
from msmq_fast.security.principals import Principals, UnsignedSid
from msmq_fast.security.token import ANONYMOUS_TOKEN

if TYPE_CHECKING:
    from msmq_fast.mqqb.destination import Destination

__all__ = ["SenderGate"]

_OPERATION = "send by message"


class SenderGate:
    """Decides whether the sender of a message may send to the destination queue. Refusals are audited."""

    def __init__(
        self, principals: Principals, authorizer: Authorizer, unsigned: UnsignedSid = UnsignedSid.ANONYMOUS
    ) -> None:
        self._principals = principals
        self._authorizer = authorizer
        self._unsigned = unsigned

    def __call__(
        self, target: Destination, sender_type: int, sender_id: bytes, message: str, *, verified: bool = False
    ) -> bool:
        """Returns whether the sender may send to `target`.

        `sender_type` and `sender_id` are as in the SecurityHeader; `message` is the identifier of the
        message, for the audit record. With `verified`, a signature proves the sender, so the configured rule
        for the SIDs of unsigned messages does not apply.

        A sender whose `sender_id` cannot be parsed is refused, even where anonymous senders may send: it
        claims an identity (QB-259).
        """
        token = self._principals.of_sender(sender_type, sender_id, self._unsigned, verified=verified)
        detail = f"message {message}"
        if token is None:
            self._authorizer.refuse(
                ANONYMOUS_TOKEN, target.name, _OPERATION, "the sender id is malformed", detail=detail
            )
            return False
        right = int(QueueRight.WRITE_MESSAGE)
        try:
            self._authorizer.check(token, target.security, right, QUEUE, target.name, _OPERATION, detail)
        except AccessDenied:
            return False
        return True
