"""A queue manager with keys and certificates, in memory."""

from __future__ import annotations

from random import Random
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from msmq_fast._native.memorystore import MemoryTables
from msmq_fast.app.auth import Identity
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.qm.identity.certificates import Certificates, KeyMaker
from msmq_fast.qm.identity.keyring import Keyring
from msmq_fast.qm.identity.signing import Signing
from msmq_fast.security.rsakeys import generate
from msmq_fast.security.switches import SecuritySwitches
from msmq_fast.security.vault import Vault
from msmq_fast.store.completion import Completion
from tests.support.worlds.app import Client, World

SECRET = bytes(range(32))
UID = 4_000_000


def made_at_once(bits: int) -> Completion[rsa.RSAPrivateKey]:
    return Completion.of(generate(bits))


class Secure(World):
    """A world with keys and certificates."""

    def __init__(
        self,
        tables: MemoryTables | None = None,
        secret: bytes = SECRET,
        make_key: KeyMaker = made_at_once,
        **switches: Any,
    ) -> None:
        super().__init__(tables)
        vault = Vault(secret, Random(3).randbytes)
        services, directory = self.manager.services, self.manager.directory
        self.keyring = self.service.keyring = Keyring(services, directory, vault)
        self.certificates = self.service.certificates = Certificates(services, directory, vault, make_key)
        self.keyring.load()
        self.certificates.load()
        self.signing = self.service.signing = Signing(
            self.certificates, HashAlgorithm.SHA512, SecuritySwitches(**switches)
        )

    def done(self, completion: Any) -> Any:
        self.commit()
        return completion.result()

    def user(self) -> Client:
        client = Client(self, Identity("nobody", uid=UID))
        assert client.call(Frame.HELLO, {"version": 1})[0] == Frame.REPLY
        return client
