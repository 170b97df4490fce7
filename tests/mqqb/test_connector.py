"""Messages for foreign systems: they wait at the connector, for a program that brings them on."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.directory.objects import DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.packet.message import Message
from msmq_fast.protocol.errors import AccessDenied, MSMQError, QueueNotFound, UnsupportedFormatNameOperation
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.access import Access
from msmq_fast.security.masks import ConnectedNetworkRight
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.security.sid import sid
from msmq_fast.security.token import Token
from tests.mqqb.stations import Network, Station

SITE, ABROAD = UUID(int=0xA), UUID(int=0xF)
FOREIGN = UUID(int=0x77)
NAME = f"CONNECTOR={ABROAD}"
TARGET = f"PRIVATE={FOREIGN}\\00000005"


def enter(station: Station, kind: ObjectType, **values: object) -> None:
    station.finish(station.manager.directory_changes.create(DirectoryObject(kind, values)))


def machine(station: Station, name: str, guid: UUID, *sites: UUID, **values: object) -> None:
    values |= {"ComputerName": name, "Identifier": guid, "SiteIdentifierList": sites}
    enter(station, ObjectType.QUEUE_MANAGER, **values)


def caller(text: str) -> Token:
    return Token(sid(text), frozenset((sid(text),)))


class Border:
    """A queue manager of the site, its connector, and a foreign system behind that."""

    def __init__(self, security: bytes | None = None) -> None:
        self.network = Network()
        self.connector = self.network.add(
            "CONNECTOR", "10.0.0.2", routes=True, routing_server=True, site=SITE
        )
        self.sender = self.network.add("SENDER", "10.0.0.1", site=SITE)
        ends = ((self.connector, self.sender), (self.sender, self.connector))
        for station, other in ends:
            enter(station, ObjectType.SITE, Name="home", Identifier=SITE)
            abroad = {"Name": "abroad", "Identifier": ABROAD, "ForeignSite": True}
            enter(station, ObjectType.SITE, **abroad | ({"Security": security} if security else {}))
            machine(station, "MAINFRAME", FOREIGN, ABROAD, ForeignSystem=True)
            sites = (SITE, ABROAD) if other is self.connector else (SITE,)
            router = other is self.connector
            name = other.settings.computer_name
            machine(station, name, other.manager.guid, *sites, RoutingServer=router)
        own = {"Identifier": self.connector.manager.guid, "SiteIdentifierList": (SITE, ABROAD)}
        changed = DirectoryObject(ObjectType.QUEUE_MANAGER, own)
        self.connector.finish(self.connector.manager.directory_changes.write(changed))
        self.network.names = {"connector.example.net": ["10.0.0.2"], "connector": ["10.0.0.2"]}
        for station, _ in ends:
            station.router.refresh(station.now)

    def waiting(self, name: str = NAME) -> list[Message]:
        return self.connector.read(self.connector.manager.find(name))


@pytest.mark.rule("X-74", "QB-364")
def test_a_message_for_a_foreign_queue_waits_in_the_connector_queue() -> None:
    border = Border()
    border.sender.post(TARGET, b"x", b"y", delivery=1)
    border.network.settle()
    waiting = border.waiting()
    assert [message.body for message in waiting] == [b"x", b"y"]
    assert str(waiting[0].destination) == TARGET
    assert waiting[0].destination_manager == FOREIGN
    assert not any(queue.messages for queue in border.connector.manager.outgoing())


@pytest.mark.rule("X-74")
def test_a_queue_manager_at_the_foreign_site_that_is_not_foreign_gets_its_messages() -> None:
    border = Border()
    peer = border.network.add("PEER", "10.0.0.9")
    queue = peer.finish(peer.manager.create_queue(r".\private$\q"))
    machine(border.connector, "PEER", peer.manager.guid, ABROAD)
    border.network.names["peer"] = ["10.0.0.9"]
    border.connector.router.refresh(border.connector.now)
    border.connector.post(str(queue.format_name(peer.manager.guid)), b"x", delivery=1)
    border.network.settle()
    assert [message.body for message in peer.read(queue)] == [b"x"]


@pytest.mark.rule("X-74")
def test_programs_at_the_connector_send_there_too() -> None:
    border = Border()
    border.connector.post(TARGET, b"x", delivery=1)
    border.network.settle()
    assert [message.body for message in border.waiting()] == [b"x"]


@pytest.mark.rule("X-75")
def test_what_a_connector_set_is_left_alone() -> None:
    border = Border()
    kind = UUID(int=0xC0)
    border.sender.post(TARGET, b"x", delivery=1, connector_type=kind, privacy_level=3, hash_algorithm=0x8003)
    border.network.settle()
    (message,) = border.waiting()
    assert (message.connector_type, message.privacy_level, message.hash_algorithm) == (kind, 3, 0x8003)


def test_reading_there_acknowledges_nothing() -> None:
    border = Border()
    answers = border.sender.make("answers")
    border.sender.post(
        TARGET,
        b"x",
        delivery=1,
        acknowledge=Acknowledge.POSITIVE_ARRIVAL | Acknowledge.POSITIVE_RECEIVE,
        admin_queue=answers.format_name(border.sender.manager.guid),
        journal=Journal.DEADLETTER,
    )
    border.network.settle()
    assert len(border.waiting()) == 1
    border.network.pass_time(1.0)
    assert answers.messages == 0


@pytest.mark.rule("X-75")
def test_connector_queues_survive_a_restart() -> None:
    border = Border()
    border.sender.post(TARGET, b"x", delivery=1)
    border.network.settle()
    border.connector.crash()
    assert border.connector.manager.find(NAME).messages == 1
    assert border.connector.manager.find(NAME).core.role == 2


@pytest.mark.rule("X-75")
@pytest.mark.parametrize("name", [f"CONNECTOR={SITE}", f"CONNECTOR={UUID(int=1)}"])
def test_only_foreign_sites_have_connector_queues(name: str) -> None:
    border = Border()
    with pytest.raises(QueueNotFound):
        border.connector.manager.open(name, Access.RECEIVE)
    with pytest.raises(QueueNotFound):
        border.sender.manager.open(NAME, Access.RECEIVE)


@pytest.mark.rule("X-75")
def test_programs_read_connector_queues_and_do_not_send_to_them() -> None:
    border = Border()
    border.connector.manager.open(NAME, Access.RECEIVE).close()
    transactional = border.connector.manager.open(f"{NAME};XACTONLY", Access.RECEIVE)
    assert transactional.queue.transactional
    with pytest.raises(UnsupportedFormatNameOperation):
        border.connector.manager.open(NAME, Access.SEND)


@pytest.mark.rule("X-75")
def test_opening_a_connector_queue_takes_a_right_on_the_site() -> None:
    allowed, denied = caller("S-1-5-21-1-2-3-1001"), caller("S-1-5-21-1-2-3-1002")
    mask = int(ConnectedNetworkRight.CN_OPEN_CONNECTOR)
    border = Border(parse_sddl(f"O:SYD:(A;;{mask:#x};;;{allowed.user})").encoded)
    border.connector.manager.open(NAME, Access.RECEIVE, token=allowed).close()
    with pytest.raises(AccessDenied):
        border.connector.manager.open(NAME, Access.RECEIVE, token=denied)


def test_without_a_descriptor_administrators_only_open_it() -> None:
    border = Border()
    with pytest.raises(AccessDenied):
        border.connector.manager.open(NAME, Access.RECEIVE, token=caller("S-1-5-21-1-2-3-1002"))


def test_connector_names_without_a_directory_lead_nowhere() -> None:
    station = Network().add("ALONE", "10.0.0.9", directory="workgroup")
    with pytest.raises(MSMQError):
        station.manager.open(NAME, Access.RECEIVE)
