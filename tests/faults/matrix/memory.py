"""Faults in a store in memory: every call, every commit, and death at every moment of every commit."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable

from msmq_fast._native.tables import StoreError
from tests.faults.matrix.host import Died, Host
from tests.faults.matrix.runner import Ledger, judge_again, judge_here, play, started
from tests.faults.matrix.scenario import Scenario

NEVER = 1 << 40
MOMENTS = ("before", "under way", "after")
_MANY = 2000  # more calls than any script makes


def inject(scenario: Scenario, counts: Counter[str]) -> None:
    """All of them; `counts` by kind of fault."""
    calls(scenario, counts)
    commits(scenario, counts)
    deaths(scenario, counts)


def calls(scenario: Scenario, counts: Counter[str]) -> None:
    """The n-th call of the store raises, for every n. Whoever can take back what it did lives on."""
    for nth in range(1, _MANY):
        host = started(scenario, Host(**scenario.settings))
        ledger = Ledger()
        host.memory.fail_call(nth)
        with _name(scenario, f"call {nth}"):
            if _played(scenario, host, ledger) and _still_to_fail(host):
                return
            counts["call"] += 1
            counts["lived through"] += not host.store.writer.failed
            _judge(scenario, host, ledger)
    raise AssertionError("the script has no end")


def _still_to_fail(host: Host) -> bool:
    """Whether the script was over before the call that was to fail."""
    try:
        host.memory.when_durable(lambda _status: None)
    except StoreError:
        return True
    return False


def commits(scenario: Scenario, counts: Counter[str]) -> None:
    """The n-th commit finds no room, for every n."""
    for nth in range(1, _MANY):
        host = started(scenario, Host(**scenario.settings))
        ledger = Ledger()
        before = host.memory.statistics()["failed_batches"]
        host.memory.fail_commit(nth, errno.ENOSPC)
        with _name(scenario, f"full commit {nth}"):
            _played(scenario, host, ledger)
            if host.memory.statistics()["failed_batches"] == before:
                return
            counts["full"] += 1
            _judge(scenario, host, ledger)
    raise AssertionError("the script has no end")


def deaths(scenario: Scenario, counts: Counter[str]) -> None:
    """The process dies at each moment of each commit."""
    for moment in MOMENTS:
        for nth in range(1, _MANY):
            host = started(scenario, Host(**scenario.settings))
            ledger = Ledger()
            host.at_commit = _killer(nth, moment)
            with _name(scenario, f"dies {moment} commit {nth}"):
                if _played(scenario, host, ledger):
                    break
                counts[f"killed {moment}"] += 1
                _judge(scenario, host, ledger)
        else:
            raise AssertionError("the script has no end")


def _killer(nth: int, moment: str) -> Callable[[int, str], None]:
    seen = 0

    def at_commit(_number: int, now: str) -> None:
        nonlocal seen
        seen += now == moment
        if now == moment and seen == nth:
            raise Died

    return at_commit


def _played(scenario: Scenario, host: Host, ledger: Ledger) -> bool:
    """Whether the script came to its end; what the host lives through is judged on the way."""
    try:
        play(scenario, host, ledger)
        judge_here(scenario, host, ledger)
    except Died:
        return False
    return True


def _judge(scenario: Scenario, host: Host, ledger: Ledger) -> None:
    ledger.numbers.take(host)
    host.memory.fail_call(NEVER)
    host.again()
    judge_again(scenario, host, ledger)


class _name:
    """Says in a failure which fault it was."""

    def __init__(self, scenario: Scenario, fault: str) -> None:
        self.fault = f"{scenario.unit}: {fault}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None:
            error.add_note(self.fault)
