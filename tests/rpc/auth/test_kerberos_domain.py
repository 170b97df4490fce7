"""Callers with tickets of a domain: Samba's key distribution centre issues them, GSS-API accepts them with
the keytab of the service alone.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from msmq_fast.rpc.auth.context import AuthLevel, AuthType, SecurityContext
from msmq_fast.rpc.auth.initiators import Credentials, initiate
from msmq_fast.rpc.auth.mechanism import AuthCounters
from msmq_fast.security.sid import Sid
from msmq_fast.security.users import Users
from tests.support.domainaccounts import WrittenAccounts
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import DOMAIN, DomainController
from tests.support.rpc.parties import NOW, acceptors, counting, parts, pdu, shake_hands

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.needs("klist", modules=("gssapi",)), pytest.mark.long(seconds=25)]

SERVICE = "host/service.corp.example"
GROUPS = 1_000


@pytest.fixture(scope="module")
def keytab(controller: DomainController) -> Path:
    controller.service(controller.computer("SERVICE"), SERVICE)
    return controller.keys(SERVICE)


def log_on(
    controller: DomainController,
    keytab: Path,
    user: str,
    auth_type: AuthType,
    accounts: WrittenAccounts,
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[SecurityContext, SecurityContext]:
    """Log on with the password of a domain user; returns both sides."""
    monkeypatch.setenv("KRB5_CONFIG", str(controller.keytab("Administrator")[1]))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{controller.folder}/nobody")
    server = acceptors(Users.new(counting()), keytab=keytab, domain=accounts).accept(
        auth_type, AuthLevel.PRIVACY, ""
    )
    who = Credentials(user=user, domain="CORP.EXAMPLE", password="Passw0rd!", kerberos=True)  # noqa: S106
    client = initiate(auth_type, AuthLevel.PRIVACY, SERVICE, who, AuthCounters(), lambda: NOW, counting(3))
    shake_hands(client, server)
    return client, server


def domain_of(controller: DomainController) -> Sid:
    (entry,) = controller.search("(objectClass=domainDNS)", "objectSid")
    return Sid.from_bytes(entry["objectSid"][0])


@pytest.mark.parametrize("auth_type", [AuthType.KERBEROS, AuthType.SPNEGO])
def test_a_user_in_1000_groups(
    controller: DomainController, keytab: Path, auth_type: AuthType, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = f"member{auth_type}"
    path = controller.user(user)
    controller.ldif(
        "\n".join(
            f"dn: CN={user}-{number},CN=Users,{DOMAIN}\nchangetype: add\nobjectClass: group\n"
            f"sAMAccountName: {user}-{number}\nmember: {path}\n"
            for number in range(GROUPS)
        )
    )
    accounts = WrittenAccounts()
    domain = domain_of(controller)
    accounts.domains = frozenset([domain])
    client, server = log_on(controller, keytab, user, auth_type, accounts, monkeypatch)
    groups = controller.search(f"(&(objectClass=group)(cn={user}-*))", "objectSid")
    wanted = {Sid.from_bytes(one["objectSid"][0]) for one in groups}
    assert len(wanted) == GROUPS
    assert wanted | {domain.child(513)} <= server.caller.token.sids
    assert server.caller.token.name == f"CORP\\{user}"
    whole = pdu(bytes(range(64)), client.overhead(), auth_type=auth_type)
    head, stub, trailer, _ = parts(whole, client.overhead())
    sealed, token = client.protect(head, stub, trailer, privacy=True, sign_header=True)
    assert server.unprotect(head, sealed, trailer, token, privacy=True, sign_header=True) == stub


def test_the_keytab_has_the_key_of_the_service(controller: DomainController, keytab: Path) -> None:
    shown = subprocess.run(["klist", "-k", str(keytab)], check=True, capture_output=True, text=True)
    assert f"{SERVICE}@CORP.EXAMPLE" in shown.stdout
