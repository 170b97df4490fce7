"""Whose certificate a signed message comes with."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from msmq_fast.security.principals import SenderType
from msmq_fast.security.senders import SenderCertificates
from msmq_fast.security.sid import sid

OWNER = sid("S-1-5-21-1-2-3-1000")
OTHER = sid("S-1-5-21-1-2-3-1001")
KEY = rsa.RSAPublicNumbers(65537, (1 << 2047) | 0xF00D << 64 | 1).public_key()


@pytest.mark.rule("QB-243")
def test_a_cached_certificate_belongs_to_its_own_user_only() -> None:
    senders = SenderCertificates(lambda user: [b"certificate"] if user == OWNER else [], lambda _guid: [])
    assert senders.belongs(SenderType.SID, OWNER.data, b"certificate", KEY, 0.0)
    assert not senders.belongs(SenderType.SID, OTHER.data, b"certificate", KEY, 0.0)
    assert not senders.belongs(SenderType.SID, OWNER.data, b"certificate ", KEY, 0.0)
    assert senders.belongs(SenderType.SID, OWNER.data, b"certificate", KEY, 0.0)
