"""A queue of a queue manager that reads by RemoteRead."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmq_fast.packet import Message
from msmq_fast.packet.names import parse_format_name
from msmq_fast.qm.access import Access, Share
from msmq_fast.rpc.services.queueformat import queue_format
from tests.support.rpc.peers import ADMIN, CLIENT, MadeCall, Peer, RemoteWorld

ORDERS = r"DIRECT=OS:HOST\private$\orders"
NONE = bytes(16)


def remote_peer(remote: RemoteWorld, who: Any = ADMIN) -> Peer:
    """A queue manager that reads by RemoteRead."""
    return Peer(remote, remote.remote_read, who)


def opening(name: str = ORDERS, access: int = Access.RECEIVE, share: int = Share.DENY_NONE) -> dict[str, Any]:
    """The parameters of R_OpenQueue."""
    return {
        "pQueueFormat": queue_format(parse_format_name(name)),
        "dwAccess": access,
        "dwShareMode": share,
        "pClientId": CLIENT,
        "fNonRoutingServer": 1,
        "Major": 6,
        "Minor": 1,
        "BuildNumber": 7601,
        "fWorkgroup": 0,
    }


def receiving(
    context: Any,
    action: int = 0,
    lookup_id: int = 0,
    *,
    request: int = 1,
    timeout: int = 0,
    cursor: int = 0,
    body: int = 0xFFFFFFFF,
) -> dict[str, Any]:
    """The parameters of R_StartReceive."""
    return {
        "phContext": context,
        "LookupId": lookup_id,
        "hCursor": cursor,
        "ulAction": action,
        "ulTimeout": timeout,
        "dwRequestId": request,
        "dwMaxBodySize": body,
        "dwMaxCompoundMessageSize": 0xFFFFFFFF,
    }


class RemoteReader:
    """What R_OpenQueue opened, and what can be done with it."""

    def __init__(self, peer: Peer, name: str = ORDERS, access: int = Access.RECEIVE, share: int = 0) -> None:
        self.peer = peer
        self.context = peer.call("open_queue", **opening(name, access, share)).pphContext
        assert self.context is not None

    def start(
        self,
        action: int = 0,
        lookup_id: int = 0,
        *,
        request: int = 1,
        timeout: int = 0,
        cursor: int = 0,
        body: int = 0xFFFFFFFF,
        transaction: UUID | bytes | None = None,
    ) -> MadeCall:
        """R_StartReceive; R_StartTransactionalReceive if there is a transaction."""
        values = receiving(
            self.context, action, lookup_id, request=request, timeout=timeout, cursor=cursor, body=body
        )
        if transaction is None:
            return self.peer.begin("start_receive", **values)
        identifier = transaction.bytes_le if isinstance(transaction, UUID) else transaction
        return self.peer.begin("start_transactional_receive", pTransactionId=identifier, **values)

    def end(self, request: int = 1, ack: int = 2, *, transactional: bool = False) -> int:
        """R_EndReceive, R_EndTransactionalReceive; the result."""
        name = "end_transactional_receive" if transactional else "end_receive"
        return int(self.peer.call(name, phContext=self.context, dwAck=ack, dwRequestId=request).result)

    def cancel(self, request: int = 1) -> int:
        """R_CancelReceive; the result."""
        return int(self.peer.call("cancel_receive", phContext=self.context, dwRequestId=request).result)

    def close(self) -> int:
        """R_CloseQueue; the result."""
        results = self.peer.call("close_queue", pphContext=self.context)
        assert results.pphContext is None
        return int(results.result)

    def cursor(self) -> int:
        """R_CreateCursor; the handle."""
        results = self.peer.call("create_cursor", phContext=self.context)
        assert results.result == 0
        return int(results.phCursor)

    def close_cursor(self, cursor: int) -> int:
        """R_CloseCursor; the result."""
        return int(self.peer.call("close_cursor", phContext=self.context, hCursor=cursor).result)

    def reject(self, lookup_id: int, number: int = 0xC004) -> int:
        """R_SetUserAcknowledgementClass; the result."""
        results = self.peer.call(
            "set_user_acknowledgement_class", phContext=self.context, LookupId=lookup_id, usClass=number
        )
        return int(results.result)

    def move(self, lookup_id: int, target: int, transaction: UUID | None = None) -> int:
        """R_MoveMessage; the result."""
        results = self.peer.call(
            "move_message",
            phContextFrom=self.context,
            ullContextTo=target,
            LookupId=lookup_id,
            pTransactionId=NONE if transaction is None else transaction.bytes_le,
        )
        return int(results.result)


def body(call: MadeCall) -> bytes:
    """The body of the message that a read got, put together as clients do it."""
    results = call.results
    assert results.result == 0, hex(results.result)
    assert results.pdwNumberOfSections == len(results.ppPacketSections)
    whole = b"".join(
        bytes(section.pSectionBuffer).ljust(section.SectionSizeAlloc, b"\0")
        for section in results.ppPacketSections
    )
    return Message.from_packet(whole[: int.from_bytes(whole[8:12], "little")]).body
