"""Members of a domain with two domain controllers that replicate: each has its own files, and counts changes
for itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.directory.members import domain, environment, known, public
from tests.support.processes.chain import free_port
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import SECOND, DomainController
from tests.support.processes.servers import Server, until

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.long(seconds=50)]

LAG_S = 5.0
"""Seconds for which a server asks a controller that lags: five times, with the interval of the members."""


@pytest.fixture
def members(controller: DomainController, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    place, port, servers = tmp_path_factory.mktemp("replicas"), free_port(), []
    for name, address in {"ALPHA": "127.0.0.2", "BETA": "127.0.0.3"}.items():
        path = controller.computer(name)
        controller.ldif(f"dn: {path}\nchangetype: modify\nreplace: dNSHostName\ndNSHostName: {address}\n")
        urls = f"{controller.url}, ldap://{SECOND}"
        given = environment(controller, name, url=urls, complete_interval="60")
        server = Server(place / name, "--port", str(port), host=address, environment=given)
        code, _, complaint = domain(server, "join")
        assert code == 0, complaint
        servers.append(server.start())
    yield servers
    for server in servers:
        assert server.stop() == 0


def test_the_second_controller_has_its_own_history(
    controller: DomainController, members: list[Server], tmp_path_factory: pytest.TempPathFactory
) -> None:
    alpha, beta = members
    shared = public(beta, r"BETA\shared", "--label", "before")
    second = controller.replica(tmp_path_factory.mktemp("second") / "dc")
    second.start()
    try:
        until(lambda: known(alpha, shared), timeout=30)
        lacking = public(beta, r"BETA\lacking")  # what the second controller does not know
        beta.ok("queue", "set", r"BETA\shared", "--label", "after")
        until(lambda: known(alpha, lacking), timeout=30)
        controller.kill()
        until(lambda: beta.run("queue", "create", r"BETA\at-second").returncode == 0, timeout=60)
        made = str(beta.ok("queue", "show", r"BETA\at-second")[0]["guid"])
        until(lambda: known(alpha, made), timeout=60)
        end = time.monotonic() + LAG_S
        until(lambda: time.monotonic() > end or not known(alpha, lacking), timeout=2 * LAG_S)
        for server in members:
            assert known(server, lacking)
            (found,) = server.ok("queue", "find", "shared")
            assert found["label"] == "after"
        alpha.ok("send", f"PUBLIC={lacking}", "--body", "x", "--recoverable")
        assert len(beta.ok("receive", r"BETA\lacking", "--timeout", "20s")) == 1

        controller.start()
        controller.replicate(second)
        second.replicate(controller)
        second.kill()  # the servers go back to the first one
        until(lambda: alpha.run("queue", "create", r"ALPHA\at-first").returncode == 0, timeout=60)
        for guid in (shared, lacking, made):
            assert all(known(server, guid) for server in members)
        names = {entry["cn"][0] for entry in controller.search("(objectClass=mSMQQueue)", "cn")}
        assert names == {b"shared", b"lacking", b"at-second", b"at-first"}
    finally:
        second.kill()
