"""Cursors: positions in the message list of a queue, from which a program continues to read (MS-MQDMPR
3.1.1.17, 3.2).

A cursor is a position in the order of lookup ids. If the message at this position is removed, the cursor
keeps its position (DM-252). A new cursor is before the first message.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Protocol

from msmq_fast._native.queue import QueueCore
from msmq_fast._native.queuebase import Received
from msmq_fast._native.seek import readable, seek
from msmq_fast.protocol.errors import (
    IllegalCursorAction,
    InvalidHandle,
    MessageAlreadyReceived,
    MessageNotFound,
    OperationCancelled,
)
from msmq_fast.qm.reading.readers import Gate, Hold, Readers, ReadRequest
from msmq_fast.store.completion import Completion


class CursorOwner(Protocol):
    """The methods of the handle that a cursor belongs to. `core` and `readers` raise QUEUE_NOT_AVAILABLE once
    the queue is deleted.
    """

    caller: int  # its number in the feed

    @property
    def core(self) -> QueueCore:
        """The native core of the queue, which holds its messages."""

    @property
    def readers(self) -> Readers:
        """The waiting reads of the queue."""

    def may_read(self, *, peek: bool) -> None:
        """Raises ACCESS_DENIED unless the handle is open for receiving or, with `peek`, for peeking."""

    def wait(self, request: ReadRequest, timeout_ms: int | None) -> ReadRequest:
        """Serve a read now, or when a message arrives within `timeout_ms` milliseconds (None: without
        limit).
        """

    def track(self, request: ReadRequest) -> ReadRequest:
        """Note a read, so that it is cancelled when the handle is closed."""

    def forget_cursor(self, number: int) -> None:
        """Remove a closed cursor."""


class CursorState(IntEnum):
    """The states of a cursor (ST-2)."""

    UNREAD = 0
    WAIT_RECEIVE = 1
    WAIT_PEEK = 2
    READ = 3


class Cursor:
    """A cursor, created by `OpenQueue.open_cursor`; a handle can have any number of cursors.

    Reads raise INVALID_HANDLE once the cursor is closed, QUEUE_NOT_AVAILABLE once the queue is deleted,
    ILLEGAL_CURSOR_ACTION while another read of the cursor waits, and ACCESS_DENIED. Time-outs are in
    milliseconds; None: without limit.
    """

    def __init__(self, handle: CursorOwner, number: int) -> None:
        self.number = number
        self.key = 0  # LookupIdentifier of the message under the cursor, 0: before the first one
        self.state = CursorState.UNREAD
        self._handle = handle
        self._closed = False
        self._waiting: ReadRequest | None = None

    def peek(self, timeout_ms: int | None, *, gate: Gate | None = None) -> ReadRequest:
        """Peek the current message, at which the cursor is. If the cursor has no current message, move to the
        next message and peek it.

        Raises MESSAGE_ALREADY_RECEIVED if the current message was received.
        """
        core = self._ready(peek=True)
        if self.state is CursorState.READ:
            return self._at_once(self._current(core), self._request(gate, peek=True))
        return self._next(timeout_ms, self._request(gate, peek=True))

    def peek_next(self, timeout_ms: int | None, *, gate: Gate | None = None) -> ReadRequest:
        """Move to the next message and peek it. Raises ILLEGAL_CURSOR_ACTION if the cursor has no current
        message, because none was peeked.
        """
        self._ready(peek=True)
        if self.state is CursorState.UNREAD:
            raise IllegalCursorAction("the cursor has no current message: peek first")
        return self._next(timeout_ms, self._request(gate, peek=True))

    def receive(
        self,
        timeout_ms: int | None,
        *,
        gate: Gate | None = None,
        hold: Hold | None = None,
        tag: int | None = None,
    ) -> ReadRequest:
        """Receive the current message; if the cursor has none, or this cursor has received it, receive the
        next message.

        Raises MESSAGE_ALREADY_RECEIVED if another read has received the current message; MESSAGE_NOT_FOUND if
        there is no next message and `timeout_ms` is 0.
        """
        core = self._ready(peek=False)
        if self.state is CursorState.READ:
            key = self._current(core)
            self.state = CursorState.UNREAD
            return self._at_once(key, self._request(gate, hold=hold, tag=tag))
        return self._next(timeout_ms, self._request(gate, hold=hold, tag=tag))

    @property
    def place(self) -> tuple[int, CursorState]:
        """The position of the cursor, for `put_back`. Use it only while no read of the cursor waits."""
        return self.key, self.state

    def put_back(self, place: tuple[int, CursorState]) -> None:
        """Restore an earlier `place`: of this cursor, since the message that it received last was returned to
        the queue and the next read must find it again, or of a cursor whose connection was lost.
        """
        self.key, self.state = place

    def message_available(self, key: int) -> None:
        """Move the cursor to the message with this key, which a read of the cursor gets (DM-249)."""
        if self.state is CursorState.WAIT_PEEK:
            self.state = CursorState.READ
        elif self.state is CursorState.WAIT_RECEIVE:
            self.state = CursorState.UNREAD
        self._waiting = None
        self.key = key

    def close(self) -> None:
        """Close the cursor; a waiting read ends with OPERATION_CANCELLED (DM-054). Closing it twice is
        allowed.
        """
        if not self._closed:
            self._closed = True
            if self._waiting is not None:
                self._waiting.cancel(OperationCancelled("the cursor was closed"))
            self._handle.forget_cursor(self.number)

    def _ready(self, *, peek: bool) -> QueueCore:
        if self._closed:
            raise InvalidHandle("the cursor is closed")
        self._handle.may_read(peek=peek)
        core = self._handle.core
        if self.state in (CursorState.WAIT_PEEK, CursorState.WAIT_RECEIVE):
            raise IllegalCursorAction("another read with this cursor is waiting")
        return core

    def _current(self, core: QueueCore) -> int:
        if not readable(core, self.key):
            raise MessageAlreadyReceived("the message under the cursor was received")
        return self.key

    def _request(
        self,
        gate: Gate | None,
        *,
        peek: bool = False,
        hold: Hold | None = None,
        tag: int | None = None,
    ) -> ReadRequest:
        return ReadRequest(
            self._handle.readers,
            peek,
            gate,
            hold=hold,
            cursor=self,
            tag=tag,
            caller=self._handle.caller,
        )

    def _next(self, timeout_ms: int | None, request: ReadRequest) -> ReadRequest:
        key = seek(self._handle.core, self.key)
        if key is not None:
            self.state = CursorState.READ if request.peek else CursorState.UNREAD
            return self._at_once(key, request)
        if timeout_ms is not None and timeout_ms <= 0 and not request.peek:
            raise MessageNotFound("there is no message after the cursor")
        self.state = CursorState.WAIT_PEEK if request.peek else CursorState.WAIT_RECEIVE
        self._waiting = request
        before = self.key
        request.completion.add_done_callback(lambda done: self._wait_ended(request, before, done))
        return self._handle.wait(request, timeout_ms)

    def _at_once(self, key: int, request: ReadRequest) -> ReadRequest:
        before = self.key
        if request.gate is not None:
            request.gate.begin()
        request.take(self._handle.core, key)
        if not request.peek:
            request.completion.add_done_callback(lambda done: self._step_back(before, key, done))
        return self._handle.track(request)

    def _wait_ended(self, request: ReadRequest, before: int, done: Completion[Received]) -> None:
        """Process the end of a waiting read. If the read got no message (Wait Time Expired, DM-250), the
        cursor keeps the position `before`, so that it misses no later message.
        """
        if done.exception() is None:
            return
        if self._waiting is request:
            self._waiting = None
            self.state = CursorState.UNREAD
        elif not request.peek:
            self._step_back(before, self.key, done)

    def _step_back(self, before: int, key: int, done: Completion[Received]) -> None:
        """Process the end of a receive. If the message with this key could not be received, move the cursor
        back to the position `before`, so that the next read finds it again.
        """
        if done.exception() is not None and self.key == key and self.state is CursorState.UNREAD:
            self.key = min(before, key - 1)
