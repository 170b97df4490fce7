"""Two-phase transactions under an external coordinator (MS-DTCO as far as MS-MQDMPR needs it: 3.1.4.6 …
3.1.4.11).

A front end that speaks to a transaction manager calls ResourceManager for what that says, and implements
Coordinator for what the queue manager answers.
"""

from __future__ import annotations

import logging
from typing import Protocol
from uuid import UUID

from msmq_fast.qm.transactions.transaction import State, Transaction, Transactions
from msmq_fast.store.completion import Completion

_log = logging.getLogger(__name__)


class Coordinator(Protocol):
    """The transaction manager, as the queue manager sees it."""

    def prepared(self, identifier: UUID) -> None:
        """PREPAREREQDONE: the vote is yes; it is durable."""

    def refused(self, identifier: UUID) -> None:
        """The vote is no; the transaction was aborted here."""

    def committed(self, identifier: UUID) -> None:
        """COMMITREQDONE: the commit is durable."""

    def aborted(self, identifier: UUID) -> None:
        """ABORTREQDONE."""

    def reenlist(self, identifier: UUID) -> None:
        """A start found this transaction in doubt: what is its outcome? (DM-014)"""


class ResourceManager:
    """What a coordinator asks of the queue manager. Unknown identifiers raise TRANSACTION_SEQUENCE."""

    def __init__(self, transactions: Transactions, coordinator: Coordinator) -> None:
        self._transactions = transactions
        self._coordinator = coordinator

    def enlist(self, identifier: UUID, user: str = "") -> Transaction:
        """Take part in a transaction of the coordinator."""
        return self._transactions.enlist(identifier, user)

    def in_doubt(self) -> list[UUID]:
        """Transactions that are prepared and wait for their outcome."""
        return [item.identifier for item in self._transactions if item.state is State.PREPARED]

    def recover(self) -> None:
        """Ask for the outcome of every transaction in doubt (DM-014, REC-11)."""
        for identifier in self.in_doubt():
            self._coordinator.reenlist(identifier)

    # ---- requests (DM-037 … DM-039)

    def prepare(self, identifier: UUID, *, single_phase: bool = False) -> None:
        """PREPAREREQ: vote, and with `single_phase` commit at once (fSinglePhase)."""

        def voted(done: Completion[None]) -> None:
            if done.exception() is not None:
                self._refuse(identifier)
            elif single_phase:
                self.commit(identifier)
            else:
                self._coordinator.prepared(identifier)

        # DM-037 raises Prepare with SinglePhase=False either way; only the vote has to outlive a crash.
        self._transactions.prepare(identifier, single_phase=single_phase).add_done_callback(voted)

    def _refuse(self, identifier: UUID) -> None:
        self._transactions.abort(identifier).add_done_callback(
            lambda _: self._coordinator.refused(identifier)
        )

    def commit(self, identifier: UUID) -> None:
        """COMMITREQ, answered when the commit is durable; one that the store did not keep stays prepared."""

        def ended(done: Completion[None]) -> None:
            if done.exception() is None:
                self._coordinator.committed(identifier)
            else:
                _log.error("the commit of transaction %s was not kept: %s", identifier, done.exception())
                if all(item.identifier != identifier for item in self._transactions):
                    self._coordinator.refused(identifier)

        self._transactions.commit(identifier).add_done_callback(ended)

    def abort(self, identifier: UUID) -> None:
        """ABORTREQ, answered when nothing can bring it back."""

        def ended(done: Completion[None]) -> None:
            if done.exception() is None:
                self._coordinator.aborted(identifier)
            else:
                _log.error("the abort of transaction %s was not kept: %s", identifier, done.exception())

        self._transactions.abort(identifier).add_done_callback(ended)

    # ---- recovery (DM-040 … DM-042)

    def reenlisted_commit(self, identifier: UUID) -> None:
        """REENLIST_COMMITTED: the outcome of a transaction in doubt is commit."""
        self.commit(identifier)

    def reenlisted_abort(self, identifier: UUID) -> None:
        """REENLIST_ABORTED."""
        self.abort(identifier)

    def reenlist_timeout(self, identifier: UUID) -> None:
        """The coordinator does not answer: the transaction stays in doubt, all else goes on (DA-059)."""
        _log.error(
            "the coordinator does not know the outcome of transaction %s: its messages stay locked; "
            "`msmq-fast transaction commit` or `abort` decides",
            self._transactions.find(identifier).identifier,
        )
