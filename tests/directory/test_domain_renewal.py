"""The credentials of members: tickets end, and passwords change, while the servers run."""

from __future__ import annotations

import base64
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.directory.members import domain, environment
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import PASSWORD, DomainController
from tests.support.processes.servers import Server, until

__all__ = ["controller"]

pytestmark = [
    *NEEDS,
    pytest.mark.needs("klist"),
    pytest.mark.timeout(400),
    pytest.mark.long(seconds=180),
]

LIFETIME = 130  # seconds; Samba grants nothing with a ticket that has two minutes or less left


def member(controller: DomainController, name: str, place: Path) -> Server:
    """A server that logs on with a keytab, and has a ticket that ends soon."""
    controller.computer(name)
    keytab = controller.keys(f"{name}$")
    _, config = controller.keytab("Administrator")
    short = place / f"{name}.conf"
    short.write_text(
        config.read_text().replace("default_realm", f"ticket_lifetime = {LIFETIME}s\ndefault_realm")
    )
    given = environment(controller, name, user="", password_file="", keytab=str(keytab))
    given |= {"KRB5_CONFIG": str(short), "KRB5CCNAME": f"FILE:{place}/{name}.tickets"}
    server = Server(place / name, environment=given)
    code, _, complaint = domain(server, "join")
    assert code == 0, complaint
    return server.start()


def change_password(controller: DomainController, name: str) -> None:
    secret = base64.b64encode(f'"New-{PASSWORD}"'.encode("utf-16-le")).decode()
    path = f"CN={name},CN=Computers,DC=corp,DC=example"
    controller.ldif(f"dn: {path}\nchangetype: modify\nreplace: unicodePwd\nunicodePwd:: {secret}\n")


def creates(server: Server, queue: str) -> bool:
    return server.run("queue", "create", queue).returncode == 0


def tickets_are_valid(server: Server) -> bool:
    return subprocess.run(["klist", "-s", "-c", server.environment["KRB5CCNAME"]]).returncode == 0


def first_start(server: Server) -> str:
    """When the ticket for tickets began to be valid."""
    done = subprocess.run(
        ["klist", "-c", server.environment["KRB5CCNAME"]], check=True, capture_output=True, text=True
    )
    return next(line for line in done.stdout.splitlines() if "krbtgt/" in line)


def test_tickets_end_and_passwords_change(controller: DomainController, tmp_path: Path) -> None:
    """ALPHA's keytab gets the new key at once, BETA's when its tickets have ended. Neither is restarted."""
    alpha, beta = (member(controller, name, tmp_path) for name in ("ALPHA", "BETA"))
    try:
        before = first_start(alpha)
        for server, name in ((alpha, "ALPHA"), (beta, "BETA")):
            until(partial(creates, server, rf"{name}\first"), timeout=30)
            change_password(controller, name)
        controller.keys("ALPHA$")  # adds the new key
        assert creates(beta, r"BETA\with-old-ticket")
        until(lambda: not tickets_are_valid(beta), timeout=2 * LIFETIME)
        until(lambda: "has the password of the account changed?" in str(beta.ok("status")), timeout=60)
        assert b"MQ_ERROR_NO_DS" in beta.run("queue", "create", r"BETA\none").stderr
        beta.ok("queue", "create", "private")
        beta.ok("send", "private", "--body", "x")

        until(lambda: creates(alpha, r"ALPHA\second"), timeout=30)
        assert tickets_are_valid(alpha)
        assert first_start(alpha) != before
        assert alpha.ok("status")[0]["problems"] == []

        controller.keys("BETA$")
        until(lambda: creates(beta, r"BETA\second"), timeout=60)
        until(lambda: not beta.ok("status")[0]["problems"], timeout=30)
        found = controller.search("(&(objectClass=mSMQQueue)(cn=second))", "cn")
        assert len(found) == 2
    finally:
        codes = [server.stop() for server in (alpha, beta)]
    assert codes == [0, 0]
