"""What `domain` needs of a connection. This module does without python-ldap, as all here but `link`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from msmq_fast.directory.ldap.controllers import Controllers
from msmq_fast.directory.ldap.entries import Entry

__all__ = ["BASE", "LEVEL", "SUBTREE", "Link"]

# The scopes of a search (RFC 4511 4.5.1.2).
BASE: Final = 0
LEVEL: Final = 1
SUBTREE: Final = 2


class Link(Protocol):
    """What `domain` needs of a connection: the operations of LDAP with the controls of Active Directory. A
    failed operation raises DirectoryError.
    """

    @property
    def controllers(self) -> Controllers:
        """The domain controllers that may be asked."""

    def root(self) -> Entry:
        """Return the attributes of the domain controller itself (rootDSE)."""

    def search(
        self, base: str, scope: int, condition: str, attributes: Sequence[str], *, deleted: bool = False
    ) -> Iterator[Entry]:
        """Yield the entries that meet the filter `condition`, in pages. `deleted` includes tombstones."""

    def add(self, path: str, attributes: Mapping[str, list[bytes]]) -> None:
        """Add an entry. Of nTSecurityDescriptor only the DACL counts."""

    def modify(self, path: str, changes: Mapping[str, list[bytes]]) -> None:
        """Replace attributes; an empty list deletes one. Of nTSecurityDescriptor only the DACL counts."""

    def delete(self, path: str) -> None:
        """Delete an entry with all that is below it."""

    def catalog(self) -> Link:
        """Return a connection to the global catalog of the controller that answered last."""

    def prefer(self) -> None:
        """Leave the domain controller for one that comes before it, if that may be tried."""

    def close(self) -> None:
        """Close the connection; the next operation opens another one."""
