"""Receives messages over SRMP: assembles the pipeline with destinations, streams and receipts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msmq_fast._native.history import DuplicateHistory
from msmq_fast.config.sections import Config
from msmq_fast.logfields import Fields
from msmq_fast.qm.manager import QueueManager
from msmq_fast.security.allowance import Allowance
from msmq_fast.security.keyturns import KeyTurns
from msmq_fast.server.runtime.refusals import RefusalCounters
from msmq_fast.server.tracing.tracer import Tracer
from msmq_fast.signals import Signal
from msmq_fast.srmp.compound import Compound
from msmq_fast.srmp.destinations import Destinations
from msmq_fast.srmp.http.request import HttpRequest
from msmq_fast.srmp.reasons import Reason
from msmq_fast.srmp.receipts import Receipts, Sequences
from msmq_fast.srmp.receive import Parts, Pipeline, Verify
from msmq_fast.srmp.redirection import Redirector
from msmq_fast.srmp.returnpath import ReturnPaths
from msmq_fast.srmp.streams import IncomingStreams, StreamSettings

__all__ = ["SrmpReceiving"]


class SrmpReceiving:
    """The receiving half of SRMP. `pipeline` handles requests and multicast messages; add this object to the
    commit loop.

    `sequences` holds the outgoing streams. `history` detects duplicates and is shared with MS-MQQB. `verify`
    checks signatures; `turns` limits the processor time for that. `report` is called for traced messages that
    were stored.
    """

    def __init__(
        self,
        config: Config,
        manager: QueueManager,
        redirector: Redirector,
        history: DuplicateHistory,
        sequences: Sequences,
        verify: Verify | None,
        turns: KeyTurns,
        report: Callable[[bytes], None] | None,
        refused: RefusalCounters,
        queues_changed: Signal[[]],
        tracer: Tracer | None,
    ) -> None:
        settings = config.srmp
        self._manager = manager
        self._refused = refused
        self.destinations = Destinations(redirector, manager.guard, manager.registry.local)
        self.streams = IncomingStreams(
            manager.ledger,
            manager.monotonic,
            StreamSettings(settings.receipt_delay, settings.receipt_delay_max, settings.stream_lifetime),
            config.limits.streams,
            manager.faults,
        )
        self.receipts = Receipts(
            manager,
            self.destinations,
            sequences,
            self.streams,
            ReturnPaths(settings.receipts_to),
            self._not_taken,
        )
        manager.incoming.register(receipts=self.receipts, transfers=self.streams.transfers)
        self.streams.load(manager.store.tables.scan, manager.report_corrupt)
        queues_changed.connect(self.destinations.forget)
        parts = Parts(
            self.destinations,
            history,
            self.streams,
            self.receipts,
            sequences,
            verify,
            check_expiry=settings.check_expiry,
            hop_limit=config.mqqb.hop_limit,
            report=report,
            note=None if tracer is None else partial(_note, tracer),
            turns=turns,
            dead_letters=Allowance(settings.expired_dead_letters, 3600.0),
        )
        self.pipeline = Pipeline(manager, parts, self._not_taken)

    def _not_taken(self, reason: Reason, description: str, fields: Fields) -> None:
        self._refused.refuse("message", reason.text, description, about=lambda: fields)

    def next_deadline(self) -> float:
        """Return the time, in monotonic seconds, at which `expire` is due."""
        return self.streams.next_deadline()

    def expire(self, now: float) -> None:
        """Acknowledge the streams whose acknowledgment is due, such as those in which no message has arrived
        lately.
        """
        self.streams.expire(now, self.receipts.stream)


def _note(tracer: Tracer, compound: Compound, request: HttpRequest) -> None:
    """Note the trace context of a message that came over HTTP."""
    parent, state = (request.header(name) or b"" for name in (b"traceparent", b"tracestate"))
    if parent or compound.extension:
        source, ordinal = compound.envelope.identifier
        extension = compound.extension or b""
        tracer.note(source, ordinal, bytes(extension), parent.decode("latin-1"), state.decode("latin-1"))
