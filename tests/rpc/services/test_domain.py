"""What other programs are told of the directory of a queue manager in a domain."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.directory.ldap.controllers import Controllers
from msmq_fast.directory.objecttypes import ObjectType
from tests.support.rpc.dependents import DependentWorld
from tests.support.rpc.managing import LPWSTR, MACHINE, Tool
from tests.support.rpc.peers import RemoteWorld
from tests.support.worlds.activedirectory import DOMAIN, ActiveDirectory
from tests.support.worlds.domains import DomainWorld
from tests.support.worlds.queue_manager import World

URLS = ("ldap://dc1.corp.example", "ldaps://dc2.corp.example:636", "ldap://10.0.0.9", "ldap://DC2")


class Several(ActiveDirectory):
    """A domain with several controllers, of which one answered last."""

    known = Controllers(URLS)

    @property
    def controllers(self) -> Controllers:
        return self.known


@pytest.fixture
def domain() -> DomainWorld:
    found = DomainWorld()
    found.link = found.memory = Several()
    found.restart()
    found.home("HOST")
    own = World().manager.guid  # of each queue manager of these tests, which has joined the domain
    found.memory.damage(f"CN=msmq,CN=HOST,CN=Computers,{DOMAIN}", "objectGUID", own.bytes_le)
    found.restart()
    found.memory.controllers.answered(URLS[1])
    return found


@pytest.mark.rule("MR-014", "MR-032")
def test_the_directory_server_is_the_domain_controller_in_use(domain: DomainWorld) -> None:
    remote = RemoteWorld(World(provider=domain.directory))
    assert Tool(remote).values(MACHINE, 3) == [(LPWSTR, "DC2")]
    domain.memory.controllers.answered(URLS[2])
    assert Tool(remote).values(MACHINE, 3) == [(LPWSTR, "10.0.0.9")]


@pytest.mark.rule("MP-145")
def test_the_registry_has_the_domain_controllers_and_the_forest(domain: DomainWorld) -> None:
    remote = DependentWorld(World(provider=domain.directory))

    def ask(kind: int) -> tuple[int, str | None]:
        found = remote.dependent().call("query_qm_registry_internal", dwQueryType=kind)
        return found.result, found.lplpMQISServer

    assert ask(0) == (0, "DC2,DC1,10.0.0.9")
    forest = domain.directory.read(ObjectType.ENTERPRISE).result().identifier
    code, text = ask(2)
    assert (code, UUID(text)) == (0, forest)
