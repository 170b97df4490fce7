"""The queue managers of a query, and checks that compare them with the queue managers in its checkpoint."""

from __future__ import annotations

from msmq_fast.client.bulk.client import Bounds, BulkClient
from msmq_fast.spark.losses import Losses, SourceError
from msmq_fast.spark.offsets import ManagerSpot, Offset, Spot
from msmq_fast.spark.selection import Selection


class QueueManagers:
    """The clients of all queue managers of a query. Its methods pass on the exceptions of the clients."""

    def __init__(self, clients: list[BulkClient], selection: Selection) -> None:
        self.selection = selection
        self._clients = clients
        self._known: dict[str, BulkClient] = {}

    def look(self, *, tolerant: bool) -> list[tuple[BulkClient, Bounds]]:
        """Returns, for each queue manager, its client and the bounds of the selected queues. `tolerant`:
        queues that do not exist are left out.

        Raises SourceError if two addresses lead to one queue manager, and QueueNotFound if a queue does not
        exist and `tolerant` is False.
        """
        seen = []
        for client in self._clients:
            bounds = self.selection.look(client, tolerant=tolerant)
            if self._known.setdefault(bounds.qm, client) is not client:
                raise SourceError(f"option 'url' names the queue manager {bounds.name} twice")
            seen.append((client, bounds))
        return seen

    def reconciled(
        self, known: ManagerSpot | None, client: BulkClient, bounds: Bounds, losses: Losses
    ) -> dict[str, Spot]:
        """Returns, by GUID, the query's positions in those queues that still exist. `known` holds the
        positions of all queues in the checkpoint.

        Reports a loss if the store was restored, or if a queue was deleted. Queues that the options no longer
        select are left out without a report.
        """
        if known is None:
            return {}
        name = bounds.name
        if known.incarnation != bounds.incarnation:
            losses.report(
                f"the store of {name} was restored or copied: it is at incarnation {bounds.incarnation}, the "
                f"checkpoint is of incarnation {known.incarnation}. A new checkpointLocation with "
                "startingOffsets begins again cleanly",
                "it is read again from the first message",
            )
            return {}
        present = {queue.guid for queue in bounds.queues}
        paths = {queue.name.lower() for queue in bounds.queues}
        for guid, spot in known.queues.items():
            if guid in present or not self.selection.covers(spot.path, name, client.endpoint.url):
                continue
            if spot.path.lower() in paths:
                losses.report(
                    f"queue {spot.path} of {name} was deleted and created again; unread messages are lost",
                    "the new queue is read from its first message",
                )
            else:
                losses.report(
                    f"queue {spot.path} of {name} was deleted with its unread messages",
                    "the query continues without it",
                )
        return {guid: spot for guid, spot in known.queues.items() if guid in present}

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


def report_unknown_managers(start: Offset, looked: list[tuple[BulkClient, Bounds]], losses: Losses) -> None:
    """Report as a loss each queue manager that the checkpoint contains but the query no longer reaches."""
    for guid in sorted(set(start.managers) - {bounds.qm for _, bounds in looked}):
        losses.report(
            f"the checkpoint knows the queue manager {start.managers[guid].name} ({guid}), to which none of "
            "the addresses in 'url' leads",
            "the query continues without it",
        )
