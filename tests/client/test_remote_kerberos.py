"""Queues of other computers, read by Kerberos with tickets of a key distribution centre: by the command line
and by the Python client, through two server processes.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmq_fast.client import sync
from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.protocol.frames import Access
from tests.support.http.admin import http
from tests.support.processes.kdc import REALM, Kdc, serving
from tests.support.processes.remotes import HOST, NAME, READER_HOST
from tests.support.processes.servers import Server, command, data_directory

PATIENCE = 20.0
BODIES = ["one", "two", "three", "four", "five"]
with_kdc = pytest.mark.needs("krb5kdc", "kdb5_util", "kadmin.local", modules=["gssapi"])
pytestmark = [with_kdc, pytest.mark.long(seconds=4), pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """It knows the owner of the queue by its address, and has keytabs of alice and bob."""
    with serving(tmp_path_factory.mktemp("kdc"), "aes256-cts-hmac-sha1-96") as centre:
        centre.admin(f"addprinc -randkey host/{HOST}")
        centre.service_key(centre.keytab, f"host/{HOST}")
        for name in ("alice", "bob"):
            centre.service_key(centre.folder / f"{name}.keytab", name, "-norandkey")
        yield centre


@contextlib.contextmanager
def owner_of_orders(kdc: Kdc, keytab: Path | None, *, remote_read: bool = True) -> Iterator[Server]:
    """A server with a queue that alice may read, and nobody else."""
    environment = {**kdc.environment, "MSMQ_FAST_RPC__REMOTE_READ": str(remote_read).lower()}
    if keytab is not None:
        environment["MSMQ_FAST_RPC__KEYTAB"] = str(keytab)
    with data_directory() as data:
        data.mkdir(mode=0o700)
        words = ("user", "add", f"alice@{REALM}", "--no-password", "--data", str(data))
        assert command(*words).returncode == 0
        server = Server(data, "--name", "OWNER", host=HOST, environment=environment)
        try:
            server.start()
            server.ok("queue", "create", "orders")
            server.ok("acl", "set", "orders", "--sddl", "O:BAG:BAD:(A;;GA;;;BA)")
            grant = ("acl", "grant", "orders", "--user", f"alice@{REALM}", "--right")
            server.ok(*grant, "receive", "--right", "peek")
            for body in BODIES:
                server.ok("send", "orders", "--body", body, "--recoverable")
            yield server
        finally:
            server.kill()


@contextlib.contextmanager
def reading(kdc: Kdc, owner: Server, user: str, authentication: str, keytab: Path) -> Iterator[Server]:
    """A server that reads there as a user of the realm."""
    environment = {
        **kdc.environment,
        "MSMQ_FAST_REMOTE__EPM_PORT": str(owner.port("epm")),
        "MSMQ_FAST_REMOTE__USER": user,
        "MSMQ_FAST_REMOTE__DOMAIN": REALM,
        "MSMQ_FAST_REMOTE__KEYTAB": str(keytab),
        "MSMQ_FAST_REMOTE__AUTHENTICATION": authentication,
    }
    with data_directory() as data:
        server = Server(data, "--name", "READER", host=READER_HOST, environment=environment)
        try:
            yield server.start()
        finally:
            server.kill()


@pytest.fixture(scope="module", params=["RemoteRead", "qm2qm"])
def owner(kdc: Kdc, request: pytest.FixtureRequest) -> Iterator[Server]:
    with owner_of_orders(kdc, kdc.keytab, remote_read=request.param == "RemoteRead") as server:
        yield server


def bodies(server: Server) -> list[str]:
    """What is in the queue; it is left there."""
    done = server.run("receive", "orders", "--peek", "--count", "10", "--json")
    assert done.returncode in (0, 4), done
    return [text(json.loads(line)) for line in done.stdout.splitlines()]


def text(message: dict[str, Any]) -> str:
    return base64.b64decode(message["body_b64"]).decode()


@pytest.mark.rule("RP-18")
@pytest.mark.parametrize(("authentication", "told"), [("kerberos", "kerberos"), ("negotiate", "spnego")])
def test_programs_read_with_a_ticket(kdc: Kdc, owner: Server, authentication: str, told: str) -> None:
    there = bodies(owner)
    with reading(kdc, owner, "alice", authentication, kdc.folder / "alice.keytab") as reader:
        (message,) = reader.ok("receive", NAME, "--peek", "--count", "1")
        assert text(message) == there[0]
        (message,) = reader.ok("receive", NAME)
        assert text(message) == there[0]
        with sync.connect(reader.endpoint) as here:
            queue = here.open(NAME, Access.RECEIVE)
            (shown,) = json.loads(http(owner, "/api/v1/readers")[1])
            who = (shown["caller"], shown["authentication"], shown["level"])
            assert who == (f"alice@{REALM}", told, "privacy")
            assert queue.receive(PATIENCE).body.decode() == there[1]
        assert bodies(owner) == there[2:]


def denied(reader: Server) -> None:
    """Neither the command line nor the client gets anything."""
    done = reader.run("receive", NAME, "--json")
    assert done.returncode != 0
    assert done.stdout == b""
    assert b"MQ_ERROR_ACCESS_DENIED" in done.stderr
    with sync.connect(reader.endpoint) as here, pytest.raises(AccessDenied):
        here.open(NAME, Access.RECEIVE)


def test_the_ticket_of_somebody_else_reads_nothing(kdc: Kdc, owner: Server) -> None:
    before = bodies(owner)
    with reading(kdc, owner, "bob", "kerberos", kdc.folder / "bob.keytab") as reader:
        denied(reader)
    assert bodies(owner) == before


def test_a_keytab_that_the_centre_does_not_take_reads_nothing(kdc: Kdc, owner: Server) -> None:
    """Nothing falls back to NTLM or to nobody."""
    before = bodies(owner)
    for authentication in ("kerberos", "negotiate"):
        with reading(kdc, owner, "alice", authentication, kdc.folder / "bob.keytab") as reader:
            denied(reader)
    assert bodies(owner) == before


def test_a_computer_that_takes_no_tickets_is_not_read(kdc: Kdc) -> None:
    """It has no keytab: the open fails, also where NTLM could be negotiated: there is no password."""
    with owner_of_orders(kdc, None) as owner:
        for authentication in ("kerberos", "negotiate"):
            with reading(kdc, owner, "alice", authentication, kdc.folder / "alice.keytab") as reader:
                denied(reader)
        assert bodies(owner) == BODIES
