"""Decides whether a caller may perform an operation; the queue manager calls it before each one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.security.acl import Ace, Acl
from msmq_fast.security.audit import Audit, AuditRecord
from msmq_fast.security.check import Decision, access_check, depends_on_more, grants_everybody
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.masks import (
    CN_MAPPING,
    MACHINE_MAPPING,
    QUEUE_MAPPING,
    ConnectedNetworkRight,
    GenericMapping,
    MachineRight,
    QueueRight,
    Rights,
    right_names,
)
from msmq_fast.security.sddl import to_sddl
from msmq_fast.security.sid import Sid
from msmq_fast.security.token import Token

__all__ = ["CONNECTED_NETWORK", "MACHINE", "QUEUE", "Authorizer", "ObjectKind", "entry_text"]

MAX_CACHED: Final = 8192


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """The facts about a kind of objects that access checks need: its generic mapping and its rights."""

    mapping: GenericMapping
    rights: Rights


QUEUE: Final = ObjectKind(QUEUE_MAPPING, QueueRight)
MACHINE: Final = ObjectKind(MACHINE_MAPPING, MachineRight)
CONNECTED_NETWORK: Final = ObjectKind(CN_MAPPING, ConnectedNetworkRight)


def entry_text(ace: Ace | None) -> str:
    """Return one entry in the descriptor language (SDDL), "" for None."""
    if ace is None:
        return ""
    return to_sddl(SecurityDescriptor.build(None, None, Acl((ace,)))).removeprefix("D:")


class Authorizer:
    """Makes access decisions, caches them, and records refusals."""

    def __init__(self, audit: Audit) -> None:
        self.audit = audit
        self._decisions: dict[tuple[bytes, Token, int, int], Decision] = {}

    def decide(
        self, token: Token, descriptor: SecurityDescriptor, desired: int, kind: ObjectKind
    ) -> Decision:
        """Return the decision with its reason. Does not record a refusal."""
        key = (descriptor.encoded, token, desired, kind.mapping.all)
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= MAX_CACHED:
                self._decisions.clear()
            decision = access_check(token, descriptor, desired, kind.mapping)
            self._decisions[key] = decision
        return decision

    def everybody(self, descriptor: SecurityDescriptor, right: int, kind: ObjectKind) -> bool:
        """Whether every possible caller has the right, so that no check is needed (see
        check.grants_everybody).
        """
        return grants_everybody(descriptor, right, kind.mapping)

    def allows(self, token: Token, descriptor: SecurityDescriptor, desired: int, kind: ObjectKind) -> bool:
        """Whether the caller would get the access rights `desired`. Does not record a refusal."""
        return self.decide(token, descriptor, desired, kind).granted

    def depends_on_more(
        self,
        token: Token,
        descriptor: SecurityDescriptor,
        desired: int,
        kind: ObjectKind,
        may_have: Callable[[Sid], bool],
    ) -> bool:
        """Whether more SIDs in the token could change the decision (see check.depends_on_more)."""
        return depends_on_more(token, descriptor, desired, kind.mapping, may_have=may_have)

    def check(
        self,
        token: Token,
        descriptor: SecurityDescriptor,
        desired: int,
        kind: ObjectKind,
        name: str,
        operation: str,
        detail: str = "",
    ) -> None:
        """Raise AccessDenied, and record the refusal, unless all desired rights are granted.

        `name` is the name of the object for people, `operation` the operation that the caller attempted.
        """
        decision = self.decide(token, descriptor, desired, kind)
        if decision.granted:
            return
        rights = right_names(decision.missing, kind.rights)
        entry = "" if decision.index is None else f"entry {decision.index}: {entry_text(decision.entry)}"
        raise self.refuse(token, name, operation, decision.reason.value, rights, entry, detail)

    def refuse(
        self,
        token: Token,
        name: str,
        operation: str,
        reason: str,
        rights: tuple[str, ...] = (),
        entry: str = "",
        detail: str = "",
    ) -> AccessDenied:
        """Record a refusal. Return the error, which the caller must raise. Also for refusals that are not due
        to an access list; `rights` is then empty.
        """
        self.audit.refused(
            AuditRecord(
                str(token), str(token.user), name, operation, rights, reason, entry, detail, token.address
            )
        )
        needs = f"needs {', '.join(rights)}" if rights else f"is refused: {reason}"
        return AccessDenied(f"{operation} on {name} {needs}")
