"""Distribution lists: groups with queues, aliases and other lists as members (MS-MQDSSM 3.1.6.9)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.forest import Forest
from msmq_fast.directory.ldap.interface import BASE
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic, not_found

__all__ = ["MAX_MEMBERS", "DistributionLists"]

MAX_MEMBERS: Final = 10_000
"""Format names that a distribution list may stand for."""
_MAX_LISTS: Final = 10_000
_GROUPS: Final = ["(objectClass=group)", "(objectClass=msMQ-Group)"]
_LISTS: Final = names.any_of(_GROUPS)
_LISTED: Final = names.any_of(["(objectClass=mSMQQueue)", "(objectClass=msMQ-Custom-Recipient)", *_GROUPS])


class DistributionLists:
    """Resolves distribution lists. `domain` of the methods is the distinguished name of the own domain."""

    def __init__(self, forest: Forest) -> None:
        self._forest = forest

    def above(self, paths: set[str], domain: str) -> dict[UUID, tuple[str, ...]]:
        """Return the format names of the lists with these names, of those that have aliases as members, and
        of the lists that contain these.
        """
        found: dict[UUID, tuple[str, ...]] = {}
        aliases = self._forest.search(domain, "(objectClass=msMQ-Custom-Recipient)", ["memberOf"])
        left = sorted(
            paths | {one.decode() for entry in aliases for one in entry.attributes.get("memberof", ())}
        )
        seen = set(left)
        while left and len(found) < _MAX_LISTS:
            wanted = ["objectGUID", "memberOf"]
            for entry in self._forest.below(left.pop(), domain, BASE, _LISTS, wanted):
                found[entry.identifier] = self._members(entry, domain)
                for path in (one.decode() for one in entry.attributes.get("memberof", ())):
                    if path not in seen:
                        seen.add(path)
                        left.append(path)
        return found

    def members(self, identifier: UUID, domain: str) -> tuple[str, ...]:
        """Return the format names of a list, with those of the lists in it. Raises DirectoryError."""
        try:
            found = list(self._forest.with_guid(names.by_guid(identifier), _LISTS, ["objectGUID"]))
        except DirectoryError as error:
            if error.result is not DirectoryOperationResult.OBJECT_NOT_FOUND:
                raise
            found = []
        if not found:
            raise not_found(ObjectType.DISTRIBUTION_LIST, f"there is no distribution list {identifier}")
        return self._members(found[0], domain)

    def _members(self, group: Entry, domain: str) -> tuple[str, ...]:
        result: dict[str, None] = {}
        left, seen = [group.path], {group.path.casefold()}
        while left:
            condition = f"(&{names.is_equal('memberOf', left.pop())}{_LISTED})"
            wanted = ["objectClass", "objectGUID", "msMQ-Recipient-FormatName"]
            for entry in self._forest.search(domain, condition, wanted):
                alias = entry.first("msMQ-Recipient-FormatName")
                if entry.kind is ObjectType.QUEUE:
                    result[f"PUBLIC={entry.identifier}"] = None
                elif alias is not None:
                    result[alias.decode()] = None
                elif entry.path.casefold() not in seen:  # a list in the list, which may contain itself
                    seen.add(entry.path.casefold())
                    left.append(entry.path)
                if len(result) > MAX_MEMBERS or len(seen) > MAX_MEMBERS:
                    raise generic(
                        f"the distribution list {group.path} has more than {MAX_MEMBERS} members",
                        ObjectType.DISTRIBUTION_LIST,
                    )
        return tuple(result)
