"""qmcomm2 (MS-MQMP 3.1.5): dependent clients send, receive, and open cursors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmq_fast.protocol.errors import IllegalOperation
from msmq_fast.rpc.idl.mqmq import OBJECTID
from msmq_fast.rpc.idl.qmcomm import CREATE_REMOTE_CURSOR
from msmq_fast.rpc.idl.qmcomm2 import QMCOMM2
from msmq_fast.rpc.interface import InterfacePolicy
from msmq_fast.rpc.services.deferring import when
from msmq_fast.rpc.services.dependent.receiving import DependentRead
from msmq_fast.rpc.services.dependent.sending import Sender
from msmq_fast.rpc.stubs.qmcomm2 import (
    CreateCursorExArgs,
    ReceiveMessageExArgs,
    SendMessageExArgs,
    SendMessageInternalExArgs,
)
from msmq_fast.store.completion import Completion

if TYPE_CHECKING:
    from msmq_fast.qm.identity.signing import Signing
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.transactions.transaction import Transaction
    from msmq_fast.rpc.call import Call, Pending
    from msmq_fast.rpc.services.dependent.server import SupportingServer

__all__ = ["QmComm2Service"]


class QmComm2Service:
    """Serves qmcomm2. It shares `server` with qmcomm, by which clients open queues and begin transactions.

    `signing` signs messages for clients; None means that messages cannot be signed.
    """

    table = QMCOMM2

    def __init__(
        self,
        manager: QueueManager,
        server: SupportingServer,
        policy: InterfacePolicy | None = None,
        signing: Signing | None = None,
    ) -> None:
        self._manager = manager
        self._server = server
        self._sender = Sender(manager, server.queues, signing)
        self.policy = policy or InterfacePolicy(refuse_by_fault=True)

    def failed(self, call: Call, args: Any, hresult: int) -> Any:
        """Returns the results of a failed operation: [in, out] parameters keep the values that the client
        sent.
        """
        return self._results(call, args, result=hresult)

    def _results(self, call: Call, args: Any, **outs: Any) -> Any:
        return self.table.ops[call.opnum].results(args, **outs)

    def send_message_internal_ex(self, call: Call, args: SendMessageInternalExArgs) -> Any:
        """QMSendMessageInternalEx (3.1.5.1), for clients of servers that return STATUS_RETRY."""
        raise IllegalOperation

    def send_message_ex(self, call: Call, args: SendMessageExArgs) -> Any:
        """rpc_ACSendMessageEx (3.1.5.2); answered when the message is durable."""
        self._server.serving()
        buffer = args.ptb.old
        queue = self._server.queues.of_handle(call, args.hQueue)
        results = self._results(call, args)

        def identified(ordinal: int) -> Completion[None]:
            if args.pMessageID is not None:
                results.pMessageID = OBJECTID(self._manager.guid, ordinal)
            return Completion.of(None)

        sent = self._sender.send(queue, buffer, self._transaction(call, buffer.pUow))
        return when(sent.then(identified), self.failed, call, args, results)

    def receive_message_ex(self, call: Call, args: ReceiveMessageExArgs) -> Pending:
        """rpc_ACReceiveMessageEx (3.1.5.3)."""
        self._server.serving()
        transaction = self._transaction(call, args.ptb.old.pUow)
        queue = self._server.queues.of_context(call, args.hQMContext)
        ended = partial(self._received, call, args)
        read = DependentRead(queue, transaction, args.ptb, self._now_s, ended, call.reply_budget)
        read.start()
        return read

    def _received(self, call: Call, args: Any, hresult: int) -> None:
        call.reply(self._results(call, args, result=hresult))

    def create_cursor_ex(self, call: Call, args: CreateCursorExArgs) -> Any:
        """rpc_ACCreateCursorEx (3.1.5.4)."""
        self._server.serving()
        number = self._server.queues.of_handle(call, args.hQueue).new_cursor()
        return self._results(call, args, pcc=CREATE_REMOTE_CURSOR(hCursor=number))

    def _transaction(self, call: Call, uow: bytes | None) -> Transaction | None:
        """Returns the transaction that a buffer names. Raises TRANSACTION_SEQUENCE if the client has not
        enlisted it.
        """
        if uow is None:
            return None
        return self._server.transactions.named(call, UUID(bytes_le=bytes(uow)))

    def _now_s(self) -> int:
        return self._manager.ledger.now_s
