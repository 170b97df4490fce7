"""Runs a scenario with one fault, and judges what is there afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from msmq_fast._native.tables import StoreError
from msmq_fast.protocol.errors import MSMQError
from tests.faults.matrix.account import Numbers, State, check, observe, remember
from tests.faults.matrix.host import Host
from tests.faults.matrix.scenario import Scenario, Step

_ATTEMPTS = 6


@dataclass
class Ledger:
    """What programs were told, kept outside of the host. `begun` and `done` count steps."""

    begun: int = 0
    done: int = 0
    failed: bool = False  # the last one that was begun ended with an error
    tell: Callable[[str], None] | None = None
    numbers: Numbers = field(default_factory=Numbers)

    def begin(self) -> None:
        self.begun, self.failed = self.done + 1, False
        self._tell("begin")

    def end(self) -> None:
        self.done = self.begun
        self._tell("end")

    def fail(self) -> None:
        self.failed = True
        self._tell("fail")

    def _tell(self, line: str) -> None:
        if self.tell is not None:
            self.tell(line)

    def take(self, line: str) -> None:
        """What another ledger told."""
        {"begin": self.begin, "end": self.end, "fail": self.fail}[line]()

    def allowed(self, scenario: Scenario) -> list[tuple[int, State]]:
        """(steps that have happened, state) for everything that may be there."""
        found = [(self.done, state) for state in _states(scenario, self.done)]
        if self.begun == self.done:
            return found
        step = scenario.steps[self.done]
        after = [(self.begun, state) for state in step.after]
        if self.failed and not step.repeats:
            return found
        return after if step.certain else found + after


def _states(scenario: Scenario, done: int) -> list[State]:
    return scenario.steps[done - 1].after if done else [scenario.before]


def started(scenario: Scenario, host: Host) -> Host:
    """The host with what the scenario begins with."""
    scenario.prepare(host)
    host.run()
    remember(host)
    return host


def play(scenario: Scenario, host: Host, ledger: Ledger) -> None:
    """The steps that are left; one that fails is tried again. Raises Died."""
    while ledger.done < len(scenario.steps):
        step = scenario.steps[ledger.done]
        for _ in range(_ATTEMPTS):
            if attempt(step, host, ledger):
                break
            judge_here(scenario, host, ledger)
            if step.repeats and matches(scenario, host, step.after):
                ledger.end()
                break
        else:
            raise AssertionError(f"step {ledger.begun} of {scenario.unit} does not succeed any more")
        remember(host)


def attempt(step: Step, host: Host, ledger: Ledger) -> bool:
    """One step; whether the program was told that it is done."""
    ledger.begin()
    try:
        done = step.act(host)
        if done.done and step.certain:
            ledger.end()  # nobody is told when it happens
        host.run(done)
        host.settle()
        done.result()
    except (StoreError, MSMQError):
        host.faults += 1
        host.stop_if_failed()
        ledger.fail()
        host.settle()
        return False
    finally:
        ledger.numbers.take(host)
    if ledger.done < ledger.begun:
        ledger.end()
    return True


def seen(scenario: Scenario, host: Host) -> State:
    state = observe(host)
    if scenario.more is not None:
        state["more"] = scenario.more(host)
    return state


def matches(scenario: Scenario, host: Host, states: list[State]) -> bool:
    return seen(scenario, host) in states


def judge_here(scenario: Scenario, host: Host, ledger: Ledger) -> None:
    """The host lives on: it is in a state that fits what it told."""
    remember(host)
    state = seen(scenario, host)
    allowed = [state for _, state in ledger.allowed(scenario)]
    assert state in allowed, f"{scenario.unit}, {ledger}: {state} is none of {allowed}"
    check(host)


def judge_again(scenario: Scenario, host: Host, ledger: Ledger) -> None:
    """The host was killed and has recovered: it holds what was acknowledged, and it can go on."""
    ledger.numbers.check(host)
    host.settle()
    remember(host)
    state = seen(scenario, host)
    allowed = ledger.allowed(scenario)
    steps = [count for count, expected in allowed if expected == state]
    assert steps, f"{scenario.unit}, {ledger}: {state} is none of {[state for _, state in allowed]}"
    check(host, recovered=True)
    ledger.begun = ledger.done = max(steps)
    ledger.failed = False
    play(scenario, host, ledger)
    judge_here(scenario, host, ledger)
