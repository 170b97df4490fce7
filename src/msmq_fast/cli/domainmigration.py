"""Moves the public queues of a stopped server from its embedded directory into a domain.

A domain chooses the GUIDs of its objects. So each queue gets an object in the domain first, and then all new
GUIDs go into the store in one commit. After a crash before it, the next attempt finds the objects by name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmq_fast.directory.embedded import DirectoryEnvironment, EmbeddedDirectory
from msmq_fast.directory.filters import equals
from msmq_fast.directory.objects import IDENTIFIER, RULES, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.qm.queues.queue import QueueKind
from msmq_fast.qm.records import Records
from msmq_fast.store.schema import MetaName

if TYPE_CHECKING:
    from msmq_fast.directory.ldap.domain import Domain
    from msmq_fast.store.store import Store

__all__ = ["Migration"]

_NOT_KEPT = {IDENTIFIER, "Scope", "PrivateQueueNumber", "QualifiedPathname"}
_LEFT = "not moved: create it with the domain's tools"


class Migration:
    """The public queues and the directory of the store of the computer `name`."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._name = name
        environment = DirectoryEnvironment(lambda: int(time.time()), os.urandom, server=name)
        self._embedded = EmbeddedDirectory(store, environment)
        self._records = Records(store).queues(lambda _kind, _text: None)

    def queues(self) -> dict[str, UUID]:
        """Return the public queues of the store: their paths and GUIDs."""
        return {
            f"{self._name}\\{record['part']}": UUID(bytes_le=record["guid"])
            for _, record in self._records
            if record["kind"] == QueueKind.PUBLIC
        }

    def plan(self, existing: Mapping[str, UUID]) -> list[dict[str, Any]]:
        """Return a row for each object: what `create` does with it. `existing` are the public queues of this
        computer in the domain, by path in lower case.
        """
        rows = [
            {
                "object": "Queue",
                "name": path,
                "outcome": "unchanged" if path.casefold() in existing else "created",
                "detail": "",
            }
            for path in self.queues()
        ]
        own = {self._name.casefold()}
        for kind in ObjectType:
            for item in self._all(kind):
                mine = kind is ObjectType.QUEUE_MANAGER and item["ComputerName"].casefold() in own
                listed = kind is ObjectType.QUEUE and item["Pathname"].partition("\\")[0].casefold() in own
                if not mine and not listed:
                    rows.append(
                        {"object": kind.title, "name": item.describe(), "outcome": "left", "detail": _LEFT}
                    )
        return rows

    def _all(self, kind: ObjectType) -> list[DirectoryObject]:
        handle = self._embedded.begin(kind).result()
        found: list[DirectoryObject] = []
        while (step := self._embedded.next(handle)).exception() is None:
            found.append(step.result())
        self._embedded.end(handle)
        return found

    def create(self, domain: Domain, existing: Mapping[str, UUID]) -> dict[UUID, UUID]:
        """Create the queues that the domain lacks. Returns the new GUID of each queue by its old one. Raises
        DirectoryError.
        """
        found: dict[UUID, UUID] = {}
        rules = RULES[ObjectType.QUEUE]
        left_out = {*_NOT_KEPT, *rules.computed}
        for path, old in self.queues().items():
            there = existing.get(path.casefold())
            if there is None:
                kept = self._embedded.read(ObjectType.QUEUE, (equals(IDENTIFIER, old),))
                values: dict[str, Any] = {"Pathname": path}
                if kept.exception() is None:
                    values |= {
                        name: value for name, value in kept.result().values.items() if name not in left_out
                    }
                there = domain.create(DirectoryObject(ObjectType.QUEUE, values))[IDENTIFIER]
            found[old] = there
        return found

    def renumber(self, guid: UUID, queues: Mapping[UUID, UUID]) -> None:
        """Write the new GUIDs of the queue manager and its queues in one commit, and forget their objects in
        the embedded directory.
        """
        by_old = {old.bytes_le: new.bytes_le for old, new in queues.items()}
        records = Records(self._store)
        with self._store.unit():
            for ordinal, record in self._records:
                if record["guid"] in by_old:
                    records.set_queue(ordinal, record | {"guid": by_old[record["guid"]]})
            self._store.put_meta(MetaName.GUID, guid.bytes_le)
        self._store.commit()
        current = {guid, *queues.values()}
        for kind, attribute in ((ObjectType.QUEUE, "Pathname"), (ObjectType.QUEUE_MANAGER, "ComputerName")):
            for item in self._all(kind):
                own = item[attribute].partition("\\")[0].casefold() == self._name.casefold()
                if own and item[IDENTIFIER] not in current:
                    self._embedded.delete(item)
        self._store.commit()
