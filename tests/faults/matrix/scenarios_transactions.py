"""DU-05 to DU-07: transactions that commit, are prepared and are aborted."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmq_fast.packet import Message
from msmq_fast.qm.access import Access
from msmq_fast.qm.transactions.transacted import TransactedQueue
from msmq_fast.qm.transactions.transaction import State as TransactionState
from msmq_fast.qm.transactions.transaction import Transaction
from msmq_fast.store.completion import Completion
from tests.faults.matrix.account import State
from tests.faults.matrix.host import Host
from tests.faults.matrix.scenario import ARRIVAL, RECEIPT, Scenario, Step

DOUBT = UUID(int=0x77)


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
