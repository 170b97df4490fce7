"""The output of one connection. A reply is split into fragments only when the transport accepts them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from msmq_fast._native.rpcframing import fragments
from msmq_fast.rpc.pdu import PduType
from msmq_fast.rpc.securing import Security

__all__ = ["Buffer", "Outbox"]

Buffer: TypeAlias = bytes | bytearray | memoryview
Written: TypeAlias = Callable[[bool], None]

_RESPONSE = int(PduType.RESPONSE)
_HEADER = 24


_Whole: TypeAlias = tuple[bytes, Written | None]
"""A PDU, and the function that is called when the transport has accepted it."""


class _Response:
    """A response whose stub has been sent up to `offset` bytes."""

    __slots__ = ("call_id", "context_id", "offset", "security", "stub", "written")

    def __init__(
        self,
        stub: Buffer,
        call_id: int,
        context_id: int,
        security: Security | None,
        written: Written | None,
    ) -> None:
        self.stub = stub
        self.call_id = call_id
        self.context_id = context_id
        self.security = security if security is not None and security.protects else None
        self.written = written
        self.offset = 0


class Outbox:
    """PDUs in the order in which they are sent. `max_fragment` is the largest fragment that the client
    accepts, in bytes.
    """

    def __init__(self) -> None:
        self.max_fragment = 2048
        self.header_signing = False
        self.bytes = 0
        """Bytes of stubs and PDUs that are not sent yet."""
        self.pdus = 0
        """PDUs that were sent."""
        self.queue: deque[_Whole | _Response] = deque()
        """Output in the order of sending."""
        self._dropped = False

    def __bool__(self) -> bool:
        return bool(self.queue)

    def put(self, pdu: bytes) -> None:
        """Queues a whole PDU."""
        if self._dropped:
            return
        self.queue.append((pdu, None))
        self.bytes += len(pdu)

    def respond(
        self,
        stub: Buffer,
        call_id: int,
        context_id: int,
        security: Security | None,
        written: Written | None,
    ) -> None:
        """Queues a response. `written` is called once: with True when `take` has returned all of the
        response, with False if `drop` discards it.
        """
        size = len(stub)
        if (security is None or not security.protects) and size <= self.max_fragment - _HEADER:
            # Windows answers with the lower half of the identifier, but sends the whole identifier in faults.
            low, room = context_id & 0xFF, self.max_fragment
            pdu = fragments(_RESPONSE, stub, 0, size, 0, call_id, low, 0, room)[0]
            self.queue.append((pdu, written))  # type: ignore[arg-type]  # bytes: no context protects it
            self.bytes += size + _HEADER
            return
        self.queue.append(_Response(stub, call_id, context_id & 0xFF, security, written))
        self.bytes += size

    def take(self, budget: int) -> list[Buffer]:
        """Removes and returns the next whole PDUs, about `budget` bytes."""
        taken: list[Buffer] = []
        queue = self.queue
        while queue and budget > 0:
            item = queue[0]
            if isinstance(item, tuple):
                data: Buffer
                data, written = item
                queue.popleft()
                self.bytes -= len(data)
                self.pdus += 1
            else:
                data, written = self._cut(item, budget), item.written
                if item.offset < len(item.stub):
                    taken.append(data)
                    break
                queue.popleft()
            if written is not None:
                written(True)
            taken.append(data)
            budget -= len(data)
        return taken

    def drop(self) -> None:
        """Discards all queued output, and all output that is queued later."""
        self._dropped = True
        queue, self.queue = self.queue, deque()
        self.bytes = 0
        for item in queue:
            written = item.written if isinstance(item, _Response) else item[1]
            if written is not None:
                written(False)

    def _cut(self, response: _Response, budget: int) -> bytes | bytearray:
        security, before = response.security, response.offset
        data, response.offset, count = fragments(
            _RESPONSE,
            response.stub,
            before,
            budget,
            0,
            response.call_id,
            response.context_id,
            0,
            self.max_fragment,
            None if security is None else security.trailer,
            0 if security is None else security.overhead,
        )
        self.bytes -= response.offset - before
        self.pdus += count
        if security is not None and isinstance(data, bytearray):
            security.protect(data, _HEADER, sign_header=self.header_signing)
        return data
