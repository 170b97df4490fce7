"""The receive pipeline of MS-MQQB 3.1.5.8 for messages that the native plain path does not handle.

Native code counts every message and processes its SessionHeader before this pipeline. The pipeline runs once
for each message with any special demand, and treats a plain message exactly as the native path does.

To add a reason for refusing a message:

1. Name it in `Refusal` (mqqb/reasons.py). The metric and the log line get their text from there; nothing
   else is needed to count and log it.
2. If the sender must be notified, a dead letter must follow, or the feed must have the event `nacked`, give
   it a MessageClass in `_REASONS` below. Without one the message is only counted, logged and dropped. Take
   the existing class 0x80.. that is nearest in meaning; 0xC0.. says that a message left the queue that it had
   reached. A class of `INSECURE` (qm/outgoing/acknowledgment.py), such as NACK_ACCESS_DENIED, is sent only
   with `mqqb.insecure_nacks`, so a sender does not see it by default.
3. Check for it in `Pipeline.handle`, and end with `return self.refuse(receiver, Refusal.NAME)`. Check after
   `receiver.expired` if the reason follows from the message, after `target` is found if it follows from the
   queue, after `_let_in` if senders without access must not learn it. A transactional message that is refused
   after `receiver.order` uses up its number; if it is refused earlier, its stream waits for that number for
   ever. `Pipeline.judge` decides about messages that reach a local queue from an outgoing one, and about
   protected messages of dependent clients: check there too, and return the MessageClass. `judge` must return
   a class: if `_REASONS` has none for the reason, choose one in `judge`.
4. Keep such messages off the native plain path, which does not know the reason. If it follows from the
   message, return False in `Receiver._is_plain` (src/_native/receive.pyx). This test may be coarse, since
   `Pipeline.handle` decides. If the reason follows from the queue, let `Destination.plain` (destination.py)
   be False. `MSMQ_FAST_ONLY=receive .venv/bin/python setup.py -q build_ext --inplace` builds this module.
5. If an operator can do something about it, add it to docs/how-to/my-message-did-not-arrive.md.

These checks are for messages that arrive over MS-MQQB for a queue of this queue manager. Elsewhere:

- Messages in transit: `forwarding.py` has checks of its own, with the same `refuse`. Native code
  (`relay_message` in src/_native/receivetransit.pyx) relays most of them without these checks: it must not
  accept a message that the new reason may concern.
- HTTP and multicast: name the reason in `Reason` (srmp/reasons.py) with the status of the answer and the
  class, and check for it in `Pipeline._let_in` (srmp/receive.py), which returns the result of
  `counters.turn_away`.
- Programs (`OpenQueue.send`, transactions), imports and resubmissions (qm/operator/) and stages (qm/bulk/):
  the call raises an MSMQError.

Test the reason in tests/mqqb/test_receive.py with `receiver.plain` True and False. For True, first send a
message that is accepted, which gives the queue a route. Then send the message to refuse; it must not request
an acknowledgment, because messages that do never take the plain path. `Host.refusals` lists the refusals that
were logged, and `Host.session_context.counts.refused` those that were counted; `Host(nack=...)` is called for
each negative acknowledgment. Use `Inbound` (tests/support/worlds/arrivals.py) to see what the sender gets, as
tests/qm/test_acknowledgment_arrival.py does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from uuid import UUID

from msmq_fast._native.framing import ParsedMessage, parse
from msmq_fast._native.queue import QueueCore
from msmq_fast._native.receive import (
    DUPLICATE,
    EXPIRED,
    MACHINE_QUOTA,
    NEW,
    OUT_OF_ORDER,
    QUEUE_GONE,
    QUEUE_QUOTA,
    STORED,
    Receiver,
)
from msmq_fast._native.routes import Routes
from msmq_fast.mqqb.destination import Destination, Gate, Resolver
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.orderack import ordering_ack
from msmq_fast.mqqb.reasons import CloseReason, Refusal
from msmq_fast.mqqb.streamshares import StreamShares
from msmq_fast.packet.acks import FinalAck, OrderAck
from msmq_fast.packet.fields import DIRECT, LONGEST, direct_text
from msmq_fast.packet.protect import unclaimed
from msmq_fast.packet.text import is_name
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.outgoing.resending import Messenger
from msmq_fast.security.signature import multi_signature
from msmq_fast.store.schema import EventKind

NULL_ADDRESS = bytes(16)
SECURITY_ENCRYPTED = 0x20
"""SecurityHeader.Flags.EB"""
SENDER_TYPE = 0x0F
"""SecurityHeader.Flags.ST"""
AUTHENTICATION = 0x0F
"""SecurityHeader.Flags.AS, in its second byte"""
_HEADERS, _SECURITY = 62, 0x08
"""The third byte of UserHeader.Flags, and its bit SH."""
TRACE = 0x0100
"""BaseHeader.Flags.TR"""


Nack = Callable[[bytes, MessageClass], bool]
"""Applies the side effects of a refusal inside a unit of work: a negative acknowledgment, a dead letter.

Returns whether there were any side effects.
"""

_REASONS = {
    Refusal.EXPIRED: MessageClass.NACK_REACH_QUEUE_TIMEOUT,
    Refusal.UNKNOWN_QUEUE: MessageClass.NACK_BAD_DST_Q,
    Refusal.BAD_NAME: MessageClass.NACK_BAD_DST_Q,
    Refusal.NOT_TRANSACTIONAL: MessageClass.NACK_NOT_TRANSACTIONAL_MSG,
    Refusal.TRANSACTIONAL: MessageClass.NACK_NOT_TRANSACTIONAL_Q,
    Refusal.ENCRYPTED: MessageClass.NACK_BAD_ENCRYPTION,
    Refusal.SIGNED: MessageClass.NACK_BAD_SIGNATURE,
    Refusal.UNSUPPORTED_PROVIDER: MessageClass.NACK_UNSUPPORTED_CRYPTO_PROVIDER,
    Refusal.ACCESS_DENIED: MessageClass.NACK_ACCESS_DENIED,
    Refusal.QUEUE_QUOTA: MessageClass.NACK_Q_EXCEED_QUOTA,
    Refusal.HOP_COUNT: MessageClass.NACK_HOP_COUNT_EXCEEDED,
    Refusal.LOOP: MessageClass.NACK_HOP_COUNT_EXCEEDED,
}


@dataclass(slots=True)
class Counts:
    """Counts the outcomes of messages that this pipeline handles, for metrics. The native path counts its own
    messages, for each session.
    """

    refused: Counter[Refusal] = field(default_factory=Counter)
    closed: Counter[CloseReason] = field(default_factory=Counter)
    order_acks: int = 0
    """Number of OrderAcks that arrived."""
    final_acks: int = 0


class Pipeline:
    """Decides about one message at a time.

    If a method returns a CloseReason, the message stays undecided and the session must end.
    """

    def __init__(
        self,
        guid: UUID,
        resolve: Resolver,
        routes: Routes,
        counts: Counts,
        on_refusal: Callable[[Refusal, Receiver], None] | None,
        gate: Gate | None = None,
        quarantine: Callable[[], QueueCore | None] | None = None,
        nack: Nack | None = None,
        hooks: Hooks | None = None,
        shares: StreamShares | None = None,
    ) -> None:
        self._local = (guid.bytes_le, NULL_ADDRESS)
        self._resolve = resolve
        self._routes = routes
        self._counts = counts
        self._on_refusal = on_refusal
        self._gate = gate
        self._quarantine = quarantine
        self._nack = nack
        self.hooks = hooks or Hooks()
        self._shares = shares

    def handle(
        self, receiver: Receiver, now: float, messenger: Callable[[], Messenger]
    ) -> CloseReason | None:
        """Run the steps of 3.1.5.8 for the current message of `receiver`; `now` is in monotonic seconds.

        `messenger` returns the peer that delivers the message.
        """
        message = receiver.message()
        if message.ack_flags and message.admin_type and self.hooks.brought is not None:
            self.hooks.brought(message.source, receiver.address)
        if message.destination_manager not in self._local:
            return self._pass_on(receiver, message)
        if message.message_class and self._consume(receiver, message, now, messenger):
            return None
        if message.dest_length > LONGEST:  # before a stream is looked for: none has such a name
            return self.refuse(receiver, Refusal.BAD_NAME)
        if message.transaction_offset:
            if not self._may_go_on(message, receiver.address, now):
                return CloseReason.STREAM_LIMIT
            order = receiver.order()
            if order != STORED:
                return self.refused(receiver, order)
        elif not _is_encrypted(message) and receiver.sight() != NEW:
            return self.refuse(receiver, Refusal.DUPLICATE)
        if receiver.expired():
            return self.refuse(receiver, Refusal.EXPIRED)
        name = bytes(message.destination)
        target = self._resolve(message.dest_type, name)
        if target is None:
            return self.refuse(receiver, _unknown(message.dest_type, name))
        if target.transactional != bool(message.transaction_offset):
            demanded = Refusal.NOT_TRANSACTIONAL if target.transactional else Refusal.TRANSACTIONAL
            return self.refuse(receiver, demanded)
        packet, refusal = self._let_in(message, target, name, receiver)
        if refusal is not None:
            if refusal is Refusal.ACCESS_DENIED and self._set_aside(receiver):
                return None
            return self.refuse(receiver, refusal)
        hidden = _is_encrypted(message) and not message.transaction_offset
        if hidden and receiver.sight(packet) != NEW:  # by its clear text: anybody can encrypt another body
            return self.refuse(receiver, Refusal.DUPLICATE)
        result = receiver.deliver(target.core, packet=packet)
        if result != STORED:
            return self.refused(receiver, result)
        if message.base_flags & TRACE and self.hooks.trace is not None:
            self.hooks.trace(message, target)
        return None

    def _may_go_on(self, message: ParsedMessage, address: str, now: float) -> bool:
        """Whether a transactional message may continue its stream, or begin a new stream. The number of
        streams from the address of the peer is limited.
        """
        if self._shares is None:
            return True
        name = bytes(message.destination)
        return self._shares.admits(message.source, message.dest_type, name, address, now)

    def handle_acks_only(self, receiver: Receiver, now: float, messenger: Callable[[], Messenger]) -> None:
        """Handle a message on a session that accepts no more messages: apply it if it is an OrderAck or a
        FinalAck for this queue manager, otherwise ignore it.
        """
        message = receiver.message()
        if message.destination_manager in self._local:
            self._consume(receiver, message, now, messenger)

    def _consume(
        self, receiver: Receiver, message: ParsedMessage, now: float, messenger: Callable[[], Messenger]
    ) -> bool:
        """Apply an OrderAck or a FinalAck, which no queue receives (QB-220); returns False for other
        messages.
        """
        try:
            ack = ordering_ack(message)
        except ValueError:
            self.refuse(receiver, Refusal.MALFORMED_ACK)
            return True
        if ack is None:
            return False
        if isinstance(ack, OrderAck):
            self._counts.order_acks += 1
        else:
            self._counts.final_acks += 1
        receiver.consume(lambda: self._hand_over(ack, now, messenger()))
        return True

    def _hand_over(self, ack: OrderAck | FinalAck, now: float, messenger: Messenger) -> None:
        sequences = self.hooks.sequences
        if sequences is None:
            return
        if isinstance(ack, OrderAck):
            sequences.order_ack(ack, now, messenger)
        else:
            sequences.final_ack(ack, now, messenger)

    def _pass_on(self, receiver: Receiver, message: ParsedMessage) -> CloseReason | None:
        """Forward a message for another queue manager; one that was forwarded before is a duplicate
        (QB-224).
        """
        forward = self.hooks.forward
        if forward is None or not forward.active:
            return CloseReason.NOT_LOCAL
        if not message.transaction_offset and receiver.sight() != NEW:
            return self.refuse(receiver, Refusal.DUPLICATE)
        return forward(receiver, message, self.refuse)

    def _let_in(
        self, message: ParsedMessage, target: Destination, name: bytes, receiver: Receiver
    ) -> tuple[bytes | None, Refusal | None]:
        """Open a protected message with `_opened`, and check the access of its sender.

        Returns (packet, refusal): the packet that replaces a protected message, or None; and the reason for a
        refusal, or None. For an encrypted message, the access check and the quota check come first. Keys are
        not used for senders that may not send to the queue, and a refusal after the use of a key would reveal
        whether the key fitted (see `ReceivedProtection`).
        """
        encrypted = _is_encrypted(message)
        if encrypted:
            if not self._admits(target, message, name, receiver, verified=_is_signed(message)):
                return None, Refusal.ACCESS_DENIED
            if target.core.used_bytes + len(message.packet) > target.core.quota_bytes:
                return None, Refusal.QUEUE_QUOTA
        packet, refusal = self._opened(message, target)
        if refusal is None and not encrypted:
            verified = packet is not None and _is_verified(message, packet)
            if not self._admits(target, message, name, receiver, verified=verified):
                refusal = Refusal.ACCESS_DENIED
        return packet, refusal

    def _opened(self, message: ParsedMessage, target: Destination) -> tuple[bytes | None, Refusal | None]:
        """Returns (packet, refusal): the packet that replaces a protected message, or the reason for its
        refusal (AMB-24, AMB-25). Both are None if neither the message nor the queue needs protection.
        """
        encrypted = _is_encrypted(message)
        protected = encrypted or message.signature_length or message.mqf_offset
        if not protected and not target.authenticated and not target.encrypted_only:
            return None, None
        if self.hooks.protection is None:
            return None, _unprotected(encrypted, target)
        opened = self.hooks.protection.open(message, target)
        return (None, opened) if isinstance(opened, Refusal) else (opened, None)

    def judge(self, packet: bytes, target: Destination) -> bytes | MessageClass:
        """Decide about a message that enters a local queue from an outgoing queue, without a session.

        Returns the packet to store, or the class of the negative acknowledgment, which is not sent. Messages
        of this computer are encrypted only on transmission. Here such a message counts as encrypted if it has
        a privacy level.
        """
        message = parse(packet)
        if message.source == self._local[0] and any(packet[_privacy_of(message)]):
            if target.clear_only:
                return MessageClass.NACK_BAD_ENCRYPTION
            target = replace(target, encrypted_only=False)
        opened, refusal = self._opened(message, target)
        if refusal is not None:
            return _REASONS.get(refusal, MessageClass.NACK_BAD_ENCRYPTION)
        if not target.everybody:
            kind, sender = _sender(message)
            verified = opened is not None and _is_verified(message, opened)
            name = f"{{{UUID(bytes_le=message.source)}}}\\{message.message_id}"
            if self._gate is None or not self._gate(target, kind, sender, name, verified=verified):
                return MessageClass.NACK_ACCESS_DENIED
        return unclaimed(message) if opened is None else opened

    def _admits(
        self,
        target: Destination,
        message: ParsedMessage,
        name: bytes,
        receiver: Receiver,
        *,
        verified: bool,
    ) -> bool:
        """Whether the sender may send to the queue; `verified`: a signature proves the sender.

        A positive decision is stored as a route for the plain path, unless it depends on a signature:
        messages of the plain path have none.
        """
        if target.everybody:
            if target.plain:
                add = self._routes.add_streams if target.transactional else self._routes.add
                add(message.dest_type, name, target.core)
            return True
        kind, sender = _sender(message)
        if self._gate is None or not self._gate(target, kind, sender, receiver.describe(), verified=verified):
            return False
        if target.plain and not target.transactional and not verified:
            self._routes.admit(message.dest_type, name, kind, sender, target.core)
        return True

    def _set_aside(self, receiver: Receiver) -> bool:
        """Store a message whose sender was refused in the quarantine queue; returns False if that is
        not possible.
        """
        core = self._quarantine() if self._quarantine is not None else None
        if core is None or receiver.deliver(core, MessageClass.NACK_ACCESS_DENIED) != STORED:
            return False
        self._tell(receiver, Refusal.QUARANTINED)
        if self._nack is not None:
            self._nack(receiver.message().packet, MessageClass.NACK_ACCESS_DENIED)
        return True

    def refused(self, receiver: Receiver, result: int) -> CloseReason | None:
        """Drop a message that a queue refused, or a duplicate that the native path found; see `refuse`.

        `result` is the result of the native code. If the quota of the queue manager is used up, the message
        is not dropped: returns CloseReason.QUOTA, which ends the session.
        """
        if result == MACHINE_QUOTA:
            return CloseReason.QUOTA
        refusal = {
            QUEUE_QUOTA: Refusal.QUEUE_QUOTA,
            EXPIRED: Refusal.EXPIRED,
            DUPLICATE: Refusal.DUPLICATE,
            OUT_OF_ORDER: Refusal.OUT_OF_ORDER,
            QUEUE_GONE: Refusal.UNKNOWN_QUEUE,
        }[result]
        return self.refuse(receiver, refusal)

    def refuse(self, receiver: Receiver, refusal: Refusal) -> CloseReason | None:
        """Drop the current message: apply the side effects of the refusal, count it and log it.

        Returns a CloseReason if the message needs a dead letter for which there is no room here now: the
        message then stays with its sender.
        """
        reason = _REASONS.get(refusal)
        if reason is not None:
            must_wait = self.hooks.must_wait
            if must_wait is not None and must_wait(receiver.message().packet, reason):
                return CloseReason.QUOTA
            receiver.tell(EventKind.NACKED, reason)
        elif refusal is Refusal.DUPLICATE:
            receiver.tell(EventKind.DUPLICATE)
        if reason is None or self._nack is None:
            receiver.drop()
        else:
            receiver.reject(self._nack, reason)
        self._tell(receiver, refusal)
        return None

    def _tell(self, receiver: Receiver, refusal: Refusal) -> None:
        self._counts.refused[refusal] += 1
        if self._on_refusal is not None:
            self._on_refusal(refusal, receiver)


def _unknown(dest_type: int, name: bytes) -> Refusal:
    """Returns the reason for refusing a message because no queue has its destination name."""
    if dest_type == DIRECT and not is_name(direct_text(name)):
        return Refusal.BAD_NAME
    return Refusal.UNKNOWN_QUEUE


def _sender(message: ParsedMessage) -> tuple[int, bytes]:
    """Returns (SecurityHeader.Flags.ST, SecurityID); (0, b"") if the message has no SecurityHeader."""
    if not message.security_offset:
        return 0, b""
    start = message.sender_id_offset
    kind = message.packet[message.security_offset] & SENDER_TYPE
    return kind, message.packet[start : start + message.sender_id_length]


def _is_encrypted(message: ParsedMessage) -> bool:
    start = message.security_offset
    return bool(start and message.packet[start] & SECURITY_ENCRYPTED)


def _is_signed(message: ParsedMessage) -> bool:
    return bool(message.signature_length or multi_signature(message))


def _privacy_of(message: ParsedMessage) -> slice:
    """Returns the position of MessagePropertiesHeader.PrivacyLevel in the packet."""
    return slice(message.properties_offset + 40, message.properties_offset + 44)


def _is_verified(message: ParsedMessage, opened: bytes) -> bool:
    """Whether `Protection` has set SecurityHeader.Flags.AS in the opened packet.

    The SecurityHeader is at the same offset as in `message`, unless it was removed because it was empty.
    """
    start = message.security_offset
    return bool(start and opened[_HEADERS] & _SECURITY and opened[start + 1] & AUTHENTICATION)


def _unprotected(encrypted: bool, target: Destination) -> Refusal | None:
    """Returns the reason for refusing a message on a queue manager without `Protection`; None to accept it.

    Encrypted messages, and messages to queues that demand protection, are refused. In other messages, a
    sender id without a signature stays unchanged (AMB-23).
    """
    if encrypted:
        return Refusal.ENCRYPTED
    if target.authenticated:
        return Refusal.ACCESS_DENIED
    if target.encrypted_only:
        return Refusal.ENCRYPTED
    return None
