"""Routing of one server: static routes from the configuration, routes of the directory, forwarding of
messages.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from ipaddress import ip_address
from uuid import UUID

from msmq_fast.config.sections import Config, PeerDeclaration, RouteDeclaration
from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.enterprise import DirectoryEnterprise
from msmq_fast.mqqb.forwarding import Forwarder
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.routing import Router
from msmq_fast.mqqb.trace import Reports
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import MSMQError
from msmq_fast.qm.access import Access
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.outgoing import OutgoingQueue

__all__ = ["Routing", "named_routers", "pinned_addresses", "static_routes"]

_log = logging.getLogger("msmq_fast.mqqb")


class Routing:
    """The routes of one server. The object has a deadline (MS-MQBR 3.1.2.1), so add it to the commit loop.
    `wall_s` returns Unix seconds, for reports on traced messages.

    `channel_of` returns the channel of an outgoing queue. `on_changed` is called after a change of the
    routes, which may change the next hops of any queue. Sessions call `forward` to forward messages.
    """

    def __init__(
        self,
        config: Config,
        manager: QueueManager,
        monotonic: Callable[[], float],
        wall_s: Callable[[], int],
        channel_of: Callable[[OutgoingQueue], OutgoingChannel],
        on_changed: Callable[[], None],
    ) -> None:
        self.reports: Reports | None = None
        if config.mqqb.report_messages:
            self.reports = Reports(self._send_report, wall_s, _guid(config.mqqb.report_queue))
        self._manager = manager
        self._monotonic = monotonic
        self._channel_of = channel_of
        self._on_changed = on_changed
        self._routes = False
        self.forward = Forwarder(
            manager.guid,
            self._way_out,
            config.mqqb.hop_limit,
            None if self.reports is None else self.reports.arrived,
            routes=lambda: self._routes,
        )
        directory = manager.directory
        self._enterprise = DirectoryEnterprise(lambda: directory.events, directory.queue_manager)
        self.router = Router(
            manager.guid,
            self._enterprise,
            monotonic(),
            static=static_routes(config.routes),
        )

    def start(self) -> None:
        """Start routing; call this when the sessions exist. The directory also decides whether this server
        forwards messages.
        """
        self._manager.directory.rearranged.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Read the routes again, because the directory may have changed."""
        self.router.refresh(self._monotonic())
        self._routes = bool(self._manager.directory.queue_manager().get("RoutingServer"))
        self._on_changed()

    def set_static(self, declared: list[RouteDeclaration]) -> None:
        """Replace the static routes, and compute the next hops of all queues again."""
        self.router.set_static(static_routes(declared))
        self._on_changed()

    def next_hops(self, host: str, manager: UUID | None) -> list[tuple[str, UUID]]:
        """Return the next hops of messages for a queue manager; see `qm.operator.routes.Hops`."""
        return [(hop.host, hop.guid) for hop in self.router.hops(host, manager)]

    def is_router(self, manager: UUID) -> bool:
        """Whether the directory declares a queue manager a router."""
        machine = self._enterprise.machine(manager)
        return machine is not None and machine.router

    def _way_out(self, name: FormatName, manager: UUID) -> OutgoingChannel:
        return self._channel_of(self._manager.outgoing_for(name, manager))

    def _send_report(self, name: FormatName, report: Message) -> None:
        try:
            handle = self._manager.open(str(name), Access.SEND, internal=True)
            handle.send(report)
            handle.close()
        except MSMQError as error:
            _log.debug("a report for %s is discarded: %s", name, error)

    def next_deadline(self) -> float | None:
        """Return the time at which the routes must be read again."""
        return self.router.next_deadline()

    def expire(self, now: float) -> None:
        """Read the routes again if that is due."""
        if self.router.expire(now):
            self._on_changed()


def static_routes(declared: list[RouteDeclaration]) -> dict[UUID | str, tuple[Target, ...]]:
    """Return the next hops of [[routes]] by destination: a GUID, or a case-folded host name."""
    return {
        _guid(route.destination) or route.destination.casefold(): tuple(_hop(text) for text in route.via)
        for route in declared
    }


def named_routers(declared: tuple[str, ...]) -> frozenset[str]:
    """Return the addresses and GUIDs of the setting `mqqb.routers`, each in canonical form."""
    return frozenset(str(_guid(text) or _canonical(text)) for text in declared)


def pinned_addresses(declared: list[PeerDeclaration]) -> dict[UUID, frozenset[str]]:
    """Return the addresses of each GUID in [[peers]]."""
    return {UUID(peer.guid): frozenset(map(_canonical, peer.addresses)) for peer in declared}


def _canonical(address: str) -> str:
    return str(ip_address(address))


def _hop(text: str) -> Target:
    guid = _guid(text)
    return Target(text.casefold()) if guid is None else Target("", guid)


def _guid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
