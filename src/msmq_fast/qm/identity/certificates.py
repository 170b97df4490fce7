"""Certificates of users, generated or imported. The queue manager stores them with their private keys and
registers them in the directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from msmq_fast.directory.enumerations import failed
from msmq_fast.directory.filters import equals
from msmq_fast.directory.objects import IDENTIFIER, DirectoryObject
from msmq_fast.directory.objecttypes import ObjectType
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, for_applications
from msmq_fast.protocol.errors import error
from msmq_fast.qm.identity.directory import Directory
from msmq_fast.qm.services import Services
from msmq_fast.security.blobs import UserCertificate, read_user_certificates, write_user_certificates
from msmq_fast.security.certificates import key_of, self_signed
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.rsakeys import from_der, generate, public_part, to_der
from msmq_fast.security.sid import Sid
from msmq_fast.security.vault import Vault
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion
from msmq_fast.store.schema import MetaName

__all__ = ["Certificates", "KeptCertificate", "KeyMaker", "Signer"]

KeyMaker = Callable[[int], Completion[RSAPrivateKey]]
"""Generates an RSA key pair; the argument is its size in bits."""

_BITS: Final = 2048
_SERIAL_BYTES: Final = 16
_MAX_PER_USER: Final = 64


@dataclass(frozen=True, slots=True)
class KeptCertificate:
    """A certificate of a user. `signs`: True if its private key is stored here, too."""

    identifier: UUID
    certificate: bytes
    internal: bool
    signs: bool

    @property
    def digest(self) -> bytes:
        """The MD5 digest by which the directory finds the certificate."""
        return UserCertificate(self.certificate, self.identifier).digest


def _at_once(bits: int) -> Completion[RSAPrivateKey]:
    return Completion.of(generate(bits))


@dataclass(frozen=True, slots=True)
class Signer:
    """The key and certificate that sign for a user."""

    certificate: bytes
    key: RSAPrivateKey


class Certificates:
    """The certificates of users (KV-14) and their private keys (KV-13).

    A workgroup has no directory that maps certificates to users; there, the certificates stored here count as
    registered. `changed` is called whenever a certificate is added or removed.
    """

    def __init__(
        self, services: Services, directory: Directory, vault: Vault, make_key: KeyMaker = _at_once
    ) -> None:
        self._services = services
        self._records = services.records
        self._directory = directory
        self._vault = vault
        self._kept: dict[Sid, tuple[KeptCertificate, ...]] = {}
        self._stored: dict[Sid, tuple[KeptCertificate, ...]] = {}  # also changes that are not used yet
        self._signers: dict[UUID, Signer] = {}
        self._make_key = make_key
        self.changed: Signal[[]] = Signal()

    def load(self) -> None:
        """Read the stored certificates."""
        for name, rows in self._records.metas(MetaName.USER_CERTIFICATES):
            self._kept[Sid.from_bytes(name)] = tuple(
                KeptCertificate(UUID(bytes=row["id"]), row["certificate"], row["internal"], row["signs"])
                for row in rows
            )

    # ---- asking

    def of(self, user: Sid) -> tuple[KeptCertificate, ...]:
        """Returns the certificates of a user, oldest first."""
        return self._kept.get(user, ())

    def users(self) -> list[Sid]:
        """Returns the users that have certificates."""
        return sorted(self._kept, key=str)

    def registered(self, user: Sid) -> list[bytes]:
        """Returns the registered certificates of a user (QB-244); an empty list if the directory does not
        answer.
        """
        directory = self._directory
        if not directory.events.integrated:
            return [kept.certificate for kept in self.of(user)]
        answer = directory.read(ObjectType.USER, (equals("SecurityIdentifier", str(user)),))
        if not answer.done or answer.exception() is not None:
            return []
        try:
            found = read_user_certificates(answer.result().get("Certificates") or b"")
        except SecurityDataError:
            return []
        return [each.certificate for each in found]

    def signer(self, user: Sid, digest: bytes = b"") -> Signer:
        """Returns the certificate and key with which messages of a user are signed: those with the given MD5
        digest; without a digest the internal ones, or any others if there are no internal ones.

        Raises CERTIFICATE_NOT_PROVIDED, CORRUPTED_INTERNAL_CERTIFICATE.
        """
        able = [kept for kept in self.of(user) if kept.signs and digest in (b"", kept.digest)]
        able.sort(key=lambda kept: not kept.internal)
        if not able:
            raise error("MQ_ERROR_CERTIFICATE_NOT_PROVIDED", f"{user} has no certificate to sign with")
        chosen = able[0]
        found = self._signers.get(chosen.identifier)
        if found is None:
            name = _secret(chosen.identifier)
            try:
                key = from_der(self._vault.open(name, self._records.meta(name, b"")))
            except SecurityDataError as problem:
                raise error("MQ_ERROR_CORRUPTED_INTERNAL_CERTIFICATE", str(problem)) from None
            found = self._signers[chosen.identifier] = Signer(chosen.certificate, key)
        return found

    # ---- changing

    def create(self, user: Sid, name: str) -> Completion[KeptCertificate]:
        """Generate a new internal certificate, which replaces the previous one."""
        return self._make_key(_BITS).then(lambda key: self._certify(user, name, key))

    def _certify(self, user: Sid, name: str, key: RSAPrivateKey) -> Completion[KeptCertificate]:
        serial = int.from_bytes(self._services.random_bytes(_SERIAL_BYTES)) >> 1 | 1
        made = self_signed(name, self._services.name, key, self._services.ledger.now_s, serial)
        kept = KeptCertificate(self._new_identifier(), made, internal=True, signs=True)
        before = tuple(each for each in self._after_changes(user) if each.internal)
        return self._replace(user, before, kept, key)

    def add(self, user: Sid, certificate: bytes, key: RSAPrivateKey | None) -> Completion[KeptCertificate]:
        """Add an external certificate, with its private key if this queue manager is to sign with it.

        Raises SecurityDataError if the key does not match the certificate, and INSUFFICIENT_RESOURCES if the
        user already has the maximum number of certificates.
        """
        numbers = key_of(certificate).public_numbers()
        if key is not None and (public_part(key).modulus, public_part(key).exponent) != (
            numbers.n,
            numbers.e,
        ):
            raise SecurityDataError("the private key does not match the certificate")
        if len(self._after_changes(user)) >= _MAX_PER_USER:
            raise error(
                "MQ_ERROR_INSUFFICIENT_RESOURCES", f"a user can have at most {_MAX_PER_USER} certificates"
            )
        before = tuple(each for each in self._after_changes(user) if each.certificate == certificate)
        kept = KeptCertificate(self._new_identifier(), certificate, internal=False, signs=key is not None)
        return self._replace(user, before, kept, key)

    def remove(self, user: Sid, identifier: UUID) -> Completion[KeptCertificate]:
        """Delete a certificate and its private key. Raises NO_INTERNAL_USER_CERT if the certificate does not
        exist.
        """
        found = tuple(kept for kept in self._after_changes(user) if kept.identifier == identifier)
        if not found:
            raise error("MQ_ERROR_NO_INTERNAL_USER_CERT", f"{user} has no certificate {identifier}")
        return self._replace(user, found, None, None).then(lambda _: Completion.of(found[0]))

    def _after_changes(self, user: Sid) -> tuple[KeptCertificate, ...]:
        """Returns the certificates of a user as the store has them, or will have them. A new change starts
        from these, so that it does not undo a pending one.
        """
        return self._stored.get(user, self.of(user))

    def _new_identifier(self) -> UUID:
        return self._services.new_guid()

    def _replace(
        self,
        user: Sid,
        gone: tuple[KeptCertificate, ...],
        new: KeptCertificate | None,
        key: RSAPrivateKey | None,
    ) -> Completion[Any]:
        """Change the certificates of a user in the store and in the directory. The old ones are used until
        the directory has the new one: if it does not answer, nothing changes.
        """
        added = () if new is None else (new,)
        secrets: dict[UUID, bytes] = {}
        if new is not None and key is not None:
            secrets[new.identifier] = self._vault.seal(_secret(new.identifier), to_der(key))

        def register(_: None) -> Completion[Any]:
            return _otherwise(self._register(user, gone, new), take_back).then(drop)

        def take_back(problem: Exception) -> Completion[None]:
            return self._store(user, added, (), {}).then(lambda _: failed(problem))

        def drop(_: None) -> Completion[Any]:
            return self._store(user, gone, (), {}).then(use)

        def use(_: None) -> Completion[Any]:
            self._kept[user] = tuple(kept for kept in self.of(user) if kept not in gone) + added
            if not self._kept[user]:
                del self._kept[user]
            for kept in gone:
                self._signers.pop(kept.identifier, None)
            self.changed()
            return Completion.of(new)

        return self._store(user, (), added, secrets).then(register)

    def _store(
        self,
        user: Sid,
        gone: tuple[KeptCertificate, ...],
        new: tuple[KeptCertificate, ...],
        secrets: Mapping[UUID, bytes],
    ) -> Completion[None]:
        """Change the certificates of a user in the store; `secrets` are the sealed keys of the new ones."""
        if not gone and not new:
            return Completion.of(None)
        after = tuple(kept for kept in self._after_changes(user) if kept not in gone) + new
        records = self._records

        def fill() -> None:
            name = MetaName.USER_CERTIFICATES + user.data
            if after:
                records.set_meta(name, [_row(kept) for kept in after])
            else:
                records.delete_meta(name)
            for kept in gone:
                records.delete_meta(_secret(kept.identifier))
            for identifier, sealed in secrets.items():
                records.set_meta(_secret(identifier), sealed)

        def settled(done: Completion[None]) -> None:
            if done.exception() is not None:
                left = tuple(kept for kept in self._after_changes(user) if kept not in new)
                self._stored[user] = left + gone

        stored = records.unit(fill)
        self._stored[user] = after
        stored.add_done_callback(settled)
        return stored

    def _register(
        self, user: Sid, gone: tuple[KeptCertificate, ...], new: KeptCertificate | None
    ) -> Completion[None]:
        """Replace certificates in the User object of the directory; certificates that other queue managers
        registered stay.
        """
        directory = self._directory
        if not directory.events.integrated:
            return Completion.of(None)
        ended: Completion[None] = Completion()

        def found(answer: Completion[DirectoryObject]) -> None:
            problem = answer.exception()
            if problem is None:
                done = self._rewrite(answer.result(), gone, new)
            elif not _is_missing(problem) or new is None:
                done = answer.then(lambda _: Completion.of(None)) if not _is_missing(problem) else _nothing()
            else:
                item = DirectoryObject(
                    ObjectType.USER, {"SecurityIdentifier": str(user)} | _lists([_of(new)])
                )
                done = directory.create(item).then(lambda _: _nothing())
            for_applications(done).add_done_callback(pass_on)

        def pass_on(done: Completion[None]) -> None:
            problem = done.exception()
            if problem is None:
                self.changed()
                ended.resolve(None)
            else:
                ended.fail(problem)

        conditions = (equals("SecurityIdentifier", str(user)),)
        directory.read(ObjectType.USER, conditions).add_done_callback(found)
        return ended

    def _rewrite(
        self, item: DirectoryObject, gone: tuple[KeptCertificate, ...], new: KeptCertificate | None
    ) -> Completion[None]:
        try:
            before = read_user_certificates(item.get("Certificates") or b"")
        except SecurityDataError:
            before = ()
        left_out = {kept.certificate for kept in gone} | ({new.certificate} if new is not None else set())
        after = [each for each in before if each.certificate not in left_out]
        if new is not None:
            after.append(_of(new))
        values = _lists(after) | {IDENTIFIER: item[IDENTIFIER]}
        return self._directory.write(DirectoryObject(ObjectType.USER, values))


def _otherwise(done: Completion[None], step: Callable[[Exception], Completion[None]]) -> Completion[None]:
    """Return a completion with the result of `done`; if that fails, with the one of `step(error)`."""
    ended: Completion[Completion[None]] = Completion()

    def end(done: Completion[None]) -> None:
        problem = done.exception()
        ended.resolve(done if problem is None else step(problem))

    done.add_done_callback(end)
    return ended.then(lambda last: last)


def _nothing() -> Completion[None]:
    return Completion.of(None)


def _is_missing(problem: Exception) -> bool:
    return isinstance(problem, DirectoryError) and problem.result is DirectoryOperationResult.OBJECT_NOT_FOUND


def _of(kept: KeptCertificate) -> UserCertificate:
    return UserCertificate(kept.certificate, kept.identifier)


def _lists(certificates: list[UserCertificate]) -> dict[str, Any]:
    return {
        "Certificates": write_user_certificates(certificates),
        "CertificateDigestList": [each.digest for each in certificates],
    }


def _row(kept: KeptCertificate) -> dict[str, Any]:
    return {
        "id": kept.identifier.bytes,
        "certificate": kept.certificate,
        "internal": kept.internal,
        "signs": kept.signs,
    }


def _secret(identifier: UUID) -> bytes:
    return MetaName.SECRET + b"certificate:" + identifier.bytes
