"""One MS-MQQB session in either role: handshake, counts, acknowledgment, window (3.1.5, 3.1.6)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from msmq_fast._native import receive
from msmq_fast._native.framing import parse
from msmq_fast._native.window import COUNT_MISMATCH, OK, ReceiveWindow, SendWindow, session_header
from msmq_fast.mqqb.channel import OutgoingChannel
from msmq_fast.mqqb.handshake import (
    NULL_GUID,
    ConnectionParameters,
    EstablishConnection,
    answer_system,
    clamped,
    in_range,
    recoverable_ack_timeout,
    request_system,
    session_ack,
)
from msmq_fast.mqqb.keywait import KeyWait
from msmq_fast.mqqb.limits import KeyBudget, PartialPackets
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.sending import Outbox
from msmq_fast.mqqb.sessioncontext import SessionContext
from msmq_fast.mqqb.sessionowner import SessionOwner, ignore
from msmq_fast.mqqb.sessionstate import CLOSED, LINGERING, OPEN, SessionState
from msmq_fast.protocol.errors import PacketFaultCode
from msmq_fast.qm.outgoing.resending import Messenger
from msmq_fast.security.addresses import address_group
from msmq_fast.security.domainaccounts import GroupsNeeded
from msmq_fast.security.keyturns import KeyNeeded, KeyTurns, TooManyWait
from msmq_fast.timing import NEVER

Wake = Callable[["Session"], None]
"""Schedules a call of `Session.pump`, after an event outside a call of the transport (a commit, new work)."""


class Session:
    """A sans-IO engine: bytes go into `buffer` and `commit` (or `receive`) and come out of `data_to_send`.

    Times are monotonic seconds; 0 is the start of the operating system, as EstablishConnection.TimeStamp
    requires. `owner` is notified of changes of state; `wake` asks the transport to call `pump` and to take
    the output.
    """

    def __init__(
        self,
        session_context: SessionContext,
        peer_address: str,
        now: float,
        *,
        initiator: bool,
        server_guid: UUID = NULL_GUID,
        pinged: bool = False,
        refusal: CloseReason | None = None,
        owner: SessionOwner[Session] | None = None,
        wake: Wake = ignore,
    ) -> None:
        self.session_context = session_context
        self._owner = owner
        self._wake_transport = wake
        self.number = session_context.ledger.new_owner(transfer=True)
        self.peer_address = peer_address
        self.peer_guid = NULL_GUID
        self.initiator = initiator
        self.state = SessionState.WAITING_ECR_MSG if initiator else SessionState.WAITING_EC_MSG
        self.reason: CloseReason | None = None
        self.detail = ""
        self.heard_at = now
        self.opened_at: float | None = None
        self.window = ReceiveWindow(session_context.windows.size, self.wake)
        self.sent = SendWindow(session_context.window)
        if session_context.hooks.trace_sent is not None:
            self.sent.traced = []
        self.outbox = Outbox(self.number, self.sent, session_context.ledger)
        self.receiver = receive.Receiver(
            session_context.guid.bytes_le,
            self.window,
            self.sent,
            session_context.history,
            session_context.ledger,
            session_context.routes,
            session_context.streams,
            peer_address,
            session_context.history.origin(address_group(peer_address).encode()),
        )
        self.server_guid = server_guid
        self._refusal = refusal
        self._output: list[bytes] = []
        self._ack_wait = session_context.timers.proposed_ack_wait
        self._recoverable_ack = NEVER
        self._active = False
        self._paused = False
        self._ack_received = False
        self._large = False  # a large packet has not arrived in full
        self._init_deadline = now + session_context.timers.initialization
        self._cleanup_deadline = now + session_context.timers.session_cleanup
        self._ack_wait_deadline = self._ack_send_deadline = NEVER
        self._ack_send_started = 0.0
        self._partial_deadline = self._blocked_deadline = self._linger_deadline = NEVER
        self.general = 0  # messages that took the general path
        self._keys = KeyBudget(session_context.limits.session_keys)
        self._reading_paused_until = NEVER
        self._wait = KeyWait()
        self._lingers_to_send = 0.0
        if initiator:
            stamp = int(now * 1000) & 0xFFFFFFFF
            request = EstablishConnection(session_context.guid, server_guid, stamp, request_system(pinged))
            self._output.append(request.encode())

    @property
    def reading_paused(self) -> bool:
        """Whether to stop reading now: a message waits, or too many session keys were used."""
        return self._reading_paused_until < NEVER or self._wait.turn is not None

    @property
    def alive(self) -> bool:
        """Whether the session has not been closed."""
        return self.state is not CLOSED

    @property
    def serves(self) -> bool:
        """Whether an outgoing queue sends on the session."""
        return bool(self.outbox.channels)

    def idle(self, now: float, seconds: float) -> bool:
        """Whether the session is open, its peer was silent for `seconds`, and nothing is in flight."""
        busy = self.sent.unacknowledged or self.window.unacknowledged or self.window.acknowledgeable
        return self.state is OPEN and now - self.heard_at >= seconds and not busy

    # ------------------------------------------------------------------------------------------------ input

    def buffer(self, hint: int) -> memoryview:
        """Returns the buffer into which the transport writes received bytes."""
        return (self._wait if self._wait.turn is not None else self.receiver).buffer(hint)

    def commit(self, count: int, now: float) -> None:
        """Process `count` bytes that were written to the buffer."""
        if self.state is CLOSED:
            return
        if self._wait.turn is not None:
            self._wait.commit(count)
            return
        self.receiver.commit(count)
        self._run(now)

    def receive(self, data: bytes, now: float) -> None:
        """Process bytes that arrived by other means than the buffer."""
        rest = memoryview(data)
        while rest and self.state is not CLOSED:
            room = self.buffer(len(rest))
            count = min(len(room), len(rest))
            room[:count] = rest[:count]
            self.commit(count, now)
            rest = rest[count:]

    def _run(self, now: float) -> None:
        self.heard_at = now
        run = self.receiver.run
        received, headers, packets = self.window.received, self.receiver.headers, self.receiver.packets
        while self._reading_paused_until == NEVER:
            event = run()
            if event == receive.NEED_INPUT:
                break
            self._handle(event, now)
            if self._wait.turn is not None:
                break
            if self.receiver.header_result != OK:
                self._header_fault(now)
            if self.state is CLOSED:
                return
        self._ack_received = True
        if self.receiver.held or self._partial_deadline < NEVER or self._large:
            self._watch_writer(packets, now)
        if self.state is not OPEN and self.state is not LINGERING:
            return
        if self.window.received != received:
            self._active = True
        if self.receiver.headers != headers:
            self._ack_wait_deadline = now + self._ack_wait_time if self.sent.unacknowledged else NEVER
        self.pump(now)

    def _watch_writer(self, packets: int, now: float) -> None:
        """Set the deadline of an incomplete packet. Further bytes of the packet do not postpone it."""
        held, another = self.receiver.held, self.receiver.packets != packets
        if not held or self.reading_paused:
            self._partial_deadline = NEVER
        elif self._partial_deadline == NEVER or another:
            self._partial_deadline = now + self.session_context.limits.slow_writer
        if held > PartialPackets.SMALL or self._large:
            self._large = held > PartialPackets.SMALL
            partial = self.session_context.partial_packets
            partial.note(self, held, anew=another)
            while (oldest := partial.excess) is not None:
                oldest.close(CloseReason.UNFINISHED, now)

    def _handle(self, event: int, now: float) -> None:
        pipeline = self.session_context.pipeline
        if event == receive.MESSAGE:
            self.general += 1
            if self.state is LINGERING:
                pipeline.handle_acks_only(self.receiver, now, self._messenger)
            else:
                self._message(now)
        elif event == receive.REFUSED:
            self._end_over(pipeline.refused(self.receiver, self.receiver.result), now)
        elif event == receive.MALFORMED:
            self.close(CloseReason.MALFORMED, now, PacketFaultCode(self.receiver.fault).text)
        elif event == receive.ESTABLISH:
            self._establish(EstablishConnection.decode(self.receiver.packet()), now)
        elif event == receive.PARAMETERS:
            self._parameters(ConnectionParameters.decode(self.receiver.packet()), now)
        elif event == receive.OUT_OF_STATE:
            self.close(CloseReason.OUT_OF_STATE, now)

    def _message(self, now: float) -> None:
        """Process a message. If it must wait for a private key or for groups, later messages wait too."""
        hooks, turns = self.session_context.hooks, self.session_context.turns
        opened = hooks.keys_opened
        try:
            reason = self.session_context.pipeline.handle(self.receiver, now, self._messenger)
        except KeyNeeded:
            if turns is None:
                raise
            self._ask_for_turn(turns, now)
            return
        except GroupsNeeded as needed:
            self._wait.until(needed.learnt, self.peer_address, self._turn_came)
            return
        self._end_over(reason, now)
        if hooks.keys_opened != opened:
            self._reading_paused_until = self._keys.spend(hooks.keys_opened - opened, now) or NEVER

    def _ask_for_turn(self, turns: KeyTurns, now: float) -> None:
        try:
            waits = self._wait.ask(turns, self.peer_address, self._turn_came, now)
        except TooManyWait:
            self.close(CloseReason.KEYS, now, self.receiver.describe())
            return
        if not waits:
            turns.take(self.peer_address, lambda: self._message(now))

    def _turn_came(self, now: float) -> None:
        """Process, from its start, the message that waited: queues may have changed."""
        meanwhile = self._wait.end()
        self._message(now)
        if self.receiver.header_result != OK:
            self._header_fault(now)
        if self.alive:
            self._run(now)
            self.receive(meanwhile, now)
        self.wake()

    def _messenger(self) -> Messenger:
        """Returns the peer whose acknowledgments arrive on this session."""
        peers = self.session_context.peers
        manager = self.peer_guid if peers.holds(self) else None
        return Messenger(peers.addresses_of(self), manager, peers.is_router(self.peer_address, manager))

    def _end_over(self, reason: CloseReason | None, now: float) -> None:
        """End the session because of a message, unless `reason` is None.

        If the reason is QUOTA, the session first waits until the peer has all messages that were sent to it.
        These messages may be the ones that fill the quota here. On a new session they would be too late: the
        messages of the peer, which exceed the quota, would arrive first and end that session too.
        """
        if reason is None:
            return
        if reason is not CloseReason.QUOTA or not self.sent.held:
            self.close(reason, now, self.receiver.describe())
            return
        self.state = LINGERING
        self.detail = self.receiver.describe()
        self.receiver.lingering = True
        self._ack_send_deadline = NEVER
        self._lingers_to_send = now + self.session_context.timers.retry
        self._linger_deadline = self._lingers_to_send + self._ack_wait_time

    def _header_fault(self, now: float) -> None:
        mismatch = self.receiver.header_result == COUNT_MISMATCH
        self.close(CloseReason.COUNT_MISMATCH if mismatch else CloseReason.ACK_UNSENT, now)

    # -------------------------------------------------------------------------------------------- handshake

    def _establish(self, packet: EstablishConnection, now: float) -> None:
        if self.state is SessionState.WAITING_EC_MSG:
            self._accept(packet, now)
        elif self.state is SessionState.WAITING_ECR_MSG:
            self._accepted(packet, now)
        else:
            self.close(CloseReason.OUT_OF_STATE, now)

    def _accept(self, packet: EstablishConnection, now: float) -> None:
        refusal = self._refusal
        if refusal is None and packet.server not in (self.session_context.guid, NULL_GUID):
            refusal = CloseReason.WRONG_SERVER
        if refusal is None:
            refusal = self.session_context.peers.admit(self, packet.client, now)
        answer = EstablishConnection(
            packet.client,
            self.session_context.guid,
            packet.timestamp,
            answer_system(packet.operating_system),
            refused=refusal is not None,
        )
        self._output.append(answer.encode())
        if refusal is not None:
            self.close(refusal, now, str(packet.client))
            return
        self._meet(packet.client)
        self.state = SessionState.WAITING_CP_MSG

    def _meet(self, peer: UUID) -> None:
        self.peer_guid = peer
        self.receiver.peer = peer.bytes_le

    def _accepted(self, packet: EstablishConnection, now: float) -> None:
        if packet.refused:
            self.close(CloseReason.REFUSED, now)
            return
        expected = self.server_guid
        if (
            packet.client != self.session_context.guid
            or packet.server == NULL_GUID
            or expected not in (NULL_GUID, packet.server)
        ):
            self.close(CloseReason.WRONG_RESPONSE, now, str(packet.server))
            return
        refusal = self.session_context.peers.admit(self, packet.server, now)
        if refusal is not None:
            self.close(refusal, now, str(packet.server))
            return
        self._meet(packet.server)
        timeout = recoverable_ack_timeout(int(now * 1000), packet.timestamp)
        self._recoverable_ack = timeout / 1000
        parameters = ConnectionParameters(timeout, round(self._ack_wait * 1000), self.window.size)
        self._output.append(parameters.encode())
        self.state = SessionState.WAITING_CPR_MSG
        if self._owner is not None:
            self._owner.answered(self)

    def _parameters(self, packet: ConnectionParameters, now: float) -> None:
        if self.state is SessionState.WAITING_CP_MSG:
            if not in_range(packet):
                if not self.session_context.switches.amb60_clamp_parameters:
                    self.close(CloseReason.BAD_PARAMETERS, now)
                    return
                packet = clamped(packet)
            self._ack_wait = packet.ack_timeout / 1000
            self._recoverable_ack = packet.recoverable_ack_timeout / 1000
            answer = ConnectionParameters(
                packet.recoverable_ack_timeout, packet.ack_timeout, self.window.size
            )
            self._output.append(answer.encode())
        elif self.state is not SessionState.WAITING_CPR_MSG:
            self.close(CloseReason.OUT_OF_STATE, now)
            return
        elif packet.refused:
            self.close(CloseReason.REFUSED, now)
            return
        self.sent.peer_size = packet.window_size
        self._init_deadline = NEVER
        self.state = OPEN
        self.receiver.open = True
        self.opened_at = now
        if self._owner is not None:
            self._owner.opened(self, now)

    # ------------------------------------------------------------------------------------- acknowledgment

    def wake(self) -> None:
        """Ask the transport to call `pump` and to take the output."""
        self._wake_transport(self)

    @property
    def _ack_wait_time(self) -> float:
        direct = self.outbox.direct or (self.initiator and self.server_guid == NULL_GUID)
        return self._ack_wait * (self.session_context.timers.direct_ack_multiplier if direct else 1.0)

    def _arm_acks(self, now: float) -> None:
        """Start the Session Ack Send Timer: half of AckWaitTimeout, but shorter for recoverable messages, and
        by default also for express messages, since these may never fill half a window.
        """
        if self.window.acknowledgeable:
            limit = now + self._recoverable_ack
            if limit < self._ack_send_deadline:
                self._start_ack_send(now, self._recoverable_ack)
        elif self.window.unacknowledged and self._ack_send_deadline == NEVER:
            wait = self._ack_wait / 2
            if self.session_context.switches.amb19_count_ack:
                wait = min(wait, self.session_context.timers.prompt_ack)
            self._start_ack_send(now, wait)

    def _start_ack_send(self, now: float, duration: float) -> None:
        self._ack_send_started = now
        self._ack_send_deadline = now + duration

    def _send_acks(self) -> None:
        """Send SessionAcks for all messages that may be acknowledged; each covers 32 recoverable messages."""
        while True:
            self._output.append(session_ack(session_header(self.window, self.sent)))
            if not self.window.acknowledgeable:
                break
        self._ack_send_deadline = NEVER

    @property
    def _piggyback_due(self) -> bool:
        return (
            self.session_context.switches.piggyback
            and self._ack_send_deadline < NEVER
            and self.window.unacknowledged > 0
        )

    # --------------------------------------------------------------------------------------------- output

    def attach(self, channel: OutgoingChannel) -> None:
        """Let an outgoing queue send on this session."""
        self.outbox.attach(channel)
        self._paused = False
        self.resize()

    def detach(self, channel: OutgoingChannel) -> None:
        """Take no more messages from an outgoing queue; messages in flight stay in flight."""
        self.outbox.detach(channel)

    def pause(self) -> None:
        """Called when the only queue that sends on this session was paused (3.1.7.13): the session advertises
        a window of 1 in a last acknowledgment, and ends once it has been idle.
        """
        if self.state is OPEN:
            self._paused = True
            self.resize()
            self._send_acks()
            self._active = False

    def resume(self) -> None:
        """Restore the window in the next header, because a queue of this session was resumed (3.1.7.14)."""
        if self._paused:
            self._paused = False
            self.resize()
            self._active = True

    def resize(self) -> None:
        """Advertise, from the next header on, the window that resources allow now."""
        self.window.size = 1 if self._paused else self.session_context.windows.size

    def pump(self, now: float) -> None:
        """Send what is due: acknowledgments of durable messages, then messages within the window."""
        if self.state is LINGERING:
            self._pump_lingering(now)
        if self.state is not OPEN:
            return
        if self.window.failure:
            self.close(CloseReason.STORE_FAILED, now, f"status {self.window.failure}")
            return
        self.outbox.settle_removed()
        window, switches = self.window, self.session_context.switches
        durable, came = window.acknowledgeable, window.unacknowledged
        if (durable and (switches.amb19_prompt_ack or durable > receive.ACK_REACH)) or (
            came and switches.amb19_count_ack and came >= min(window.size, self.sent.peer_size) // 2
        ):
            self._send_acks()
        self._send_messages(now)
        if durable or self._ack_send_deadline == NEVER:
            self._arm_acks(now)

    def _pump_lingering(self, now: float) -> None:
        """Send messages for one more retry interval, which frees quota; then end. Acknowledge nothing."""
        self.outbox.settle_removed()
        if now < self._lingers_to_send:
            self._send_messages(now)
        if not self.sent.held:
            self.close(CloseReason.QUOTA, now, self.detail)

    def _send_messages(self, now: float) -> None:
        packets = self.outbox.fill(now) if self._blocked_deadline == NEVER else None
        if packets:
            window = self.window
            self._active = True
            if self.sent.traced:
                self._trace_sent()
            if self._piggyback_due and self._ack_timer_share(now) > 0.75:
                packets[-1] = receive.with_session_header(packets[-1], session_header(window, self.sent))
                self._ack_send_deadline = NEVER
            self._output += packets
            if self._ack_wait_deadline == NEVER:
                self._ack_wait_deadline = now + self._ack_wait_time

    def _ack_timer_share(self, now: float) -> float:
        if self._ack_send_deadline <= self._ack_send_started:
            return 1.0
        return (now - self._ack_send_started) / (self._ack_send_deadline - self._ack_send_started)

    def _trace_sent(self) -> None:
        traced, self.sent.traced = self.sent.traced or [], []
        report = self.session_context.hooks.trace_sent
        if report is not None:
            for packet in traced:
                report(parse(packet), self.peer_address)

    def pause_sending(self, now: float) -> None:
        """Send no messages until `resume_sending`, because the transport holds enough unsent bytes."""
        if self.state is not CLOSED:
            self._blocked_deadline = now + self.session_context.limits.slow_reader

    def resume_sending(self, now: float) -> None:
        """Continue to send, because the transport accepts bytes again."""
        self._blocked_deadline = NEVER
        self.pump(now)

    def data_to_send(self) -> list[bytes]:
        """Returns the packets to write now, in order."""
        output, self._output = self._output, []
        return output

    # ---------------------------------------------------------------------------------------------- timers

    def next_deadline(self) -> float | None:
        """Monotonic seconds at which `expire` is due; None for never."""
        first = min(
            self._init_deadline,
            self._cleanup_deadline,
            self._ack_wait_deadline,
            self._ack_send_deadline,
            self._partial_deadline,
            self._blocked_deadline,
            self._linger_deadline,
            self._reading_paused_until,
        )
        return first if first < NEVER else None

    def expire(self, now: float) -> None:
        """Run the timers that have expired."""
        if now >= self._reading_paused_until:
            self._reading_paused_until = NEVER
            self._run(now)
            if not self.alive:
                return
        if now >= self._init_deadline:
            self.close(CloseReason.HANDSHAKE_TIMEOUT, now)
            return
        if now >= self._partial_deadline:
            self.close(CloseReason.SLOW_WRITER, now)
            return
        if now >= self._blocked_deadline:
            self.close(CloseReason.SLOW_READER, now)
            return
        if now >= self._linger_deadline:
            self.close(CloseReason.QUOTA, now, self.detail)
            return
        if now >= self._cleanup_deadline:
            if not self._active:
                self.close(CloseReason.IDLE, now)
                return
            self._active = False
            self._cleanup_deadline = now + self.session_context.timers.session_cleanup
        if now >= self._ack_wait_deadline:
            waiting = self.sent.unacknowledged > 0
            if waiting and not self._ack_received:
                self.close(CloseReason.ACK_TIMEOUT, now)
                return
            self._ack_received = False
            self._ack_wait_deadline = now + self._ack_wait_time if waiting else NEVER
        if now >= self._ack_send_deadline:
            self._ack_send_deadline = NEVER
            if self.window.unacknowledged or self.window.acknowledgeable:
                self._send_acks()

    # ------------------------------------------------------------------------------------------------ end

    def close(self, reason: CloseReason, now: float, detail: str = "") -> None:
        """End the session; no packet announces it. Messages in flight will be sent again."""
        if self.state is CLOSED:
            return
        self.state = CLOSED
        self.reason = reason
        self.detail = detail
        self.receiver.open = False
        self.window.close()
        self._wait.end()
        self._init_deadline = self._cleanup_deadline = NEVER
        self._ack_wait_deadline = self._ack_send_deadline = NEVER
        self._partial_deadline = self._blocked_deadline = NEVER
        self._linger_deadline = self._reading_paused_until = NEVER
        self.session_context.peers.remove(self)
        self.session_context.partial_packets.note(self, 0, anew=True)
        self.outbox.abandon(idle=reason is CloseReason.IDLE)
        if self._owner is not None:
            self._owner.closed(self, now)
        self.wake()  # so that the connection closes, whichever side ended the session

    def gone(self) -> None:
        """Notify the owner that the transport is closed. Called once by the transport, after `close`."""
        if self._owner is not None:
            self._owner.gone(self)
