"""OrderAcks and FinalAcks for arriving streams (MS-MQQB 3.1.1.6.2, 3.1.6.9, 3.1.7.17)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from msmq_fast._native.framing import ParsedMessage, parse
from msmq_fast._native.instream import KEY_PREFIX, InStream, InStreams
from msmq_fast._native.ledger import Ledger
from msmq_fast.mqqb.peers import Peers
from msmq_fast.mqqb.timers import Timers
from msmq_fast.packet.acks import ORDER_QUEUE, ORDERING_LABEL, FinalAck, OrderAck, order_queue
from msmq_fast.packet.fields import Hosts, QueueField, direct_text, field_name
from msmq_fast.packet.message import Message
from msmq_fast.packet.names import FormatName
from msmq_fast.packet.user import TransactionHeader
from msmq_fast.protocol.classes import MessageClass
from msmq_fast.qm.deadlines import Deadlines
from msmq_fast.qm.faults import Faults
from msmq_fast.qm.outgoing.latestonly import LatestOnly, Place
from msmq_fast.qm.queues.incoming import IncomingTransfer
from msmq_fast.store.paging import Scan, scan_pages
from msmq_fast.store.schema import Table
from msmq_fast.timing import earliest

DIRECT = 7
"""The value of UserHeader.Flags.DQ for a direct name."""
_PRIVATE_HERE, _PRIVATE_THERE = 3, 6
_NUMBER = ORDER_QUEUE.to_bytes(4, "little")
_PART = "\\private$\\order_queue$"
_TURN = 100
"""Maximum number of streams that are acknowledged in one turn of the loop; the others follow in the next."""


@dataclass(frozen=True, slots=True)
class _ReturnPath:
    """The destination of an acknowledgment, and the name `via` of the outgoing queue that it goes into."""

    destination: FormatName
    via: FormatName


class OrderAcks:
    """Acknowledges streams to their senders: how far each stream is complete, and how single messages ended.

    - `send(message, via, address)` puts a message, which answers the peer at `address`, into the outgoing
      queue with the name `via`, in the current unit of work if there is one. It returns the place of the
      message in the queue; None if the queue did not accept the message.
    - `has_route` returns whether static routes or the directory have a route to a queue manager.
    - `monotonic` returns monotonic seconds, the unit of all times here.
    - `peers` has the sessions of the queue managers that send the streams; None: no sessions are known.
    """

    def __init__(
        self,
        guid: UUID,
        ledger: Ledger,
        streams: InStreams,
        send: Callable[[Message, FormatName, str], Place | None],
        monotonic: Callable[[], float],
        timers: Timers | None = None,
        has_route: Callable[[UUID], bool] = lambda _: False,
        faults: Faults | None = None,
        peers: Peers | None = None,
    ) -> None:
        self.streams = streams
        self.order_acks = 0
        self.final_acks = 0
        self._guid = guid
        self._ledger = ledger
        self._send = send
        self._monotonic = monotonic
        self._has_route = has_route
        self._peers = peers or Peers(guid)
        self._timers = timers or Timers()
        self._faults = faults or Faults()
        self._armed: Deadlines[InStream] = Deadlines()
        self._latest_only: LatestOnly[InStream] = LatestOnly()
        self._cleanup = monotonic() + self._timers.stream_cleanup

    # ---- OrderAcks

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due: now if messages have arrived in streams whose timer has
        not been started yet.
        """
        if self.streams.ack_due:
            return self._monotonic()
        return earliest(self._armed.next_deadline(), self._cleanup)

    def _take_ack_due(self, now: float) -> None:
        """Start the timers of the streams in which messages have arrived."""
        for stream in self.streams.take_ack_due():
            stream.acknowledged_at = stream.acknowledged_at or now  # its first value, QB-147
            self._armed.set(stream, now + self._timers.order_ack - self._silence(stream))

    def _silence(self, stream: InStream) -> float:
        """Returns the seconds since the latest message of a stream, clamped to the range from 0 to the
        duration of the Order Ack Send Timer, in case the wall clock was set meanwhile.
        """
        silent = (self._ledger.now_us - stream.heard_us) / 1e6
        return min(max(silent, 0.0), self._timers.order_ack)

    def expire(self, now: float) -> None:
        """Run the Order Ack Send Timer (QB-122): acknowledge streams that have paused, and those that have
        not paused for MaximumOrderAckDelay.
        """
        self._take_ack_due(now)
        for stream in self._armed.take(now, _TURN):
            left = self._timers.order_ack - self._silence(stream)
            if left > 0 and now - stream.acknowledged_at < self._timers.order_ack_max:
                self._armed.set(stream, now + left)
                continue
            stream.armed = False
            stream.acknowledged_at = now
            try:
                self._acknowledge(stream)
            except Exception as error:
                self._faults.note("an OrderAck", error)  # the sender repeats, and is answered then
        if now >= self._cleanup:
            self._cleanup = now + self._timers.stream_cleanup
            self.streams.forget(max(0, self._ledger.now_s - int(self._timers.stream_lifetime)))
            self._latest_only.tidy()

    def _acknowledge(self, stream: InStream) -> None:
        """Acknowledge the highest durable number of a stream; send nothing if there is none (QB-396,
        AMB-15).
        """
        self.streams.note_rejects(stream)
        if not stream.durable_number:
            return
        identifier = stream.durable_identifier
        ack = OrderAck(identifier & 0xFFFFFFFF, identifier >> 32, stream.durable_number)
        return_path = self._return_path(stream.dest_type, stream.source, stream)
        place = None if return_path is None else self._send_back(ack, return_path, stream.address)
        if place is not None:
            self.order_acks += 1
            self._latest_only.put(stream, place)

    def _send_back(self, ack: OrderAck | FinalAck, return_path: _ReturnPath, address: str) -> Place | None:
        return self._send(ack.message(return_path.destination, self._guid), return_path.via, address)

    def _return_path(self, dest_type: int, source: bytes, stream: InStream | None) -> _ReturnPath | None:
        """Returns the destination of acknowledgments and their outgoing queue; None if they cannot be sent.

        1. Acknowledgments are sent to the order queue of the sender, named in the form that the sender used
           (AMB-63, AMB-64): by address if the sender used a direct name, by GUID otherwise. If several queue
           managers share the address, the address is ambiguous, so the name has the GUID in either case.
        2. If the sender itself delivered the stream, its acknowledgments return to it. If a router delivered
           the stream, they follow static routes or the directory if these have a route; otherwise they return
           to the router, which has a route. If one sequence arrives from several addresses, each address has
           its own stream. Then only the stream from the address at which the sender is believed to be
           (`Peers.vouches`) is acknowledged: the sender must not get acknowledgments of messages that another
           peer invented.
        3. So each peer has one outgoing queue for acknowledgments, however many senders it delivers for. The
           limits for invented administration queues do not apply to this queue.
        """
        manager = UUID(bytes_le=source)
        if manager == self._guid:
            return None
        own = order_queue(manager)
        if stream is None:
            return _ReturnPath(own, own)
        peers = self._peers.guids_at(stream.address) if stream.address else ()
        shared = any(peer != manager for peer in peers)
        brought_by = UUID(bytes_le=stream.peer) if stream.peer else None
        if brought_by is None and len(peers) == 1:
            brought_by = next(iter(peers))  # since a restart: what is there now was there before
        if dest_type == DIRECT and stream.address and not shared:
            direct = order_queue(address=stream.address)
            return _ReturnPath(direct, direct)
        if self.streams.disputed(stream) and not self.streams.vouched(stream):
            return None
        if brought_by == manager or (dest_type != DIRECT and self._has_route(manager)):
            return _ReturnPath(own, own)
        if brought_by is not None:
            return _ReturnPath(own, order_queue(brought_by))
        if stream.address and not shared:
            return _ReturnPath(own, order_queue(address=stream.address))
        return _ReturnPath(own, own)

    def transfers(self) -> list[IncomingTransfer]:
        """Returns IncomingTransactionalTransferInfo of every stream that has durable messages (QB-286)."""
        return [self._transfer(stream) for stream in self.streams if stream.durable_number]

    def _transfer(self, stream: InStream) -> IncomingTransfer:
        hosts = Hosts(UUID(bytes_le=stream.source), self._guid)
        name = field_name(QueueField(stream.dest_type, stream.name), hosts)
        return IncomingTransfer(
            stream.queue,
            "" if name is None else str(name),
            hosts.source,
            stream.durable_identifier,
            stream.durable_number,
            stream.accessed,
            stream.rejects,
        )

    # ---- FinalAcks

    def final(self, packet: bytes, reason: int) -> bool:
        """Send a FinalAck, which reports to the sender of a transactional message how the message ended.

        Call inside the unit of work in which the message ends. Returns False if no FinalAck was sent: the
        message is not transactional or comes from this computer, no destination for the FinalAck is known, or
        its outgoing queue has no room.
        """
        parsed = parse(packet)
        if not parsed.transaction_offset or parsed.source == self._guid.bytes_le:
            return False
        header, _ = TransactionHeader.decode(packet, parsed.transaction_offset)
        name = bytes(parsed.destination)
        sequence = header.sequence_timestamp << 32 | header.sequence_ordinal
        stream = self.streams.get(parsed.source, parsed.dest_type, name, sequence)
        return_path = self._return_path(parsed.dest_type, parsed.source, stream)
        if return_path is None:
            return False
        ack = FinalAck(
            header.sequence_ordinal,
            header.sequence_timestamp,
            header.sequence_number,
            header.previous_number,
            UUID(bytes_le=parsed.source),
            parsed.message_id,
            reason,
        )
        if self._send_back(ack, return_path, "" if stream is None else stream.address) is None:
            return False
        self.final_acks += 1
        return True


def ordering_ack(message: ParsedMessage) -> OrderAck | FinalAck | None:
    """Returns the OrderAck or FinalAck that a message holds; None for any other message.

    The destination, label and class of the message decide (AMB-31). Raises ValueError if the message is an
    acknowledgment whose body is not valid.
    """
    kind = message.message_class
    if kind != MessageClass.ORDER_ACK and kind < MessageClass.ACK_RECEIVE:
        return None
    if message.label != ORDERING_LABEL or not _for_order_queue(message.dest_type, bytes(message.destination)):
        return None
    if kind == MessageClass.ORDER_ACK:
        return OrderAck.decode_body(bytes(message.body))
    return FinalAck.decode_body(bytes(message.body), kind)


def _for_order_queue(dest_type: int, name: bytes) -> bool:
    if dest_type == _PRIVATE_HERE:
        return name == _NUMBER
    if dest_type == _PRIVATE_THERE:
        return name[16:] == _NUMBER
    if dest_type != DIRECT:
        return False
    return direct_text(name).casefold().endswith(_PART)


def load_streams(streams: InStreams, scan: Scan, report_corrupt: Callable[[str, str], None]) -> None:
    """Load the stored state of streams (REC-09); `scan` reads stored records (see `Tables.scan`).

    Calls `report_corrupt(kind, text)` for each record that cannot be used.
    """
    upper = bytes((KEY_PREFIX[0] + 1,))
    for key, value in scan_pages(scan, Table.SEQUENCE, KEY_PREFIX, upper):
        try:
            streams.load(key, value)
        except ValueError as error:
            report_corrupt("stream", f"the record of the stream {key.hex()} is damaged: {error}")
