"""DU-01 to DU-04, DU-16, DU-18 and leases: messages that are sent, received, kept, leased and that expire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msmq_fast._native.queuebase import Received
from msmq_fast.protocol.errors import MessageNotFound
from msmq_fast.protocol.properties import Acknowledge
from msmq_fast.store.completion import Completion
from tests.faults.matrix import leasing
from tests.faults.matrix.host import Host
from tests.faults.matrix.scenario import (
    ARRIVAL,
    DEAD,
    RECEIPT,
    REMOTE,
    Scenario,
    Step,
    basic,
    nacks,
    receive,
    send,
)

ENQUEUE = Scenario(
    "DU-01",
    lambda host: basic(host, "1"),
    {"orders": ["1"], "admin": []},
    [
        Step(send("orders", "2", **ARRIVAL), [{"orders": ["1", "2"], "admin": ["ACK_REACH_QUEUE 2"]}]),
        Step(send("orders", "3", priority=5), [{"orders": ["3", "1", "2"], "admin": ["ACK_REACH_QUEUE 2"]}]),
    ],
)

SEND_AWAY = Scenario(
    "DU-02",
    lambda host: None,
    {},
    [
        Step(send(REMOTE, "1"), [{"far": ["1"]}]),
        Step(send(REMOTE, "2"), [{"far": ["1", "2"]}]),
    ],
)


def _acknowledge_batch(host: Host) -> Completion[Any]:
    handle = host.reader("orders")
    got: list[Received] = []
    subscription = handle.subscribe(got.extend, 2, acknowledge=True)
    host.run()
    if not got:
        handle.close()
        raise MessageNotFound("nothing is available")
    try:
        done: Completion[Any] = subscription.ack([message.lookup_id for message in got])
    except BaseException:
        handle.close()
        raise
    done.add_done_callback(lambda _: handle.close())
    return done


RECEIVE = Scenario(
    "DU-03",
    lambda host: basic(host, "1", "2", "3", wishes=RECEIPT, journaling=True),
    {"orders": ["1", "2", "3"], "admin": []},
    [
        Step(receive, [{"orders": ["2", "3"], "orders;journal": ["1"], "admin": ["ACK_RECEIVE 1"]}]),
        Step(
            _acknowledge_batch,
            [
                {
                    "orders": [],
                    "orders;journal": ["1", "2", "3"],
                    "admin": ["ACK_RECEIVE 1", "ACK_RECEIVE 2", "ACK_RECEIVE 3"],
                }
            ],
            repeats=True,
        ),
    ],
)


def _end(delete: bool) -> Callable[[Host], Completion[Any]]:
    def act(host: Host) -> Completion[Any]:
        handle = host.reader("orders")
        request = handle.begin(0)
        host.run(request.completion)
        try:
            done = handle.end(request.completion.result().lookup_id, delete=delete)
        except BaseException:
            handle.close()
            raise
        done.add_done_callback(lambda _: handle.close())
        return done

    return act


KEEP = Scenario(
    "DU-04",
    lambda host: basic(host, "1", "2", wishes=RECEIPT),
    {"orders": ["1", "2"], "admin": []},
    [
        Step(_end(delete=False), [{"orders": ["1", "2"], "admin": []}]),
        Step(_end(delete=True), [{"orders": ["2"], "admin": ["ACK_RECEIVE 1"]}], repeats=True),
        Step(_end(delete=False), [{"orders": ["2"], "admin": ["ACK_RECEIVE 1"]}]),
    ],
)


def _late(seconds: float) -> Callable[[Host], Completion[Any]]:
    def act(host: Host) -> Completion[Any]:
        host.clock.advance(seconds)
        return Completion.of(None)

    return act


def _mortal(host: Host) -> None:
    basic(host, "kept", wishes=RECEIPT)
    host.send("orders", "1", "2", time_to_be_received=100, **DEAD)
    host.send(REMOTE, "3", time_to_reach_queue=200, **DEAD | {"acknowledge": Acknowledge(12)})


EXPIRY = Scenario(
    "DU-16",
    _mortal,
    {"orders": ["kept", "1", "2"], "far": ["3"], "admin": []},
    [
        Step(
            _late(110),
            [
                {
                    "orders": ["kept"],
                    "far": ["3"],
                    "system$;deadletter": ["1", "2"],
                    "admin": nacks("NACK_RECEIVE_TIMEOUT", "1", "2"),
                }
            ],
            certain=True,
        ),
        Step(
            _late(110),
            [
                {
                    "orders": ["kept"],
                    "system$;deadletter": ["1", "2", "3"],
                    "admin": sorted([*nacks("NACK_RECEIVE_TIMEOUT", "1", "2"), "NACK_REACH_QUEUE_TIMEOUT 3"]),
                }
            ],
            certain=True,
        ),
    ],
    settings={"expire_batch": 1},
)


def _scarce(host: Host) -> None:
    """Every counter is near the end of its block."""
    basic(host)
    manager = host.manager
    manager.ledger.sequence = manager.ledger.sequence_limit - 1
    manager.message_ordinals.last = manager.message_ordinals.limit - 1


def _retrying(body: str) -> Callable[[Host], Completion[Any]]:
    """A sender whom the missing reservation of a number makes wait."""

    def act(host: Host) -> Completion[Any]:
        host.run()
        return send("orders", body)(host)

    return act


COUNTERS = Scenario(
    "DU-18",
    _scarce,
    {"orders": [], "admin": []},
    [
        Step(_retrying(str(number)), [{"orders": [str(n) for n in range(number + 1)], "admin": []}])
        for number in range(4)
    ],
)

LEASE = Scenario(
    "LEASE",
    lambda host: basic(host, "1", "2", "3", "4", "5", wishes=RECEIPT, journaling=True),
    {"orders": ["1", "2", "3", "4", "5"], "admin": [], "more": ["free: 5"]},
    [
        Step(
            leasing.lease(4),
            [{"orders": ["1", "2", "3", "4", "5"], "admin": [], "more": ["1 to 5: 4", "free: 1"]}],
        ),
        Step(
            leasing.ack(3),
            [
                {
                    "orders": ["3", "4", "5"],
                    "orders;journal": ["1", "2"],
                    "admin": ["ACK_RECEIVE 1", "ACK_RECEIVE 2"],
                    "more": ["3 to 5: 2", "free: 1"],
                }
            ],
            repeats=True,
        ),
        Step(
            leasing.release(4),
            [
                {
                    "orders": ["3", "4", "5"],
                    "orders;journal": ["1", "2"],
                    "admin": ["ACK_RECEIVE 1", "ACK_RECEIVE 2"],
                    "more": ["4 to 5: 1", "free: 2"],
                }
            ],
            repeats=True,
        ),
        Step(
            leasing.ack(5),
            [
                {
                    "orders": ["3", "5"],
                    "orders;journal": ["1", "2", "4"],
                    "admin": ["ACK_RECEIVE 1", "ACK_RECEIVE 2", "ACK_RECEIVE 4"],
                    "more": ["5 to 5: 0", "free: 2"],
                }
            ],
            repeats=True,
        ),
    ],
    more=leasing.leases,
)
