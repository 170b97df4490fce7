"""Two servers: keys made and exchanged, certificates registered, messages signed and encrypted."""

from __future__ import annotations

import base64
import json
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from msmq_fast import Access, Message, sync
from tests.support.processes.servers import NO_HTTP, Server, data_directory, until

DEAD = r"DIRECT=OS:.\SYSTEM$;DEADLETTER"

RSA_PUBLIC = re.compile(rb"RSA1(.{4})", re.DOTALL)  # RSAPUBKEY of CryptoAPI: magic, bitlen


class AsInstalled(Server):
    """A server of which the configuration says nothing about keys."""

    defaults: Mapping[str, str] = NO_HTTP


@pytest.mark.rule("QB-325", "DM-008", "QB-261")
def test_from_one_server_to_another(tmp_path: Path) -> None:
    with ExitStack() as stack:
        near, far = (
            AsInstalled(stack.enter_context(data_directory()), "--name", name, host=host)
            for name, host in (("NEAR", "127.0.0.1"), ("FAR", "127.0.0.2"))
        )
        stack.callback(near.kill)
        stack.callback(far.kill)
        far.environment["MSMQ_FAST_PROTECTION__ACCEPT_MSMQ1"] = "true"
        far.start()
        near.environment["MSMQ_FAST_MQQB__PEER_PORT"] = str(far.port("mqqb"))
        near.environment["MSMQ_FAST_MQQB__RETRY_INTERVAL"] = "0.2"
        near.start()

        here, there = sync.connect(near.endpoint), sync.connect(far.endpoint)
        until(lambda: len(there.admin.keys.all()[0].keys) == 2, what="keys of the first start")
        shown = there.admin.keys.all()[0].as_map()
        assert {key["bits"] for key in shown["keys"]} == {2048}
        assert [int.from_bytes(bits, "little") for bits in RSA_PUBLIC.findall(shown["blob"])] == [2048, 2048]
        assert stat.S_IMODE((far.data / "secrets.key").stat().st_mode) == 0o600
        name = there.admin.queues.create("q", authenticated=True, privacy_level=2).format_name
        host = {"ComputerName": "FAR", "QualifiedComputerName": "127.0.0.2", "Identifier": shown["guid"]}
        here.admin.directory.put({"object": "QueueManager", **host}, "create")
        (certificate,) = near.ok("certificate", "create")
        der = base64.b64decode(certificate["certificate_b64"])
        public = x509.load_der_x509_certificate(der).public_key()
        assert isinstance(public, rsa.RSAPublicKey)
        assert public.key_size == 2048
        there.admin.certificates.add(der, user=certificate["user"])
        # Without the keys of the other side nothing leaves.
        secret = Message(body=b"lost", authentication=2, privacy_level=5, journal=1)
        queue = here.open(name, Access.SEND)
        queue.send(secret)
        dead = here.open(DEAD, Access.RECEIVE)
        assert dead.receive(10.0).body == b"lost"
        (tmp_path / "keys").write_text(json.dumps(far.ok("key", "show")[0]))
        near.ok("key", "import", str(tmp_path / "keys"))
        near.ok("send", name, "--body", "one", "--sign", "--encrypt")
        queue.send(Message(body=b"two", authentication=1, privacy_level=3, delivery=1))
        queue.send(Message(body=b"unsigned", privacy_level=5))
        queue.send(Message(body=b"clear", authentication=2))
        until(lambda: sum(there.admin.stats()["refusals"].values()) == 2, what="refusals")
        arrived = there.open("q", Access.RECEIVE)
        for body in (b"one", b"two"):
            message = arrived.receive(10.0)
            assert (message.body, message.authenticated) == (body, True)
        # Keys and certificates are there after a restart.
        there.close()
        assert far.stop() == 0
        far.flags = (*far.flags, "--port", near.environment["MSMQ_FAST_MQQB__PEER_PORT"])
        far.start()
        there = sync.connect(far.endpoint)
        assert there.admin.keys.all()[0].as_map() == shown
        queue.send(Message(body=b"three", authentication=2, privacy_level=5))
        message = there.open("q", Access.RECEIVE).receive(10.0)
        assert (message.body, message.authenticated) == (b"three", True)
        there.close()
        here.close()


def keys_of(server: Server) -> bytes:
    """The public keys of a server, as soon as it has some."""
    with sync.connect(server.endpoint) as connection:
        until(lambda: connection.admin.keys.all()[0].keys, what="keys")
        return bytes(connection.admin.keys.all()[0].blob)


def contents(data: Path) -> dict[str, bytes]:
    """The files of a data directory; who reads the store at the moment stands in lock.mdb."""
    return {
        path.name: path.read_bytes() for path in data.iterdir() if path.is_file() and path.name != "lock.mdb"
    }


def test_a_store_whose_key_is_lost(server: Server) -> None:
    server.start()
    before = keys_of(server)
    assert server.stop() == 0
    (server.data / "secrets.key").unlink()
    stored = contents(server.data)
    with pytest.raises(AssertionError, match=r"secrets\.key is missing: .*discard_keys"):
        server.start()
    # No other key in its place, no new incarnation, nothing else written.
    assert contents(server.data) == stored
    server.environment["MSMQ_FAST_PROTECTION__DISCARD_KEYS"] = "true"
    server.start()
    assert keys_of(server) != before


@pytest.fixture
def server() -> Iterator[Server]:
    with data_directory() as data:
        running = Server(data)
        try:
            yield running
        finally:
            running.kill()
