"""Members of a domain with two domain controllers, of which one or both are killed, hang, or have another
time: what does not need the directory goes on, what needs it says so, and all heals by itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.directory.members import domain, known, listed, public, two_sites
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import SECOND, DomainController
from tests.support.processes.servers import Server, until
from tests.support.worlds.faults import FAULTS, broken

__all__ = ["controller"]

pytestmark = [*NEEDS, pytest.mark.needs("faketime"), pytest.mark.long(seconds=40)]


@pytest.fixture(scope="module")
def second(controller: DomainController) -> Iterator[DomainController]:
    other = controller.second()
    other.start()
    yield other
    other.kill()


@contextlib.contextmanager
def all_broken(fault: str, *controllers: DomainController) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for one in controllers:
            stack.enter_context(broken(fault, one))
        yield


@pytest.fixture(scope="module")
def members(
    controller: DomainController, second: DomainController, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Server]]:
    yield from two_sites(controller, f"{controller.url}, ldap://{SECOND}", tmp_path_factory.mktemp("members"))


def states(server: Server) -> list[str]:
    _, shown, complaint = domain(server, "status")
    found = shown.get("controllers", [complaint])
    assert isinstance(found, list)
    return found


def everything(controller: DomainController, members: list[Server], mark: str) -> None:
    """A public queue, a list with an alias, and a route over two sites, each made and used now."""
    alpha, gate, beta = members
    until(lambda: beta.run("queue", "create", rf"BETA\q-{mark}").returncode == 0, timeout=60)
    guid = str(beta.ok("queue", "show", rf"BETA\q-{mark}")[0]["guid"])
    until(lambda: known(alpha, guid), timeout=60)
    beta.ok("queue", "create", f"aliased-{mark}")
    name = listed(controller, f"list-{mark}", f"q-{mark}", rf"DIRECT=TCP:{beta.host}\private$\aliased-{mark}")
    alpha.ok("send", f"PUBLIC={guid}", "--body", "x", "--recoverable")
    until(lambda: alpha.run("send", name, "--body", "x").returncode == 0, timeout=60)
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


def unread(server: Server) -> bool:
    """Whether `status` says that the domain cannot be read."""
    (shown,) = server.ok("status")
    return any("the domain cannot be read" in problem for problem in shown["problems"])


@pytest.mark.parametrize("fault", FAULTS)
def test_messages_flow_without_any_controller(
    controller: DomainController, second: DomainController, members: list[Server], fault: str
) -> None:
    alpha, _, beta = members
    everything(controller, members, f"{fault}-all")  # so that sites and links are known to all
    guid = public(beta, rf"BETA\none-{fault}")
    until(lambda: known(alpha, guid))
    with all_broken(fault, controller, second):
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
            until(partial(unread, alpha), timeout=60)
    everything(controller, members, f"{fault}-healed")
    until(lambda: not alpha.ok("status")[0]["problems"], timeout=60)
