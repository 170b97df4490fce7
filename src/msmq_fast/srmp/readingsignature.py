"""Parses the Signature element of an envelope ([MC-MQSRM] 2.2.7). It does not verify the signature."""

from __future__ import annotations

import re
from typing import Any, Final

from msmq_fast.srmp.model import Reference, SignaturePart
from msmq_fast.srmp.values import Nonconforming, read_base64

__all__ = ["read_signature"]

_DS: Final = "{http://www.w3.org/2000/02/xmldsig#}"
_DS_LATER: Final = "{http://www.w3.org/2000/09/xmldsig#}"  # of the Recommendation

_MOST_CERTIFICATES: Final = 8  # as many as a chain may have


def read_signature(signature: Any, xml: bytes) -> SignaturePart:
    """Parse the Signature element `signature` of the envelope `xml`.

    Raises Nonconforming unless it has exactly one SignedInfo, SignatureMethod and SignatureValue.
    """
    info = _only(signature, "SignedInfo")
    method = _only(info, "SignatureMethod")
    value = _only(signature, "SignatureValue")
    return SignaturePart(
        method=method.get("Algorithm", ""),
        references=tuple(_read_reference(each) for each in info.findall(f"{_DS}Reference")),
        value=read_base64(value.text or ""),
        signed_info=_octets(info.prefix, xml),
        certificates=_certificates(signature),
    )


def _only(parent: Any, name: str) -> Any:
    found = parent.findall(_DS + name)
    if len(found) != 1:
        raise Nonconforming(f"a signature must have one {name}, not {len(found)}")
    return found[0]


def _read_reference(reference: Any) -> Reference:
    method = reference.find(f"{_DS}DigestMethod")
    value = reference.find(f"{_DS}DigestValue")
    return Reference(
        uri=reference.get("URI", ""),
        digest_method=None if method is None else method.get("Algorithm"),
        digest_value=None if value is None else "".join((value.text or "").split()),
    )


def _octets(prefix: str | None, xml: bytes) -> bytes:
    """Return the octets of the SignedInfo element as received (A-64). Raises Nonconforming unless its start
    tag and its end tag each occur exactly once.
    """
    name = b"SignedInfo" if prefix is None else prefix.encode() + b":SignedInfo"
    starts = [found.start() for found in re.finditer(rb"<%b[\s>]" % re.escape(name), xml)]
    ends = [found.end() for found in re.finditer(rb"</%b\s*>" % re.escape(name), xml)]
    if len(starts) != 1 or len(ends) != 1:
        raise Nonconforming("the signed octets of SignedInfo cannot be determined")
    return xml[starts[0] : ends[0]]


def _certificates(signature: Any) -> tuple[bytes, ...]:
    """Return the certificates in the KeyInfo element, whichever of two namespaces it has; the specification
    does not define how a message carries them (A-64).
    """
    elements = [
        each
        for space in (_DS, _DS_LATER)
        for info in (f"{_DS}KeyInfo", f"{_DS_LATER}KeyInfo")
        for each in signature.iterfind(f"{info}/{space}X509Data/{space}X509Certificate")
    ]
    if len(elements) > _MOST_CERTIFICATES:
        raise Nonconforming(f"a signature has too many certificates: {len(elements)}")
    certificates = tuple(read_base64(each.text or "") for each in elements)
    if len(set(certificates)) < len(certificates):
        raise Nonconforming("a signature has the same certificate twice")
    return certificates
