"""The image, built from the Dockerfile, run by podman and runc: rights, volume, signals, networks, health."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from msmq_fast.protocol.exits import Exit
from tests.packaging.containers import IMAGE, Container, Engine
from tests.support.processes.servers import until

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.needs("podman", "runc", "buildah", "debootstrap", "ip", "nsenter", rights=["root"]),
]
LARGEST = 250_000_000
HARDENED = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
DATA = "/var/lib/msmq-fast"
# Prints the number of each message that the server has acknowledged.
SENDING = r"""
import itertools
from msmq_fast import RECOVERABLE, Access, Message, sync
with sync.connect() as connection, connection.open("orders", Access.SEND) as queue:
    for number in itertools.count():
        queue.send(Message(b"%d" % number, delivery=RECOVERABLE))
        print(number, flush=True)
"""
RECEIVING = r"""
import sys
from msmq_fast import Access, errors, sync
with sync.connect() as connection, connection.open(sys.argv[1], Access.RECEIVE) as queue:
    try:
        while True:
            print(queue.receive(timeout=0).body.decode())
    except errors.IOTimeout:
        pass
"""


@pytest.mark.long(seconds=180)
def test_the_image_is_small(built: Engine) -> None:
    """Without compression; the base is a Debian with Python of 124 MB."""
    size = built.size(IMAGE)
    print(f"{size / 1e6:.0f} MB")
    assert size < LARGEST


@pytest.mark.long(seconds=10)
@pytest.mark.parametrize("user", ["18010:18010", "12345:0"], ids=["its user", "any user"])
def test_it_needs_no_capability_and_no_writable_root(engine: Engine, user: str) -> None:
    server = Container(engine, "alpha", *HARDENED, "--user", user, "--volume", f"alpha:{DATA}").start()
    status = Path(f"/proc/{engine.process('alpha')}/status").read_text()
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["Uid"].split()[0] == user.partition(":")[0]
    assert {int(facts[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb")} == {0}
    assert facts["NoNewPrivs"] == "1"
    refusal = engine.run("exec", "alpha", "touch", "/opt/msmq-fast/x", code=1)
    assert "Read-only file system" in refusal
    server.ok("queue", "create", "orders")
    server.ok("send", "orders", "--body", "x", "--recoverable")
    took, code = server.stop()
    assert (took < 2, code) == (True, 0), took
    engine.run("start", "alpha")
    server.await_ready(2)
    assert [message["body_size"] for message in server.ok("receive", "orders")] == [1]


@pytest.mark.long(seconds=3)
def test_one_line_names_a_volume_that_cannot_be_written(engine: Engine, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    code, lines = Container(engine, "alpha", "--volume", f"{tmp_path}:{DATA}").refused()
    assert code == 1
    *warnings, line = lines
    assert all(" warning " in other for other in warnings), lines
    assert f"cannot write in {DATA}: Permission denied" in line
    assert "this process is user 18010, group 18010" in line
    assert "chown 18010:18010" in line


@pytest.mark.long(seconds=10)
def test_what_was_acknowledged_survives_sigkill(engine: Engine) -> None:
    server = Container(engine, "alpha", *HARDENED, "--volume", f"alpha:{DATA}").start()
    server.ok("queue", "create", "orders")
    with server.program(SENDING) as program:
        assert program.stdout is not None
        acknowledged = [int(program.stdout.readline()) for _ in range(500)]
        engine.run("kill", "--signal", "KILL", "alpha")
        acknowledged += [int(line) for line in program.stdout if line.strip().isdigit()]
    engine.run("wait", "alpha", code=0)
    engine.run("start", "alpha")
    server.await_ready(2)
    received = [int(line) for line in server.python(RECEIVING, "orders")]
    assert received[: len(acknowledged)] == acknowledged == list(range(len(acknowledged)))
    assert len(received) <= len(acknowledged) + 1  # the last one: stored, and not acknowledged any more


@pytest.mark.long(seconds=5)
def test_a_second_container_on_the_same_volume_is_refused(engine: Engine) -> None:
    server = Container(engine, "alpha", "--volume", f"shared:{DATA}").start()
    code, lines = Container(engine, "beta", "--volume", f"shared:{DATA}").refused()
    assert code == Exit.IN_USE
    line = lines[-1]
    assert f"the store in {DATA} is held by process 1 (msmq-fast) on alpha since" in line
    assert server.msmq("health").strip() == "127.0.0.1:1802: ready"


@pytest.mark.long(seconds=15)
def test_two_containers_exchange_messages_by_name(engine: Engine) -> None:
    """In a network of podman, whose name server knows the containers."""
    engine.run("network", "create", "mq")
    alpha, beta = (
        Container(engine, name, *HARDENED, "--network", "mq").start() for name in ("alpha", "beta")
    )
    for server in (alpha, beta):
        server.ok("queue", "create", "inbox")
        server.ok("queue", "create", "ordered", "--transactional")
    for sender, other in ((alpha, "beta"), (beta, "alpha")):
        for kind, queue in (("--recoverable", "inbox"), ("--transaction", "ordered")):
            sender.ok("send", rf"DIRECT=OS:{other}\private$\{queue}", "--body", "x", "--count", "50", kind)
    for server in (alpha, beta):
        until(lambda server=server: drained(server), 30, "acknowledgments")
        for queue in ("inbox", "ordered"):
            assert server.python(RECEIVING, queue) == ["x"] * 50


def drained(server: Container) -> bool:
    return all(queue["messages"] == 0 for queue in server.ok("outgoing", "list"))


@pytest.mark.long(seconds=15)
def test_behind_nat_acknowledgments_come_to_the_advertised_address(engine: Engine) -> None:
    """Two networks, each behind the address of its gateway: no container has a route to the other one."""
    gateways, subnets = {}, {}
    for network in ("near", "far"):
        engine.run("network", "create", network)
        template = "{{range .Subnets}}{{.Gateway}} {{.Subnet}}{{end}}"
        shown = engine.run("network", "inspect", "--format", template, network)
        gateways[network], subnets[network] = shown.split()
        # The gateway has its address while a container is in the network.
        engine.run("run", "--detach", "--network", network, "--entrypoint", "sleep", IMAGE, "infinity")
    servers = {}
    # What is published on the gateway of one network is how that network sees the other one.
    for network, other in (("near", "far"), ("far", "near")):
        published = gateways[other]
        advertised = f"MSMQ_FAST_SERVER__ADVERTISED_ADDRESS={published}"
        options = ("--network", network, "--publish", f"{published}:1801:1801", "--env", advertised)
        servers[network] = Container(engine, f"{network}-host", *options).start()
        inside = ["nsenter", "--net", "--target", str(engine.process(f"{network}-host"))]
        subprocess.run([*inside, "ip", "route", "add", "blackhole", subnets[other]], check=True)
    near, far = servers["near"], servers["far"]
    for server in (near, far):
        server.ok("queue", "create", "ordered", "--transactional")
    for sender, network in ((near, "near"), (far, "far")):
        target = rf"DIRECT=TCP:{gateways[network]}\private$\ordered"
        sender.ok("send", target, "--body", network, "--count", "20", "--transaction")
        until(lambda sender=sender: drained(sender), 30, "acknowledgments")
    assert far.python(RECEIVING, "ordered") == ["near"] * 20
    assert near.python(RECEIVING, "ordered") == ["far"] * 20


@pytest.mark.long(seconds=10)
def test_the_health_check_of_the_image_follows_readyz(engine: Engine) -> None:
    Container(engine, "alpha").start()
    assert engine.code("healthcheck", "run", "alpha") == 0
    full = ("--env", "MSMQ_FAST_STORE__DISK_LOW=60 TiB", "--env", "MSMQ_FAST_STORE__DISK_CHECK_INTERVAL=0.1")
    server = Container(engine, "beta", *full).start()
    until(lambda: engine.code("healthcheck", "run", "beta") == 1, 20, "an unhealthy container")
    assert "disk" in server.msmq("health", code=6)
