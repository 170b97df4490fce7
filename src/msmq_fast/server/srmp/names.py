"""Names and signatures of SRMP according to the configuration: redirections, URLs of this server, signers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msmq_fast.config.sections import SrmpConfig
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.qm.identity.certificates import Certificates
from msmq_fast.qm.queues.registry import QueueRegistry
from msmq_fast.qm.settings import QueueManagerSettings
from msmq_fast.security.keyturns import KeyTurns
from msmq_fast.security.sid import Sid
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.srmp.mapping import MappingError, read_mapping
from msmq_fast.srmp.redirection import Redirections, Redirector
from msmq_fast.srmp.signature import SignaturePolicy, Verifier
from msmq_fast.srmp.urls import OwnUrls

__all__ = ["redirections", "redirector", "verifier"]


def redirections(settings: SrmpConfig) -> Redirections:
    """Return the redirections of the configuration, followed by those of the mapping files in the order of
    the file names.

    Raises DeclarationError if a file is invalid.
    """
    found = Redirections(
        settings.inbound,
        settings.outbound,
        settings.outbound_exceptions,
        settings.stream_receipts,
        settings.default_stream_receipt,
        settings.store_and_forward,
    )
    for file, data in _files(settings.mapping):
        try:
            found += read_mapping(data)
        except MappingError as problem:
            raise DeclarationError(f"{file}: {problem}") from None
    return found


def _files(directory: Path | None) -> Iterator[tuple[Path, bytes]]:
    if directory is None:
        return
    try:
        for file in sorted(directory.iterdir()):
            if file.suffix.lower() == ".xml":
                yield file, file.read_bytes()
    except OSError as problem:
        raise DeclarationError(
            f"srmp.mapping: {problem.filename or directory}: {problem.strerror or problem}"
        ) from None


def redirector(settings: SrmpConfig, registry: QueueRegistry, about: QueueManagerSettings) -> Redirector:
    """Return the object that finds the queue or the host for a URL. Raises DeclarationError. `OwnUrls.listen`
    sets the ports of this server later.
    """
    host = settings.public_host or about.advertised or about.qualified_name
    return Redirector(OwnUrls(registry, host), redirections(settings))


def verifier(
    settings: SrmpConfig,
    certificates: Certificates,
    turns: KeyTurns,
    monotonic: Callable[[], float],
) -> Verifier:
    """Return the object that verifies signatures with the registered certificates of users."""
    digests = frozenset(HashAlgorithm[name.upper()] for name in settings.signature_digests)
    policy = SignaturePolicy(digests, settings.unregistered_certificates, settings.verify_signatures)
    return Verifier(_registered(certificates), policy, turns, monotonic)


def _registered(certificates: Certificates) -> Callable[[], Iterable[tuple[Sid, bytes]]]:
    def found() -> Iterator[tuple[Sid, bytes]]:
        for user in certificates.users():
            for kept in certificates.of(user):
                yield user, kept.certificate

    return found
