"""Signed messages of SRMP: what a receiver checks (MC-MQSRM 3.1.5.1.6.1) and what a sender adds (3.1.7.2.4).

The signature covers only body and extension, not label, destination, order or expiry. Signatures were not
tested with a Windows host, and no document defines how a message carries the certificate (A-64).
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from lxml import etree

from msmq_fast._native.framing import ParsedMessage, parse
from msmq_fast.packet.protect import protected, security_of
from msmq_fast.packet.user import SecurityHeader
from msmq_fast.protocol.properties import HashAlgorithm
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.hashing import digest
from msmq_fast.security.keyturns import KeyTurns
from msmq_fast.security.principals import SenderType
from msmq_fast.security.sid import Sid
from msmq_fast.security.xmlsignature import (
    NAMESPACE,
    XML_SIGNATURE,
    PublicKey,
    certificate_key,
    is_valid,
    signed_info,
)
from msmq_fast.srmp.model import Reference, SignaturePart
from msmq_fast.srmp.values import Nonconforming

__all__ = ["SignaturePolicy", "SignatureRefused", "Signer", "Verifier", "authenticated", "outgoing_signature"]

_METHOD: Final = f"{NAMESPACE}dsa"
_DIGESTS: Final = {
    f"{NAMESPACE}{name}": algorithm
    for name, algorithm in (
        ("sha1", HashAlgorithm.SHA1),
        ("md5", HashAlgorithm.MD5),
        ("sha256", HashAlgorithm.SHA256),
        ("sha512", HashAlgorithm.SHA512),
    )
}
_MOST_BROUGHT: Final = 2  # certificates of a message that are tried
_MOST_TRIED: Final = 64  # registered certificates that are tried for a message without one
_REMEMBERED: Final = 256


class SignatureRefused(Nonconforming):
    """The message is refused because its signature is missing or not valid (A-35)."""


@dataclass(frozen=True, slots=True)
class SignaturePolicy:
    """Which signatures are accepted (A-65).

    - `digests`: the hash algorithms that are accepted for the references; all of these algorithms except MD5
      are also accepted for the signature itself.
    - `unregistered`: whether the certificate in a message may be unregistered. A message with an unregistered
      certificate is not marked as authenticated, as anyone can create a certificate.
    - `always`: verify signatures even if neither the queue nor its access list requires a signature.
    """

    digests: frozenset[HashAlgorithm] = frozenset((HashAlgorithm.SHA256, HashAlgorithm.SHA512))
    unregistered: bool = False
    always: bool = False


@dataclass(frozen=True, slots=True)
class Signer:
    """A signer: a certificate, and the user for which it is registered, None if it is not registered."""

    certificate: bytes
    user: Sid | None = None


class Verifier:
    """Verifies signatures.

    `registered` returns (user, certificate) of each registered certificate. With `turns`, each use of a key
    waits until `turns` permits it; `monotonic` returns the time for `turns` in seconds.
    """

    def __init__(
        self,
        registered: Callable[[], Iterable[tuple[Sid, bytes]]],
        policy: SignaturePolicy | None = None,
        turns: KeyTurns | None = None,
        monotonic: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._registered = registered
        self._turns = turns
        self._now = monotonic
        self.policy = policy or SignaturePolicy()
        self._values = self.policy.digests - {HashAlgorithm.MD5}
        self._keys: dict[tuple[bytes, bool], PublicKey | None] = {}

    def verify(
        self, signature: SignaturePart | None, envelope: bytes, body: bytes | None, extension: bytes | None
    ) -> Signer:
        """Returns the signer of a message. `envelope` is as received; `body` and `extension` are the bytes of
        the two attachments, None if absent.

        Raises SignatureRefused if the signature is wrong or missing, KeyNeeded if a key must be used and it
        is not the caller's turn.
        """
        if signature is None:
            raise SignatureRefused("the message has no signature")
        if signature.method != _METHOD:
            raise SignatureRefused("the signature method is not #dsa")
        self._check_digests(signature.references, {"body": body, "extension": extension})
        candidates = list(self._candidates(signature))
        if not candidates:
            raise SignatureRefused("no certificate is known that can verify the signature")

        def find() -> Signer:
            return self._signer_among(candidates, signature, envelope)

        return find() if self._turns is None else self._turns.run(find, self._now())

    def _signer_among(self, candidates: list[Signer], signature: SignaturePart, envelope: bytes) -> Signer:
        spellings = _Spellings(signature.signed_info, envelope)
        for signer in candidates:
            key = self._key(signer)
            if key is not None and is_valid(key, spellings, signature.value, self._values):
                return signer
        raise SignatureRefused("the signature value is wrong")

    def _check_digests(self, references: tuple[Reference, ...], parts: dict[str, bytes | None]) -> None:
        if not 1 <= len(references) <= 2:
            raise SignatureRefused(f"the signature has an invalid number of references: {len(references)}")
        seen = set()
        for reference in references:
            kind = reference.uri.partition("@")[0].removeprefix("cid:")
            if kind not in parts or not reference.uri.startswith("cid:"):
                raise SignatureRefused(
                    "a reference of the signature names neither the body nor the extension"
                )
            if kind in seen:
                raise SignatureRefused(f"the signature has two references to the {kind}")
            seen.add(kind)
            content = parts[kind]
            if content is None:
                raise SignatureRefused(f"the signature refers to the {kind}, which the message does not have")
            algorithm = _DIGESTS.get(reference.digest_method or "")
            if algorithm is None or algorithm not in self.policy.digests:
                raise SignatureRefused("the digest method is not accepted")
            if not hmac.compare_digest(digest(algorithm, (content,)), _decoded(reference.digest_value)):
                raise SignatureRefused(f"the digest of the {kind} is wrong")

    def _candidates(self, signature: SignaturePart) -> Iterator[Signer]:
        """Yield the certificates that may belong to the key of a signature: those in the message or, if it
        has none, the registered ones (A-64).
        """
        registered = list(self._registered())
        for certificate in signature.certificates[:_MOST_BROUGHT]:
            user = next((user for user, each in registered if each == certificate), None)
            if user is not None or self.policy.unregistered:
                yield Signer(certificate, user)
        if not signature.certificates:
            for user, certificate in registered[:_MOST_TRIED]:
                yield Signer(certificate, user)

    def _key(self, signer: Signer) -> PublicKey | None:
        registered = signer.user is not None
        place = (signer.certificate, registered)
        if place not in self._keys:
            if len(self._keys) >= _REMEMBERED:
                self._keys.clear()
            try:
                self._keys[place] = certificate_key(signer.certificate, registered=registered)
            except SecurityDataError:
                self._keys[place] = None
        return self._keys[place]


def _decoded(text: str | None) -> bytes:
    if text is None:
        raise SignatureRefused("a reference of the signature has no digest")
    try:
        return b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise SignatureRefused("a digest of the signature is not base64") from None


class _Spellings:
    """The forms of SignedInfo that the sender may have hashed: first the octets as received, then exclusive
    and inclusive canonical XML. The canonical forms are computed once, and only if the octets do not match.
    """

    def __init__(self, octets: bytes, envelope: bytes) -> None:
        self._octets = octets
        self._envelope = envelope
        self._canonical: tuple[bytes, ...] | None = None

    def __iter__(self) -> Iterator[bytes]:
        yield self._octets
        if self._canonical is None:
            self._canonical = tuple(_canonical(self._envelope))
        yield from self._canonical


def _canonical(envelope: bytes) -> Iterator[bytes]:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        top = etree.fromstring(envelope, parser)
    except etree.XMLSyntaxError:
        return
    element = next(top.iter(f"{{{NAMESPACE}}}SignedInfo"), None)
    if element is not None:
        element.tail = None
        yield etree.tostring(element, method="c14n", exclusive=True, with_comments=False)
        whole = etree.Element(element.tag, element.attrib, element.nsmap)
        whole.text = element.text
        whole.extend(list(element))
        yield etree.tostring(whole, method="c14n", exclusive=False, with_comments=False)


def authenticated(packet: bytes, signer: Signer) -> bytes:
    """Return the packet of a verified message as a queue stores it (A-66): marked as authenticated if the
    signer is registered, otherwise only with the certificate.

    Raises InsufficientResources if the packet would be too large with the certificate.
    """
    message = parse(packet)
    header = security_of(message) or SecurityHeader()
    header.certificate = signer.certificate
    if signer.user is not None:
        header.authentication_level = XML_SIGNATURE
        header.sender_id_type, header.sender_id = SenderType.SID, signer.user.data
    return protected(message, header)


def outgoing_signature(message: ParsedMessage, *, with_certificate: bool = False) -> SignaturePart | None:
    """Return the signature that `qm.signing` has added to a message of this computer; None if there is none.

    `with_certificate`: the result includes the certificate of the signer.
    """
    header = security_of(message)
    if header is None or header.authentication_level != XML_SIGNATURE or not header.signature:
        return None
    octets = signed_info(UUID(bytes_le=message.source), bytes(message.body), bytes(message.extension))
    certificates = (header.certificate,) if with_certificate else ()
    return SignaturePart(_METHOD, (), header.signature, octets, certificates)
