"""Reads the domain of the controller, and the other domains of its forest through the global catalog (MS-ADTS
3.1.1.3.1.10), at port 3268 or 3269 of the same controller.

The catalog has each object of the forest with some of its attributes. Of those that message queuing reads, it
lacks mSMQQuota, mSMQJournalQuota, mSMQComputerTypeEx and operatingSystemVersion: a queue manager of another
domain has their defaults. It also lacks msMQ-Recipient-FormatName, so that aliases of other domains are left
out of lists. Objects of the own domain always come from the domain itself, with all attributes, and only they
can be changed. A controller counts the changes of its catalog together with those of its domain.

The own domain is read also while the catalog does not answer, for example because a firewall stops its port.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

from msmq_fast.directory.ldap import names
from msmq_fast.directory.ldap.entries import Entry
from msmq_fast.directory.ldap.interface import BASE, SUBTREE, Link
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult

__all__ = ["Catalog", "Forest"]

_log = logging.getLogger(__name__)

_DOMAIN: Final = 2  # FLAG_CR_NTDS_DOMAIN of a crossRef (MS-ADTS 6.1.1.2.1.1)


class Catalog(Enum):
    """Whether the global catalog is read: `AUTO` means if the forest has several domains."""

    AUTO = "auto"
    YES = "yes"
    NO = "no"


class Forest:
    """The searches of a domain and of its forest."""

    def __init__(self, link: Link, catalog: Catalog = Catalog.AUTO) -> None:
        self._link = link
        self._catalog = catalog
        self._wide = False
        self._state = "not asked"
        self._missing = ""
        self._answered = False

    @property
    def state(self) -> str:
        """Whether the global catalog is read, and why, for people."""
        return self._state

    @property
    def missing(self) -> str:
        """Why the global catalog does not answer, "" if it does or need not be read."""
        return self._missing

    def look(self, root: Entry, domain: str, configuration: str) -> None:
        """Decide whether the global catalog is read from now on. `root` are the attributes of the controller
        itself. Raises DirectoryError.
        """
        before, failed = self._state, self._missing
        self._missing = ""
        self._wide, self._state = self._decided(root, domain, configuration)
        self.check()
        if self._catalog is Catalog.NO or self._missing or self._state == before:
            return
        if failed or not self._wide:
            _log.info("objects of other domains: %s", self._state)

    def check(self) -> None:
        """Find out whether the global catalog answers, if it is read. If it does not, it is not read until
        `look` is called. Raises DirectoryError if it answered the last time: it may just have closed its
        connection, so that the caller is to try once more.
        """
        if not self._wide:
            return
        catalog = self._link.catalog()
        try:
            catalog.root()
        except DirectoryError as error:
            answered, self._answered = self._answered, False
            if answered or error.result is not DirectoryOperationResult.NOT_CONNECTED:
                raise
            self._wide = False
            failing = [f"{one.url}: {one.failing}" for one in catalog.controllers.states() if one.failing]
            self._missing = "; ".join(failing) or error.detail
            self._state = f"not read: the global catalog does not answer: {self._missing}"
            _log.warning("objects of other domains: %s", self._state)
        else:
            self._answered = True

    def _decided(self, root: Entry, domain: str, configuration: str) -> tuple[bool, str]:
        if self._catalog is Catalog.NO:
            return False, 'not read: directory.global_catalog = "no"'
        reason = 'directory.global_catalog = "yes"'
        if self._catalog is Catalog.AUTO:
            count = self._domains(domain, configuration)
            if count < 2:
                return False, "not read: the forest has one domain"
            reason = f"the forest has {count} domains"
        if root.first("isGlobalCatalogReady") != b"TRUE":
            return False, f"not read: {self._link.controllers.current} is not a global catalog ({reason})"
        return True, f"read from the global catalog: {reason}"

    def _domains(self, domain: str, configuration: str) -> int:
        found = {domain.casefold()}
        attributes = ["nCName", "systemFlags"]
        base = f"CN=Partitions,{configuration}"
        for entry in self._link.search(base, SUBTREE, "(objectClass=crossRef)", attributes):
            try:
                flags = int(entry.first("systemFlags") or 0)
            except ValueError:
                continue
            if flags & _DOMAIN:
                found.add((entry.first("nCName") or b"").decode("utf-8", "replace").casefold())
        return len(found)

    def search(
        self, domain: str, condition: str, attributes: Sequence[str], *, deleted: bool = False
    ) -> Iterator[Entry]:
        """Yield the entries of the domain that meet a filter, then those of other domains."""
        yield from self._link.search(domain, SUBTREE, condition, attributes, deleted=deleted)
        if self._wide:
            own = domain.casefold()
            for entry in self._link.catalog().search("", SUBTREE, condition, attributes, deleted=deleted):
                if names.domain_of(entry.path).casefold() != own:
                    yield entry

    def below(
        self, path: str, domain: str, scope: int, condition: str, attributes: Sequence[str]
    ) -> Iterator[Entry]:
        """Yield the entry with a name, or those below it, if its domain is read."""
        if names.domain_of(path).casefold() == domain.casefold():
            yield from self._link.search(path, scope, condition, attributes)
        elif self._wide:
            yield from self._link.catalog().search(path, scope, condition, attributes)

    def with_guid(self, base: str, condition: str, attributes: Sequence[str]) -> Iterator[Entry]:
        """Yield the entry with a GUID, which `base` is made of, from whatever domain. Raises DirectoryError
        with ObjectNotFound if no domain has it.
        """
        link = self._link.catalog() if self._wide else self._link
        yield from link.search(base, BASE, condition, attributes)
