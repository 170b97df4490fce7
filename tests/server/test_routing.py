"""Routing as the server composes it: configuration, directory, reports, addresses."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast._native.framing import parse
from msmq_fast.config.sections import Config, MqqbConfig, RouteDeclaration
from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.destination import destinations
from msmq_fast.mqqb.hops import Target
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.packet.message import Message
from msmq_fast.packet.replies import format_name
from msmq_fast.qm.queues.outgoing import OutgoingQueue
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.server.net.addresses import is_own_address
from msmq_fast.server.routing import Routing, static_routes
from tests.support.clocks import WALL
from tests.support.mqqb import wire
from tests.support.worlds.channels import context
from tests.support.worlds.queue_manager import World
from tests.support.worlds.tracing import REPORTS, traced

FAR = UUID("11111111-2222-3333-4444-555555555555")


class Server:
    """A queue manager, its session context, and its routing."""

    def __init__(self, config: Config, **settings: object) -> None:
        self.world = world = World(**settings)
        manager = world.manager
        resolve = destinations(manager.find_field, manager.guard.open_to_everybody)
        self.routing = Routing(
            config,
            manager,
            world.clock.monotonic,
            lambda: WALL,
            self.channel_of,
            lambda: self.session_context.forget_routes(),
        )
        self.session_context = SessionContext(manager.guid, manager.ledger, resolve)
        self.routing.start()

    def channel_of(self, queue: OutgoingQueue) -> OutgoingChannel:
        return OutgoingChannel(queue, context(route=self.routing.router.hops))

    def change(self, **values: object) -> None:
        """The own object in the directory."""
        own = {"Identifier": self.world.manager.guid, **values}
        done = self.world.manager.directory_changes.write(DirectoryObject(ObjectType.QUEUE_MANAGER, own))
        self.world.finish(done)


def test_static_routes_are_read_from_the_configuration() -> None:
    declared = [
        RouteDeclaration(str(FAR).upper(), ("Gate", "10.0.0.2", str(FAR))),
        RouteDeclaration("Far.Example.Net", ("fd00::1",)),
        RouteDeclaration("*", ("rest",)),
    ]
    assert static_routes(declared) == {
        FAR: (Target("gate"), Target("10.0.0.2"), Target("", FAR)),
        "far.example.net": (Target("fd00::1"),),
        "*": (Target("rest"),),
    }


def test_only_a_routing_server_passes_messages_on() -> None:
    assert not Server(Config()).routing.forward.active
    assert Server(Config(), routing_server=True).routing.forward.active


def test_the_directory_makes_a_routing_server_too_and_takes_it_back() -> None:
    server = Server(Config())
    server.change(RoutingServer=True)
    assert server.routing.forward.active
    server.change(RoutingServer=False)
    assert not server.routing.forward.active


def test_routes_are_forgotten_when_sites_and_links_change() -> None:
    server = Server(Config())
    before = server.session_context.routes
    core = server.world.create().core
    for kind, values in (
        (ObjectType.SITE, {"Name": "here"}),
        (ObjectType.QUEUE_MANAGER, {"ComputerName": "FAR", "Identifier": FAR}),
    ):
        before.add(7, b"name", core)
        assert len(before) == 1
        server.world.finish(server.world.manager.directory_changes.create(DirectoryObject(kind, values)))
        assert len(before) == 0


def test_the_directory_is_read_again_every_hour() -> None:
    server = Server(Config())
    assert server.routing.next_deadline() == server.world.clock.monotonic() + 3_600
    server.world.clock.advance(3_600)
    server.routing.expire(server.world.clock.monotonic())
    assert server.routing.next_deadline() == server.world.clock.monotonic() + 3_600


@pytest.mark.rule("QB-292")
def test_reports_go_to_the_queue_that_a_message_names_if_it_can_be_opened() -> None:
    server = Server(Config(mqqb=MqqbConfig(report_messages=True)))
    assert server.routing.reports is not None
    report = server.routing.reports.arrived
    message = parse(traced(wire.message(1)))
    report(message, None)  # type: ignore[arg-type]  # nobody knows the queue: the report is discarded
    assert list(server.world.manager.outgoing()) == []
    queue = server.world.finish(server.world.manager.create_queue(".\\reports", guid=REPORTS))
    report(message, None)  # type: ignore[arg-type]
    (body,) = server.world.bodies(queue.name)
    assert "<MESSAGE ID>00000001" in body.decode("utf-16-le")


def test_without_the_switch_nothing_is_reported() -> None:
    assert Server(Config()).routing.reports is None


# ---- addresses


def test_addresses_of_this_machine() -> None:
    own = is_own_address(("127.0.0.2",), "192.0.2.7")
    assert [own(address) for address in ("127.0.0.2", "192.0.2.7", "127.0.0.3", "::1")] == [
        True,
        True,
        False,
        False,
    ]
    own = is_own_address(("0.0.0.0", "::"), "")  # noqa: S104
    assert [own(address) for address in ("127.0.0.77", "::1", "192.0.2.7")] == [True, True, False]


@pytest.mark.parametrize(
    ("advertised", "name"),
    [
        ("", "DIRECT=OS:HOST\\private$\\answers"),
        ("gate.example.net", "DIRECT=OS:gate.example.net\\private$\\answers"),
        ("192.0.2.7", "DIRECT=TCP:192.0.2.7\\private$\\answers"),
        ("2001:db8::7", "DIRECT=TCP:2001:db8::7\\private$\\answers"),
    ],
)
def test_queues_of_this_computer_are_named_as_others_reach_them(advertised: str, name: str) -> None:
    settings = QueueManagerSettings("HOST", advertised=advertised)
    assert str(format_name("answers", settings.known_as)) == name
    assert Message(response_queue=format_name(".\\private$\\answers", settings.known_as)).to_packet()
