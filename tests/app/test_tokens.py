"""Tokens of programs: whose they are, and what becomes of those that are guessed."""

from __future__ import annotations

import hashlib

from msmq_fast.app.auth import TokenTable
from msmq_fast.security.logons import LogonLimits


def test_guessed_tokens_lock_their_address_but_not_who_is_known_there() -> None:
    now = 10.0
    users = {"billing": "s3cret", "report": "t0ken"}
    table = TokenTable(users, {"report": ("readers",)}, LogonLimits(lambda: now))
    known = table.identify("s3cret", "10.0.0.1")
    assert known is not None
    assert (known.name, known.groups) == ("billing", ())
    guessed = [table.identify(f"guess {number}", "10.0.0.1") for number in range(100)]
    assert guessed == [None] * 100
    assert table.identify("t0ken", "10.0.0.1") is None
    assert table.identify("s3cret", "10.0.0.1") == known
    other = table.identify("t0ken", "10.0.0.2")
    assert other is not None
    assert other.groups == ("readers",)
    now += 400
    assert table.identify("t0ken", "10.0.0.1") == other


def test_the_digest_of_a_token_is_enough_to_know_it() -> None:
    table = TokenTable({"billing": hashlib.sha256(b"s3cret").digest(), "report": "t0ken"})
    known = [table.identify(token, "10.0.0.1") for token in ("s3cret", "t0ken")]
    assert [identity and identity.name for identity in known] == ["billing", "report"]
    assert table.identify(hashlib.sha256(b"s3cret").hexdigest(), "10.0.0.1") is None
