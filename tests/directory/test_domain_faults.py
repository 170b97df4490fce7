"""Each thing that a domain does for message queuing, with each fault of the domain controller in the middle:
it is killed or hangs with a question of ours unanswered, or its clock is wrong by hours.

1. Messages that need no directory flow without a pause.
2. What is known already is used.
3. What needs the directory says so within PATIENCE.
4. When the fault has ended, everything works again, and nothing had to be done for it.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid5

import pytest

from msmq_fast.security.sid import Sid
from tests.directory.members import domain, environment, known, listed, two_sites
from tests.support.processes.domain import NEEDS, controller
from tests.support.processes.samba import DOMAIN, DomainController
from tests.support.processes.servers import Server, command, until
from tests.support.worlds.faults import FAULTS, Pending, Traffic, broken, interrupted

__all__ = ["controller"]

pytestmark = [
    *NEEDS,
    pytest.mark.needs("faketime", modules=("gssapi",)),
    pytest.mark.long(seconds=16),
]

PATIENCE = 40.0
"""Seconds until a command that needs the directory says so: it may have to wait for others that time out."""
MIGRATION = 100.0
"""Seconds until `domain join` says so: the next entry of a search may take 60 s."""
SLOWEST = 4.0
"""Seconds that a message may take which needs no directory; a time-out of libldap is 5 s or more."""
HEALED = 60.0
"""Seconds from the end of a fault until everything works: a controller is left alone for up to 30 s."""
_NAMES = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")
BETA_HOST, READER_HOST = "127.0.0.4", "127.0.0.9"

Question = tuple[Server, tuple[str, ...]]


@dataclass(frozen=True)
class World:
    controller: DomainController
    alpha: Server
    gate: Server
    beta: Server
    alice: Server
    """A server of its own, which reads queues of BETA with the tickets of CORP\\alice, a member of Sales."""
    traffic: Traffic


@pytest.fixture(scope="module")
def world(controller: DomainController, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    place = tmp_path_factory.mktemp("faults")
    people = controller.user("alice")
    controller.group("Sales", controller.group("North", people))
    controller.group("Support")
    keys = place / "beta.keytab"
    settings: dict[str, str] = {"MSMQ_FAST_RPC__KEYTAB": str(keys)}
    controller.computer("SERVICE")
    service = f"host/{BETA_HOST}"
    controller.service(f"CN=SERVICE,CN=Computers,{DOMAIN}", service)
    controller.keys("SERVICE$", service).rename(keys)
    with contextlib.closing(two_sites(controller, controller.url, place, BETA=settings)) as members:
        alpha, gate, beta = next(members)
        _, config = controller.keytab("Administrator")
        given = {
            "KRB5_CONFIG": str(config),
            "KRB5CCNAME": f"FILE:{place}/nobody",
            "MSMQ_FAST_REMOTE__EPM_PORT": str(beta.port("epm")),
            "MSMQ_FAST_REMOTE__USER": "alice",
            "MSMQ_FAST_REMOTE__DOMAIN": "CORP.EXAMPLE",
            "MSMQ_FAST_REMOTE__KEYTAB": str(controller.keys("alice")),
            "MSMQ_FAST_REMOTE__AUTHENTICATION": "kerberos",
        }
        alice = Server(place / "reader", "--name", "READER", host=READER_HOST, environment=given).start()
        (entry,) = controller.search("(sAMAccountName=alice)", "objectSid")
        account = str(Sid.from_bytes(entry["objectSid"][0]))
        added = command(
            "user", "add", "alice", "--uid", "0", "--no-password", "--sid", account, "--data", str(alpha.data)
        )
        assert added.returncode == 0, added
        yield World(controller, alpha, gate, beta, alice, Traffic(alpha, gate, beta))
        alice.kill()
        for _ in members:
            pass


class PublicQueue:
    """A public queue is created on one server, and found by another one through PUBLIC= and by its label and
    type.
    """

    def __init__(self, world: World, mark: str) -> None:
        self.world, self.mark = world, mark
        self.later = [(world.alpha, rf"ALPHA\later-{mark}"), (world.beta, rf"BETA\later-{mark}")]

    def before(self) -> None:
        alpha, beta = self.world.alpha, self.world.beta
        self.kind = str(uuid5(_NAMES, self.mark))
        words = (rf"Pathname=BETA\q-{self.mark}", f"Label=Label {self.mark}", f"Type={self.kind}")
        create = ("directory", "create", "Queue", *words)
        until(lambda: beta.run(*create).returncode == 0, timeout=HEALED)
        self.guid = str(beta.ok("queue", "show", rf"BETA\q-{self.mark}")[0]["guid"])
        until(lambda: known(alpha, self.guid), timeout=HEALED)

    def asks(self) -> list[Question]:
        return [(server, ("queue", "create", name)) for server, name in self.later]

    def served(self) -> None:
        alpha, beta = self.world.alpha, self.world.beta
        for words in (("--label", f"label {self.mark}"), ("--type", self.kind)):
            (found,) = alpha.ok("queue", "find", *words)
            assert found["guid"] == self.guid
        alpha.ok("send", f"PUBLIC={self.guid}", "--body", "x", "--recoverable")
        assert len(beta.ok("receive", rf"BETA\q-{self.mark}", "--timeout", "30s")) == 1

    def after(self) -> None:
        for server, name in self.later:
            until(lambda one=server, name=name: _there(one, name), timeout=HEALED)  # type: ignore[misc]
        guid = str(self.world.beta.ok("queue", "show", rf"BETA\later-{self.mark}")[0]["guid"])
        until(lambda: known(self.world.alpha, guid), timeout=HEALED)
        self.world.alpha.ok("send", f"PUBLIC={guid}", "--body", "x")
        assert len(self.world.beta.ok("receive", f"PUBLIC={guid}", "--timeout", "30s")) == 1


def _there(server: Server, name: str) -> bool:
    """Create a public queue, unless that has succeeded before."""
    done = server.run("queue", "create", name)
    return done.returncode == 0 or b"MQ_ERROR_QUEUE_EXISTS" in done.stderr


class DistributionList:
    """A list of a public queue and an alias. One list is known, the other one was never used."""

    def __init__(self, world: World, mark: str) -> None:
        self.world, self.mark = world, mark

    def before(self) -> None:
        alpha, beta = self.world.alpha, self.world.beta
        until(lambda: _there(beta, rf"BETA\l-{self.mark}"), timeout=HEALED)
        guid = str(beta.ok("queue", "show", rf"BETA\l-{self.mark}")[0]["guid"])
        beta.ok("queue", "create", f"aliased-{self.mark}")
        until(lambda: known(alpha, guid), timeout=HEALED)
        alias = rf"DIRECT=TCP:{beta.host}\private$\aliased-{self.mark}"
        self.known, self.new = (
            listed(self.world.controller, f"{name}-{self.mark}", f"l-{self.mark}", alias)
            for name in ("used", "new")
        )
        until(lambda: alpha.run("send", self.known, "--body", "x").returncode == 0, timeout=HEALED)
        self.arrived()

    def arrived(self) -> None:
        for queue in (rf"BETA\l-{self.mark}", f"aliased-{self.mark}"):
            assert len(self.world.beta.ok("receive", queue, "--timeout", "30s")) == 1

    def asks(self) -> list[Question]:
        return [(self.world.alpha, ("send", self.new, "--body", "x"))]

    def served(self) -> None:
        self.world.alpha.ok("send", self.known, "--body", "x", "--recoverable")
        self.arrived()

    def after(self) -> None:
        alpha, beta = self.world.alpha, self.world.beta
        until(lambda: alpha.run("send", self.new, "--body", "x").returncode == 0, timeout=HEALED)
        self.arrived()
        assert not beta.messages(f"aliased-{self.mark}")  # what was refused was not sent


class Certificate:
    """The certificate of a user is in the domain; another server looks it up for a signed message, which it
    accepts since the user is in Sales, through another group.
    """

    def __init__(self, world: World, mark: str) -> None:
        self.world, self.queue = world, f"signed-{mark}"

    def before(self) -> None:
        beta = self.world.beta
        beta.ok("queue", "create", self.queue, "--authenticated")
        beta.ok("acl", "set", self.queue, "--sddl", "O:BAG:BAD:(A;;GA;;;BA)")
        grant = ("acl", "grant", self.queue, "--user", r"CORP\Sales", "--right", "send")
        until(lambda: beta.run(*grant).returncode == 0, timeout=HEALED)
        self._certify()

    def _certify(self) -> None:
        made = until(lambda: self._created(), timeout=HEALED)
        until(lambda: made in _digests(self.world.beta), timeout=HEALED)
        self._send()

    def _created(self) -> str:
        done = self.world.alpha.run("certificate", "create", "--json")
        return json.loads(done.stdout)["digest"] if done.returncode == 0 else ""

    def _send(self) -> None:
        name = rf"DIRECT=TCP:{self.world.beta.host}\private$\{self.queue}"
        self.world.alpha.ok("send", name, "--body", "signed", "--sign", "--recoverable")
        (message,) = self.world.beta.ok("receive", self.queue, "--timeout", "30s")
        assert message["authenticated"]

    def asks(self) -> list[Question]:
        return [(self.world.alpha, ("certificate", "create"))]

    def served(self) -> None:
        self._send()

    def after(self) -> None:
        self._send()  # by the old certificate, or a new one that was registered
        self._certify()


def _digests(server: Server) -> set[str]:
    return {
        base64.b64decode(digest).hex()
        for one in server.ok("directory", "list", "User")
        for digest in one.get("CertificateDigestList", ())
    }


class Route:
    """Messages to another site pass the router that the domain's link names, also after it was restarted."""

    def __init__(self, world: World, mark: str) -> None:
        self.world, self.queue, self.mark = world, rf"BETA\r-{mark}", mark

    def before(self) -> None:
        until(lambda: _there(self.world.beta, self.queue), timeout=HEALED)
        self.guid = str(self.world.beta.ok("queue", "show", self.queue)[0]["guid"])
        until(lambda: known(self.world.alpha, self.guid), timeout=HEALED)
        until(lambda: known(self.world.gate, self.guid), timeout=HEALED)
        self._pass()

    def _pass(self) -> None:
        alpha, gate, beta = self.world.alpha, self.world.gate, self.world.beta
        (way,) = alpha.ok("route", "explain", f"PUBLIC={self.guid}")
        assert way["hops"] == [gate.host]
        alpha.ok("send", f"PUBLIC={self.guid}", "--body", "x", "--recoverable")
        assert len(beta.ok("receive", self.queue, "--timeout", "30s")) == 1

    def asks(self) -> list[Question]:
        return [(self.world.gate, ("directory", "create", "Site", f"Name=s-{self.mark}"))]

    def served(self) -> None:
        self._pass()

    def after(self) -> None:
        gate = self.world.gate
        create = ("directory", "create", "Site", f"Name=t-{self.mark}")
        until(lambda: gate.run(*create).returncode == 0, timeout=HEALED)
        self._pass()


class Rights:
    """A group of the domain has the right to receive; a user of it calls with a ticket. `acl explain` names
    the group.
    """

    def __init__(self, world: World, mark: str) -> None:
        self.world, self.queue = world, f"rights-{mark}"
        self.explain = ("acl", "explain", self.queue, "--user", r"CORP\alice", "--right", "receive")

    def before(self) -> None:
        beta = self.world.beta
        beta.ok("queue", "create", self.queue)
        beta.ok("acl", "set", self.queue, "--sddl", "O:BAG:BAD:(A;;GA;;;BA)")
        right = ("--right", "receive", "--right", "peek")
        grant = ("acl", "grant", self.queue, "--user", r"CORP\Sales", *right)
        until(lambda: beta.run(*grant).returncode == 0, timeout=HEALED)
        beta.ok("send", self.queue, "--body", "one")
        self._read()
        self._explained()

    def _read(self) -> None:
        name = rf"DIRECT=TCP:{BETA_HOST}\private$\{self.queue}"
        assert len(self.world.alice.ok("receive", name, "--peek", "--timeout", "20s")) == 1

    def _explained(self) -> None:
        (found,) = self.world.beta.ok(*self.explain)
        assert (found["granted"], found["entry"]["name"]) == (True, r"CORP\Sales")

    def asks(self) -> list[Question]:
        grant = ("acl", "grant", self.queue, "--user", r"CORP\Support", "--right", "peek")
        return [(self.world.beta, grant)]

    def served(self) -> None:
        self._read()
        (shown,) = self.world.beta.ok("acl", "show", self.queue)
        assert r"CORP\Sales" in {one["name"] for one in shown["entries"]}

    def after(self) -> None:
        until(lambda: self.world.beta.run(*self.asks()[0][1]).returncode == 0, timeout=HEALED)
        until(lambda: self.world.beta.run(*self.explain).returncode == 0, timeout=HEALED)
        self._explained()
        self._read()


THINGS: tuple[Callable[[World, str], PublicQueue | DistributionList | Certificate | Route | Rights], ...] = (
    PublicQueue,
    DistributionList,
    Certificate,
    Route,
    Rights,
)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kind", THINGS)
def test_a_fault_in_the_middle(world: World, kind: Callable[[World, str], PublicQueue], fault: str) -> None:
    thing = kind(world, f"{kind.__name__.lower()}-{fault}")
    thing.before()
    with world.traffic.flowing() as traffic:
        with interrupted(fault, world.controller, *thing.asks()) as running:
            thing.served()
            for one in running:
                code, _, complaint = one.end(PATIENCE)
                if (
                    fault != "clock" or code
                ):  # Kerberos needs the time for a new connection, a password does not
                    assert (code != 0, b"MQ_ERROR_NO_DS" in complaint) == (True, True), complaint
                    assert complaint.count(b"\n") == 1, complaint
        thing.after()
    assert traffic.slowest < SLOWEST


def test_a_restart_without_domain_controller(world: World) -> None:
    """A router that starts while the controller hangs knows the sites and links from its own file."""
    route = Route(world, "restart")
    route.before()
    with broken("hangs", world.controller):
        assert world.gate.stop() == 0
        world.gate.start()
        until(lambda: world.gate.run("directory", "list", "Queue").returncode == 0, timeout=HEALED)
        route.served()
    route.after()


QUEUES = 60


@pytest.mark.parametrize("fault", FAULTS)
def test_a_migration_is_interrupted(controller: DomainController, tmp_path: Path, fault: str) -> None:
    """`domain join --migrate` says that it did not get through, and the same command ends its work."""
    name = f"MOVER-{fault.upper()}"
    path = controller.computer(name)
    alone = Server(tmp_path / "data", environment={"MSMQ_FAST_SERVER__NAME": name}).start()
    for number in range(QUEUES):
        alone.ok("queue", "create", rf"{name}\q{number}", "--label", f"Label {number}")
    alone.ok("send", rf"{name}\q7", "--body", "kept", "--recoverable")
    assert alone.stop() == 0
    server = Server(tmp_path / "data", environment=environment(controller, name))
    words = ("domain", "join", "--migrate", "--data", str(server.data))
    joining = Pending(*words, environment=server.environment)
    until(lambda: controller.search("(objectClass=mSMQQueue)", "cn", base=path), timeout=30)
    with broken(fault, controller):
        code, _, complaint = joining.end(MIGRATION)
        if fault != "clock":
            assert (code != 0, b"the command can be repeated" in complaint) == (True, True), complaint
            assert complaint.count(b"\n") == 1, complaint
    code, joined, said = domain(server, "join", "--migrate")
    assert (code, said) == (0, ""), said
    entries = controller.search("(objectClass=mSMQQueue)", "mSMQLabelEx", base=path)
    assert sorted(one["mSMQLabelEx"][0] for one in entries) == sorted(
        b"Label %d" % number for number in range(QUEUES)
    )
    server.start()
    try:
        assert server.ready["guid"] == joined["guid"]
        until(lambda: server.run("directory", "list", "Queue").returncode == 0, timeout=HEALED)
        (message,) = server.ok("receive", rf"{name}\q7")
        assert message["label"] == ""
        until(lambda: len(server.ok("queue", "find", "--computer", name)) == QUEUES, timeout=HEALED)
    finally:
        assert server.stop() == 0
