"""Servers that are members of a domain of Active Directory: public queues, distribution lists, and what works
while the domain controller is away.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.directory.members import domain, environment, known, public
from tests.support.processes.chain import free_port
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import DOMAIN, DomainController
from tests.support.processes.servers import Server, until

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.long(seconds=20)]

NAMES = {"ALPHA": "127.0.0.2", "BETA": "127.0.0.3"}


@pytest.fixture(scope="module")
def members(controller: DomainController, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """Two servers in the domain, which find each other by the addresses that their accounts name."""
    place, port = tmp_path_factory.mktemp("members"), free_port()
    servers = []
    for name, address in NAMES.items():
        path = controller.computer(name)
        controller.ldif(f"dn: {path}\nchangetype: modify\nreplace: dNSHostName\ndNSHostName: {address}\n")
        server = Server(
            place / name, "--port", str(port), host=address, environment=environment(controller, name)
        )
        assert domain(server, "status")[0] == 3  # not yet a member
        code, joined, complaint = domain(server, "join")
        assert (code, joined["new"]) == (0, True), complaint
        assert domain(server, "join")[1] == joined | {"new": False}
        servers.append(server.start())
        assert server.ready["guid"] == joined["guid"]
    yield servers
    for server in servers:
        assert server.stop() == 0


@pytest.mark.rule("QB-070", "QP-017", "SR-225")
def test_a_public_queue_of_another_server(controller: DomainController, members: list[Server]) -> None:
    alpha, beta = members
    guid = public(beta, r"BETA\orders", "--label", "Orders")
    (entry,) = controller.search("(mSMQLabelEx=Orders)", "objectGUID")
    assert UUID(bytes_le=entry["objectGUID"][0]) == UUID(guid)
    until(lambda: known(alpha, guid))
    alpha.ok("send", f"PUBLIC={guid}", "--body", "hello", "--recoverable")
    (message,) = beta.ok("receive", r"BETA\orders", "--timeout", "20s")
    assert message["source_machine"] == alpha.ready["guid"]
    beta.ok("queue", "set", r"BETA\orders", "--label", "Changed")
    until(lambda: "Changed" in [one.get("Label") for one in alpha.ok("directory", "list", "Queue")])
    beta.ok("queue", "delete", r"BETA\orders", "--yes")
    until(lambda: not known(alpha, guid))


def test_a_change_is_noticed_at_once(
    controller: DomainController, members: list[Server], tmp_path: Path
) -> None:
    """The changes of others are told by the domain controller; the interval is the second way."""
    alpha, beta = members
    guid = public(beta, r"BETA\told")
    until(lambda: known(alpha, guid))
    name = controller.computer("EPSILON")
    controller.ldif(f"dn: {name}\nchangetype: modify\nreplace: dNSHostName\ndNSHostName: 127.0.0.4\n")
    server = Server(
        tmp_path / "slow",
        "--port",
        str(free_port()),
        host="127.0.0.4",
        environment=environment(controller, "EPSILON", changes_interval="3600"),
    )
    assert domain(server, "join")[0] == 0
    server.start()
    try:
        until(lambda: server.run("directory", "list", "Queue").returncode == 0 and known(server, guid))
        for number in range(3):
            later = public(beta, rf"BETA\told-{number}")
            until(lambda later=later: known(server, later), what=f"change {number}")  # type: ignore[misc]
        beta.ok("queue", "delete", r"BETA\told", "--yes")
        until(lambda: not known(server, guid))
    finally:
        assert server.stop() == 0


def test_a_distribution_list_with_an_alias(controller: DomainController, members: list[Server]) -> None:
    alpha, beta = members
    listed = public(beta, r"BETA\listed")
    beta.ok("queue", "create", "aliased")
    alias = f"CN=alias,CN=Users,{DOMAIN}"
    controller.ldif(
        f"dn: {alias}\nchangetype: add\nobjectClass: msMQ-Custom-Recipient\n"
        f"msMQ-Recipient-FormatName: DIRECT=TCP:{beta.host}\\private$\\aliased\n"
    )
    path = f"CN=everybody,CN=Users,{DOMAIN}"
    member = f"CN=listed,CN=msmq,CN=BETA,CN=Computers,{DOMAIN}"
    controller.ldif(f"dn: {path}\nchangetype: add\nobjectClass: group\nmember: {member}\nmember: {alias}\n")
    (entry,) = controller.search("(cn=everybody)", "objectGUID")
    name = f"DL={UUID(bytes_le=entry['objectGUID'][0])}"
    until(lambda: known(alpha, listed))
    until(lambda: alpha.run("send", name, "--body", "to all").returncode == 0)
    for queue in (r"BETA\listed", "aliased"):
        assert len(beta.ok("receive", queue, "--timeout", "20s")) == 1


@pytest.mark.parametrize("hangs", [False, True])
def test_messages_flow_while_the_domain_controller_is_away(
    controller: DomainController, members: list[Server], hangs: bool
) -> None:
    alpha, beta = members
    queue = rf"BETA\away-{hangs}"
    guid = public(beta, queue)
    until(lambda: known(alpha, guid))
    if hangs:
        controller.pause(True)
    else:
        controller.kill()
    try:
        alpha.ok("send", f"PUBLIC={guid}", "--body", "hello", "--recoverable")
        assert len(beta.ok("receive", queue, "--timeout", "20s")) == 1
        began = time.monotonic()
        refused = beta.run("queue", "create", rf"BETA\later-{hangs}")
        assert b"MQ_ERROR_NO_DS" in refused.stderr, refused.stderr
        assert time.monotonic() - began < 25  # 10 s for each attempt of libldap
        beta.ok("queue", "create", f"private-{hangs}")
        assert known(alpha, guid)
    finally:
        if hangs:
            controller.pause(False)
        else:
            controller.start()
    until(lambda: beta.run("queue", "create", rf"BETA\later-{hangs}").returncode == 0, timeout=60)
    later = str(beta.ok("queue", "show", rf"BETA\later-{hangs}")[0]["guid"])
    until(lambda: known(alpha, later), timeout=30)


def test_a_server_starts_without_the_domain_controller(
    controller: DomainController, members: list[Server]
) -> None:
    alpha, beta = members
    guid = public(alpha, r"ALPHA\kept")
    others = public(beta, r"BETA\kept")
    until(lambda: known(alpha, others))
    assert alpha.stop() == 0
    controller.kill()
    try:
        alpha.start()
        alpha.ok("queue", "create", "private")
        alpha.ok("send", "private", "--body", "x")
        assert len(alpha.ok("receive", "private")) == 1
        alpha.ok("send", r"ALPHA\kept", "--body", "x")
        until(lambda: alpha.run("directory", "list", "Queue").returncode == 0)
        assert known(alpha, others)  # from the copy that was saved
        alpha.ok("send", f"PUBLIC={others}", "--body", "x", "--recoverable")
        assert len(beta.ok("receive", r"BETA\kept", "--timeout", "20s")) == 1
    finally:
        controller.start()
    until(lambda: alpha.run("directory", "list", "Queue").returncode == 0, timeout=60)
    until(lambda: known(alpha, guid), timeout=30)
    assert len(alpha.ok("receive", f"PUBLIC={guid}")) == 1


def test_verbs_say_what_is_wrong(controller: DomainController, tmp_path: Path) -> None:
    wrong = {
        "url": ("", 2, "directory.url: give the domain controllers"),
        "user": ("", 2, "directory.user and directory.password_file belong together"),
        "password_file": (str(tmp_path / "none"), 2, "directory.password_file"),
        "ca_file": (str(controller.password_file), 5, "the domain controller answered"),
    }
    for key, (value, code, words) in wrong.items():
        given = environment(controller, "GAMMA", **{key: value})
        server = Server(tmp_path / "data", environment=given)
        found, _, complaint = domain(server, "status")
        assert (found, words in complaint, complaint.count("\n")) == (code, True, 1), complaint
    server = Server(tmp_path / "data", environment=environment(controller, "GAMMA"))
    code, _, complaint = domain(server, "join")
    assert (code, "the domain has no computer GAMMA" in complaint) == (1, True), complaint
    assert domain(server, "leave", "--yes")[0] == 3


def test_a_store_with_public_queues_does_not_join(controller: DomainController, tmp_path: Path) -> None:
    controller.computer("DELTA")
    embedded = Server(tmp_path / "data", environment={"MSMQ_FAST_SERVER__NAME": "DELTA"}).start()
    embedded.ok("queue", "create", r"DELTA\old")
    assert embedded.stop() == 0
    server = Server(tmp_path / "data", environment=environment(controller, "DELTA"))
    code, _, complaint = domain(server, "join")
    assert (code, "the store has public queues, such as" in complaint) == (1, True), complaint
