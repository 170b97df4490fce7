"""Envelopes that are read: what is refused, a path, a signature."""

from __future__ import annotations

import pytest

from msmq_fast.srmp.model import Envelope
from msmq_fast.srmp.reading import read_envelope
from msmq_fast.srmp.values import Nonconforming
from tests.support.srmp.texts import DS, GUID, envelope, msmq, path, properties

SIGNED_INFO = (
    f'<SignedInfo><SignatureMethod Algorithm="{DS}dsa"></SignatureMethod>'
    f'<Reference URI="cid:body@{GUID}"><DigestMethod Algorithm="{DS}sha1"></DigestMethod>'
    "<DigestValue>XU9yAzfwEPuP7L5iOcQY9XRNEWM=</DigestValue></Reference></SignedInfo>"
)
VALUE = "<SignatureValue>ZxvFMInWLSb1+iNj5xA/OhPHE4uzIx4nXOCmoOyGSSw=</SignatureValue>"


def refused(xml: bytes, why: str = "") -> None:
    with pytest.raises(Nonconforming, match=why or None):
        read_envelope(xml)


def read(*headers: str) -> Envelope:
    return read_envelope(envelope(*headers))


def with_path(content: str) -> Envelope:
    return read(path(content), properties(), msmq())


def signed(content: str = SIGNED_INFO + VALUE) -> str:
    return f'<Signature xmlns="{DS}">{content}</Signature>'
