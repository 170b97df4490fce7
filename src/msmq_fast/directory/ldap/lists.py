"""Distribution lists of a domain (MS-MQDSSM 3.1.6.9): groups whose members are queues, aliases, and other
lists, which may contain each other.

Anyone that may create groups makes lists, so the work for them has limits: each list is searched once, a list
stands for at most MAX_MEMBERS names and MAX_NESTED lists, and what takes more than MAX_STEPS steps in all is
left for the first use of a list.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.forest import Forest
from msmq_fast.directory.ldap.interface import BASE
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic, not_found

__all__ = ["Lists"]

MAX_MEMBERS: Final = 10_000
"""Format names that a distribution list may stand for."""
MAX_NESTED: Final = 1_000
"""Lists that a list may contain, also through others. A user of a domain may be in as many groups."""
MAX_LISTS: Final = 10_000
MAX_STEPS: Final = 1_000_000
"""Lists and names that are passed in one reading of all lists."""
_LISTS: Final = names.any_of(["(objectClass=group)", "(objectClass=msMQ-Group)"])
_LISTED: Final = names.any_of(
    [
        "(objectClass=mSMQQueue)",
        "(objectClass=msMQ-Custom-Recipient)",
        "(objectClass=group)",
        "(objectClass=msMQ-Group)",
    ]
)


@dataclass(frozen=True, slots=True)
class _Direct:
    """The direct members of a list: format names, and the distinguished names of lists."""

    names: tuple[str, ...]
    lists: tuple[str, ...]


class Lists:
    """The lists of the forest of a domain, for one reading: what was searched is not searched again."""

    def __init__(self, forest: Forest, domain: str) -> None:
        self._forest = forest
        self._domain = domain
        self._direct: dict[str, _Direct] = {}  # by distinguished name in lower case
        self._steps = 0

    def all(self, paths: Iterable[str], problems: list[str]) -> dict[UUID, tuple[str, ...]]:
        """Return the format names of the lists with these distinguished names, of those that contain aliases,
        and of those that contain one of these. A list that is too long has a line in `problems`.
        """
        found: dict[UUID, tuple[str, ...]] = {}
        aliases = self._forest.search(self._domain, "(objectClass=msMQ-Custom-Recipient)", ["memberOf"])
        left = sorted({*paths, *(path for entry in aliases for path in _lists_of(entry))})
        seen = set(left)
        while left and len(found) < MAX_LISTS and self._steps < MAX_STEPS:
            wanted = ["objectGUID", "memberOf"]
            for entry in self._forest.below(left.pop(), self._domain, BASE, _LISTS, wanted):
                try:
                    found[entry.identifier] = self.members(entry)
                except DirectoryError as error:
                    if error.result is DirectoryOperationResult.NOT_CONNECTED:
                        raise
                    problems.append(str(error))
                for path in _lists_of(entry):
                    if path not in seen:
                        seen.add(path)
                        left.append(path)
        return found

    def changed(self, usn: int) -> bool:
        """Whether a group or an alias of the own domain has changed, or was deleted as far as the account may
        see that, since this number of changes.
        """
        groups = names.any_of([_LISTS, "(objectClass=msMQ-Custom-Recipient)"])
        condition = f"(&{groups}(uSNChanged>={usn}))"
        for deleted in (True, False):
            try:
                found = self._forest.search(self._domain, condition, ["objectGUID"], deleted=deleted)
                return any(True for _ in found)
            except DirectoryError as error:  # the account may not see what was deleted
                if not deleted or error.result is DirectoryOperationResult.NOT_CONNECTED:
                    raise
        return False

    def find(self, identifier: UUID) -> Entry:
        """Return the list with this GUID. Raises DirectoryError."""
        try:
            for entry in self._forest.with_guid(names.by_guid(identifier), _LISTS, ["objectGUID"]):
                return entry
        except DirectoryError as error:
            if error.result is not DirectoryOperationResult.OBJECT_NOT_FOUND:
                raise
        raise not_found(ObjectType.DISTRIBUTION_LIST, f"there is no distribution list {identifier}")

    def members(self, group: Entry) -> tuple[str, ...]:
        """Return the format names of a list, with those of the lists in it. Raises DirectoryError."""
        result: dict[str, None] = {}
        left, seen = [group.path], {group.path.casefold()}
        while left:
            direct = self._direct_members(left.pop())
            result.update(dict.fromkeys(direct.names))
            for path in direct.lists:
                if path.casefold() not in seen:  # a list may contain itself
                    seen.add(path.casefold())
                    left.append(path)
            self._steps += 1 + len(direct.names) + len(direct.lists)
            if len(result) > MAX_MEMBERS:
                raise _too_long(group, f"{MAX_MEMBERS} members")
            if len(seen) > MAX_NESTED:
                raise _too_long(group, f"{MAX_NESTED} lists in it")
        return tuple(result)

    def _direct_members(self, path: str) -> _Direct:
        known = self._direct.get(path.casefold())
        if known is not None:
            return known
        found: dict[str, None] = {}
        lists: list[str] = []
        condition = f"(&{names.is_equal('memberOf', path)}{_LISTED})"
        wanted = ["objectClass", "objectGUID", "msMQ-Recipient-FormatName"]
        for entry in self._forest.search(self._domain, condition, wanted):
            alias = entry.first("msMQ-Recipient-FormatName")
            if entry.kind is ObjectType.QUEUE:
                found[f"PUBLIC={entry.identifier}"] = None
            elif alias is not None:
                found[alias.decode("utf-8", "replace")] = None
            else:
                lists.append(entry.path)
            if len(found) > MAX_MEMBERS or len(lists) > MAX_MEMBERS:
                break  # the caller refuses it
        direct = self._direct[path.casefold()] = _Direct(tuple(found), tuple(lists))
        return direct


def _lists_of(entry: Entry) -> list[str]:
    return [path.decode("utf-8", "replace") for path in entry.attributes.get("memberof", ())]


def _too_long(group: Entry, limit: str) -> DirectoryError:
    return generic(f"the distribution list {group.path} has more than {limit}", ObjectType.DISTRIBUTION_LIST)
