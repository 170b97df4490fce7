"""Requests about transactions (section 7 of the protocol)."""

from __future__ import annotations

from uuid import UUID

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InsufficientResources, InvalidParameter, TransactionSequence
from msmq_fast.protocol.frames import Frame
from msmq_fast.protocol.resources import TransactionInfo
from msmq_fast.qm.transactions.transaction import State, Transaction
from msmq_fast.store.completion import Completion

_NUMBER = Field("transaction", int)
_REJECT = (Field("handle", int), Field("lookup id", int, maximum=0xFFFF_FFFF_FFFF_FFFF), _NUMBER)
_END = (Field("identifier", str), Field("action", str))


def _begin(session: Session, request_id: int, payload: memoryview) -> None:
    (number,) = arguments(payload, _NUMBER)
    if number == 0 or number in session.transactions:
        raise TransactionSequence(f"transaction number {number} is 0 or in use")
    if len(session.transactions) >= session.service.limits.max_transactions:
        raise InsufficientResources(
            "this connection has reached max_transactions, the limit of open transactions"
        )
    transaction = session.manager.transactions.begin(
        session.identity.name,
        on_end=lambda _: session.transactions.pop(number, None),
        on_ahead=session.connection.relieved,
    )
    session.transactions[number] = transaction
    session.reply(request_id, [str(transaction.identifier)])


def _prepare(session: Session, request_id: int, payload: memoryview) -> None:
    (number,) = arguments(payload, _NUMBER)
    session.when(request_id, session.transaction(number).prepare())


def _commit(session: Session, request_id: int, payload: memoryview) -> None:
    (number,) = arguments(payload, _NUMBER)
    session.when(request_id, session.transaction(number).commit())


def _abort(session: Session, request_id: int, payload: memoryview) -> None:
    (number,) = arguments(payload, _NUMBER)
    session.when(request_id, session.transaction(number).abort())


def _reject(session: Session, request_id: int, payload: memoryview) -> None:
    handle, lookup_id, number = arguments(payload, *_REJECT)
    session.handle(handle).inside(session.transaction(number)).reject(lookup_id)
    session.reply(request_id)


# ---- for operators


def _shown(transaction: Transaction) -> TransactionInfo:
    operations = transaction.operations
    return TransactionInfo(
        identifier=str(transaction.identifier),
        state=transaction.state.name.lower(),
        user=transaction.user,
        began=transaction.began,
        sent=operations.enqueued,
        received=operations.dequeued,
        moved=operations.moved,
    )


def _list(session: Session, request_id: int, payload: memoryview) -> None:
    arguments(payload)
    session.manager.guard.administer(session.token, "list transactions")
    session.reply(request_id, [_shown(item).as_map() for item in session.manager.transactions])


def _end(session: Session, request_id: int, payload: memoryview) -> None:
    text, action = arguments(payload, *_END)
    session.manager.guard.administer(session.token, "end a transaction")
    try:
        identifier = UUID(text)
    except ValueError:
        raise InvalidParameter("the identifier of a transaction must be a GUID") from None
    transaction = session.manager.transactions.find(identifier)
    done = _decide(transaction, action)
    operation, target = f"{action} transaction", str(identifier)
    session.when(
        request_id,
        session.manager.audit.recorded(done, session.token, operation, target, lambda _: transaction.user),
    )


def _decide(transaction: Transaction, action: str) -> Completion[None]:
    match action:
        case "commit":
            if transaction.state is State.ACTIVE:
                raise TransactionSequence(
                    "only the program that began a transaction can commit it before it is prepared"
                )
            return transaction.commit()
        case "abort":
            return transaction.abort()
        case _:
            raise InvalidParameter("action must be commit or abort")


HANDLERS: dict[int, Handler] = {
    Frame.BEGIN: _begin,
    Frame.PREPARE: _prepare,
    Frame.COMMIT: _commit,
    Frame.ABORT: _abort,
    Frame.REJECT: _reject,
    Frame.LIST_TRANSACTIONS: _list,
    Frame.END_TRANSACTION: _end,
}
