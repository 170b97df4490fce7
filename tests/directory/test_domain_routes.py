"""Routes over two sites of a domain: two servers and a router, which is in both sites, are members. An
administrator made the sites and the link, with the router as its gate.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from tests.directory.members import domain, environment, known, public
from tests.support.processes.chain import free_port
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import CONFIGURATION, DomainController
from tests.support.processes.servers import Server, until

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.long(seconds=45)]

MEMBERS = {"NEAR": ("127.0.0.5", "North"), "GATE": ("127.0.0.6", "North"), "FAR": ("127.0.0.7", "South")}


def site_path(name: str) -> str:
    return f"CN={name},CN=Sites,{CONFIGURATION}"


def make_sites(controller: DomainController) -> None:
    for name in ("North", "South"):
        controller.ldif(
            f"dn: {site_path(name)}\nchangetype: add\nobjectClass: site\n\n"
            f"dn: CN=Servers,{site_path(name)}\nchangetype: add\nobjectClass: serversContainer\n"
        )


def make_link(controller: DomainController, gate: str) -> None:
    north, south = (controller.guid(site_path(name)) for name in ("North", "South"))
    controller.ldif(
        f"dn: CN={north.hex}{south.hex},CN=MsmqServices,CN=Services,{CONFIGURATION}\nchangetype: add\n"
        f"objectClass: mSMQSiteLink\nmSMQCost: 1\nmSMQSite1: {site_path('North')}\n"
        f"mSMQSite2: {site_path('South')}\nmSMQSiteGates: {gate}\n"
    )


def both_sites(controller: DomainController, machine: str) -> None:
    """Make a queue manager of North a member of South, too."""
    south = base64.b64encode(controller.guid(site_path("South")).bytes_le).decode()
    controller.ldif(f"dn: {machine}\nchangetype: modify\nadd: mSMQSites\nmSMQSites:: {south}\n")


@pytest.fixture
def members(controller: DomainController, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    place, port = tmp_path_factory.mktemp("routes"), free_port()
    make_sites(controller)
    servers, gate = [], ""
    for name, (address, site) in MEMBERS.items():
        path = controller.computer(name)
        controller.ldif(f"dn: {path}\nchangetype: modify\nreplace: dNSHostName\ndNSHostName: {address}\n")
        given = environment(controller, name, site=str(controller.guid(site_path(site))))
        given |= {
            "MSMQ_FAST_MQQB__ROUTER": str(name == "GATE").lower(),
            "MSMQ_FAST_MQQB__RETRY_INTERVAL": "0.3",
        }
        server = Server(place / name, "--port", str(port), host=address, environment=given)
        code, joined, complaint = domain(server, "join")
        assert code == 0, complaint
        if name == "GATE":
            gate = str(joined["object"])
            both_sites(controller, gate)
        servers.append(server)
    make_link(controller, gate)
    for server in servers:
        server.start()
    yield servers
    for server in servers:
        assert server.stop() == 0


def hops(server: Server, name: str) -> list[str]:
    """The next hops that the server would take."""
    (found,) = server.ok("route", "explain", name)
    return [str(one) for one in found["hops"]]


def test_a_message_goes_through_the_gate_of_the_link(
    controller: DomainController, members: list[Server]
) -> None:
    near, gate, far = members
    guid = public(far, r"FAR\orders")
    until(lambda: known(near, guid), timeout=30)
    assert hops(near, f"PUBLIC={guid}") == [gate.host]
    near.ok("send", f"PUBLIC={guid}", "--body", "through", "--recoverable")
    (message,) = far.ok("receive", r"FAR\orders", "--timeout", "20s")
    assert message["source_machine"] == near.ready["guid"]
    (passed,) = gate.ok("outgoing", "list")
    assert passed["manager"] == far.ready["guid"]

    controller.kill()  # the routes are known
    try:
        near.ok("send", f"PUBLIC={guid}", "--body", "through", "--recoverable")
        assert len(far.ok("receive", r"FAR\orders", "--timeout", "20s")) == 1
    finally:
        controller.start()
