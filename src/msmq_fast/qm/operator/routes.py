"""Explains what would happen to a message for a name: which queue it enters, where it goes next, by which
protocol, and what stops it. Nothing is sent, and no queue is created.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final
from uuid import UUID

from msmq_fast.packet.base import NULL_GUID
from msmq_fast.packet.names import FormatName, NameKind
from msmq_fast.protocol.errors import MSMQError, UnsupportedOperation
from msmq_fast.protocol.resources import RouteInfo
from msmq_fast.qm.access import Access
from msmq_fast.qm.outgoing.stalls import failure_of, stall_of
from msmq_fast.qm.queues.directoryclient import DirectoryClient
from msmq_fast.qm.queues.flow import FlowControl
from msmq_fast.qm.queues.opening import check_name
from msmq_fast.qm.queues.outgoing import OutgoingQueue, OutgoingState
from msmq_fast.qm.queues.queue import Queue, QueueKind
from msmq_fast.qm.queues.registry import QueueRegistry, Target
from msmq_fast.qm.queues.stall import FLOWING, Stall, StallCause
from msmq_fast.qm.services import Services

__all__ = ["Hops", "RouteExplainer"]

Hops = Callable[[str, UUID | None], list[tuple[str, UUID]]]
"""Returns the next hops, (host, GUID) each, of messages for a queue manager with this host ("": unknown) and
GUID, in the order in which they are tried. The host of a hop is "" if only its GUID is known.
"""

_SENT_TO: Final = (QueueKind.PUBLIC, QueueKind.PRIVATE, QueueKind.CONNECTOR)
_NO_ROUTE: Final = (
    "the destination has no route: add one to [[routes]], or the computer to the directory; a host that "
    "connects to this one is reached all the same"
)


class RouteExplainer:
    """Explains routes. A transport registers the function that knows its next hops."""

    def __init__(
        self, services: Services, registry: QueueRegistry, directory: DirectoryClient, flow: FlowControl
    ) -> None:
        self._services = services
        self._registry = registry
        self._directory = directory
        self._flow = flow
        self._hops: list[Hops] = []

    def register(self, hops: Hops) -> None:
        """Register the function that returns next hops; the last one counts."""
        self._hops.append(hops)

    def explain(self, name: str) -> RouteInfo:
        """Return what would happen to a message for the path or format name `name`.

        Raises what QueueRegistry.resolve raises for a name that is not valid, UNSUPPORTED_OPERATION for a
        distribution list.
        """
        if name[:3].upper() == "DL=":
            raise UnsupportedOperation("a distribution list has no route: explain the names in it one by one")
        target = self._registry.resolve(name)
        if target.local:
            return self._local(name, target)
        assert target.name is not None  # noqa: S101 - of every name of another computer
        return self._elsewhere(name, target.name)

    def _local(self, name: str, target: Target) -> RouteInfo:
        queue = self._registry.find(target)
        format_name = "" if target.name is None else str(target.name)
        if queue is None or queue.kind not in _SENT_TO:
            reason = (
                "this computer has no such queue: create it, or correct the name"
                if queue is None
                else f"{queue.name} cannot be sent to"
            )
            return RouteInfo(name, format_name, "local", cause=StallCause.NO_QUEUE.value, reason=reason)
        cause, reason = self._full(queue)
        return RouteInfo(
            name,
            format_name or str(queue.format_name(self._services.guid)),
            "local",
            queue=queue.name,
            exists=True,
            transactional=queue.transactional,
            messages=queue.messages,
            bytes=queue.bytes,
            quota_kb=queue.properties.quota_kb,
            cause=cause,
            reason=reason,
        )

    def _full(self, queue: Queue | None) -> tuple[str, str]:
        """Return the cause and the sentence for messages that are refused now; ("", "") if none are."""
        if self._flow.why is not None:
            return "flow control", f"this queue manager accepts no messages now: {self._flow.why}"
        ledger = self._services.ledger
        if ledger.bytes >= ledger.quota_bytes:
            return "quota", "the quota of this computer is used up: receive messages, or raise it"
        if queue is not None and queue.core.used_bytes >= queue.core.quota_bytes:
            return "quota", f"{queue.name} is full: receive its messages, or raise its quota"
        return "", ""

    def _elsewhere(self, name: str, destination: FormatName) -> RouteInfo:
        queue = self._registry.outgoing_of(destination)
        known = RouteInfo(name, str(destination), _protocol(destination), queue=str(destination))
        obstacle = self._obstacle(destination, queue)
        if obstacle is not None:
            return replace(known, queue="", cause=obstacle[0], reason=obstacle[1])
        hops = self._next_hops(destination, queue)
        if queue is not None:
            known = replace(
                known,
                exists=True,
                state=queue.outgoing_state.name.lower(),
                messages=queue.messages,
                bytes=queue.bytes,
                addresses=tuple(queue.next_hops),
                next_attempt=queue.next_attempt,
            )
        cause, reason = self._full(None)
        stall = self._stall(queue, hops)
        return replace(known, hops=hops, cause=cause or stall.cause.value, reason=reason or stall.reason)

    def _obstacle(self, destination: FormatName, queue: OutgoingQueue | None) -> tuple[str, str] | None:
        """Return why nothing can be sent to a name at all."""
        try:
            check_name(destination, Access.SEND, self._services.settings)
        except MSMQError as error:
            return StallCause.NO_TRANSPORT.value, error.detail
        if destination.read_only or destination.kind is NameKind.SUBQUEUE:
            return "not a destination", f"{destination} can be read, not sent to"
        if queue is None and destination.kind is NameKind.PUBLIC:
            try:
                self._directory.check_remote(destination)
            except MSMQError as error:
                return "unknown queue", error.detail
        return None

    def _next_hops(self, destination: FormatName, queue: OutgoingQueue | None) -> tuple[str, ...]:
        if destination.direct is not None:
            return (destination.direct.address,)
        if destination.kind is NameKind.MULTICAST:
            return (destination.text,)
        if not self._hops:
            return ()
        known = None if queue is None else queue.manager
        found = self._hops[-1](*self._directory.locate(destination, known))
        return tuple(host or f"{{{guid}}}" for host, guid in found if host or guid != NULL_GUID)

    def _stall(self, queue: OutgoingQueue | None, hops: tuple[str, ...]) -> Stall:
        if queue is not None:
            stall = stall_of(queue)
            if stall.cause:
                return stall
            if not queue.may_send:
                by = f" by {queue.held_by}" if queue.held_by else ""
                return Stall(StallCause.ON_HOLD, f"paused{by}: `msmq-fast outgoing resume` ends that")
            if queue.attempts and queue.failure is not None:
                return failure_of(queue.failure)
            if queue.outgoing_state is OutgoingState.CONNECTED:
                return FLOWING
        if not any(not hop.startswith("{") for hop in hops):
            return Stall(StallCause.ROUTE, _NO_ROUTE)
        return FLOWING


def _protocol(name: FormatName) -> str:
    if name.kind is NameKind.MULTICAST:
        return "pgm"
    if name.direct is not None and name.direct.protocol in ("HTTP", "HTTPS"):
        return name.direct.protocol.lower()
    return "mqqb"
