"""The least rights of an account in a domain: `domain explain` names them, and they are enough."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.security.sid import Sid
from tests.directory.members import domain, environment
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import SITE, DomainController
from tests.support.processes.servers import Server, command, until

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.long(seconds=25)]

FULL = "RPWPCRCCDCLCLORCWOWDSDDTSW"


def explained(server: Server) -> tuple[int, list[dict[str, Any]]]:
    """What `domain explain` says: its exit code, and a map for each right."""
    done = command("domain", "explain", "--data", str(server.data), "--json", environment=server.environment)
    assert not done.stderr, done
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("router", [False, True])
def test_an_ordinary_account_gets_what_is_named(
    controller: DomainController, tmp_path: Path, router: bool
) -> None:
    name = "ROUTER" if router else "PLAIN"
    user = f"svc-{name.lower()}"
    controller.user(user)
    path = controller.computer(name)
    given = environment(controller, name, user=f"{user}@CORP.EXAMPLE")
    given["MSMQ_FAST_MQQB__ROUTER"] = str(router).lower()
    server = Server(tmp_path / "data", environment=given)

    code, needs = explained(server)
    assert code == 1
    assert {one["account"] for one in needs} == {f"CORP\\{user}"}
    assert not any(one["granted"] for one in needs)
    places = {path, f"CN=Servers,{SITE}"} if router else {path}
    assert {one["object"] for one in needs} == places
    granted: set[tuple[str, str]] = set()
    for _ in places:
        code, _joined, complaint = domain(server, "join")
        missing = next(one for one in explained(server)[1] if not one["granted"])
        words = f"needs the right to {missing['right']} at {missing['object']}: an administrator adds"
        assert (code, words in complaint, complaint.count("\n")) == (1, True, 1), complaint
        assert missing["grant"] in complaint
        for one in explained(server)[1]:
            pair = (one["object"], one["grant"])
            if one["object"] == missing["object"] and not one["granted"] and pair not in granted:
                controller.grant(*pair)
                granted.add(pair)
    code, _, complaint = domain(server, "join")
    assert code == 0, complaint
    code, needs = explained(server)
    assert (code, all(one["granted"] for one in needs)) == (0, True), needs

    server.start()
    try:
        until(lambda: server.run("queue", "create", rf"{name}\orders").returncode == 0, timeout=30)
        server.ok("queue", "set", rf"{name}\orders", "--label", "Orders")
        (found,) = controller.search("(&(mSMQLabelEx=Orders)(cn=orders))", "objectGUID")
        assert found["dn"][0].decode() == f"CN=orders,CN=msmq,{path}"
        until(lambda: controller.search("(mSMQEncryptKey=*)", "cn", base=f"CN=msmq,{path}"), timeout=30)
        server.ok("queue", "delete", rf"{name}\orders", "--yes")
        log = server.log.read_text()
        assert "insufficient" not in log.casefold(), log
    finally:
        assert server.stop() == 0
    settings = controller.search("(objectClass=mSMQSettings)", "mSMQQMID", base=f"CN=Servers,{SITE}")
    assert (f"CN=MSMQ Settings,CN={name}," in str(settings)) == router
    code, _, complaint = domain(server, "leave", "--yes")
    assert code == 0, complaint


@pytest.mark.needs(modules=["gssapi"])
@pytest.mark.rule("SM-056")
def test_the_account_of_a_computer_needs_nothing_from_an_administrator(
    controller: DomainController, tmp_path: Path
) -> None:
    """It logs on with a keytab, creates its queue manager, changes it, and has public queues."""
    path = controller.computer("MACHINE")
    _, kerberos = controller.keytab("Administrator")
    keytab = controller.keys("MACHINE$")
    given = environment(controller, "MACHINE", user="", password_file="", keytab=str(keytab))
    server = Server(tmp_path / "data", environment={**given, "KRB5_CONFIG": str(kerberos)})
    assert explained(server)[0] == 0
    assert domain(server, "join")[0] == 0
    code, needs = explained(server)
    assert (code, all(one["granted"] for one in needs)) == (0, True), needs
    assert {one["account"] for one in needs} == {"CORP\\MACHINE$"}
    server.start()
    try:
        until(lambda: controller.search("(mSMQEncryptKey=*)", "cn", base=f"CN=msmq,{path}"), timeout=30)
        server.ok("queue", "create", r"MACHINE\orders")
        server.ok("queue", "set", r"MACHINE\orders", "--label", "Orders")
        server.ok("acl", "grant", r"MACHINE\orders", "--user", r"CORP\Domain Users", "--right", "send")
        (found,) = controller.search("(&(mSMQLabelEx=Orders)(cn=orders))", "cn", base=path)
        assert found
        server.ok("queue", "delete", r"MACHINE\orders", "--yes")
        assert server.ok("status")[0]["problems"] == []
    finally:
        assert server.stop() == 0
    (entry,) = controller.search("(cn=MACHINE)", "objectSid", base=path)
    sid = Sid.from_bytes(entry["objectSid"][0])
    shown = controller.access(f"CN=msmq,{path}")
    assert f"(A;CI;{FULL};;;{sid})" in shown
    assert f"(A;;{FULL};;;DA)" in shown
