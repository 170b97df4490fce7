"""An open queue of another computer over RemoteRead (MS-MQRR 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from msmq_fast.packet.names import FormatName
from msmq_fast.protocol.errors import error
from msmq_fast.qm.access import Access, Share
from msmq_fast.rpc.client.binding import Binding
from msmq_fast.rpc.client.sessions import INFINITE, Ack, Started, Wanted
from msmq_fast.rpc.services.queueformat import queue_format
from msmq_fast.store.completion import Completion

__all__ = [
    "ANSWER_TIMEOUT",
    "OPEN_TIMEOUT",
    "PURGE_TIMEOUT",
    "Opening",
    "RemoteReadSession",
    "checked",
    "failed",
    "patience",
]

OPEN_TIMEOUT: Final = 300.0
"""Seconds that an open may take (MS-MQRR 3.1.2.1, MS-MQQP 3.2.4.1)."""
CLOSE_PATIENCE: Final = 10.0
"""Seconds that the other computer has to close a queue.

After that the connection is closed, which also closes the queue.
"""
ANSWER_TIMEOUT: Final = 60.0
"""Seconds after which a call that does not wait for a message times out, because the other computer hangs.

The specifications define no such time. Without it a program would wait for ever, and a message would stay
locked.
"""
PURGE_TIMEOUT: Final = 300.0
"""Seconds that the other computer has to purge a queue."""
MOST_BODY: Final = 0x0042_0000
"""dwMaxBodySize: large enough for every body."""
VERSION: Final = (6, 1, 7601)


@dataclass(frozen=True, slots=True)
class Opening:
    """The parameters with which a queue is opened. `client` is the GUID of this queue manager."""

    name: FormatName
    access: Access
    share: Share
    client: UUID
    routing_server: bool
    workgroup: bool


def checked(results: Any) -> Completion[Any]:
    """Returns a completion with the results of a method if their HRESULT is MQ_OK.

    Any other HRESULT is a failure, even one whose severity bits say success, such as 0x400E03E9 (QP-218).
    """
    if results.result:
        return failed(error(results.result))
    return Completion.of(results)


def patience(wanted: Wanted) -> float | None:
    """Return the seconds within which the server must answer a read; None means no limit."""
    return None if wanted.timeout_ms == INFINITE else wanted.timeout_ms / 1000 + ANSWER_TIMEOUT


def failed(failure: Exception) -> Completion[Any]:
    """Return a completion that has failed."""
    completion: Completion[Any] = Completion()
    completion.fail(failure)
    return completion


class RemoteReadSession:
    """An open queue of another computer over RemoteRead (implements sessions.QueueSession)."""

    absolute = True
    identifies = True

    def __init__(self, binding: Binding, context: bytes) -> None:
        self.on_lost = binding.on_lost
        self._binding = binding
        self._context = context

    @classmethod
    def open(cls, binding: Binding, opening: Opening) -> Completion[RemoteReadSession]:
        """Calls R_OpenQueue (3.2.4.1). The server reports a rejection as a fault."""
        major, minor, build = VERSION
        opened: Completion[Any] = binding.call(
            "open_queue",
            timeout=OPEN_TIMEOUT,
            pQueueFormat=queue_format(opening.name),
            dwAccess=int(opening.access),
            dwShareMode=int(opening.share),
            pClientId=opening.client,
            fNonRoutingServer=0 if opening.routing_server else 1,
            Major=major,
            Minor=minor,
            BuildNumber=build,
            fWorkgroup=int(opening.workgroup),
        )
        return opened.then(lambda results: Completion.of(cls(binding, results.pphContext)))

    def start(self, wanted: Wanted, request_id: int) -> Completion[Started]:
        """Calls R_StartReceive (3.2.4.3, 3.2.4.4, 3.2.4.9, 3.2.4.10)."""
        started = self._binding.call(
            "start_receive",
            timeout=patience(wanted),
            hang_up=True,
            read=request_id,
            phContext=self._context,
            LookupId=wanted.lookup_id,
            hCursor=wanted.cursor,
            ulAction=int(wanted.action),
            ulTimeout=wanted.timeout_ms,
            dwRequestId=request_id,
            dwMaxBodySize=MOST_BODY,
            dwMaxCompoundMessageSize=MOST_BODY,
        )
        return started.then(checked).then(_started)

    def end(self, started: Started, request_id: int, ack: Ack) -> Completion[None]:
        """Calls R_EndReceive."""
        return self._call(
            "end_receive", timeout=ANSWER_TIMEOUT, hang_up=True, dwAck=int(ack), dwRequestId=request_id
        )

    def cancel(self, request_id: int) -> None:
        """Calls R_CancelReceive (3.2.4.11)."""
        if not self._binding.withdraw(request_id):
            self._call("cancel_receive", dwRequestId=request_id)

    def create_cursor(self) -> Completion[int]:
        """Calls R_CreateCursor (3.2.4.8)."""
        created = self._binding.call(
            "create_cursor", timeout=ANSWER_TIMEOUT, hang_up=True, phContext=self._context
        ).then(checked)
        return created.then(lambda results: Completion.of(int(results.phCursor)))

    def close_cursor(self, cursor: int) -> None:
        """Calls R_CloseCursor (3.2.4.12)."""
        self._call("close_cursor", hCursor=cursor)

    def purge(self) -> Completion[None]:
        """Calls R_PurgeQueue (3.2.4.7)."""
        return self._call("purge_queue", timeout=PURGE_TIMEOUT)

    def close(self) -> None:
        """Calls R_CloseQueue (3.2.4.13)."""
        self._binding.call("close_queue", pphContext=self._context)
        self._binding.close(CLOSE_PATIENCE)

    def _call(self, name: str, **parameters: Any) -> Completion[None]:
        answered = self._binding.call(name, phContext=self._context, **parameters).then(checked)
        return answered.then(lambda _: Completion.of(None))


def _started(results: Any) -> Completion[Started]:
    """Assembles the message packet from its sections (2.2.6).

    The client never requests a shortened body. If the server shortened the body anyway, the packet is not a
    valid message, and the result is an empty packet.
    """
    parts = [section.pSectionBuffer or b"" for section in results.ppPacketSections or ()]
    whole = all(section.SectionSize == section.SectionSizeAlloc for section in results.ppPacketSections or ())
    packet = b"" if not whole else parts[0] if len(parts) == 1 else b"".join(parts)
    return Completion.of(Started(packet, int(results.pdwArriveTime), int(results.pSequenceId)))
