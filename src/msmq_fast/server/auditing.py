"""Connects the audit of the queue manager with what the server learns: log-ons, changes of the users file,
reloads after a signal, a restored store.
"""

from __future__ import annotations

from typing import Final

from msmq_fast.qm.audit.trail import AuditTrail
from msmq_fast.security.token import Token
from msmq_fast.security.userchanges import UserChange
from msmq_fast.server.access import AccessControl
from msmq_fast.server.reloading import Reloaded, ReloadError
from msmq_fast.store.store import Store

__all__ = ["audit_access", "audit_reload", "audit_restore"]

_MOST_USERS: Final = 100
"""Users of one change of the file that get an entry each."""


def audit_access(access: AccessControl, audit: AuditTrail) -> None:
    """Audit log-ons and changes of the users file from now on."""
    access.logons.attempted.connect(audit.logged_on)

    def edited(changes: list[UserChange], owner: int | None) -> None:
        by = "" if owner is None else f"the file belongs to uid {owner}"
        for change in changes[:_MOST_USERS]:
            audit.act(
                None, change.operation, f"user {change.name}", "; ".join(filter(None, (change.detail, by)))
            )
        if len(changes) > _MOST_USERS:
            audit.act(None, "change users", "the users file", f"and {len(changes) - _MOST_USERS} more users")

    access.users_edited.connect(edited)


def audit_restore(store: Store, audit: AuditTrail) -> None:
    """Audit that the store is a copy or was restored, if that is so."""
    if store.is_copy:
        audit.act(None, "restore store", str(store.directory), f"incarnation {store.incarnation}")


def audit_reload(audit: AuditTrail, outcome: Reloaded | ReloadError, caller: Token | None = None) -> None:
    """Audit a reload by a caller; None for SIGHUP."""
    operation, target = "reload configuration", "the server"
    if isinstance(outcome, ReloadError):
        audit.act(caller, operation, target, str(outcome), result="failed")
    else:
        audit.act(caller, operation, target, outcome.summary())
