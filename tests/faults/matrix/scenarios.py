"""One script for each durability unit (MS-MQDMPR inventory, 8.4). Every step happens or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from msmq_fast._native.queuebase import Received
from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.protocol.errors import MessageNotFound
from msmq_fast.protocol.properties import Acknowledge, Journal
from msmq_fast.qm.access import Access
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import State as TransactionState
from msmq_fast.qm.transactions.transaction import Transaction
from msmq_fast.store.completion import Completion
from tests.faults.matrix import leasing, receiver
from tests.faults.matrix.account import State
from tests.faults.matrix.host import Host
from tests.faults.matrix.peer import arrive, bring, context, numbers

RECEIPT: dict[str, Any] = {
    "acknowledge": Acknowledge.POSITIVE_RECEIVE | Acknowledge.NEGATIVE_RECEIVE,
    "admin_queue": parse_format_name(r"DIRECT=OS:HOST\private$\admin"),
}
ARRIVAL = RECEIPT | {"acknowledge": Acknowledge.POSITIVE_ARRIVAL}
DEAD = RECEIPT | {"journal": Journal.DEADLETTER}
REMOTE = r"DIRECT=OS:THERE\private$\far"
DOUBT = UUID(int=0x77)


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


def _basic(host: Host, *bodies: str, wishes: dict[str, Any] | None = None, **properties: Any) -> None:
    host.create("admin")
    host.create("orders", **properties)
    host.send("orders", *bodies, **(wishes or {}))


def _send(name: str, body: str, **values: Any) -> Callable[[Host], Completion[Any]]:
    return lambda host: host.sender(name).send(Message(body=body.encode(), delivery=1, **values))


# ---- DU-01, DU-02


ENQUEUE = Scenario(
    "DU-01",
    lambda host: _basic(host, "1"),
    {"orders": ["1"], "admin": []},
    [
        Step(_send("orders", "2", **ARRIVAL), [{"orders": ["1", "2"], "admin": ["ACK_REACH_QUEUE 2"]}]),
        Step(_send("orders", "3", priority=5), [{"orders": ["3", "1", "2"], "admin": ["ACK_REACH_QUEUE 2"]}]),
    ],
)

SEND_AWAY = Scenario(
    "DU-02",
    lambda host: None,
    {},
    [
        Step(_send(REMOTE, "1"), [{"far": ["1"]}]),
        Step(_send(REMOTE, "2"), [{"far": ["1", "2"]}]),
    ],
)


# ---- DU-03, DU-04: receiving


def _receive(host: Host) -> Completion[Any]:
    return host.reader("orders").receive(0).completion


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
    lambda host: _basic(host, "1", "2", "3", wishes=RECEIPT, journaling=True),
    {"orders": ["1", "2", "3"], "admin": []},
    [
        Step(_receive, [{"orders": ["2", "3"], "orders;journal": ["1"], "admin": ["ACK_RECEIVE 1"]}]),
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
    lambda host: _basic(host, "1", "2", wishes=RECEIPT),
    {"orders": ["1", "2"], "admin": []},
    [
        Step(_end(delete=False), [{"orders": ["1", "2"], "admin": []}]),
        Step(_end(delete=True), [{"orders": ["2"], "admin": ["ACK_RECEIVE 1"]}], repeats=True),
        Step(_end(delete=False), [{"orders": ["2"], "admin": ["ACK_RECEIVE 1"]}]),
    ],
)


# ---- DU-05, DU-06, DU-07: transactions


def _transact(host: Host, transaction: Transaction) -> None:
    """Receives 1, moves 2, sends 8 and 9; 9 is written ahead of the commit."""
    transaction.operations.limit_bytes = 500
    orders = TransactedQueue(host.reader("orders"), transaction)
    request = orders.receive(0)
    host.run(request.completion)
    request.completion.result()
    core = host.manager.find("orders").core
    second = core.positions.keys()[1]
    orders.move(second, host.manager.open("orders;retry", Access.MOVE))
    bills = TransactedQueue(host.sender("bills"), transaction)
    bills.send(Message(body=b"8", **ARRIVAL))
    bills.send(Message(body=NINE.encode()))


def _ended(host: Host, transaction: Transaction, end: str) -> Completion[Any]:
    """Its end; when an operation or the end fails, it is aborted and may be made again."""
    try:
        _transact(host, transaction)
        done: Completion[Any] = getattr(transaction, end)()
    except BaseException:
        if transaction.state is TransactionState.ACTIVE:
            transaction.abort()
        raise

    def abort(done: Completion[Any]) -> None:
        if done.exception() is not None and transaction.state is TransactionState.ACTIVE:
            transaction.abort()

    done.add_done_callback(abort)
    return done


def _commit(host: Host) -> Completion[Any]:
    return _ended(host, host.manager.transactions.begin("matrix"), "commit")


def _prepare_doubt(host: Host) -> Completion[Any]:
    return _ended(host, host.manager.transactions.begin("matrix", DOUBT), "prepare")


def _transactional(host: Host) -> None:
    host.create("admin")
    host.create("bills", transactional=True)
    host.create("orders", transactional=True, journaling=True)
    transaction = host.manager.transactions.begin("matrix")
    queue = TransactedQueue(host.sender("orders"), transaction)
    for body in (b"1", b"2", b"3"):
        queue.send(Message(body=body, **RECEIPT))
    done = transaction.commit()
    host.run(done)
    done.result()


NINE = "9" * 600
FULL: State = {"orders": ["1", "2", "3"], "bills": [], "admin": []}
DONE: State = {
    "orders": ["3"],
    "orders;retry": ["2"],
    "orders;journal": ["1"],
    "bills": ["8", NINE],
    "admin": ["ACK_REACH_QUEUE 8", "ACK_RECEIVE 1"],
}

COMMIT = Scenario("DU-05", _transactional, FULL, [Step(_commit, [DONE])])

PREPARE = Scenario(
    "DU-06",
    _transactional,
    FULL,
    [
        Step(_prepare_doubt, [FULL | {"in doubt": ["4"]}]),
        Step(lambda host: host.manager.transactions.find(DOUBT).commit(), [DONE]),
    ],
)

ABORT_PREPARED = Scenario(
    "DU-07",
    _transactional,
    FULL,
    [
        Step(_prepare_doubt, [FULL | {"in doubt": ["4"]}]),
        Step(lambda host: host.manager.transactions.find(DOUBT).abort(), [FULL]),
    ],
)


# ---- DU-08, DU-09: purging and deleting


def _purge_prepare(host: Host) -> None:
    _basic(host, "1", "2", "3", wishes=RECEIPT, journaling=True)
    handle = host.reader("orders")
    request = handle.begin(0)
    host.run(request.completion)
    host.held = handle


def _purge(host: Host) -> Completion[Any]:
    handle = host.reader("orders")
    done = handle.purge()
    handle.close()
    return done


def _let_go(host: Host) -> Completion[Any]:
    if host.held is not None:
        host.held.close()
    return Completion.of(None)


def _nacks(name: str, *bodies: str) -> list[str]:
    return [f"{name} {body}" for body in bodies]


PURGE = Scenario(
    "DU-08",
    _purge_prepare,
    {"orders": ["1", "2", "3"], "admin": []},
    [
        Step(
            _purge,
            [
                {"orders": ["1"], "admin": _nacks("NACK_Q_PURGED", "2", "3")},
                {"orders": [], "admin": _nacks("NACK_Q_PURGED", "1", "2", "3")},
            ],
            repeats=True,
        ),
        Step(
            _let_go,
            [{"orders": [], "admin": _nacks("NACK_Q_PURGED", "1", "2", "3")}],
            certain=True,
        ),
    ],
    settings={"purge_batch": 1},
)

DELETE = Scenario(
    "DU-09",
    lambda host: _basic(host, "1", "2", "3", wishes=RECEIPT),
    {"orders": ["1", "2", "3"], "admin": []},
    [
        Step(
            lambda host: host.manager.delete_queue("orders"),
            [{"admin": _nacks("NACK_Q_DELETED", "1", "2", "3")}],
            repeats=True,
        )
    ],
    settings={"purge_batch": 1},
)


# ---- DU-10, DU-11


def _journals(host: Host) -> list[str]:
    """Each queue has one journal and no journal is without its queue."""
    return sorted(queue.name.rpartition("\\")[2] for queue in host.manager.queues() if queue.journal)


CREATE = Scenario(
    "DU-10",
    lambda host: host.create("orders"),
    {"orders": [], "more": ["orders"]},
    [
        Step(
            lambda host: host.manager.create_queue("bills", label="x", journaling=True),
            [{"orders": [], "bills": [], "more": ["bills", "orders"]}],
        ),
        Step(
            lambda host: host.manager.create_queue("third", transactional=True),
            [{"orders": [], "bills": [], "third": [], "more": ["bills", "orders", "third"]}],
        ),
    ],
    more=_journals,
)


def _move(source: str, target: str) -> Callable[[Host], Completion[Any]]:
    def act(host: Host) -> Completion[Any]:
        handle = host.reader(source)
        goal = host.manager.open(target, Access.MOVE)
        done = handle.move(host.manager.find(source).core.positions.keys()[0], goal)
        done.add_done_callback(lambda _: (handle.close(), goal.close()))
        return done

    return act


MOVE = Scenario(
    "DU-11",
    lambda host: _basic(host, "1", "2"),
    {"orders": ["1", "2"], "admin": []},
    [
        Step(_move("orders", "orders;a"), [{"orders": ["2"], "orders;a": ["1"], "admin": []}]),
        Step(_move("orders;a", "orders;b"), [{"orders": ["2"], "orders;b": ["1"], "admin": []}]),
        Step(_move("orders;b", "orders"), [{"orders": ["1", "2"], "admin": []}]),
    ],
)


# ---- DU-12, DU-13: what another queue manager sent


def _read_by_peer_node(host: Host) -> Completion[Any]:
    context(host)  # FinalAcks are MS-MQQB's
    return _receive(host)


def _with_peer(host: Host, **properties: Any) -> None:
    """With what MS-MQQB writes when it begins."""
    _basic(host, **properties)
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


# ---- DU-16, DU-17, DU-18


def _late(seconds: float) -> Callable[[Host], Completion[Any]]:
    def act(host: Host) -> Completion[Any]:
        host.clock.advance(seconds)
        return Completion.of(None)

    return act


def _mortal(host: Host) -> None:
    _basic(host, "kept", wishes=RECEIPT)
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
                    "admin": _nacks("NACK_RECEIVE_TIMEOUT", "1", "2"),
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
                    "admin": sorted(
                        [*_nacks("NACK_RECEIVE_TIMEOUT", "1", "2"), "NACK_REACH_QUEUE_TIMEOUT 3"]
                    ),
                }
            ],
            certain=True,
        ),
    ],
    settings={"expire_batch": 1},
)


def _labels(host: Host) -> list[str]:
    queue = host.manager.find("orders")
    return [queue.label, str(queue.properties.quota_kb)]


def _set(**properties: Any) -> Callable[[Host], Completion[Any]]:
    return lambda host: host.manager.set_properties(host.manager.find("orders"), **properties)


PROPERTIES = Scenario(
    "DU-17",
    lambda host: host.create("orders", label="old", quota_kb=10),
    {"orders": [], "more": ["old", "10"]},
    [
        Step(_set(label="new"), [{"orders": [], "more": ["new", "10"]}], repeats=True),
        Step(_set(label="newer", quota_kb=20), [{"orders": [], "more": ["newer", "20"]}], repeats=True),
    ],
    more=_labels,
)


def _scarce(host: Host) -> None:
    """Every counter is near the end of its block."""
    _basic(host)
    manager = host.manager
    manager.ledger.sequence = manager.ledger.sequence_limit - 1
    manager.message_ordinals.last = manager.message_ordinals.limit - 1


def _retrying(body: str) -> Callable[[Host], Completion[Any]]:
    """A sender whom the missing reservation of a number makes wait."""

    def act(host: Host) -> Completion[Any]:
        host.run()
        return _send("orders", body)(host)

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

# ---- DU-14, DU-15, DU-19: what another queue manager gets


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

# ---- leases


LEASE = Scenario(
    "LEASE",
    lambda host: _basic(host, "1", "2", "3", "4", "5", wishes=RECEIPT, journaling=True),
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

SCENARIOS = [
    ENQUEUE,
    SEND_AWAY,
    RECEIVE,
    KEEP,
    COMMIT,
    PREPARE,
    ABORT_PREPARED,
    PURGE,
    DELETE,
    CREATE,
    MOVE,
    STREAM,
    INBOUND,
    ORDERED,
    FINAL,
    EXPIRY,
    PROPERTIES,
    COUNTERS,
    NUMBERS,
    LEASE,
]
