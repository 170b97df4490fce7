"""Follows the event feed and chooses the messages that have spans. Works in a timer of its own, in small
steps: the paths of messages know nothing of it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final
from uuid import UUID

from msmq_fast.admin.view import Labelled
from msmq_fast.bodies.tracecontext import (
    TraceContext,
    carried_context,
    chosen,
    derived_context,
    parse_traceparent,
)
from msmq_fast.config.sections import TracingConfig
from msmq_fast.qm.manager import QueueManager
from msmq_fast.release import release
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.server.tracing.exporter import Exporter
from msmq_fast.server.tracing.journeys import Journeys
from msmq_fast.server.tracing.spans import hop_span

__all__ = ["Tracer", "tracer_of"]

_log = logging.getLogger("msmq_fast.tracing")

_INTERVAL: Final = 0.5  # seconds between two looks at the feed
_SOON: Final = 0.05  # seconds until the next step while there is more
_STEP: Final = 1 << 20  # bytes of the feed in one step: 15,000 events, a millisecond
_BEHIND: Final = 1_000_000  # events; the tracer skips events when it lags further
_NOTED: Final = 10_000  # contexts of messages that came over HTTP
_STOP: Final = 2.0  # seconds for the last spans at a stop


class Tracer:
    """Makes spans of the messages that `config.ratio` chooses, and of those with a noted context."""

    def __init__(
        self,
        config: TracingConfig,
        manager: QueueManager,
        exporter: Exporter,
        monotonic: Callable[[], float],
    ) -> None:
        self._manager = manager
        self._exporter = exporter
        self._ratio = config.ratio
        self._noted: OrderedDict[bytes, TraceContext] = OrderedDict()
        self._numbers: set[int] = set()  # the last numbers of the identifiers in `_noted`
        self._names: dict[int, str] = {}
        self._guid = manager.guid.bytes_le
        self._journeys = Journeys(
            exporter, self._guid, self._name, self._noted.get, config.messages_per_second
        )
        self._next = manager.events.feed.bounds()[1]
        self._due = monotonic() + _INTERVAL

    # -- contexts that come and go with HTTP requests

    def note(self, source: UUID, ordinal: int, extension: bytes, traceparent: str, tracestate: str) -> None:
        """Note the context of a message that came over HTTP, if the context is sampled: that of its
        extension, else that of the headers of the request.
        """
        found = carried_context(extension) or parse_traceparent(traceparent, tracestate)
        if found is None or not found.sampled:
            return
        while len(self._noted) >= _NOTED:
            oldest, _ = self._noted.popitem(last=False)
            self._numbers.discard(int.from_bytes(oldest[16:], "little"))
        self._noted[source.bytes_le + ordinal.to_bytes(4, "little")] = found
        self._numbers.add(ordinal)

    def departing(self, source: bytes, ordinal: int, extension: bytes, url: str) -> TraceContext | None:
        """Return the context that an HTTP request for a message takes with it, that of the span
        `msmq.transfer`; None if the message has no spans. `url` is the destination of the outgoing queue.
        """
        message_id = source + ordinal.to_bytes(4, "little")
        came = self._noted.get(message_id) or carried_context(extension)
        if came is None or not came.sampled:
            if not chosen([ordinal], self._ratio):
                return None
            came = derived_context(message_id)
        span = hop_span(message_id, self._guid, url, "transfer")
        return TraceContext(came.trace_id, span, sampled=True, state=came.state)

    # -- the feed

    def next_deadline(self) -> float:
        """Return the time at which the next step is due."""
        return self._due

    def expire(self, now: float) -> None:
        """Look at the next events."""
        more = self._step()
        self._exporter.flush()
        self._due = now + (_SOON if more else _INTERVAL)

    def _step(self) -> bool:
        """Make spans of the next events. Returns whether there are more."""
        feed = self._manager.events.feed
        end = feed.bounds()[1]
        if not self._ratio and not self._numbers:
            self._next = end  # no message can be chosen: the events need not be read
        if end - self._next > _BEHIND:
            self._exporter.drop(end - self._next)
            self._next = end
        events, self._next = feed.select(self._next, _STEP, self._choose)
        self._journeys.follow(events)
        return self._next < end

    def _choose(self, ordinals: list[int]) -> list[int]:
        found = chosen(ordinals, self._ratio) if self._ratio else []
        if self._numbers:
            noted = (index for index, ordinal in enumerate(ordinals) if ordinal in self._numbers)
            found = sorted({*found, *noted})
        return found

    def _name(self, ordinal: int) -> str:
        if ordinal and ordinal not in self._names:
            gone = {number: name for number, (name, _, _) in self._manager.events.names.gone().items()}
            self._names = gone | {queue.ordinal: queue.name for queue in self._manager.queues()}
            self._names.setdefault(ordinal, "")
        return self._names.get(ordinal, "")

    # -- metrics and end

    def labelled(self) -> Iterator[Labelled]:
        """Yield the metrics of tracing."""
        return self._exporter.labelled()

    async def stop(self) -> None:
        """Send the spans of everything that is durable by now."""
        self._step()
        await self._exporter.close(_STOP)


def tracer_of(config: TracingConfig, manager: QueueManager, monotonic: Callable[[], float]) -> Tracer | None:
    """Return the tracer of a server; None without a collector. Raises DeclarationError if the token cannot be
    read.
    """
    if not config.endpoint:
        return None
    if not manager.events.feed.enabled:
        _log.warning("tracing.endpoint is set, but store.feed is false: there are no spans without the feed")
        return None
    token = ""
    if config.token_file is not None:
        try:
            token = config.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise DeclarationError(f"tracing.token_file: {config.token_file}: {error}") from None
    resource = {
        "service.name": "msmq-fast",
        "service.version": release(),
        "service.instance.id": str(manager.guid),
        "host.name": manager.name,
    }
    return Tracer(config, manager, Exporter(config.endpoint, token, resource, monotonic), monotonic)
