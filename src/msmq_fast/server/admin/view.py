"""The data of the admin port and of `msmq-fast stats`, collected from all parts of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, cast

from msmq_fast.admin.view import Fullest, Histogram, Labelled, Resources
from msmq_fast.protocol.resources import OutgoingQueueInfo, QueueInfo
from msmq_fast.qm.operator.showing import infos
from msmq_fast.qm.queues.queue import Queue, QueueKind

if TYPE_CHECKING:
    from msmq_fast.app.service import Counters
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.server.runtime.refusals import RefusalCounters
    from msmq_fast.store.store import Store
    from msmq_fast.store.watermark import SpaceFigures

__all__ = ["Figures", "ServerView"]


@dataclass(frozen=True, slots=True)
class Figures:
    """Functions that return current numbers from several parts of the server."""

    started: int
    """Seconds since 1970."""
    last_snapshot: Callable[[], int | None]
    """Returns seconds since 1970; None if there was no snapshot since the start."""
    sessions: Callable[[], int]
    app_connections: Callable[[], int]
    messages_in: Callable[[], int]
    messages_out: Callable[[], int]
    space: Callable[[], SpaceFigures]
    not_ready: Callable[[], str | None]
    denied: Callable[[], int]
    streams: Callable[[], int]
    order_acks: Callable[[], tuple[int, int]]
    """Returns (number of OrderAcks received, number sent)."""
    final_acks: Callable[[], tuple[int, int]]
    labelled: Callable[[], Iterable[Labelled]]
    loop_lag: Callable[[], tuple[tuple[int, ...], float]]
    """See `StallWatch.lag`."""
    resends: Callable[[], tuple[int, int]]
    """Returns (resend time-outs of outgoing sequences, rejected acknowledgments)."""
    rpc_connections: Callable[[], int]


class ServerView:
    """The data of one server for the admin port and `msmq-fast stats`; implements `admin.view.View`."""

    def __init__(
        self,
        manager: QueueManager,
        store: Store,
        counters: Counters,
        refused: RefusalCounters,
        figures: Figures,
    ) -> None:
        self._manager = manager
        self._store = store
        self._counters = counters
        self._refused = refused
        self._figures = figures

    def ready(self) -> str | None:
        """Return None if messages are accepted, else the reason why not."""
        return self._figures.not_ready()

    def shortage(self) -> str:
        """Return the name of a limit that was reached in the last minutes although the server still accepts
        messages; "" if there is none.
        """
        return self._manager.answer_queues.shortage

    def throttled(self) -> str:
        """Return why memory or disk do not suffice for more messages; "" if they do."""
        return self._manager.flow.why or ""

    def resources(self) -> Resources:
        """Return what the server uses of memory and disk."""
        ledger, space = self._manager.ledger, self._figures.space()
        return Resources(
            self._figures.started, ledger.express_bytes, ledger.express_high, space.used, space.available
        )

    def last_snapshot(self) -> int:
        """Return the time of the last snapshot in seconds since 1970; 0 if there is none."""
        return self._figures.last_snapshot() or 0

    def queues(self) -> Iterable[QueueInfo]:
        """Yield user and system queues and subqueues, without their security descriptors."""
        hidden = (QueueKind.OUTGOING, QueueKind.JOURNAL)
        queues = (queue for queue in self._manager.queues() if queue.kind not in hidden)
        return cast(Iterable[QueueInfo], self._infos(queues))

    def outgoing(self) -> Iterable[OutgoingQueueInfo]:
        """Yield the outgoing queues."""
        queues = (queue for queue in self._manager.queues() if queue.kind is QueueKind.OUTGOING)
        return cast(Iterable[OutgoingQueueInfo], self._infos(queues))

    def fullest_queues(self, limit: int) -> Fullest[QueueInfo]:
        """Return the fullest of `queues`, and sums over the others."""
        hidden = (QueueKind.OUTGOING, QueueKind.JOURNAL)
        queues = [queue for queue in self._manager.queues() if queue.kind not in hidden]
        shown, others, oldest = _divided(queues, limit)
        journals = [queue.journal for queue in others if queue.journal is not None]
        sums = {
            "messages": sum(queue.messages for queue in others),
            "bytes": sum(queue.bytes for queue in others),
            "journal_messages": sum(journal.messages for journal in journals),
            "journal_bytes": sum(journal.bytes for journal in journals),
        }
        infos = cast(Iterable[QueueInfo], self._infos(shown))
        return Fullest(list(infos), len(others), sums, oldest)

    def fullest_outgoing(self, limit: int) -> Fullest[OutgoingQueueInfo]:
        """Return the fullest of `outgoing`, and sums over the others."""
        shown, others, oldest = _divided(list(self._manager.outgoing()), limit)
        sequences = [queue.core.sequence for queue in others if queue.core.sequence is not None]
        sums = {
            "messages": sum(queue.messages for queue in others),
            "bytes": sum(queue.bytes for queue in others),
            "no_ack_count": sum(sequence.unordered for sequence in sequences),
            "resend_count": sum(sequence.resend_index for sequence in sequences),
        }
        infos = cast(Iterable[OutgoingQueueInfo], self._infos(shown))
        return Fullest(list(infos), len(others), sums, oldest)

    def _infos(self, queues: Iterable[Queue]) -> Iterable[QueueInfo | OutgoingQueueInfo]:
        manager = self._manager
        return infos(queues, manager.guid, manager.incoming.transfers(), lambda _: False)

    def gauges(self) -> Mapping[str, tuple[str, float]]:
        """Return the values that may rise and fall, by name, each with its help text."""
        ledger = self._manager.ledger
        writer = self._store.writer
        found: dict[str, tuple[str, float]] = {
            "sessions": ("Open MS-MQQB connections", self._figures.sessions()),
            "app_connections": ("Open connections of programs", self._figures.app_connections()),
            "rpc_connections": ("Open connections of remote readers", self._figures.rpc_connections()),
            "streams": ("Transactional streams from other queue managers", self._figures.streams()),
            "answer_queues": (
                "Outgoing queues opened only for answers to other queue managers",
                len(self._manager.answer_queues),
            ),
            "bytes": ("Bytes of all messages", ledger.bytes),
            "cached_bytes": ("Bodies of recoverable messages held in memory", ledger.cached_bytes),
            "express_bytes": ("Bytes of express messages (held in memory only)", ledger.express_bytes),
            "throttled": ("1 while the server accepts no messages", int(self._manager.flow.why is not None)),
            "store_pending_bytes": ("Bytes that are not written to disk yet", writer.pending_bytes),
        }
        space = self._figures.space()
        found["store_file_bytes"] = ("Size of the data file", space.file)
        found["store_used_bytes"] = ("Pages in use inside the data file", space.used)
        found["store_reusable_bytes"] = ("Free pages inside the data file", space.reusable)
        found["store_available_bytes"] = ("Bytes that can still be stored", space.available)
        return found

    def totals(self) -> Mapping[str, tuple[str, float]]:
        """Return the values that only grow, by name, each with its help text."""
        writer = self._store.writer.statistics()
        order_in, order_out = self._figures.order_acks()
        final_in, final_out = self._figures.final_acks()
        resends, strays = self._figures.resends()
        return {
            "order_acks_in": ("OrderAcks from other queue managers", order_in),
            "order_acks_out": ("OrderAcks to other queue managers", order_out),
            "final_acks_in": ("FinalAcks from other queue managers", final_in),
            "final_acks_out": ("FinalAcks to other queue managers", final_out),
            "resends": ("Resends of transactional messages after a missing OrderAck", resends),
            "stray_acks": (
                "OrderAcks and FinalAcks that match no sent message or come from the wrong address",
                strays,
            ),
            "repeated_messages": (
                "Messages received again over MS-MQQB and dropped as duplicates",
                self._refused.repeated,
            ),
            "messages_in": ("Messages accepted over MS-MQQB", self._figures.messages_in()),
            "messages_out": ("Messages delivered from outgoing queues", self._figures.messages_out()),
            "set_aside": (
                "Damaged messages and records of the store",
                self._manager.damage.total(),
            ),
            "faults": (
                "Unexpected exceptions: defects of the server, see its log",
                self._manager.faults.total,
            ),
            "acknowledgments": (
                "Administration acknowledgments sent",
                self._manager.ack_policy.acknowledged.total(),
            ),
            "discarded_acknowledgments": (
                "Administration acknowledgments that could not be delivered",
                self._manager.ack_policy.discarded,
            ),
            "answer_queues_given_up": (
                "Outgoing queues for answers that were deleted to make room for others",
                self._manager.answer_queues.given_up,
            ),
            "discarded_copies": (
                "Journal copies and dead letters discarded for lack of space",
                self._manager.ledger.discarded,
            ),
            "flow_control": ("Times that the server stopped accepting messages", self._manager.flow.began),
            "failed_removals": (
                "Removals that failed for lack of space and are retried",
                self._manager.ledger.removals.failed,
            ),
            "access_denied": ("Operations denied for lack of rights", self._figures.denied()),
            "app_messages_in": ("Messages sent by programs", self._counters.sent),
            "app_messages_out": ("Messages delivered to programs", self._counters.delivered),
            "app_errors": ("Requests of programs answered with an error", self._counters.errors),
            "store_commits": ("Commits", writer["batches"]),
            "store_failed_commits": ("Commits that failed", writer["failed_batches"]),
            "store_operations": ("Puts and deletes", writer["operations"]),
            "store_written_bytes": ("Bytes written by the store", writer["bytes"]),
        }

    def labelled(self) -> Iterable[Labelled]:
        """Yield the metrics that have labels."""
        return self._figures.labelled()

    def histograms(self) -> Iterable[Histogram]:
        """Yield the histograms; the bounds of their bins are powers of two."""
        counts, total_us = self._manager.series.latency()
        yield _powers(
            "latency_seconds",
            "Time from the arrival of a message in a queue to its receive",
            counts,
            1e-6,
            total_us / 1e6,
        )
        lags, lag_total = self._figures.loop_lag()
        yield _powers(
            "loop_lag_seconds",
            "Delay of the event loop behind a deadline, measured once a second",
            lags,
            1e-3,
            lag_total,
        )
        writer = self._store.writer.statistics()
        yield _powers(
            "commit_seconds",
            "Time from the start of a commit to the end of its sync",
            writer["commit_us"],
            1e-6,
            writer["commit_us_total"] / 1e6,
        )
        yield _powers(
            "batch_units", "Units of work in one commit", writer["units_per_batch"], 1, writer["units"]
        )

    def refusals(self) -> Iterable[tuple[str, str, int]]:
        """Yield (what was refused, reason, number of refusals)."""
        return self._refused.items()

    def stats(self) -> Mapping[str, Any]:
        """Return all values in one flat mapping, for `msmq-fast stats`."""
        found: dict[str, Any] = {
            "name": self._manager.name,
            "guid": str(self._manager.guid),
            "incarnation": self._store.incarnation,
            "not_ready": self._figures.not_ready() or "",
            "srmp_http_support": self._manager.settings.http,
            "srmp_pgm_support": self._manager.settings.multicast,
        }
        found |= {name: value for name, (_, value) in self.gauges().items()}
        found |= {name: value for name, (_, value) in self.totals().items()}
        found["shortage"] = self.shortage()
        found["directory"] = self._manager.directory.events.provider.problem
        found["refusals"] = {f"{what}: {reason}": count for what, reason, count in self.refusals()}
        return found


def _divided(queues: list[Queue], limit: int) -> tuple[list[Queue], list[Queue], int]:
    """Return (the `limit` queues with the most messages, the others, the arrival of the oldest message of the
    others in Unix seconds or 0). Describes no queue: that takes ten times as long for each.
    """
    shown = nsmallest(limit, queues, key=lambda queue: (-queue.messages, queue.name))
    chosen = set(map(id, shown))
    others = [queue for queue in queues if id(queue) not in chosen]
    arrivals = [queue.core.positions.oldest() for queue in others if queue.messages]
    return shown, others, min(filter(None, arrivals), default=0) // 1_000_000


def _powers(name: str, about: str, counts: Sequence[int], unit: float, total: float) -> Histogram:
    """Return a histogram: bin i counts the values below 2**i units that no lower bin counts; the last bin
    counts all larger values.
    """
    return Histogram(name, about, tuple(unit * 2**i for i in range(len(counts) - 1)), tuple(counts), total)
