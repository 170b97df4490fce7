"""The queue managers of a query, and checks that they are those of its checkpoint."""

from __future__ import annotations

from msmq_fast.client.bulk.client import Bounds, BulkClient
from msmq_fast.spark.losses import Losses, SourceError
from msmq_fast.spark.offsets import ManagerSpot, Offset, Spot
from msmq_fast.spark.selection import Selection


class QueueManagers:
    """Clients of all queue managers of a query. Each method raises what the clients raise."""

    def __init__(self, clients: list[BulkClient], selection: Selection) -> None:
        self.selection = selection
        self._clients = clients
        self._known: dict[str, BulkClient] = {}

    def look(self, *, tolerant: bool) -> list[tuple[BulkClient, Bounds]]:
        """Returns the bounds of all selected queues. `tolerant`: leaves out a queue that does not exist.

        Raises SourceError if two addresses lead to one queue manager, and QueueNotFound.
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
        """Returns the positions, by GUID, of the queues that have not changed. Reports a mismatch as a loss.
        Queues that the options no longer select are left out without a report.
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
        """Reports a store that has fewer numbers than were read: it is an earlier state, for example because
        a machine was reset to a snapshot. The store itself cannot detect that.
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
            raise SourceError(f"the batch is of the queue manager {name} ({guid}): 'url' does not lead to it")
        return self._known[guid]

    def close(self) -> None:
        """Close the connections; a later call opens others."""
        for client in self._clients:
            client.close()


def report_unknown_managers(start: Offset, looked: list[tuple[BulkClient, Bounds]], losses: Losses) -> None:
    """Report each queue manager in the checkpoint that the query no longer reaches as a loss."""
    for guid in sorted(set(start.managers) - {bounds.qm for _, bounds in looked}):
        losses.report(
            f"the checkpoint knows the queue manager {start.managers[guid].name} ({guid}), to which none of "
            "the addresses in 'url' leads",
            "the query continues without it",
        )
