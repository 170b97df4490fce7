"""The signature of an envelope that arrives, as it is read; it is not verified here."""

from __future__ import annotations

import base64
import re

import pytest

from msmq_fast.srmp.model import Reference
from tests.srmp.reading import SIGNED_INFO, VALUE, read, refused, signed
from tests.support.srmp.texts import DS, GUID, envelope, msmq, path, properties


@pytest.mark.rule("SR-095", "SR-096")
def test_a_signature_as_it_came() -> None:
    found = read(path(), properties(), msmq(), signed()).signature
    assert found is not None
    assert found.method == f"{DS}dsa"
    assert found.references == (Reference(f"cid:body@{GUID}", f"{DS}sha1", "XU9yAzfwEPuP7L5iOcQY9XRNEWM="),)
    assert found.value == base64.b64decode(VALUE[16:-17])
    assert found.signed_info == SIGNED_INFO.encode()


def test_a_signature_with_prefixes_and_certificates() -> None:
    der = base64.b64encode(b"certificate").decode()
    text = re.sub(r"(</?)(\w)", r"\1d:\2", SIGNED_INFO + VALUE)
    later = DS.replace("2000/02", "2000/09")
    keys = (
        f'<KeyInfo xmlns="{later}"><X509Data><X509Certificate> {der}\n</X509Certificate></X509Data></KeyInfo>'
    )
    found = read(path(), properties(), msmq(), f'<d:Signature xmlns:d="{DS}">{text}{keys}</d:Signature>')
    assert found.signature is not None
    assert found.signature.signed_info == re.sub(r"(</?)(\w)", r"\1d:\2", SIGNED_INFO).encode()
    assert found.signature.certificates == (b"certificate",)


@pytest.mark.rule("SR-096")
@pytest.mark.parametrize(
    "content",
    [
        *("", SIGNED_INFO, VALUE, SIGNED_INFO * 2 + VALUE, SIGNED_INFO + VALUE * 2),
        SIGNED_INFO.replace("SignatureMethod", "Method") + VALUE,
        SIGNED_INFO + VALUE.replace("Zxv", "Z?v"),
        SIGNED_INFO + VALUE + "<!-- <SignedInfo> -->",
    ],
)
def test_signatures_that_are_none(content: str) -> None:
    refused(envelope(path(), properties(), msmq(), signed(content)))
