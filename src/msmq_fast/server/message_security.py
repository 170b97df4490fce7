"""Signatures and encryption according to the configuration: keys, certificates, caches, and the objects that
use them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TypeVar

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from msmq_fast._native.tables import Tables
from msmq_fast.config.sections import Config, InteropConfig, ProtectionConfig
from msmq_fast.mqqb.protection import ReceivedProtection, SentProtection
from msmq_fast.protocol.properties import EncryptionAlgorithm, HashAlgorithm
from msmq_fast.qm.identity.certificates import Certificates
from msmq_fast.qm.identity.keyring import Keyring, Pairs
from msmq_fast.qm.identity.signing import Signing
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.timed import TimedGroup
from msmq_fast.security.algorithms import BASE, ENHANCED, ENHANCED_AES
from msmq_fast.security.encryption import EncryptionPolicy, ReceivedKeys, SentKeys
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.keyturns import KeyTurns
from msmq_fast.security.rsakeys import generate
from msmq_fast.security.senders import SenderCertificates
from msmq_fast.security.switches import NameForm, SecuritySwitches
from msmq_fast.security.vault import Vault, key_of_file, key_of_text
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName, Table

__all__ = ["MessageSecurity", "refuse_lost_key"]

_log = logging.getLogger("msmq_fast.server")

T = TypeVar("T")

_PROVIDERS = {"base": BASE, "enhanced": ENHANCED, "advanced": ENHANCED_AES}
_HASHES = {algorithm.name.lower(): algorithm for algorithm in HashAlgorithm}
_ALGORITHMS = {
    "rc2": EncryptionAlgorithm.RC2,
    "rc4": EncryptionAlgorithm.RC4,
    "aes128": EncryptionAlgorithm.AES_128,
    "aes192": EncryptionAlgorithm.AES_192,
    "aes256": EncryptionAlgorithm.AES_256,
}


class MessageSecurity:
    """The keys and certificates of one server; create it once the queue manager runs. Raises DeclarationError
    if a key is invalid.

    `touch` requests an iteration of the commit loop, which commits the pending writes.
    """

    def __init__(
        self,
        config: Config,
        manager: QueueManager,
        monotonic: Callable[[], float],
        touch: Callable[[], None],
    ) -> None:
        settings = config.protection
        self._settings = settings
        self._making: set[asyncio.Task[None]] = set()
        self._touch = touch
        self._directory = manager.directory
        self._publishing = False
        self._providers = tuple(_named(_PROVIDERS, "providers", name) for name in settings.providers)
        accepted = frozenset(_named(_HASHES, "accept_hashes", name) for name in settings.accept_hashes)
        policy, switches = _policy(settings), _switches(config.interop)
        vault = _vault(config, manager)
        self.keyring = Keyring(manager.services, manager.directory, vault)
        self.certificates = Certificates(manager.services, manager.directory, vault, self._make_key)
        try:
            self.keyring.load(discard=settings.discard_keys)
        except SecurityDataError:
            raise DeclarationError(
                "the private keys in the store are encrypted with a key other than that in protection.key or "
                f"{config.key_file}. Restore that key, or set protection.discard_keys = true to delete them"
            ) from None
        self.certificates.load()
        self.turns = KeyTurns(config.limits.key_percent / 100)
        self._received = ReceivedKeys(self.keyring.exchange, policy, switches, self.turns)
        self._sent = SentKeys(self.keyring.published, manager.random_bytes, policy, switches)
        self._senders = SenderCertificates(
            self.certificates.registered,
            self.keyring.signing_keys,
            size=settings.certificate_cache,
            lifetime=settings.certificate_lifetime,
        )
        self._timed = TimedGroup(manager.faults)
        self._timed.add("received keys", self._received)
        self._timed.add("sent keys", self._sent)
        self._timed.add("sender certificates", self._senders)
        self._timed.add("turns with keys", self.turns)
        self.certificates.changed.connect(self._senders.forget)
        manager.directory.users_changed.connect(self._senders.forget)
        self.keyring.changed.connect(self._sent.forget)
        self.received = ReceivedProtection(
            self._received,
            self._senders,
            monotonic,
            accepted,
            switches,
            msmq_1=settings.accept_msmq1,
            tell=config.mqqb.insecure_nacks,
        )
        self.sent = SentProtection(manager.guid, self._sent, monotonic, switches)
        self.signing = Signing(self.certificates, _HASHES[settings.hash], switches)

    # ---- key pairs

    def make_keys(self) -> None:
        """Generate missing key pairs in another thread, and publish them. Nothing waits for the key pairs: no
        peer can use a key that does not exist yet.
        """
        self._directory.rearranged.connect(self._publish)
        missing = self.keyring.missing(self._providers)
        if not missing:
            self._publish()
            return

        def make() -> Pairs:
            return {
                (use, provider): generate(BASE.rsa_bits if provider is BASE else int(self._settings.rsa_bits))
                for use, provider in missing
            }

        async def run() -> None:
            pairs = await asyncio.to_thread(make)
            self._touch()
            self.keyring.keep(pairs).add_done_callback(_complain)

        self._begin(run())

    def _publish(self) -> None:
        """Publish the keys that this queue manager's object in the directory lacks, unless that is under way.
        A directory that cannot be reached now says later that it has read the object.
        """
        if not self._publishing:
            self._publishing = True
            self.keyring.publish().add_done_callback(self._published)

    def _published(self, done: Completion[None]) -> None:
        self._publishing = False
        _complain(done)

    def _make_key(self, bits: int) -> Completion[RSAPrivateKey]:
        """Generate a key for the certificate of a user, in another thread, so that the event loop is not
        delayed.
        """
        made: Completion[RSAPrivateKey] = Completion()

        async def run() -> None:
            pair = await asyncio.to_thread(generate, bits)
            self._touch()
            made.resolve(pair)

        self._begin(run())
        return made

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._making.add(task)
        task.add_done_callback(self._making.discard)

    async def stop(self) -> None:
        """Wait until the key pairs that are being generated are complete."""
        while self._making:
            await asyncio.wait(self._making)

    # ---- timers 10, 11 and 13 of MS-MQQB 3.1.2

    def next_deadline(self) -> float | None:
        """Return the time at which `expire` is due."""
        return self._timed.next_deadline()

    def expire(self, now: float) -> None:
        """Drop expired cache entries, and process messages that wait for an operation with a key."""
        self._timed.expire(now)


def _complain(done: Completion[None]) -> None:
    problem = done.exception()
    if problem is not None:
        _log.error("the public keys of this queue manager are not published: %s", problem)


def refuse_lost_key(config: Config, tables: Tables) -> None:
    """Raise DeclarationError if the key file is missing although the store holds secrets that are encrypted
    with its key.

    Call this before anything is written to the store. The usual cause is a restored backup: the operator
    still has the file and can put it back.
    """
    if config.protection.key or config.protection.discard_keys or config.key_file.exists():
        return
    prefix = MetaName.SECRET
    if tables.scan(Table.META, prefix, prefix[:-1] + bytes((prefix[-1] + 1,)), 1):
        raise DeclarationError(
            f"{config.key_file.name} is missing: {config.key_file} does not exist, and the store in "
            f"{config.data} holds private keys that were encrypted with it. Put the file back (msmq-fast "
            "backup does not copy it), or set protection.discard_keys = true to delete the private keys"
        )


def _vault(config: Config, manager: QueueManager) -> Vault:
    try:
        if config.protection.key:
            key = key_of_text(config.protection.key)
        else:
            key = key_of_file(config.key_file, manager.random_bytes)
    except SecurityDataError as error:
        raise DeclarationError(f"protection.key: {error}") from None
    except OSError as error:
        raise DeclarationError(f"{config.key_file}: {error.strerror}") from None
    return Vault(key, manager.random_bytes)


def _policy(settings: ProtectionConfig) -> EncryptionPolicy:
    return EncryptionPolicy(
        preferred={
            BASE: _ALGORITHMS[settings.base_algorithm],
            ENHANCED: _ALGORITHMS[settings.enhanced_algorithm],
            ENHANCED_AES: _ALGORITHMS[settings.advanced_algorithm],
        },
        send_enhanced_rc2_40=settings.send_enhanced_rc2_40,
        reject_enhanced_rc2_40=settings.reject_enhanced_rc2_40,
        send_cache_size=settings.send_cache,
        receive_cache_size=settings.receive_cache,
        key_lifetime=settings.key_lifetime,
    )


def _switches(interop: InteropConfig) -> SecuritySwitches:
    return SecuritySwitches(
        amb82_names=NameForm(interop.signature_queue_names),
        amb82_label_nul=interop.signature_label_includes_nul,
        amb82_absent_connector=interop.signature_absent_connector_is_zeros,
        amb82_all_lists=interop.signature_covers_all_queue_lists,
        amb82_reversed=interop.signature_bytes_reversed,
        amb83_salt=interop.short_keys_are_padded,
        amb29_plain_size=interop.encrypted_size_is_plain_size,
        amb27_strict_level=interop.provider_follows_privacy_level,
        qb402_sign_direct=interop.sign_to_direct_names,
    )


def _named(known: dict[str, T], key: str, name: str) -> T:
    found = known.get(name.casefold())
    if found is None:
        raise DeclarationError(f"protection.{key}: {name!r} is not one of {', '.join(known)}")
    return found
