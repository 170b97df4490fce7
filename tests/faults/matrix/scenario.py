"""A scenario is a script of steps for one durability unit; what several scenarios use is here too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.store.completion import Completion
from tests.faults.matrix.account import State
from tests.faults.matrix.host import Host

RECEIPT: dict[str, Any] = {
    "acknowledge": Acknowledge.POSITIVE_RECEIVE | Acknowledge.NEGATIVE_RECEIVE,
    "admin_queue": parse_format_name(r"DIRECT=OS:HOST\private$\admin"),
}
ARRIVAL = RECEIPT | {"acknowledge": Acknowledge.POSITIVE_ARRIVAL}
DEAD = RECEIPT | {"journal": Journal.DEADLETTER}
REMOTE = r"DIRECT=OS:THERE\private$\far"


@dataclass
class Step:
    """`act` starts it; its Completion says that it is kept. `after` are the states that may be there then,
    the first one without a crash. `certain` is a step that happens in any case once it was begun;
    `repeats` one that is tried again by itself.
    """

    act: Callable[[Host], Completion[Any]]
    after: list[State]
    certain: bool = False
    repeats: bool = False


@dataclass
class Scenario:
    """`prepare` makes the state `before`; then come the steps. `more` adds to what is observed."""

    unit: str
    prepare: Callable[[Host], object]
    before: State
    steps: list[Step]
    more: Callable[[Host], list[str]] | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def basic(host: Host, *bodies: str, wishes: dict[str, Any] | None = None, **properties: Any) -> None:
    host.create("admin")
    host.create("orders", **properties)
    host.send("orders", *bodies, **(wishes or {}))


def send(name: str, body: str, **values: Any) -> Callable[[Host], Completion[Any]]:
    return lambda host: host.sender(name).send(Message(body=body.encode(), delivery=1, **values))


def receive(host: Host) -> Completion[Any]:
    return host.reader("orders").receive(0).completion


def nacks(name: str, *bodies: str) -> list[str]:
    return [f"{name} {body}" for body in bodies]
