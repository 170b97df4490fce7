"""The access check for arriving messages (MS-MQQB 3.1.5.8.3, AMB-22, AMB-23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.security.authorizer import QUEUE, Authorizer
from msmq_fast.security.domainaccounts import GroupsNeeded
from msmq_fast.security.masks import QueueRight
from msmq_fast.security.principals import Principals, UnsignedSid
from msmq_fast.security.token import ANONYMOUS_TOKEN, Token

if TYPE_CHECKING:
    from msmq_fast.mqqb.destination import Destination

__all__ = ["SenderGate"]

_OPERATION = "send by message"
_NO_GROUPS = "no domain controller says the groups of the sender"


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
        claims an identity (QB-259). So is a user of the domain whose groups decide, if no domain controller
        says them. Raises GroupsNeeded while one is being asked.
        """
        token = self._principals.of_sender(sender_type, sender_id, self._unsigned, verified=verified)
        detail = f"message {message}"
        if token is None:
            self._authorizer.refuse(
                ANONYMOUS_TOKEN, target.name, _OPERATION, "the sender id is malformed", detail=detail
            )
            return False
        right = int(QueueRight.WRITE_MESSAGE)
        if verified and self._lacks_groups(token, target, right):
            learnt = self._principals.learn_groups(token.user)
            if learnt is not None and not learnt.done:
                raise GroupsNeeded(learnt)
            token = self._principals.of_sender(sender_type, sender_id, self._unsigned, verified=True) or token
            if self._principals.lacks_groups(token):
                self._authorizer.refuse(token, target.name, _OPERATION, _NO_GROUPS, detail=detail)
                return False
        try:
            self._authorizer.check(token, target.security, right, QUEUE, target.name, _OPERATION, detail)
        except AccessDenied:
            return False
        return True

    def _lacks_groups(self, token: Token, target: Destination, right: int) -> bool:
        """Whether the decision depends on groups of the sender that are not known."""
        principals = self._principals
        return principals.lacks_groups(token) and self._authorizer.depends_on_more(
            token, target.security, right, QUEUE, principals.may_be_group
        )
