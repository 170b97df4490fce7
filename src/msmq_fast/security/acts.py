"""The log of administrative acts: one line at level info for each act, with its caller, object and result.

Refusals are in the same log (`audit`), at level warning. `qm/audit/trail.py` says how to audit another act.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from msmq_fast.security.authorizer import entry_text
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.token import Token

__all__ = ["permission_changes", "record"]

_log = logging.getLogger("msmq_fast.audit")
_SHOWN: Final = 10
"""Entries of an access list that one line names, at most."""


def record(caller: Token | None, operation: str, target: str, result: str = "done") -> None:
    """Log an act. `caller` is None for an act of the queue manager itself; no argument may contain a
    secret.
    """
    name, sid = ("the queue manager", "") if caller is None else (str(caller), str(caller.user))
    fields = {"caller": name, "sid": sid, "object": target, "operation": operation, "result": result}
    _log.info("%s on %s by %s: %s", operation, target, name, result, extra={"fields": fields})


def permission_changes(old: SecurityDescriptor, new: SecurityDescriptor) -> str:
    """Return the differences between two descriptors as text: the new owner, "+" before each new entry, and
    "-" before each removed entry (SDDL).
    """
    before, after = _entries(old), _entries(new)
    parts = [] if old.owner == new.owner else [f"owner {new.owner}"]
    parts += [f"+{entry}" for entry in (after - before).elements()]
    parts += [f"-{entry}" for entry in (before - after).elements()]
    if len(parts) > _SHOWN:
        parts[_SHOWN:] = [f"and {len(parts) - _SHOWN} more"]
    return " ".join(parts) or "no change"


def _entries(descriptor: SecurityDescriptor) -> Counter[str]:
    aces = descriptor.dacl.aces if descriptor.dacl is not None else ()
    return Counter(entry_text(ace) for ace in aces)
