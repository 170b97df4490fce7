"""Internal transactions of dependent clients (MS-MQMP 3.1.4.14 … 3.1.4.16, 3.1.7.3).

A client chooses the identifier of its unit of work, and commits or aborts it by the context handle of the
transaction. Only the association that enlisted a unit of work can use it, so others cannot send or receive in
it by guessing its identifier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from msmq_fast.protocol.errors import TransactionSequence

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.transactions.transaction import Transaction
    from msmq_fast.rpc.association import Association
    from msmq_fast.rpc.call import Call
    from msmq_fast.store.completion import Completion

__all__ = ["DependentTransactions", "InternalTransaction"]

_KIND: Final = "RPC_INT_XACT_HANDLE"
_ORDER: Final = 0
"""The order of the rundown: transactions are run down before the queues of their messages."""


class InternalTransaction:
    """A transaction that a client has begun, and the client's association: TransactionHandle (3.1.1.10)."""

    def __init__(self, transaction: Transaction, association: Association) -> None:
        self.transaction = transaction
        self.association = association


class DependentTransactions:
    """The open transactions of all clients, by identifier: TransactionHandleTable (3.1.1.9)."""

    def __init__(self, manager: QueueManager) -> None:
        self._transactions = manager.transactions
        self._open: dict[UUID, InternalTransaction] = {}

    def __len__(self) -> int:
        return len(self._open)

    def enlist(self, call: Call, identifier: UUID) -> bytes:
        """Begins a transaction with the identifier that the client chose. Returns its context handle.

        Raises TRANSACTION_SEQUENCE if a transaction with this identifier exists, RpcFault if there are too
        many handles.
        """
        transaction = self._transactions.begin(call.caller.name, identifier)
        entry = InternalTransaction(transaction, call.association)
        try:
            handle = call.handles.create(_KIND, entry, self._run_down, _ORDER)
        except BaseException:
            transaction.abort()
            raise
        self._open[identifier] = entry
        return handle

    def named(self, call: Call, identifier: UUID) -> Transaction:
        """Returns the transaction in which a client sends or receives. Raises TRANSACTION_SEQUENCE if the
        client has not enlisted it.
        """
        if not self.knows(call, identifier):
            raise TransactionSequence(f"there is no transaction {identifier}")
        return self._open[identifier].transaction

    def knows(self, call: Call, identifier: UUID) -> bool:
        """Whether the client has enlisted a transaction with this identifier."""
        entry = self._open.get(identifier)
        return entry is not None and entry.association is call.association

    def commit(self, call: Call, handle: bytes) -> Completion[None]:
        """Commits the transaction and closes the handle. The completion is resolved when the commit is
        durable.

        Raises RpcFault for an invalid handle, TRANSACTION_SEQUENCE if the transaction has already ended.
        """
        return self._close(call, handle).commit()

    def abort(self, call: Call, handle: bytes) -> Completion[None]:
        """Aborts the transaction and closes the handle. The completion is resolved when the abort is durable.
        Raises what `commit` raises.
        """
        return self._close(call, handle).abort()

    def _close(self, call: Call, handle: bytes) -> Transaction:
        entry: InternalTransaction = call.handles.close(handle, _KIND)
        self._forget(entry)
        return entry.transaction

    def _run_down(self, entry: InternalTransaction) -> None:
        self._forget(entry)
        entry.transaction.leave()

    def _forget(self, entry: InternalTransaction) -> None:
        """Removes a transaction from the table, unless a later transaction has the same identifier: this one
        may have been aborted before because it was idle.
        """
        identifier = entry.transaction.identifier
        if self._open.get(identifier) is entry:
            del self._open[identifier]
