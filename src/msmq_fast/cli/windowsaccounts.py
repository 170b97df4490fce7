"""Gives the access lists of a Windows host to accounts of this server.

SIDs that every computer has, such as Everyone and Administrators, stay. A SID of an account of the Windows
computer or its domain becomes that of the user or group of the same name here. An entry of an account that
does not exist here is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msmq_fast.cli.windowsexport import Finding
from msmq_fast.security.acl import Ace, Acl
from msmq_fast.security.descriptor import SecurityDescriptor
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.sddl import parse_sddl, to_sddl
from msmq_fast.security.sid import Sid, sid

__all__ = ["translated"]

_DOMAIN_ACCOUNT = 21  # S-1-5-21-…
_DEFAULT = "the queue gets the default access list"


def translated(
    subject: str, security: str, accounts: Mapping[str, str], known: Mapping[str, str]
) -> tuple[str, list[Finding]]:
    """Return an access list for this server as SDDL, "" if there is none, and what it lacks.

    `security` is the descriptor of the queue `subject`; `accounts` has the names of its SIDs, `known` the
    SIDs of users and groups here by their case-folded names.
    """
    try:
        given = parse_sddl(security)
    except SecurityDataError as error:
        return "", [Finding(subject, f"{_DEFAULT}: its own is invalid: {error}")]
    if given.dacl is None:  # to Windows that means that everyone may do everything
        return "", [Finding(subject, f"{_DEFAULT}: it has none of its own")]
    missing: dict[str, None] = {}

    def here(account: Sid) -> Sid | None:
        if account.authority != 5 or account.sub_authorities[:1] != (_DOMAIN_ACCOUNT,):
            return account
        name = accounts.get(str(account), "")
        found = known.get(name.rpartition("\\")[2].casefold()) if name else None
        if found is None:
            missing.setdefault(name or str(account))
        return None if found is None else sid(found)

    entries = tuple(_entries(given.dacl.aces, here))
    owner = None if given.owner is None else here(given.owner)
    findings = [
        Finding(subject, f"{name} has no account here: its entries in the access list are left out")
        for name in missing
    ]
    return to_sddl(SecurityDescriptor.build(owner, None, Acl(entries))), findings


def _entries(entries: tuple[Ace, ...], here: Callable[[Sid], Sid | None]) -> Iterator[Ace]:
    for entry in entries:
        account = None if entry.sid is None else here(entry.sid)
        if account is not None:
            yield Ace.build(entry.type, entry.mask, account, entry.flags)
