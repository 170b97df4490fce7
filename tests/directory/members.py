"""Servers that are members of a domain of Active Directory: their settings, and what one asks of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.support.processes.chain import HOSTS, free_port
from tests.support.processes.samba import CONFIGURATION, DOMAIN, SITE, DomainController
from tests.support.processes.servers import Server, command

_FAR = f"CN=far,CN=Sites,{CONFIGURATION}"


def environment(controller: DomainController, name: str, **more: str) -> dict[str, str]:
    section = {
        "mode": "domain",
        "url": controller.url,
        "user": controller.administrator,
        "password_file": str(controller.password_file),
        "ca_file": str(controller.ca_file),
        "changes_interval": "1",
    } | more
    found = {f"MSMQ_FAST_DIRECTORY__{key.upper()}": value for key, value in section.items()}
    return {"MSMQ_FAST_SERVER__NAME": name, **found}


def domain(server: Server, verb: str, *flags: str) -> tuple[int, dict[str, object], str]:
    """Run a verb of `msmq-fast domain`: exit code, what it shows, and its complaint."""
    done = command(
        "domain", verb, "--data", str(server.data), "--json", *flags, environment=server.environment
    )
    shown = json.loads(done.stdout) if done.stdout else {}
    return done.returncode, shown, done.stderr.decode()


def public(server: Server, name: str, *flags: str) -> str:
    """Create a public queue; returns its GUID."""
    server.ok("queue", "create", name, *flags)
    return str(server.ok("queue", "show", name)[0]["guid"])


def known(server: Server, guid: str) -> bool:
    return any(one["Identifier"] == guid for one in server.ok("directory", "list", "Queue"))


def two_sites(
    controller: DomainController, urls: str, place: Path, **settings: dict[str, str]
) -> Iterator[list[Server]]:
    """ALPHA and the router GATE in one site, the router BETA in another one, each with another way to log on:
    StartTLS and a password, Kerberos with signing, LDAPS and a password. `settings` are more variables by the
    name of the server.
    """
    port = free_port()
    keytab, kerberos = controller.keytab("Administrator")
    controller.ldif(
        f"dn: {_FAR}\nchangetype: add\nobjectClass: site\n\n"
        f"dn: CN=Servers,{_FAR}\nchangetype: add\nobjectClass: serversContainer\n"
    )
    near_id, far_id = (controller.guid(path) for path in (SITE, _FAR))
    ways = {
        "ALPHA": {"url": urls, "site": str(near_id)},
        "GATE": {"url": urls.replace("ldap:", "ldaps:"), "site": str(near_id)},
        "BETA": {"url": urls, "site": str(far_id), "user": "", "password_file": "", "keytab": str(keytab)},
    }
    servers = []
    for (name, way), address in zip(ways.items(), HOSTS, strict=True):
        path = controller.computer(name)
        controller.ldif(f"dn: {path}\nchangetype: modify\nreplace: dNSHostName\ndNSHostName: {address}\n")
        given = environment(controller, name, **way)
        given = {key: value for key, value in given.items() if value}
        given |= {"KRB5_CONFIG": str(kerberos), "MSMQ_FAST_MQQB__ROUTER": str(name != "ALPHA").lower()}
        given |= settings.get(name, {})
        server = Server(place / name, "--port", str(port), host=address, environment=given)
        code, _, complaint = domain(server, "join")
        assert code == 0, complaint
        servers.append(server.start())
    controller.ldif(
        f"dn: CN={near_id.hex}{far_id.hex},CN=MsmqServices,CN=Services,{CONFIGURATION}\nchangetype: add\n"
        f"objectClass: mSMQSiteLink\nmSMQCost: 1\nmSMQSite1: {SITE}\nmSMQSite2: {_FAR}\n"
        f"mSMQSiteGates: CN=msmq,CN=GATE,CN=Computers,{DOMAIN}\n"
        f"mSMQSiteGates: CN=msmq,CN=BETA,CN=Computers,{DOMAIN}\n"
    )
    yield servers
    for server in servers:
        assert server.stop() == 0


def listed(controller: DomainController, name: str, queue: str, alias: str) -> str:
    """Make a distribution list of a public queue of BETA and an alias, a format name; returns its name."""
    controller.ldif(
        f"dn: CN=alias-{name},CN=Users,{DOMAIN}\nchangetype: add\nobjectClass: msMQ-Custom-Recipient\n"
        f"msMQ-Recipient-FormatName: {alias}\n\n"
        f"dn: CN={name},CN=Users,{DOMAIN}\nchangetype: add\nobjectClass: group\n"
        f"member: CN={queue},CN=msmq,CN=BETA,CN=Computers,{DOMAIN}\n"
        f"member: CN=alias-{name},CN=Users,{DOMAIN}\n"
    )
    return f"DL={controller.guid(f'CN={name},CN=Users,{DOMAIN}')}"
