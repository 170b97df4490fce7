"""The asyncio protocol of one session.

The kernel writes received bytes into the buffer of the session; packets are sent with `writelines`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from msmq_fast._native.batch import Writer
from msmq_fast.adapter import NOWHERE, Adapter
from msmq_fast.lazytimer import LazyTimer
from msmq_fast.mqqb.reasons import CloseReason
from msmq_fast.mqqb.session import Session, Wake
from msmq_fast.mqqb.sessionstate import CLOSED

_FAIR_SHARE = 1 << 18  # bytes that one socket may still bring when too much is on its way to the disk

_TURN = 32
"""How many messages on the general path (about 0.2 ms each) one socket may bring before others have their
turn.

While bytes are available, the loop reads one socket up to 32 times without looking at any other.
"""
_LEAST, _MOST = 1 << 12, 1 << 24  # bytes that are read at a time: fewer after many such messages


class SessionProtocol(Adapter, asyncio.BufferedProtocol):
    """The transport of one session.

    `open_session` is called with the peer's address and with the function that wakes this transport; it
    returns None if the connection is refused. `touch` is called before anything that may add work to the
    store's current batch.
    """

    def __init__(
        self,
        open_session: Callable[[str, Wake], Session | None],
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        writer: Writer,
        pending_bytes: int,
        touch: Callable[[], None],
    ) -> None:
        super().__init__(loop)
        self._open_session = open_session
        self._monotonic = monotonic
        self._writer = writer
        self._pending_bytes = pending_bytes
        self._touch = touch
        self._session: Session | None = None
        self._timer = LazyTimer(loop, monotonic, self._expire)
        self._crowded = False  # too much waits for the disk, and this socket sent it
        self._share = 0  # bytes taken from this socket while too much was on its way to the disk
        self._general = 0  # messages on the general path before others had their turn
        self._yielding = False  # until the next turn of the loop
        self._room = _MOST

    # ----------------------------------------------------------------------------------- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the session of an established connection."""
        super().connection_made(transport)
        self._touch()
        peer = transport.get_extra_info("peername")  # None if the peer has already disconnected
        session = self._open_session(peer[0], self._changed) if peer else None
        if session is None:
            cast(asyncio.Transport, transport).abort()
            return
        self._session = session
        self._flush()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Returns space in the receive buffer of the session."""
        session = self._session
        if session is None or session.state is CLOSED:
            return NOWHERE
        room = session.buffer(sizehint)
        return room if self._room == _MOST else room[: self._room]

    def buffer_updated(self, nbytes: int) -> None:
        """Process `nbytes` that the kernel has written into the buffer."""
        session = self._session
        if session is None or session.state is CLOSED:
            return
        self._touch()
        general = session.general
        session.commit(nbytes, self._monotonic())
        self._flush()
        self._share += nbytes
        brought = session.general - general
        if brought or self._room < _MOST:
            self._pace(nbytes, brought)
        if self._writer.pending_bytes <= self._pending_bytes:
            self._share = 0
        elif self._share > _FAIR_SHARE and not self._crowded:
            self._crowded = True
            self._writer.when_room(self._pending_bytes, self._there_is_room)
        if not self._reading or self._crowded or self._yielding or session.reading_paused:
            self._listen()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the session after the connection was lost."""
        self._transport = None
        self._timer.close()
        if self._session is not None:
            self._touch()
            self._session.close(CloseReason.DISCONNECTED, self._monotonic(), str(exc) if exc else "")
            self._session.gone()
            # They refer to each other, which would keep the receive buffer until the next garbage collection.
            self._session = None

    def pause_writing(self) -> None:
        """Called by asyncio when the peer reads more slowly than we send: stop sending."""
        if self._session is not None:
            self._session.pause_sending(self._monotonic())
            self._timer.arm(self._session.next_deadline())

    def resume_writing(self) -> None:
        """Called by asyncio when the peer has caught up: send again."""
        if self._session is not None:
            self._touch()
            self._session.resume_sending(self._monotonic())
            self._flush()

    def evict(self) -> None:
        """End the session and its connection at once, to make room for another connection."""
        if self._session is not None:
            self._session.close(CloseReason.EVICTED, self._monotonic())
        if self._transport is not None:
            self._transport.abort()

    # ------------------------------------------------------------------------------------------ the session

    def _changed(self, _: Session) -> None:
        """Pump the session in the next iteration of the event loop, because the session changed outside of a
        call from the transport.
        """
        if not self._look_due:  # as `_wake`, without another call: this happens for each message
            self._look_due = True
            self._loop.call_soon(self._woken)

    def _look(self) -> None:
        if self._session is not None:
            self._touch()
            self._session.pump(self._monotonic())
            self._flush()
            self._listen()

    def _flush(self) -> None:
        session, transport = self._session, self._transport
        if session is None or transport is None:
            return
        packets = session.data_to_send()
        if packets:
            transport.writelines(packets)
        if session.state is not CLOSED:
            deadline = session.next_deadline()
            if deadline is not None and deadline < self._timer.at:
                self._timer.arm(deadline)
        elif session.opened_at is not None and transport.get_write_buffer_size():
            transport.abort()  # do not wait for a peer that does not read the rest of an ended session
        else:
            transport.close()

    def _pace(self, nbytes: int, brought: int) -> None:
        """Read less at a time while many messages take the general (Python) path, so that other sockets have
        their turn.

        `nbytes` and `brought` are the bytes, and the messages on the general path, of the latest read.
        """
        if brought > _TURN:
            self._room = max(_LEAST, min(self._room, nbytes) // 2)
        elif brought < _TURN // 4:
            self._room = min(self._room * 2, _MOST)
        self._general += brought
        if self._general > _TURN and not self._yielding:
            self._yielding = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._yielding = False
        self._general = 0
        self._listen()

    def _there_is_room(self) -> None:
        self._crowded = False
        self._share = 0
        self._listen()

    def _listen(self) -> None:
        """Pause reading from the socket if the store has no room for more of its data, other sockets have
        their turn, or the session asks for a pause; otherwise read.
        """
        if self._session is None or self._transport is None:
            return
        self._read(not self._crowded and not self._yielding and not self._session.reading_paused)

    # ------------------------------------------------------------------------------------------- deadlines

    def _expire(self) -> None:
        if self._session is not None and self._session.alive:
            self._touch()
            self._session.expire(self._monotonic())
            self._flush()
            self._listen()
