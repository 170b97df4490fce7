"""Requests about definitions: queues, access lists and directory objects as a document.

A document has thousands of entries; each is a request of its own, so that one that fails harms no other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msmq_fast.client.errors import ConnectionLost
from msmq_fast.client.subject import Subject
from msmq_fast.protocol.definitions import (
    DIRECTORY_OBJECTS,
    FORMAT,
    PARTS,
    VERSION,
    DefinitionChange,
    Definitions,
    name_of,
    queue_key,
    read_definitions,
)
from msmq_fast.protocol.errors import InvalidParameter, MSMQError
from msmq_fast.protocol.frames import Frame

__all__ = ["DefinitionAdmin"]

_AHEAD: Final = 64  # requests under way
_Entry = Mapping[str, Any]


class DefinitionAdmin(Subject):
    """The definitions of the queue manager: see `msmq_fast.protocol.definitions`."""

    async def export(self) -> dict[str, Any]:
        """Return the definitions as a document: the access list of the queue manager, all public and private
        queues in the order of their names, and the objects of the directory that are neither this queue
        manager nor its queues. Raises AccessDenied.
        """
        manager, queues, directory = [await self._part(part) for part in PARTS]
        return {FORMAT: VERSION, "queue_manager": manager[0], "queues": queues, "directory": directory}

    async def put(
        self, document: object, *, dry_run: bool = False, delete: bool = False
    ) -> list[DefinitionChange]:
        """Create what a document defines and does not exist, and change what differs; returns what was done
        with each entry. An entry that fails does not stop the others.

        `delete` also deletes the queues, with their messages, and the directory objects that the document
        does not have, if it has their section. `dry_run` changes nothing, and returns what would be done.

        Raises InvalidParameter if the document is malformed: nothing is changed then. Raises AccessDenied.
        """
        try:
            wanted = read_definitions(document)
        except ValueError as error:
            raise InvalidParameter(str(error)) from None
        # A caller without the right is refused here, once, and not with every entry.
        await self._link.request(Frame.PUT_DEFINITION, [{}, True])
        changes = await self.put_objects(wanted.directory or (), dry_run=dry_run)
        changes += await _each(
            wanted.queues or (), lambda entry: self._put("Queue", entry["name"], entry, dry_run=dry_run)
        )
        if delete:
            changes += await self._delete(wanted, dry_run=dry_run)
        if wanted.manager is not None:
            # Last: it can take away the right to do all the rest.
            changes.append(await self._put("QueueManager", "", wanted.manager, dry_run=dry_run))
        return changes

    async def put_objects(
        self, entries: Iterable[_Entry], *, dry_run: bool = False
    ) -> list[DefinitionChange]:
        """Create or change objects of the directory, in an order in which they can refer to each other;
        returns what was done with each, in this order. `dry_run` changes nothing.
        """

        async def put(entry: _Entry) -> DefinitionChange:
            request = self._link.request(Frame.PUT_DIRECTORY, [dict(entry), "import", dry_run])
            return await _outcome(str(entry.get("object")), name_of(entry), request)

        by_kind: dict[Any, list[_Entry]] = {kind: [] for kind in DIRECTORY_OBJECTS}
        for entry in entries:
            by_kind.setdefault(entry.get("object"), []).append(entry)
        return [change for kind in by_kind.values() for change in await _each(kind, put)]

    async def _part(self, part: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        after, finished = "", False
        while not finished:
            page = await self._link.request(Frame.EXPORT_DEFINITIONS, [part, after])
            entries += page["entries"]
            after = page["next"]
            finished = not after
        return entries

    async def _put(self, kind: str, name: str, entry: _Entry, *, dry_run: bool) -> DefinitionChange:
        return await _outcome(
            kind, name, self._link.request(Frame.PUT_DEFINITION, [dict(entry), dry_run]), detailed=True
        )

    async def _delete(self, wanted: Definitions, *, dry_run: bool) -> list[DefinitionChange]:
        changes: list[DefinitionChange] = []
        if wanted.queues is not None:
            kept = {queue_key(entry["name"]) for entry in wanted.queues}
            found = [one for one in await self._part("queues") if queue_key(one["name"]) not in kept]
            changes += await _each(found, lambda entry: self._delete_queue(entry["name"], dry_run=dry_run))
        if wanted.directory is not None:
            objects = {word for entry in wanted.directory for word in _words(entry)}
            found = [
                one
                for one in await self._part("directory")
                if one["object"] != "Enterprise" and not objects & set(_words(one))
            ]
            # Links before the sites that they join.
            for entry in reversed(found):
                changes.append(await self._delete_object(entry, dry_run=dry_run))
        return changes

    async def _delete_queue(self, name: str, *, dry_run: bool) -> DefinitionChange:
        messages = None

        async def delete() -> str:
            nonlocal messages
            messages = int((await self._link.request(Frame.GET_QUEUE, [name]))["messages"])
            if not dry_run:
                await self._link.request(Frame.DELETE_QUEUE, [name])
            return "deleted"

        change = await _outcome("Queue", name, delete())
        return DefinitionChange(change.object, name, change.outcome, change.detail, messages)

    async def _delete_object(self, entry: _Entry, *, dry_run: bool) -> DefinitionChange:
        kind = str(entry["object"])

        async def delete() -> str:
            if not dry_run:
                await self._link.request(Frame.DELETE_DIRECTORY, [kind, entry["Identifier"]])
            return "deleted"

        return await _outcome(kind, name_of(entry), delete())


def _words(entry: _Entry) -> list[tuple[str, str]]:
    """Return the keys by which an object of a document and one of the directory are the same."""
    kind = str(entry["object"])
    given = (str(entry.get("Identifier", "")), name_of(entry))
    return [(kind, word.casefold()) for word in given if word]


async def _each(
    entries: Sequence[_Entry], run: Callable[[_Entry], Awaitable[DefinitionChange]]
) -> list[DefinitionChange]:
    """Call `run` with each entry, several at a time; returns the results in the order of the entries."""
    changes: list[DefinitionChange] = []
    for start in range(0, len(entries), _AHEAD):
        changes += await asyncio.gather(*(run(entry) for entry in entries[start : start + _AHEAD]))
    return changes


async def _outcome(
    kind: str, name: str, request: Awaitable[Any], *, detailed: bool = False
) -> DefinitionChange:
    """Wait for a request that returns an outcome, or with `detailed` [outcome, detail]; an error of the queue
    manager is an outcome, too. Raises ConnectionLost.
    """
    try:
        answer = await request
    except ConnectionLost:
        raise
    except MSMQError as error:
        return DefinitionChange(kind, name, "failed", error.detail or str(error))
    outcome, detail = answer if detailed else (answer, "")
    return DefinitionChange(kind, name, str(outcome), str(detail))
