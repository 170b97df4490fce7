"""Operations on transactions that are open or prepared."""

from __future__ import annotations

from typing import Any, Final

from msmq_fast.admin.api.operation import Call, Operation, Parameter
from msmq_fast.admin.api.queues import LIMIT, OFFSET, PAGE, page_of
from msmq_fast.admin.api.schema import array, of, record, text
from msmq_fast.protocol.resources import TransactionInfo

__all__ = ["OPERATIONS"]

_IDENTIFIER: Final = Parameter("identifier", text("GUID of the transaction", least=1, most=64))
_ENDED: Final = record("EndedTransaction", {"identifier": text(), "state": text()})


async def _list(call: Call) -> dict[str, Any]:
    return page_of([one.as_map() for one in await call.client.admin.transactions.all()], call)


async def _commit(call: Call) -> dict[str, Any]:
    await call.client.admin.transactions.commit(call.path["identifier"])
    return {"identifier": call.path["identifier"], "state": "committed"}


async def _abort(call: Call) -> dict[str, Any]:
    await call.client.admin.transactions.abort(call.path["identifier"])
    return {"identifier": call.path["identifier"], "state": "aborted"}


OPERATIONS: Final = [
    Operation(
        "transactions.list",
        "GET",
        "/transactions",
        "List transactions that are open or prepared",
        _list,
        record("TransactionPage", {"items": array(of(TransactionInfo)), **PAGE}),
        verb="transaction list",
        parameters=(LIMIT, OFFSET),
    ),
    Operation(
        "transactions.commit",
        "POST",
        "/transactions/{identifier}/commit",
        "Commit a prepared transaction",
        _commit,
        _ENDED,
        verb="transaction commit",
        path_parameters=(_IDENTIFIER,),
    ),
    Operation(
        "transactions.abort",
        "POST",
        "/transactions/{identifier}/abort",
        "Abort a transaction",
        _abort,
        _ENDED,
        verb="transaction abort",
        path_parameters=(_IDENTIFIER,),
    ),
]
