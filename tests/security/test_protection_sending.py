"""Which messages are encrypted as they leave."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmq_fast.mqqb.protection import SentProtection
from msmq_fast.packet.names import parse_format_name
from msmq_fast.security.algorithms import PROVIDERS
from msmq_fast.security.encryption import EncryptionError, Failure
from tests.security.packets import SOURCE, TARGET, message
from tests.security.protection import DESTINATION, encrypted, private, sent_keys


@pytest.mark.rule("QB-341", "QB-402")
@pytest.mark.parametrize(
    ("name", "manager"), [("DIRECT=OS:there\\private$\\q", TARGET), (str(DESTINATION), None)]
)
def test_only_public_and_private_names(name: str, manager: UUID | None) -> None:
    sealing = SentProtection(SOURCE, sent_keys(*PROVIDERS), lambda: 0.0)
    for level in (1, 3, 5):
        with pytest.raises(EncryptionError, match=Failure.NOT_ADDRESSED.value):
            sealing.protect(private(level), parse_format_name(name), manager)


def test_what_is_clear_or_encrypted_already_is_left_alone() -> None:
    sealing = SentProtection(SOURCE, sent_keys(*PROVIDERS), lambda: 0.0)
    clear = message().to_packet()
    assert sealing.protect(clear, DESTINATION, TARGET) == clear
    once = sealing.protect(private(), DESTINATION, TARGET)
    assert sealing.protect(once, DESTINATION, TARGET) == once
    others = private(source_machine=TARGET)  # on their way through this queue manager
    assert sealing.protect(others, DESTINATION, TARGET) == others


def test_too_large_when_encrypted() -> None:
    room = 0x400000 - len(private(body=b""))
    with pytest.raises(EncryptionError) as caught:
        encrypted(private(body=bytes(room)))
    assert caught.value.failure is Failure.TOO_LARGE
