"""Members of a domain with two domain controllers, of which one or both are killed, hang, or have another
time: what does not need the directory goes on, what needs it says so, and all heals by itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.directory.members import domain, environment, known, public
from tests.support.processes.chain import HOSTS, free_port
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import CONFIGURATION, DOMAIN, SECOND, SITE, DomainController
from tests.support.processes.servers import Server, until

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.needs("faketime"), pytest.mark.long(seconds=40)]

FAULTS = ("killed", "hangs", "clock")
FAR = f"CN=far,CN=Sites,{CONFIGURATION}"


@pytest.fixture(scope="module")
def second(controller: DomainController) -> Iterator[DomainController]:
    other = controller.second()
    other.start()
    yield other
    other.kill()


@contextlib.contextmanager
def broken(fault: str, *controllers: DomainController) -> Iterator[None]:
    for one in controllers:
        if fault == "killed":
            one.kill()
        elif fault == "hangs":
            one.pause(True)
        else:
            one.clock(7_200)
    try:
        yield
    finally:
        for one in controllers:
            if fault == "killed":
                one.start()
            elif fault == "hangs":
                one.pause(False)
            else:
                one.clock(0)


@pytest.fixture(scope="module")
def members(
    controller: DomainController, second: DomainController, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Server]]:
    """ALPHA and the router GATE in one site, the router BETA in another one, each with another way to log
    on: StartTLS and a password, Kerberos with signing, LDAPS and a password.
    """
    place, port = tmp_path_factory.mktemp("members"), free_port()
    keytab, kerberos = controller.keytab("Administrator")
    controller.ldif(
        f"dn: {FAR}\nchangetype: add\nobjectClass: site\n\n"
        f"dn: CN=Servers,{FAR}\nchangetype: add\nobjectClass: serversContainer\n"
    )
    near_id, far_id = (controller.guid(path) for path in (SITE, FAR))
    urls = f"{controller.url}, ldap://{SECOND}"
    ways = {
        "ALPHA": {"url": urls, "site": str(near_id)},
        "BETA": {"url": urls, "site": str(far_id), "user": "", "password_file": "", "keytab": str(keytab)},
        "GATE": {"url": urls.replace("ldap:", "ldaps:"), "site": str(near_id)},
    }
    servers = []
    for (name, way), address in zip(ways.items(), HOSTS, strict=True):
        path = controller.computer(name)
        controller.ldif(f"dn: {path}\nchangetype: modify\nreplace: dNSHostName\ndNSHostName: {address}\n")
        given = environment(controller, name, **{key: value for key, value in way.items() if value})
        if name == "BETA":
            given = {
                key: value for key, value in given.items() if not key.endswith(("USER", "PASSWORD_FILE"))
            }
        given |= {"KRB5_CONFIG": str(kerberos), "MSMQ_FAST_MQQB__ROUTER": str(name != "ALPHA").lower()}
        server = Server(place / name, "--port", str(port), host=address, environment=given)
        code, _, complaint = domain(server, "join")
        assert code == 0, complaint
        servers.append(server.start())
    controller.ldif(
        f"dn: CN={near_id.hex}{far_id.hex},CN=MsmqServices,CN=Services,{CONFIGURATION}\nchangetype: add\n"
        f"objectClass: mSMQSiteLink\nmSMQCost: 1\nmSMQSite1: {SITE}\nmSMQSite2: {FAR}\n"
        f"mSMQSiteGates: CN=msmq,CN=GATE,CN=Computers,{DOMAIN}\n"
        f"mSMQSiteGates: CN=msmq,CN=BETA,CN=Computers,{DOMAIN}\n"
    )
    yield servers
    for server in servers:
        assert server.stop() == 0


def states(server: Server) -> list[str]:
    _, shown, complaint = domain(server, "status")
    found = shown.get("controllers", [complaint])
    assert isinstance(found, list)
    return found


def everything(controller: DomainController, members: list[Server], mark: str) -> None:
    """A public queue, a list with an alias, and a route over two sites, each made and used now."""
    alpha, beta, gate = members
    until(lambda: beta.run("queue", "create", rf"BETA\q-{mark}").returncode == 0, timeout=60)
    guid = str(beta.ok("queue", "show", rf"BETA\q-{mark}")[0]["guid"])
    until(lambda: known(alpha, guid), timeout=60)
    beta.ok("queue", "create", f"aliased-{mark}")
    controller.ldif(
        f"dn: CN=alias-{mark},CN=Users,{DOMAIN}\nchangetype: add\nobjectClass: msMQ-Custom-Recipient\n"
        f"msMQ-Recipient-FormatName: DIRECT=TCP:{beta.host}\\private$\\aliased-{mark}\n\n"
        f"dn: CN=list-{mark},CN=Users,{DOMAIN}\nchangetype: add\nobjectClass: group\n"
        f"member: CN=q-{mark},CN=msmq,CN=BETA,CN=Computers,{DOMAIN}\n"
        f"member: CN=alias-{mark},CN=Users,{DOMAIN}\n"
    )
    identifier = controller.guid(f"CN=list-{mark},CN=Users,{DOMAIN}")
    alpha.ok("send", f"PUBLIC={guid}", "--body", "x", "--recoverable")
    until(lambda: alpha.run("send", f"DL={identifier}", "--body", "x").returncode == 0, timeout=60)
    (way,) = alpha.ok("route", "explain", f"PUBLIC={guid}")
    assert way["hops"] == [gate.host]
    assert len(beta.ok("receive", rf"BETA\q-{mark}", "--count", "2", "--timeout", "20s")) == 2
    assert len(beta.ok("receive", f"aliased-{mark}", "--timeout", "30s")) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_another_controller_takes_over(
    controller: DomainController, second: DomainController, members: list[Server], fault: str
) -> None:
    everything(controller, members, f"{fault}-before")
    with broken(fault, controller):
        everything(controller, members, f"{fault}-one")
        if fault != "clock":
            assert ["domain controller answered" in one for one in states(members[0])] == [True, False]
    until(lambda: "in use" in states(members[0])[0], timeout=60)
    everything(controller, members, f"{fault}-after")


def refused(server: Server, name: str) -> bool:
    """Whether the server says that a public queue cannot be created without a domain controller."""
    return b"MQ_ERROR_NO_DS" in server.run("queue", "create", name).stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_messages_flow_without_any_controller(
    controller: DomainController, second: DomainController, members: list[Server], fault: str
) -> None:
    alpha, beta, _ = members
    everything(controller, members, f"{fault}-all")  # so that sites and links are known to all
    guid = public(beta, rf"BETA\none-{fault}")
    until(lambda: known(alpha, guid))
    with broken(fault, controller, second):
        alpha.ok("send", f"PUBLIC={guid}", "--body", "hello", "--recoverable")
        assert len(beta.ok("receive", rf"BETA\none-{fault}", "--timeout", "30s")) == 1
        began = time.monotonic()
        for name, server in (("ALPHA", alpha), ("BETA", beta)):
            if fault != "clock":  # an operation that hangs may outlast the patience of the first command
                until(partial(refused, server, rf"{name}\later-{fault}"), timeout=30)
                continue
            done = server.run("queue", "create", rf"{name}\later-{fault}")
            if done.returncode:  # Kerberos needs the time for a new connection; a password does not
                assert server is beta
                assert b"MQ_ERROR_NO_DS" in done.stderr, done
                assert b"Clock skew" in done.stderr, done
        assert time.monotonic() - began < 60
        if fault != "clock":
            assert "next attempt in" in states(alpha)[0]
            until(lambda: "the domain cannot be read" in alpha.log.read_text(), timeout=60)
            (shown,) = alpha.ok("status")
            assert any("the domain" in problem for problem in shown["problems"]), shown
    everything(controller, members, f"{fault}-healed")
    until(lambda: not alpha.ok("status")[0]["problems"], timeout=60)
