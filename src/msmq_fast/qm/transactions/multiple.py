"""Names that denote several queues: opens the queues as one, and sends a copy of each message to each queue
(DM-069 … DM-071, DM-088, DM-175, DM-176).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from msmq_fast._native.ledgerbase import EnqueueResult
from msmq_fast._native.queue import TAKEN, QueueCore
from msmq_fast.packet.message import Message
from msmq_fast.packet.multi import Element
from msmq_fast.packet.names import FormatName, direct_format_name, is_format_name, parse_path
from msmq_fast.protocol.errors import (
    InsufficientResources,
    MSMQError,
    TransactionUsage,
    UnsupportedAccessMode,
    UnsupportedFormatNameOperation,
)
from msmq_fast.qm.access import Access, Share
from msmq_fast.qm.handles.handle import HandleServices, OpenQueue, SentMessage, refusal
from msmq_fast.qm.handles.opener import Opener
from msmq_fast.qm.queues.directoryclient import DirectoryClient
from msmq_fast.qm.queues.queue import Queue
from msmq_fast.qm.records import storage_error
from msmq_fast.qm.transactions.transacted import check_usage
from msmq_fast.qm.transactions.transaction import Transaction, Transactions
from msmq_fast.security.token import Token
from msmq_fast.store.completion import Completion

Finish = Callable[[bytes, Queue], bytes]
"""Signs the packet of a copy, and checks the protection that its queue requires."""

MOST_DESTINATIONS: Final = 1000
"""Maximum number of queues in one name. Each copy names all of them, so memory use grows with the square of
the number.
"""


def _as_it_is(packet: bytes, _: Queue) -> bytes:
    return packet


class MultipleOpener:
    """Opens names that denote one queue or several."""

    def __init__(
        self, parts: HandleServices, opener: Opener, directory: DirectoryClient, transactions: Transactions
    ) -> None:
        self._parts = parts
        self._opener = opener
        self._directory = directory
        self._transactions = transactions

    def open(
        self,
        name: str,
        access: Access,
        share: Share = Share.DENY_NONE,
        *,
        token: Token | None = None,
    ) -> OpenQueue | MultipleQueue:
        """Open Queue for a name of one queue or several: names separated by commas, or distribution lists.

        If one of the queues cannot be opened, closes the others and raises what Opener.open raises. For
        several queues: UNSUPPORTED_FORMATNAME_OPERATION unless they are opened for sending,
        UNSUPPORTED_ACCESS_MODE unless the share mode is DENY_NONE, INSUFFICIENT_RESOURCES if there are too
        many.
        """
        if not _several(name):
            return self._opener.open(name, access, share, token=token)
        elements = self._directory.expand(self._format_names(name)).split(",")
        if len(elements) > MOST_DESTINATIONS:
            raise InsufficientResources(
                f"a name cannot denote {len(elements)} queues; the limit is {MOST_DESTINATIONS}"
            )
        if len(elements) == 1:
            return self._opener.open(elements[0], access, share, token=token)
        if access is not Access.SEND:
            raise UnsupportedFormatNameOperation(
                "a name that denotes several queues can only be opened for sending"
            )
        if share is not Share.DENY_NONE:
            raise UnsupportedAccessMode("opening a queue for sending requires share mode DENY_NONE")
        children: list[OpenQueue] = []
        try:
            for element in elements:
                child = self._opener.open(element, Access.SEND, token=token)
                children.append(child)
                Element.of(child.format_name)
        except MSMQError:
            _close(children)
            raise
        return MultipleQueue(self._parts, self._transactions, tuple(children))

    def _format_names(self, text: str) -> str:
        """Returns the list of names with path names replaced by format names."""
        own = self._parts.services.name
        return ",".join(
            element if is_format_name(element) else str(direct_format_name(parse_path(element, own)))
            for element in text.split(",")
        )


def _several(name: str) -> bool:
    return "," in name or name[:3].upper() == "DL="


def _close(children: Iterable[OpenQueue]) -> None:
    for child in children:
        child.close()


class MultipleQueue:
    """Several queues that are open under one handle: an OpenQueueDescriptor with Multiple = True.

    The handle has no queue of its own (QueueReference NULL): each of the `children` is open on one queue. The
    header of every copy names all destinations (MultiQueueFormatHeader). Copies have consecutive message
    identifiers, in the order of `names`; if `settings.own_copy_ids` is off, all have the same one (DA-028).
    With the same identifier, a receiver that has two of the queues would drop the second copy as a duplicate
    of the first.
    """

    access = Access.SEND
    share = Share.DENY_NONE

    def __init__(
        self, parts: HandleServices, transactions: Transactions, children: tuple[OpenQueue, ...]
    ) -> None:
        self._services = parts.services
        self._transactions = transactions
        self.children = children
        self.names: tuple[FormatName, ...] = tuple(child.format_name for child in children)
        self.handle = parts.registry.new_handle()

    @property
    def format_name(self) -> str:
        """All names, separated by commas."""
        return ",".join(str(name) for name in self.names)

    # ---- sending

    def send(
        self, message: Message, dead_letter: int = 0, finish: Finish = _as_it_is
    ) -> Completion[tuple[SentMessage, ...]]:
        """Enqueue a copy in each queue, in order; resolved when all copies are stored.

        Raises the error of the first queue that refuses its copy; copies that were enqueued before stay
        (DM-176). Raises TRANSACTION_USAGE, before any copy is enqueued, if a queue or the message is
        transactional.
        """
        for child in self.children:
            if not child.queue.core.outgoing and child.queue.transactional:
                raise TransactionUsage(f"{child.format_name} takes transactional messages only")
        if message.transactional:
            raise TransactionUsage("a transactional message must be sent in a transaction")
        copies = self._copies(message)
        packets = [
            finish(copy.to_packet(), child.queue) for child, copy in zip(self.children, copies, strict=True)
        ]
        completion: Completion[tuple[SentMessage, ...]] = Completion()
        sent: list[SentMessage] = []
        left = len(packets)

        def kept(status: int) -> None:
            nonlocal left
            left -= 1
            if status:
                completion.fail(storage_error(status))
            elif not left and len(sent) == len(packets):
                completion.resolve(tuple(sent))

        for child, copy, packet in zip(self.children, copies, packets, strict=True):
            (result,), (key,) = child.queue.core.enqueue_packets([packet], kept, 0, [dead_letter])
            if result not in TAKEN:
                raise refusal(result)
            sent.append(SentMessage(key, copy.message_id))
        if not left:
            completion.resolve(tuple(sent))
        return completion

    def send_in(
        self,
        transaction: Transaction,
        message: Message,
        dead_letter: int = 0,
        finish: Finish = _as_it_is,
    ) -> tuple[int, ...]:
        """Send a copy to each queue when the transaction commits; returns the ordinals of the copies'
        identifiers, in the order of the queues.

        If one of the queues cannot accept its copy, no copy is added to the transaction. Raises
        TRANSACTION_SEQUENCE, TRANSACTION_USAGE, INSUFFICIENT_RESOURCES, QUEUE_DELETED.
        """
        transaction.check()
        cores = [child.queue.core for child in self.children]
        for child in self.children:
            check_usage(child.queue)
        copies = self._copies(message)
        packets: list[bytes] = []
        begun: set[QueueCore] = set()
        for child, core, copy in zip(self.children, cores, copies, strict=True):
            header = transaction.header(core)
            header.first = header.first and core not in begun
            begun.add(core)
            copy.transaction = header
            packets.append(finish(copy.to_packet(), child.queue))
        self._check_room(cores, packets)
        for core, packet in zip(cores, packets, strict=True):
            result = transaction.send(core, packet, dead_letter)
            if result:
                raise refusal(result)
        return tuple(copy.message_id for copy in copies)

    def send_alone(
        self, message: Message, dead_letter: int = 0, finish: Finish = _as_it_is
    ) -> Completion[tuple[int, ...]]:
        """Send a copy to each queue in a new transaction that contains only these copies; resolved when it is
        committed.

        Raises what `send_in` raises.
        """
        transaction = self._transactions.begin()
        try:
            ordinals = self.send_in(transaction, message, dead_letter, finish)
        except BaseException:
            transaction.abort()
            raise
        return transaction.commit().then(lambda _: Completion.of(ordinals))

    def _copies(self, message: Message) -> list[Message]:
        """Returns a message for each queue (DM-175), stamped by this queue manager (DA-029)."""
        services = self._services
        own = services.settings.own_copy_ids
        first = services.message_ordinals.take(len(self.children) if own else 1)
        return [
            replace(
                message,
                source_machine=services.guid,
                message_id=first + index * own,
                sent_time=services.ledger.now_s,
                destination=child.format_name,
                destination_manager=child.destination_manager,
                destinations=self.names,
            )
            for index, child in enumerate(self.children)
        ]

    def _check_room(self, cores: list[QueueCore], packets: list[bytes]) -> None:
        """Raise INSUFFICIENT_RESOURCES if one of the copies would exceed a quota, before any copy is enqueued
        (DM-096, DM-097).
        """
        ledger = self._services.ledger
        if ledger.bytes + sum(map(len, packets)) > ledger.quota_bytes:
            raise refusal(EnqueueResult.MACHINE_QUOTA)
        wanted: dict[QueueCore, int] = {}
        for core, packet in zip(cores, packets, strict=True):
            wanted[core] = wanted.get(core, 0) + len(packet)
        for core, size in wanted.items():
            if core.used_bytes + core.sub_bytes - core.moving_bytes + size > core.quota_bytes:
                raise refusal(EnqueueResult.QUEUE_QUOTA)

    def close(self) -> None:
        """Close every queue (DM-088). Closing twice is allowed."""
        _close(self.children)
