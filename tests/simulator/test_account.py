"""What the account of a run takes for a message that came twice, and what for one that may do so."""

from __future__ import annotations

import pytest

from .account import MEMORY, Account, Fate, Key, Kind, Wrong, body

pytestmark = pytest.mark.smoke

FIRST, SECOND = 0x100, 0x200  # LookupIdentifiers


def _account(kind: Kind, crashes: list[float] | None = None) -> Account:
    """One message was sent, arrived after ten seconds, and was read."""
    account = Account({"A": [], "B": crashes or []})
    stream = account.stream(kind, "A", "B", "q")
    account.settle(stream, account.offer(stream, 1, 0.0), Fate.KEPT)
    account.read(_see(account, FIRST, 10.0))
    return account


def _see(account: Account, lookup_id: int, now: float) -> Key:
    return account.seen("B/q", body(1, 1, 0), lookup_id, r"{A}\1", now)


@pytest.mark.parametrize("kind", [Kind.RECOVERABLE, Kind.EXPRESS])
def test_what_arrives_again_may_be_forgotten_in_the_end_only(kind: Kind) -> None:
    with pytest.raises(Wrong, match="arrived again"):
        _see(_account(kind), SECOND, 10.0 + MEMORY)
    account = _account(kind)
    _see(account, SECOND, 11.0 + MEMORY)
    account.read(_see(account, SECOND, 12.0 + MEMORY))  # it had been given back
    assert account.duplicates == {kind.value: 1}
    with pytest.raises(Wrong, match="was read and is there"):
        _see(account, SECOND, 13.0 + MEMORY)


def test_what_was_read_is_not_at_its_place_again_however_late() -> None:
    with pytest.raises(Wrong, match="was read and is there"):
        _see(_account(Kind.RECOVERABLE), FIRST, 10 * MEMORY)


def test_a_transactional_message_is_never_forgotten() -> None:
    with pytest.raises(Wrong, match="was at"):
        _see(_account(Kind.TRANSACTIONAL), SECOND, 10 * MEMORY)


def test_a_crash_forgets_express_messages_only() -> None:
    _see(_account(Kind.EXPRESS, [20.0]), SECOND, 30.0)
    with pytest.raises(Wrong, match="arrived again"):
        _see(_account(Kind.RECOVERABLE, [20.0]), SECOND, 30.0)


def test_a_journal_has_one_copy_for_each_arrival() -> None:
    account = _account(Kind.RECOVERABLE)
    account.journaling.add("B/q")
    account.read(_see(account, SECOND, 11.0 + MEMORY))
    account.copied("B", "q", body(1, 1, 0))
    with pytest.raises(Wrong, match="1 journal copies"):
        account.check()
    account.copied("B", "q", body(1, 1, 0))
    account.check()
    account.copied("B", "q", body(1, 1, 0))
    with pytest.raises(Wrong, match="3 journal copies"):
        account.check()
