"""DU-12 to DU-15 and DU-19: what another queue manager sent, and what it gets."""

from __future__ import annotations

from typing import Any

from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.properties import Journal
from msmq_fast.store.completion import Completion
from tests.faults.matrix import receiver
from tests.faults.matrix.host import Host
from tests.faults.matrix.peer import arrive, bring, context, numbers
from tests.faults.matrix.scenario import ARRIVAL, Scenario, Step, basic, receive


def _read_by_peer_node(host: Host) -> Completion[Any]:
    context(host)  # FinalAcks are MS-MQQB's
    return receive(host)


def _with_peer(host: Host, **properties: Any) -> None:
    """With what MS-MQQB writes when it begins."""
    basic(host, **properties)
    context(host)


STREAM = Scenario(
    "DU-12",
    lambda host: _with_peer(host, transactional=True),
    {"orders": [], "admin": [], "more": []},
    [
        Step(arrive(1, "1"), [{"orders": ["1"], "admin": [], "more": ["1"]}]),
        Step(arrive(2, "2", journal=True), [{"orders": ["1", "2"], "admin": [], "more": ["2"]}]),
        Step(
            arrive(3, "3", late=True),
            [
                {
                    "orders": ["1", "2"],
                    "order_queue$": ["NACK_REACH_QUEUE_TIMEOUT ?"],
                    "admin": [],
                    "more": ["3"],
                }
            ],
        ),
        Step(
            _read_by_peer_node,
            [{"orders": ["2"], "order_queue$": ["NACK_REACH_QUEUE_TIMEOUT ?"], "admin": [], "more": ["3"]}],
        ),
        Step(
            _read_by_peer_node,
            [
                {
                    "orders": [],
                    "order_queue$": ["NACK_REACH_QUEUE_TIMEOUT ?", "ACK_RECEIVE ?"],
                    "admin": [],
                    "more": ["3"],
                }
            ],
        ),
    ],
    more=numbers,
)


def _history(host: Host) -> list[str]:
    return [str(item.ordinal) for item in host.store.load_history()]


INBOUND = Scenario(
    "DU-13",
    _with_peer,
    {"orders": [], "admin": [], "more": []},
    [
        Step(
            bring(11, "1", admin=r"OS:HOST\private$\admin", ack_flags=int(ARRIVAL["acknowledge"])),
            [{"orders": ["1"], "admin": ["ACK_REACH_QUEUE 1"], "more": ["11"]}],
        ),
        Step(
            bring(12, "2"),
            [{"orders": ["1", "2"], "admin": ["ACK_REACH_QUEUE 1"], "more": ["11", "12"]}],
        ),
        Step(  # a repetition
            bring(12, "2"),
            [{"orders": ["1", "2"], "admin": ["ACK_REACH_QUEUE 1"], "more": ["11", "12"]}],
        ),
    ],
    more=_history,
)


def _gone(host: Host, *bodies: str, journal: Journal = Journal.NONE) -> None:
    for body in bodies:
        done = receiver.commit(body, journal=journal)(host)
        host.run(done)
        done.result()


NUMBERS = Scenario(
    "DU-19",
    lambda host: _gone(host, "1"),
    {"far": ["1"], "more": []},
    [
        Step(receiver.commit("2"), [{"far": ["1", "2"], "more": []}]),
        Step(receiver.commit("3", "4"), [{"far": ["1", "2", "3", "4"], "more": []}]),
    ],
    more=receiver.places,
)


def _ordered(host: Host) -> None:
    _gone(host, "1")
    _gone(host, "2", journal=receiver.ASKED)
    _gone(host, "3", "4")


ORDERED = Scenario(
    "DU-14",
    _ordered,
    {"far": ["1", "2", "3", "4"], "more": []},
    [
        Step(
            receiver.order("3"),
            [{"far": ["2", "4"], "more": ["2"]}, {"far": ["2", "4"], "more": []}],
            repeats=True,
        ),
        Step(
            receiver.order("4"),
            [{"far": ["2"], "more": ["2"]}, {"far": ["2"], "more": []}],
            repeats=True,
        ),
    ],
    more=receiver.places,
)


def _waiting(host: Host) -> None:
    _gone(host, "1", "2", journal=receiver.ASKED)
    done = receiver.order("2")(host)
    host.run(done)
    done.result()


FINAL = Scenario(
    "DU-15",
    _waiting,
    {"far": ["1", "2"], "more": ["1", "2"]},
    [
        Step(
            receiver.final("1", MessageClass.ACK_RECEIVE),
            [{"far": ["2"], "system$;journal": ["1"], "more": ["2"]}],
            repeats=True,
        ),
        Step(
            receiver.final("2", MessageClass.NACK_Q_PURGED),
            [{"system$;journal": ["1"], "system$;deadxact": ["2"], "more": []}],
            repeats=True,
        ),
    ],
    more=receiver.places,
)
