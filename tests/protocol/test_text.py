"""Texts for people: numbers with their nouns."""

from __future__ import annotations

import pytest

from msmq_fast.client.errors import BatchRefused, Refusal, SendInDoubt
from msmq_fast.client.message import Message
from msmq_fast.protocol.errors import AccessDenied
from msmq_fast.protocol.text import counted, noun_of

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 messages are"), (1, "1 message is"), (2, "2 messages are"), (-1, "-1 messages are")],
)
def test_a_number_has_the_form_of_its_noun(number: int, text: str) -> None:
    assert counted(number, "message is", "messages are") == text
    assert counted(number, "queue") == f"{number} {noun_of(number, 'queue')}"
    assert noun_of(number, "entry", "entries") == ("entry" if number == 1 else "entries")


def test_errors_of_the_client_count_in_words() -> None:
    refused = AccessDenied("no right")
    assert "1 of 1 message refused" in str(BatchRefused(0, [Refusal(0, refused)]))
    assert "1 of 3 messages refused" in str(BatchRefused(2, [Refusal(0, refused)]))
    assert "1 message is in doubt" in str(SendInDoubt([Message(b"")], 0, "cut"))
    assert "2 messages are in doubt" in str(SendInDoubt([Message(b"")] * 2, 0, "cut"))
