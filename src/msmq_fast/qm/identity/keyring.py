"""Key pairs of the queue manager, one for each cryptographic provider and use (DM-008), and manually
configured public keys of other queue managers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from msmq_fast.directory.filters import equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.qm.identity.directory import Directory
from msmq_fast.qm.services import Services
from msmq_fast.security.algorithms import PROVIDERS, Provider
from msmq_fast.security.blobs import PublicKeyEntry, read_key_list, write_key_list
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.rsakeys import from_der, public_part, to_der
from msmq_fast.security.vault import Vault
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName

__all__ = ["KeyUse", "Keyring", "Pairs"]

_ATTRIBUTES: Final = ("PublicEncryptionKeyList", "PublicSigningKeyList")


class KeyUse(StrEnum):
    """The use of a key pair: AT_KEYEXCHANGE or AT_SIGNATURE."""

    EXCHANGE = "exchange"
    SIGNATURE = "signature"


Pairs = dict[tuple[KeyUse, Provider], RSAPrivateKey]


class Keyring:
    """The stored keys. `exchange` has the private keys that decrypt messages for this computer, by provider.

    `changed` is called when keys of another queue manager are set or removed.
    """

    def __init__(self, services: Services, directory: Directory, vault: Vault) -> None:
        self._guid = services.guid
        self._records = services.records
        self._directory = directory
        self._vault = vault
        self.exchange: dict[Provider, RSAPrivateKey] = {}
        self._signature: dict[Provider, RSAPrivateKey] = {}
        self._peers: dict[UUID, bytes] = {}
        self.changed: Signal[[]] = Signal()

    def load(self, *, discard: bool = False) -> None:
        """Read the stored keys.

        Raises SecurityDataError if a key was not encrypted by the vault that the constructor got; with
        `discard` such keys are skipped.
        """
        for provider in PROVIDERS:
            for use, pairs in ((KeyUse.EXCHANGE, self.exchange), (KeyUse.SIGNATURE, self._signature)):
                name = _secret(use, provider)
                sealed = self._records.meta(name)
                if sealed is None:
                    continue
                try:
                    pairs[provider] = from_der(self._vault.open(name, sealed))
                except SecurityDataError:
                    if not discard:
                        raise
        for name, blob in self._records.metas(MetaName.PEER_KEYS):
            self._peers[UUID(bytes=name)] = blob

    def missing(self, providers: Iterable[Provider]) -> list[tuple[KeyUse, Provider]]:
        """Returns (use, provider) of the key pairs that do not exist yet."""
        return [
            (use, provider)
            for provider in providers
            for use, pairs in ((KeyUse.EXCHANGE, self.exchange), (KeyUse.SIGNATURE, self._signature))
            if provider not in pairs
        ]

    def keep(self, pairs: Pairs) -> Completion[None]:
        """Store new key pairs; resolved when they are durable and published in the directory."""

        def fill() -> None:
            for (use, provider), key in pairs.items():
                name = _secret(use, provider)
                self._records.set_meta(name, self._vault.seal(name, to_der(key)))

        def use_them(_: None) -> Completion[None]:
            for (use, provider), key in pairs.items():
                (self.exchange if use is KeyUse.EXCHANGE else self._signature)[provider] = key
            return self.publish()

        return self._records.unit(fill).then(use_them)

    # ---- what others see

    @property
    def encryption_list(self) -> bytes:
        """The encoded PublicEncryptionKeyList of this queue manager (QM-21)."""
        return _key_list(self.exchange, signing=False)

    @property
    def signing_list(self) -> bytes:
        """The encoded PublicSigningKeyList of this queue manager (QM-22)."""
        return _key_list(self._signature, signing=True)

    def publish(self) -> Completion[None]:
        """Write both public key lists to this queue manager's directory object, unless it has them
        already.
        """
        directory = self._directory
        lists = (self.encryption_list, self.signing_list)
        shown = directory.queue_manager()
        if not directory.events.integrated or tuple(map(shown.get, _ATTRIBUTES)) == lists:
            return Completion.of(None)
        values = dict(zip(_ATTRIBUTES, lists, strict=True)) | {IDENTIFIER: self._guid}
        return directory.write(DirectoryObject(ObjectType.QUEUE_MANAGER, values), _ATTRIBUTES)

    # ---- what others have

    def published(self, manager: UUID) -> bytes | None:
        """Returns the public encryption keys of a queue manager: those configured manually, else those in the
        directory (QB-342). None if they are not known.
        """
        if manager == self._guid:
            return self.encryption_list
        return self._peers.get(manager) or self._attribute(manager, _ATTRIBUTES[0])

    def signing_keys(self, manager: UUID) -> tuple[PublicKeyEntry, ...]:
        """Returns the public signing keys of a queue manager; empty if they are not known."""
        try:
            if manager == self._guid:
                return read_key_list(self.signing_list)
            return read_key_list(self._attribute(manager, _ATTRIBUTES[1]) or b"")
        except SecurityDataError:
            return ()

    def _attribute(self, manager: UUID, name: str) -> bytes | None:
        answer = self._directory.read(ObjectType.QUEUE_MANAGER, (equals(IDENTIFIER, manager),), (name,))
        if not answer.done or answer.exception() is not None:
            return None
        found = answer.result().get(name)
        return found if isinstance(found, bytes) else None

    @property
    def peers(self) -> Mapping[UUID, bytes]:
        """The manually configured public keys of other queue managers: GUID → MQDSPUBLICKEYS."""
        return self._peers

    def tell(self, manager: UUID, blob: bytes | None) -> Completion[None]:
        """Store the public encryption keys of another queue manager; None deletes them.

        Raises SecurityDataError if `blob` is not a valid key list.
        """
        if blob is not None and not read_key_list(blob):
            raise SecurityDataError("the key list has no keys")
        name = MetaName.PEER_KEYS + manager.bytes
        records = self._records

        def fill() -> None:
            if blob is None:
                records.delete_meta(name)
            else:
                records.set_meta(name, blob)

        def kept(_: None) -> Completion[None]:
            if blob is None:
                self._peers.pop(manager, None)
            else:
                self._peers[manager] = blob
            self.changed()
            return Completion.of(None)

        return records.unit(fill).then(kept)


def _secret(use: KeyUse, provider: Provider) -> bytes:
    return MetaName.SECRET + f"{use}:{provider.name}".encode()


def _key_list(pairs: Mapping[Provider, RSAPrivateKey], *, signing: bool) -> bytes:
    entries = [
        PublicKeyEntry(provider.name, provider.type, public_part(pairs[provider]))
        for provider in PROVIDERS
        if provider in pairs
    ]
    return write_key_list(entries, signing=signing)
