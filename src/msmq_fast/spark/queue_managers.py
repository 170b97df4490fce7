"""The queue managers of a query, and checks that compare them with the queue managers in its checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import Final

from msmq_fast.client.bulk.client import Bounds, BulkClient
from msmq_fast.spark.losses import Losses, SourceError
from msmq_fast.spark.offsets import EARLIEST, ManagerSpot, Offset, Others
from msmq_fast.spark.selection import Selection, selected_before

NOTHING: Final = 1 << 62
"""As `since`: greater than all arrival numbers, so that only queues with late messages are listed."""


@dataclass(frozen=True)
class View:
    """One queue manager as a query sees it now.

    `bounds` list the queues that may have something new. `known` is the position of the query; None if it has
    read nothing of this store yet, also after the store was restored. `unread` are the GUIDs of queues that
    `known` is not about, because the options selected other queues when it was written.
    """

    client: BulkClient
    bounds: Bounds
    known: ManagerSpot | None
    unread: frozenset[str] = frozenset()

    def knows(self, guid: str, ordinal: int) -> bool:
        """Whether the query has a position in a queue, which is otherwise read from its first message."""
        if self.known is None or guid in self.unread:
            return False
        others = self.known.others
        return guid in self.known.queues or (others is not None and ordinal <= others.seen)

    def end_of(self, guid: str, ordinal: int) -> int:
        """Returns the position of the query in a queue."""
        if self.known is None or guid in self.unread:
            return EARLIEST
        return self.known.end_of(guid, ordinal)


class QueueManagers:
    """The clients of all queue managers of a query. Its methods pass on the exceptions of the clients."""

    def __init__(self, clients: list[BulkClient], selection: Selection) -> None:
        self.selection = selection
        self._clients = clients
        self._known: dict[str, BulkClient] = {}

    def look(self, *, tolerant: bool, since: int | None = None) -> list[tuple[BulkClient, Bounds]]:
        """Returns, for each queue manager, its client and the bounds of the selected queues; with `since`
        only of those that may have messages from this arrival number on. `tolerant`: queues that do not exist
        are left out.

        Raises SourceError if two addresses lead to one queue manager, and QueueNotFound if a queue does not
        exist and `tolerant` is False.
        """
        seen = []
        for client in self._clients:
            bounds = self.selection.look(client, tolerant=tolerant, since=since)
            self._meet(client, bounds)
            seen.append((client, bounds))
        return seen

    def views(self, start: Offset, since: Callable[[ManagerSpot], int], losses: Losses) -> list[View]:
        """Returns how each queue manager stands, compared with the offset `start`. Of each, only queues that
        may have messages from the arrival number `since(position)` on are listed.

        Reports a loss if a store was restored, or if queues were deleted; queues that the options no longer
        select are left out without a report. Raises as `look`.
        """
        views = []
        for client in self._clients:
            known = start.managers.get(self._guid(client))
            if known is None or known.others is None:
                bounds = self.selection.look(
                    client, tolerant=bool(start.managers), since=0 if known is None else None
                )
            else:
                bounds = self.selection.look(
                    client,
                    tolerant=True,
                    since=since(known),
                    seen=known.others.seen,
                    removals=known.others.removals,
                )
            self._meet(client, bounds)
            views.append(self._compared(known, client, bounds, losses))
        report_unknown_managers(start, {view.bounds.qm for view in views}, losses)
        return views

    def others(self, client: BulkClient, bounds: Bounds, at: int) -> Others:
        """Returns what a new offset says about all queues of a queue manager: `at` is the position in those
        that have none of their own.
        """
        selection = self.selection.described(client.endpoint.url)
        return Others(at, bounds.ordinal, bounds.selected, bounds.removals, selection)

    def _compared(
        self, known: ManagerSpot | None, client: BulkClient, bounds: Bounds, losses: Losses
    ) -> View:
        if known is None:
            return View(client, bounds, None)
        if known.incarnation != bounds.incarnation:
            losses.report(
                f"the store of {bounds.name} was restored or copied: it is at incarnation "
                f"{bounds.incarnation}, the checkpoint is of incarnation {known.incarnation}. A new "
                "checkpointLocation with startingOffsets begins again cleanly",
                "it is read again from the first message",
            )
            return self._again(client)
        if known.others is None:
            return View(client, bounds, self._without_deleted(known, client, bounds, losses))
        selection = self.selection.described(client.endpoint.url)
        if known.others.selection != selection:
            before = selected_before(client, known.others.selection)
            bounds = self.selection.look(client, tolerant=True)
            new = {queue.guid for queue in bounds.queues} - before
            return View(client, bounds, known, frozenset(new))
        return View(client, bounds, self._without_removed(known, client, bounds, losses))

    def _again(self, client: BulkClient) -> View:
        """Returns a queue manager of which everything is read again."""
        return View(client, self.selection.look(client, tolerant=True, since=0), None)

    def read_again(self, view: View, read: str, last: int, losses: Losses) -> View:
        """Reports that a store is in an earlier state (`went_back`), and returns the view in which everything
        is read again.
        """
        self.went_back(view.bounds.name, read, last, losses)
        return self._again(view.client)

    def _without_removed(
        self, known: ManagerSpot, client: BulkClient, bounds: Bounds, losses: Losses
    ) -> ManagerSpot:
        """Reports queues that were deleted since the offset `known` was made, and returns it without them.
        After a restart of the server their names are not known any more, only their number.
        """
        assert known.others is not None  # noqa: S101 - of offsets of this version
        missing = known.others.count - bounds.known
        if missing <= 0:
            return known
        gone = [
            queue
            for queue in (bounds.removed if bounds.start == known.started else ())
            if queue.ordinal <= known.others.seen
            and self.selection.covers(queue.name, bounds.name, client.endpoint.url)
        ]
        for queue in gone:
            _report_deleted(queue.name, bounds.name, losses, again=queue.again)
        if missing > len(gone):
            losses.report(
                f"{missing - len(gone)} queues of {bounds.name} that the query reads were deleted with their "
                "unread messages, or must not be read any more (the server, which has been restarted, does "
                "not know their names)",
                "the query continues without them",
            )
        removed = {queue.guid for queue in gone}
        return replace(
            known, queues={guid: spot for guid, spot in known.queues.items() if guid not in removed}
        )

    def _without_deleted(
        self, known: ManagerSpot, client: BulkClient, bounds: Bounds, losses: Losses
    ) -> ManagerSpot:
        """The same for an offset that names every queue; `bounds` list all queues."""
        present = {queue.guid for queue in bounds.queues}
        paths = {queue.name.lower() for queue in bounds.queues}
        for guid, spot in known.queues.items():
            if guid in present or not self.selection.covers(spot.path, bounds.name, client.endpoint.url):
                continue
            _report_deleted(spot.path, bounds.name, losses, again=spot.path.lower() in paths)
        return replace(known, queues={guid: spot for guid, spot in known.queues.items() if guid in present})

    def _meet(self, client: BulkClient, bounds: Bounds) -> None:
        if self._known.setdefault(bounds.qm, client) is not client:
            raise SourceError(f"option 'url' names the queue manager {bounds.name} twice")

    def _guid(self, client: BulkClient) -> str:
        """Returns the GUID of the queue manager of a client."""
        for guid, known in self._known.items():
            if known is client:
                return guid
        bounds = client.bounds()
        self._meet(client, bounds)
        return bounds.qm

    @staticmethod
    def went_back(name: str, read: str, last: int, losses: Losses) -> None:
        """Reports as a loss that the query has read higher numbers than the store of the queue manager `name`
        now has. The store is then in an earlier state, for example because a machine was reset to a snapshot,
        which the server cannot detect.

        `read` is text for the last event or message that the query has read, such as "event 7". `last` is the
        last number of the store.
        """
        losses.report(
            f"{name} was read up to {read}, and has come to {last} only: its store went back to an earlier "
            "state, and new numbers may be those of other messages. A new checkpointLocation with "
            "startingOffsets begins again cleanly",
            "it is read again from the first remaining message",
        )

    def client_of(self, guid: str, name: str) -> BulkClient:
        """Return the client of a queue manager. Raises SourceError if none of the addresses leads to it."""
        if guid not in self._known:
            for client in self._clients:
                self._known.setdefault(client.bounds().qm, client)
        if guid not in self._known:
            raise SourceError(
                f"the batch belongs to the queue manager {name} ({guid}), but no address in option 'url' "
                "leads to it"
            )
        return self._known[guid]

    def close(self) -> None:
        """Close the connections; a later call of another method opens new ones."""
        for client in self._clients:
            client.close()


def _report_deleted(path: str, manager: str, losses: Losses, *, again: bool) -> None:
    if again:
        losses.report(
            f"queue {path} of {manager} was deleted and created again; unread messages are lost",
            "the new queue is read from its first message",
        )
    else:
        losses.report(
            f"queue {path} of {manager} was deleted with its unread messages",
            "the query continues without it",
        )


def report_unknown_managers(start: Offset, met: Set[str], losses: Losses) -> None:
    """Report as a loss each queue manager that the checkpoint contains but the query no longer reaches; `met`
    are the GUIDs of those that it reaches.
    """
    for guid in sorted(start.managers.keys() - met):
        losses.report(
            f"the checkpoint knows the queue manager {start.managers[guid].name} ({guid}), to which none of "
            "the addresses in 'url' leads",
            "the query continues without it",
        )
