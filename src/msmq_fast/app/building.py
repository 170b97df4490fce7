"""Builds packets from SEND payloads: the messages, and their response, admin and dead-letter queues."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgpack

from msmq_fast._native.appcodec import PacketBuilder
from msmq_fast.packet.fields import QueueField
from msmq_fast.packet.message import Message
from msmq_fast.packet.replies import ReplyNames
from msmq_fast.protocol.errors import MSMQError, error
from msmq_fast.qm.identity.signing import Signing, prepare, sender_header
from msmq_fast.qm.queues.protection import demands

if TYPE_CHECKING:
    from msmq_fast.qm.manager import QueueManager
    from msmq_fast.qm.queues.queue import Queue
    from msmq_fast.security.token import Token

__all__ = ["MessageBuilder"]

_MESSAGES, _RESPONSE, _ADMIN = 2, 8, 9  # places in a SEND payload, and in a message of it

# Why a message cannot be built.
_TEXT = {
    0xC00E0014: "the response or admin queue is not a path (computer\\queue or computer\\private$\\queue)",
    0xC00E0018: "a property of the message has a value out of its range",
    0xC00E001E: "the response or admin queue is not a format name",
    0xC00E0020: "the response or admin queue cannot be sent to",
    0xC00E0027: "the message is too large: a packet has 4 MiB at most, headers included",
    0xC00E003F: "the message asks for an acknowledgment but has no admin queue",
    0xC00E005D: "the label has more than 249 characters",
}


class MessageBuilder:
    """Builds messages for one destination. `address` is the GUID of the destination's queue manager,
    NULL_GUID if unknown. `signing` signs messages for programs; if it is None, this server signs nothing.
    """

    def __init__(
        self,
        manager: QueueManager,
        address: UUID,
        destination: QueueField,
        token: Token | None,
        signing: Signing | None,
    ) -> None:
        self._manager = manager
        self._signing = signing
        self._token = token
        self._names = ReplyNames(manager.settings.known_as, manager.guid, address)
        self.native = PacketBuilder(
            manager.guid.bytes_le,
            address.bytes_le,
            destination.kind,
            destination.wire,
            self._names,
            manager.settings.long_lived,
            sender_header(token) if signing is not None and token is not None else b"",
        )

    def packets(self, payload: memoryview, count: int, *headers: int) -> list[bytes | int]:
        """Return the packets of a SEND payload, with an HRESULT in place of each refused message. `headers`
        are the fields of the TransactionHeaders: the arguments of PacketBuilder.packets from `transaction`
        on. Raises FrameFault.
        """
        manager = self._manager
        with self._names.lists():
            built = self.native.packets(
                payload, manager.message_ordinals.take(count), manager.ledger.now_s, *headers
            )
            if self._names.listed:
                self._add_lists(payload, built)
        return built

    def _add_lists(self, payload: memoryview, built: list[bytes | int]) -> None:
        """If a message names several response or admin queues, put all of them into a
        MultiQueueFormatHeader.
        """
        for index, fields in enumerate(msgpack.unpackb(payload)[_MESSAGES]):
            packet = built[index]
            if isinstance(packet, int):
                continue
            names = [fields[at] if len(fields) > at and fields[at] else "" for at in (_RESPONSE, _ADMIN)]
            if not any("," in text for text in names):
                continue
            message = Message.from_packet(packet)
            message.response_queues = self._names.all_of(names[0])
            if message.acknowledge:
                message.admin_queues = self._names.all_of(names[1])
            try:
                built[index] = message.to_packet()
            except MSMQError as problem:
                built[index] = problem.code

    def dead_letters(self, built: list[bytes | int]) -> list[int] | None:
        """Return a list with one number for each message that was built: the ordinal of the dead-letter queue
        that it names, 0 if it names none. Return None if no message names a dead-letter queue.
        """
        chosen = self.native.dead_letters
        if not chosen:
            return None
        known = {name: self._manager.dead_letter_queue(name, self._token) for name in set(chosen.values())}
        return [
            known[chosen[index]] if index in chosen else 0
            for index, item in enumerate(built)
            if not isinstance(item, int)
        ]

    def prepared(self, index: int, packet: bytes, queue: Queue) -> bytes:
        """Return `packet` in the form in which `queue` stores it: signed or encrypted if that is required.
        `index` is the position of the message in the SEND payload that was built last. Raises MSMQError if
        the queue does not accept the message.
        """
        return prepare(self._signing, queue, packet, self.native.signatures.get(index), self._token)

    def prepare(self, built: list[bytes | int], queue: Queue) -> dict[int, MSMQError]:
        """Replace each packet in `built`, the result of the last call of `packets`, with the form in which
        `queue` stores it (see `prepared`). Replace the packet of a refused message with the HRESULT. Returns
        the errors of the refused messages by index.
        """
        refusals: dict[int, MSMQError] = {}
        signed = self.native.signatures
        demanding = demands(queue)
        for index, item in enumerate(built):
            try:
                if isinstance(item, int):
                    raise self.refusal(item)
                if demanding or index in signed:
                    built[index] = self.prepared(index, item, queue)
            except MSMQError as problem:
                refusals[index] = problem
                built[index] = problem.code
        return refusals

    @staticmethod
    def refusal(code: int) -> MSMQError:
        """Return the error for a message that could not be built."""
        return error(code, _TEXT.get(code, ""))
