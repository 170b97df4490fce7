"""The site of this computer and the nearest controller, with the LDAP ping of Samba's domain controllers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import dns.resolver
import pytest

from tests.directory.members import domain, environment
from tests.support.processes.domain import ADDRESS, NEEDS, controller
from tests.support.processes.forking import PROGRAM
from tests.support.processes.samba import CONFIGURATION, PASSWORD, SITE, DomainController
from tests.support.processes.servers import Server, command, inherited
from tests.support.worlds.dnsserver import answering, records

if TYPE_CHECKING:
    from msmq_fast.directory.ldap.link import LdapLink

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.long(seconds=8)]

NORTH = f"CN=North,CN=Sites,{CONFIGURATION}"
SUBNET = f"CN=127.0.0.0/24,CN=Subnets,CN=Sites,{CONFIGURATION}"  # of 127.0.0.1, from where this computer asks
OTHER = ADDRESS.removesuffix("10") + "11"
NAMESERVER = ADDRESS.removesuffix("10") + "12"


@pytest.fixture(scope="module")
def sites(controller: DomainController) -> DomainController:
    controller.ldif(
        f"dn: {NORTH}\nchangetype: add\nobjectClass: site\n\n"
        f"dn: CN=Servers,{NORTH}\nchangetype: add\nobjectClass: serversContainer\n\n"
        f"dn: {SUBNET}\nchangetype: add\nobjectClass: subnet\nsiteObject: {NORTH}\n"
    )
    return controller


@pytest.fixture(scope="module")
def other(sites: DomainController) -> Iterator[DomainController]:
    """Another controller of the domain, without CLDAP, as behind a filter that does not let it pass."""
    other = DomainController(sites.folder, OTHER, "run2", "ldap,kdc,rpc")
    other.start()
    yield other
    other.kill()


def member(controller: DomainController, name: str, data: Path, **more: str) -> Server:
    """A computer account, and a server that is not yet a member."""
    controller.computer(name)
    return Server(data / name, environment=environment(controller, name, **more))


def status(server: Server) -> dict[str, Any]:
    code, shown, complaint = domain(server, "status")
    assert code in (0, 3), complaint
    return shown


def registered(controller: DomainController, name: str) -> list[UUID]:
    (entry,) = controller.search(f"(&(objectClass=computer)(cn={name}))", "cn")
    base = f"CN=msmq,{entry['dn'][0].decode()}"
    (machine,) = controller.search("(objectClass=mSMQConfiguration)", "mSMQSites", base=base)
    return [UUID(bytes_le=value) for value in machine["mSMQSites"]]


def test_what_a_controller_answers(sites: DomainController) -> None:
    from msmq_fast.directory.ldap.ping import DsFlag
    from msmq_fast.server.net.pinging import ping

    answers, reasons = ping([sites.url], "corp.example")
    assert not reasons
    found = answers[sites.url]
    assert (found.forest, found.domain, found.host) == ("corp.example", "corp.example", "dc1.corp.example")
    assert (found.netbios_domain, found.netbios_computer) == ("CORP", "DC1")
    assert (found.controller_site, found.client_site) == ("Default-First-Site-Name", "North")
    assert found.usable
    assert {DsFlag.GC, DsFlag.WRITABLE} <= set(found.flags)
    assert DsFlag.CLOSEST not in found.flags
    (entry,) = sites.search("(objectClass=domain)", "objectGUID")
    assert UUID(bytes_le=entry["objectGUID"][0]) == found.domain_guid
    for asked, reason in {"other.example": "does not serve this domain", "": ""}.items():
        answers, reasons = ping([sites.url], asked)
        assert (sites.url in answers) == (not reason)
        assert reason in reasons.get(sites.url, "")


def test_a_member_is_entered_in_the_site_of_its_subnet(sites: DomainController, tmp_path: Path) -> None:
    server = member(sites, "ALPHA", tmp_path)
    shown = status(server)
    assert shown["site"] == "North"
    assert shown["site_reason"] == f"the domain controller {sites.url} sees this computer in it (LDAP ping)"
    assert (shown["controllers_from"], shown["registered_sites"]) == ("directory.url", [])
    assert domain(server, "join")[0] == 0
    assert registered(sites, "ALPHA") == [sites.guid(NORTH)]
    assert status(server)["registered_sites"] == ["North"]


def test_without_ping_the_subnets_of_the_domain_decide(
    sites: DomainController, other: DomainController, tmp_path: Path
) -> None:
    server = member(sites, "BETA", tmp_path, url=other.url)
    shown = status(server)
    assert (shown["site"], shown["site_reason"]) == (
        "North",
        "its subnet 127.0.0.0/24 contains the address 127.0.0.1 of this computer; "
        f"the LDAP ping of {other.url} failed: Connection refused",
    )
    done = command("domain", "explain", "--data", str(server.data), "--json", environment=server.environment)
    assert {json.loads(line)["site"] for line in done.stdout.splitlines()} == {"North"}


def test_a_computer_without_subnet(sites: DomainController, tmp_path: Path) -> None:
    server = member(sites, "GAMMA", tmp_path)
    sites.ldif(f"dn: {SUBNET}\nchangetype: delete\n")
    try:
        shown = status(server)
    finally:
        sites.ldif(f"dn: {SUBNET}\nchangetype: add\nobjectClass: subnet\nsiteObject: {NORTH}\n")
    assert (shown["site"], shown["site_reason"]) == (
        "Default-First-Site-Name",
        f"the site that a forest begins with; {sites.url} sees this computer in no site; "
        "no subnet of a site contains the address 127.0.0.1",
    )


def test_the_site_of_the_configuration(sites: DomainController, tmp_path: Path) -> None:
    first = sites.guid(SITE)
    server = member(sites, "DELTA", tmp_path, site=str(first))
    shown = status(server)
    assert (shown["site"], "directory.site" in shown["site_reason"]) == ("Default-First-Site-Name", True)
    assert domain(server, "join")[0] == 0
    assert registered(sites, "DELTA") == [first]
    wrong = Server(tmp_path / "wrong", environment=environment(sites, "DELTA", site=str(UUID(int=5))))
    code, _, complaint = domain(wrong, "status")
    assert (code, "which directory.site names" in complaint, complaint.count("\n")) == (1, True, 1)


def located(controller: DomainController, resolver: dns.resolver.Resolver) -> tuple[LdapLink, Any]:
    from msmq_fast.directory.ldap.connecting import LdapSettings
    from msmq_fast.directory.ldap.controllers import Controllers
    from msmq_fast.directory.ldap.link import LdapLink
    from msmq_fast.directory.ldap.locating import Locator
    from msmq_fast.server.net.pinging import ping

    locator = Locator("corp.example", ping, resolver=resolver)
    settings = LdapSettings((), controller.administrator, PASSWORD, controller.ca_file)
    return LdapLink(settings, Controllers((), find=locator.find, source=locator.source)), locator


def lines(*addresses: str) -> list[str]:
    return [f"{priority} 0 389 {address}." for priority, address in enumerate(addresses)]


@pytest.mark.rule("DM-006")
def test_the_controller_that_answers_the_ping_is_used(
    sites: DomainController, other: DomainController
) -> None:
    """Against the priorities of DNS, which begin with one that does not answer pings; it is the second one
    that LDAP is spoken with when the first one is gone.
    """
    first, second = other.url, sites.url
    with answering(records(*lines(OTHER, ADDRESS))) as resolver:
        link, locator = located(sites, resolver)
        assert link.root().first("dnsHostName") == b"dc1.corp.example"
        assert link.controllers.urls == (second, first)
        assert (link.controllers.current, locator.site) == (second, "North")
        sites.kill()
        try:
            link.root()
            assert link.controllers.current == first
            again, silent = located(sites, resolver)
            again.root()
            assert again.controllers.urls == (first, second)
            assert (again.controllers.current, silent.site) == (first, "")
        finally:
            sites.start()


@pytest.mark.rule("DM-006")
def test_the_controllers_of_the_site_come_first(sites: DomainController) -> None:
    third = DomainController(sites.folder, OTHER.removesuffix("11") + "13", "run3")
    third.start()
    near = lines(third.address)
    try:
        with answering(records(*lines(ADDRESS, third.address), North=near)) as resolver:
            link, locator = located(sites, resolver)
            link.root()
            assert (link.controllers.current, locator.site) == (third.url, "North")
            third.kill()
            link.root()
            assert link.controllers.current == sites.url
    finally:
        third.kill()


@pytest.mark.needs(rights=["mount namespace"])
def test_a_server_finds_its_domain_by_dns(sites: DomainController, tmp_path: Path) -> None:
    """The nameserver of the computer is that of the domain; only the name of the domain is configured."""
    server = member(sites, "EPSILON", tmp_path, url="", domain="corp.example")
    resolving = tmp_path / "resolv.conf"
    resolving.write_text(f"nameserver {NAMESERVER}\n")
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
              'mount --bind "$0" /etc/resolv.conf && exec "$@"', str(resolving), *PROGRAM]  # fmt: skip

    def run(verb: str) -> dict[str, Any]:
        done = subprocess.run(
            [*inside, "domain", verb, "--data", str(server.data), "--json"],
            env={**inherited(), **server.environment},
            capture_output=True,
            timeout=60,
        )
        assert done.returncode == 0, done
        shown: dict[str, Any] = json.loads(done.stdout)
        return shown

    with answering(records(*lines(ADDRESS), North=lines(ADDRESS)), NAMESERVER, 53):
        run("join")
        shown = run("status")
        assert shown["controllers_from"] == (
            "DNS: _ldap._tcp.North._sites.dc._msdcs.corp.example, then _ldap._tcp.dc._msdcs.corp.example"
        )
        assert shown["controllers"] == [f"{sites.url}: in use"]
        assert (shown["site"], shown["registered_sites"]) == ("North", ["North"])
        server.program = tuple(inside)
        server.start()
        try:
            server.ok("queue", "create", r"EPSILON\found")
            assert sites.search("(&(objectClass=mSMQQueue)(cn=found))", "cn")
        finally:
            assert server.stop() == 0
