"""One connection of the application protocol, without IO: takes received bytes, returns buffers to write, and
calls `wake` when there are some.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from msmq_fast._native.appread import FrameFault
from msmq_fast.app.auth import Identity
from msmq_fast.app.connection import Output
from msmq_fast.app.dispatch import dispatch
from msmq_fast.app.framebuffer import FrameBuffer
from msmq_fast.app.service import Service
from msmq_fast.app.session import Session
from msmq_fast.logfields import logged
from msmq_fast.protocol.errors import AccessDenied, BufferTooSmall, InvalidParameter, IOTimeout, MSMQError
from msmq_fast.protocol.frames import (
    MAX_HELLO,
    MAX_MESSAGE,
    PROTOCOL_VERSION,
    Frame,
    WireError,
    pack_frame,
    unpack_payload,
)
from msmq_fast.security.users import UsersFileError

log = logging.getLogger("msmq_fast.app")

_NAME_LENGTH = 64  # characters of the name of a client


def _ignore() -> None:
    """Do nothing: the `wake` of an engine whose transport is closed."""


class AppEngine:
    """The server's side of one connection.

    The adapter writes received bytes into `room()` and calls `received`; it calls `take_output` after
    `wake`, closes the transport when `closing` is set and the output is written, and stops reading while
    `reading` is false.
    """

    def __init__(
        self,
        service: Service,
        identity: Identity | None,
        wake: Callable[[], None],
        address: str = "",
        broken: Callable[[str], object] | None = None,
    ) -> None:
        """`identity` is the user of the peer; None if the token in the hello identifies the user. `address`
        is the network address of the peer, to limit wrong tokens.

        `broken` is called with the reason when the connection is closed because of an error of the peer.
        """
        self.service = service
        self.identity = identity
        self._address = address
        self.closing = False
        self.lost = False
        self._broken = broken or log.warning
        self._wake = wake
        self._received = FrameBuffer(MAX_HELLO)
        self._session: Session | None = None
        self._output: list[Output] = []
        self._output_bytes = 0
        self._full = False  # the output that was taken last was as much as may wait
        self._write_paused = False
        self._output_high = service.limits.output_high
        self._busy = False  # inside received(): the adapter takes the output when it returns
        service.counters.connections += 1

    # ---------------------------------------------------------------------------------------- for the adapter

    def room(self) -> memoryview:
        """Returns the buffer for the next received bytes."""
        return self._received.room()

    def received(self, count: int) -> None:
        """Process `count` bytes that were received into `room()`."""
        self._received.advance(count)
        self._advance()

    @property
    def reading(self) -> bool:
        """False while the peer must wait, because it does not read its replies or has too many requests under
        way.
        """
        return not self.closing and not self._blocked()

    def take_output(self) -> list[Output]:
        """Return the buffers to write, in order."""
        output, self._output = self._output, []
        self._full = self._output_bytes >= self._output_high
        self._output_bytes = 0
        return output

    def written(self) -> None:
        """Resume output, if it was stopped, after the transport has accepted the buffers that `take_output`
        returned.
        """
        if self._full and not self.congested:
            self._full = False
            self._resume()

    def pause_writing(self) -> None:
        """Stop producing output: the buffer of the transport is full."""
        self._write_paused = True

    def resume_writing(self) -> None:
        """Resume output: the transport accepts data again."""
        self._write_paused = False
        self._resume()

    def connection_lost(self) -> None:
        """Clean up after the transport is closed: put back messages that were not delivered, end waiting
        requests.
        """
        self.lost = self.closing = True
        self._output.clear()
        if self._session is not None:
            self._session.close()
            self._session = None
        # Garbage is collected rarely: nothing of a connection may wait for that.
        self._received.release()
        self._wake = _ignore

    @property
    def usage(self) -> tuple[int, int] | None:
        """(number of open queues, number of open transactions); None until the hello is accepted."""
        session = self._session
        return None if session is None else (len(session.handles), len(session.transactions))

    # ---------------------------------------------------------------------------------------- for the session

    @property
    def congested(self) -> bool:
        """Whether the output is so full that no more messages should be delivered."""
        return self._write_paused or self._output_bytes >= self._output_high

    def write(self, buffers: list[Output]) -> None:
        """Pass complete frames to the transport."""
        if self.closing:
            return
        if not self._output and not self._busy:
            self._wake()
        self._output += buffers
        for buffer in buffers:
            self._output_bytes += len(buffer)

    def reply(self, kind: Frame, request_id: int, payload: Any) -> None:
        """Encode and write one frame. The frequent frames, such as MESSAGE, are encoded natively and passed
        to `write`.
        """
        self.write([pack_frame(kind, request_id, payload)])

    def fail(self, request_id: int, error: MSMQError) -> None:
        """Answer a request with an error."""
        if not isinstance(error, IOTimeout):  # an empty queue is an answer
            self.service.counters.errors += 1
        payload: list[Any] = [error.code, error.name, error.detail]
        if isinstance(error, BufferTooSmall):  # only a client that set limits gets this error
            payload.append(error.needed)
        self.reply(Frame.ERROR, request_id, payload)

    def break_off(self, request_id: int, error: MSMQError) -> None:
        """Answer with an error and close the connection: the peer violated the protocol or has no access."""
        if self.closing:
            return
        self.service.counters.broken += 1
        self._broken(f"connection of {self._peer()} closed: {error.detail}")
        self.fail(request_id, error)
        self.closing = True
        if self._session is not None:
            self._session.close()
            self._session = None
        if not self._busy:
            self._wake()

    def unblocked(self) -> None:
        """Resume reading after a request got its reply."""
        if not self._busy and len(self._received) and self.reading:
            self._advance()

    def relieved(self) -> None:
        """Resume reading after an event that writes no reply, such as when messages of an open transaction
        have reached the disk.
        """
        self.unblocked()
        self._wake()

    # ------------------------------------------------------------------------------------------- inside

    def _resume(self) -> None:
        if self._session is not None:
            self._session.writable()
        self._advance()

    def _peer(self) -> str:
        return self.identity.name if self.identity is not None else "an unknown user"

    def _blocked(self) -> bool:
        if self._write_paused or self._output_bytes >= self._output_high:  # as `congested`, without a call
            return True
        return self._session is not None and self._session.full

    def _advance(self) -> None:
        """Handle the complete frames in the buffer, as long as the peer need not wait."""
        if self._busy:
            return
        self._busy = True
        try:
            while not self.closing and not self._blocked():
                self._run_lane()
                if not len(self._received) or self._blocked():
                    break
                frame = self._received.take()
                if frame is None:
                    break
                self._frame(*frame)
        except WireError as error:
            self.break_off(0, InvalidParameter(str(error)))
        finally:
            self._busy = False
        if self._output or self.closing:
            self._wake()

    def _run_lane(self) -> None:
        session = self._session
        if session is not None and len(self._received):
            before = session.lane.frames
            self._received.run(session.lane)
            self.service.counters.frames += session.lane.frames - before

    def _frame(self, kind: int, request_id: int, payload: memoryview) -> None:
        self.service.counters.frames += 1
        if self._session is None:
            self._hello(kind, request_id, payload)
            return
        try:
            dispatch(self._session, kind, request_id, payload)
        except MSMQError as error:
            # A request without a reply gets no error: its subscription may just have ended.
            if request_id:
                self.fail(request_id, error)
        except FrameFault as error:
            self.fail(request_id, InvalidParameter(str(error)))
        except WireError:
            raise
        except Exception:
            log.exception("a request of type 0x%02X failed", kind, extra=logged(peer=self._address))
            self.fail(request_id, MSMQError("the request failed inside the server; its log says why"))

    def _hello(self, kind: int, request_id: int, payload: memoryview) -> None:
        if kind != Frame.HELLO:
            self.break_off(request_id, InvalidParameter("the first frame of a connection must be HELLO"))
            return
        hello = unpack_payload(payload)
        if not isinstance(hello, dict) or not isinstance(hello.get("version"), int) or hello["version"] < 1:
            self.break_off(request_id, InvalidParameter("HELLO needs a map with version, a number from 1"))
            return
        if self.identity is None:
            token = hello.get("token")
            tokens = self.service.tokens
            if isinstance(token, str) and tokens is not None:
                self.identity = tokens.identify(token, self._address)
            if self.identity is None:
                self.break_off(request_id, AccessDenied("the token is missing or wrong"))
                return
        service, limits = self.service, self.service.limits
        try:
            self._session = Session(self, self.identity, self._address, _program(hello))
        except UsersFileError as error:
            self.break_off(request_id, AccessDenied(str(error)))
            return
        self._received.max_frame = limits.max_frame
        self.reply(
            Frame.REPLY,
            request_id,
            {
                "version": min(PROTOCOL_VERSION, hello["version"]),
                "server": service.software,
                "name": service.manager.name,
                "guid": service.manager.guid.bytes_le,
                "max_frame": limits.max_frame,
                "max_message": MAX_MESSAGE,
                "max_batch": limits.max_batch,
                "max_credit": limits.max_credit,
                "max_pending": limits.max_pending,
                "max_handles": limits.max_handles,
                "max_transactions": limits.max_transactions,
            },
        )


def _program(hello: dict[str, Any]) -> str:
    """Return the name that a client gave itself in its hello, at most _NAME_LENGTH characters; "" without
    one.
    """
    name = hello.get("client")
    return name[:_NAME_LENGTH] if isinstance(name, str) else ""
