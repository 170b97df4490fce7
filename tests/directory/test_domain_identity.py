"""Users and groups of a domain: two servers, a domain controller, and programs that log on with its tickets.

The servers log on at the domain controller with the keytab of their computer account, by Kerberos with
signing on port 389.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.directory.members import domain, environment
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.remotes import HOST, NAME, READER_HOST
from tests.support.processes.samba import DOMAIN, DomainController
from tests.support.processes.servers import Server, data_directory, until

__all__ = ["controller"]

pytestmark = [
    *NEEDS,
    pytest.mark.needs(modules=("gssapi",)),
    pytest.mark.long(seconds=12),
]


def kerberos(controller: DomainController) -> dict[str, str]:
    """The environment of programs that ask this domain controller for tickets."""
    _, config = controller.keytab("Administrator")
    return {"KRB5_CONFIG": str(config), "KRB5CCNAME": f"FILE:{controller.folder}/nobody"}


@pytest.fixture(scope="module")
def owner(controller: DomainController, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A member with a queue that nobody but administrators may use. alice is in Sales, through another group;
    bob is not.
    """
    alice, bob = controller.user("alice"), controller.user("bob")
    north = controller.group("North", alice)
    controller.group("Sales", north)
    controller.group("Support", bob)
    path = controller.computer("OWNER")
    controller.service(path, f"host/{HOST}", "host/owner.corp.example")
    machine = controller.keys("OWNER$", f"host/{HOST}")
    given = {
        **environment(controller, "OWNER", user="", password_file="", keytab=str(machine)),
        **kerberos(controller),
        "MSMQ_FAST_RPC__KEYTAB": str(machine),
        "MSMQ_FAST_SECURITY__AUDIT_INTERVAL": "0",
    }
    server = Server(tmp_path_factory.mktemp("owner") / "data", host=HOST, environment=given)
    code, joined, complaint = domain(server, "join")
    assert code == 0, complaint
    status = domain(server, "status")[1]
    assert (status["domain"], status["guid"]) == ("CORP", joined["guid"])
    server.start()
    server.ok("queue", "create", "orders")
    server.ok("acl", "set", "orders", "--sddl", "O:BAG:BAD:(A;;GA;;;BA)")
    server.ok("send", "orders", "--body", "one", "--recoverable")
    yield server
    assert server.stop() == 0


def test_names_of_the_domain_in_access_lists(controller: DomainController, owner: Server) -> None:
    """By both kinds of names, also those with characters that filters give a meaning."""
    controller.group("R&D (all)")
    (changed,) = owner.ok("acl", "grant", "orders", "--user", r"CORP\R&D (all)", "--right", "peek")
    assert r"CORP\R&D (all)" in {one["name"] for one in changed["entries"]}
    for name in (r"CORP\Sales", r"corp.example\sales", "sales@corp.example"):
        (changed,) = owner.ok(
            "acl", "grant", "orders", "--user", name, "--right", "peek", "--right", "receive"
        )
        found = [one for one in changed["entries"] if one["name"] == r"CORP\Sales"]
        assert len(found) == 1, changed
    shown = owner.run("acl", "show", "orders").stdout.decode()
    assert f"CORP\\Sales ({found[0]['sid']})" in shown
    (entry,) = controller.search("(sAMAccountName=Sales)", "objectSid")
    assert bytes(entry["objectSid"][0])[-4:] == int(found[0]["sid"].rpartition("-")[2]).to_bytes(4, "little")
    for name, words in {
        r"CORP\none": r"the domain CORP has no user or group 'none'",
        r"CORP\*": r"the domain CORP has no user or group '*'",
        r"OTHER\Sales": "OTHER is not the domain of this server, CORP",
        "Sales": "there is no user or group 'Sales'",
    }.items():
        done = owner.run("acl", "grant", "orders", "--user", name, "--right", "peek")
        assert (done.returncode != 0, words in done.stderr.decode(), done.stderr.count(b"\n")) == (
            True,
            True,
            1,
        ), done


def test_an_explanation_names_the_group(owner: Server) -> None:
    owner.ok("acl", "grant", "orders", "--user", r"CORP\Sales", "--right", "receive")
    (found,) = owner.ok("acl", "explain", "orders", "--user", "alice@corp.example", "--right", "receive")
    assert (found["caller"], found["entry"]["name"]) == (r"CORP\alice", r"CORP\Sales")
    assert {r"CORP\North", r"CORP\Sales", r"CORP\Domain Users"} <= {one["name"] for one in found["sids"]}
    done = owner.run("acl", "explain", "orders", "--user", r"CORP\bob", "--right", "receive", "--json")
    refused = json.loads(done.stdout)
    assert (done.returncode, refused["granted"]) == (1, False)
    assert r"CORP\Support" in {one["name"] for one in refused["sids"]}


def reading(
    controller: DomainController, owner: Server, user: str, authentication: str, data: Path
) -> Server:
    """A server of its own that reads queues of others with a domain user's tickets."""
    given = {
        **kerberos(controller),
        "MSMQ_FAST_REMOTE__EPM_PORT": str(owner.port("epm")),
        "MSMQ_FAST_REMOTE__USER": user,
        "MSMQ_FAST_REMOTE__DOMAIN": "CORP.EXAMPLE",
        "MSMQ_FAST_REMOTE__KEYTAB": str(controller.keys(user)),
        "MSMQ_FAST_REMOTE__AUTHENTICATION": authentication,
    }
    return Server(data, "--name", "READER", host=READER_HOST, environment=given).start()


@pytest.mark.parametrize("authentication", ["kerberos", "negotiate"])
def test_a_caller_has_the_rights_of_its_groups(
    controller: DomainController, owner: Server, authentication: str
) -> None:
    owner.ok("acl", "grant", "orders", "--user", r"CORP\Sales", "--right", "peek", "--right", "receive")
    with data_directory() as data:
        reader = reading(controller, owner, "alice", authentication, data)
        try:
            assert len(reader.ok("receive", NAME, "--peek", "--timeout", "20s")) == 1
        finally:
            reader.kill()
    with data_directory() as data:
        reader = reading(controller, owner, "bob", authentication, data)
        try:
            done = reader.run("receive", NAME, "--peek")
            assert (done.returncode != 0, b"MQ_ERROR_ACCESS_DENIED" in done.stderr) == (True, True), done
        finally:
            reader.kill()
    assert r"to CORP\bob (S-1-5-21-" in owner.log.read_text()


def test_a_caller_in_1000_groups_reads(controller: DomainController, owner: Server) -> None:
    """The ticket takes 9 kB of the bind."""
    path = controller.user("joiner")
    controller.ldif(
        "\n".join(
            f"dn: CN=many-{number},CN=Users,{DOMAIN}\nchangetype: add\nobjectClass: group\n"
            f"sAMAccountName: many-{number}\nmember: {path}\n"
            for number in range(1_000)
        )
    )
    owner.ok("acl", "grant", "orders", "--user", r"CORP\many-999", "--right", "peek", "--right", "receive")
    for authentication in ("kerberos", "negotiate"):
        with data_directory() as data:
            reader = reading(controller, owner, "joiner", authentication, data)
            try:
                assert len(reader.ok("receive", NAME, "--peek", "--timeout", "20s")) == 1
            finally:
                reader.kill()
    (found,) = owner.ok("acl", "explain", "orders", "--user", r"CORP\joiner", "--right", "receive")
    assert found["entry"]["name"] == r"CORP\many-999"
    assert len([one for one in found["sids"] if one["name"].startswith(r"CORP\many-")]) == 1_000


def test_without_a_domain_controller(controller: DomainController, owner: Server) -> None:
    """Names come from memory, tickets are taken; what needs the domain says so, and all heals by itself."""
    owner.ok("acl", "grant", "orders", "--user", r"CORP\Sales", "--right", "peek", "--right", "receive")
    with data_directory() as data:
        reader = reading(controller, owner, "alice", "kerberos", data)
        try:
            assert len(reader.ok("receive", NAME, "--peek", "--timeout", "20s")) == 1
            controller.kill()
            try:
                assert len(reader.ok("receive", NAME, "--peek", "--timeout", "20s")) == 1
                (shown,) = owner.ok("acl", "show", "orders")
                assert r"CORP\Sales" in {one["name"] for one in shown["entries"]}
                began = time.monotonic()
                done = owner.run("acl", "grant", "orders", "--user", r"CORP\Support", "--right", "peek")
                assert b"MQ_ERROR_NO_DS" in done.stderr, done
                assert time.monotonic() - began < 15
                owner.ok("send", "orders", "--body", "two")
            finally:
                controller.start()
        finally:
            reader.kill()
    grant = ("acl", "grant", "orders", "--user", r"CORP\Support", "--right", "peek")
    until(lambda: owner.run(*grant).returncode == 0, timeout=30)
    owner.ok("acl", "revoke", "orders", "--user", r"CORP\Support")
