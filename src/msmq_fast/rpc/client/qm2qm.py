"""An open queue of another computer over qm2qm, with handles from qmcomm (MS-MQQP 3.2, MS-MQMP 3.1.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from msmq_fast.protocol.errors import MessageNotFound, OperationCancelled
from msmq_fast.rpc.client.binding import Binding
from msmq_fast.rpc.client.remoteread import (
    ANSWER_TIMEOUT,
    CLOSE_PATIENCE,
    OPEN_TIMEOUT,
    PURGE_TIMEOUT,
    Opening,
    checked,
    failed,
    patience,
)
from msmq_fast.rpc.client.sessions import Ack, Started, Wanted
from msmq_fast.rpc.faults import OP_RANGE, RpcFault
from msmq_fast.rpc.idl.qm2qm import REMOTEREADDESC, REMOTEREADDESC2
from msmq_fast.rpc.idl.qmcomm import CREATE_REMOTE_CURSOR, TRANSFER_BUFFER_V1
from msmq_fast.rpc.services.qm2qm import REMOTE_CANCELED_BY_CLIENT
from msmq_fast.rpc.services.queueformat import queue_format
from msmq_fast.signals import Signal
from msmq_fast.store.completion import Completion

__all__ = ["Qm2QmSession"]

_START_RECEIVE_2: Final = (5, 1, 951)
"""The first version that has RemoteQMStartReceive2 and reads by lookup identifier (RA-16)."""
_OLDEST: Final = (0, 0, 0)
_IGNORED: Final = TRANSFER_BUFFER_V1(uTransferType=2, transfer=CREATE_REMOTE_CURSOR())


@dataclass(frozen=True, slots=True)
class _Handles:
    """The handles of an open queue that R_QMOpenRemoteQueue has returned."""

    context: bytes  # PCTX_OPENREMOTE_HANDLE_TYPE
    descriptor: int  # pdwContext
    queue: int  # dwpQueue
    handle: int  # phQueue


class Qm2QmSession:
    """An open queue of another computer over qm2qm (implements sessions.QueueSession).

    The binding `qmcomm` stays open: cursors need it, and the open queue belongs to it until RemoteQMOpenQueue
    assigns the queue to `qm2qm`.
    """

    absolute = False

    def __init__(
        self,
        qmcomm: Binding,
        qm2qm: Binding,
        handles: _Handles,
        session: bytes,
        version: tuple[int, int, int],
    ) -> None:
        self.on_lost: Signal[[str]] = Signal()
        self.identifies = version >= _START_RECEIVE_2
        self._qmcomm = qmcomm
        self._qm2qm = qm2qm
        self._handles = handles
        self._session = session
        qm2qm.on_lost.connect(self._lost)

    @classmethod
    def open(cls, qmcomm: Binding, qm2qm: Binding, opening: Opening) -> Completion[Qm2QmSession]:
        """Calls R_QMOpenRemoteQueue of qmcomm, RemoteQMOpenQueue (3.2.4.1), and RemoteQmGetVersion.

        MS-MQQP calls RemoteQmGetVersion for each read. One call is enough, since the version does not change
        during a connection.
        """
        server = int(opening.routing_server)
        opened: Completion[Any] = qmcomm.call(
            "open_remote_queue",
            timeout=OPEN_TIMEOUT,
            pQueueFormat=queue_format(opening.name),
            dwCallingProcessID=0,
            dwDesiredAccess=int(opening.access),
            dwShareMode=int(opening.share),
            pLicGuid=opening.client,
            dwMQS=0,
        ).then(checked)

        def take_over(results: Any) -> Completion[Qm2QmSession]:
            handles = _Handles(results.pphContext, results.pdwContext, results.dwpQueue, results.phQueue)
            taken = qm2qm.call(
                "open_queue",
                timeout=OPEN_TIMEOUT,
                pLicGuid=opening.client,
                dwMQS=server,
                hQueue=handles.handle,
                pQueue=handles.queue,
                dwpContext=handles.descriptor,
            ).then(checked)
            return taken.then(
                lambda session: _version(qm2qm).then(
                    lambda version: Completion.of(cls(qmcomm, qm2qm, handles, session.phContext, version))
                )
            )

        return opened.then(take_over)

    def start(self, wanted: Wanted, request_id: int) -> Completion[Started]:
        """Calls RemoteQMStartReceive, …Receive2 or …ReceiveByLookupId (3.2.4.2, .3, .5, .6)."""
        desc = REMOTEREADDESC(
            hRemoteQueue=self._handles.handle,
            hCursor=wanted.cursor,
            ulAction=int(wanted.action),
            ulTimeout=wanted.timeout_ms,
            dwQueue=self._handles.queue,
            dwRequestID=request_id,
        )
        watched: dict[str, Any] = {"timeout": patience(wanted), "hang_up": True, "read": request_id}
        if not self.identifies:
            if wanted.lookup_id:
                return failed(MessageNotFound("that computer does not support reads by lookup identifier"))
            started = self._qm2qm.call("start_receive", lpRemoteReadDesc=desc, **watched)
            return started.then(_not_cancelled).then(
                lambda results: Completion.of(_started(results.lpRemoteReadDesc, 0, results.pphContext))
            )
        desc2 = REMOTEREADDESC2(desc, 0)
        if wanted.lookup_id:
            started = self._qm2qm.call(
                "start_receive_by_lookup_id", LookupId=wanted.lookup_id, lpRemoteReadDesc2=desc2, **watched
            )
        else:
            started = self._qm2qm.call("start_receive2", lpRemoteReadDesc2=desc2, **watched)
        return started.then(_not_cancelled).then(
            lambda results: Completion.of(
                _started(
                    results.lpRemoteReadDesc2.pRemoteReadDesc,
                    results.lpRemoteReadDesc2.SequentialId,
                    results.pphContext,
                )
            )
        )

    def end(self, started: Started, request_id: int, ack: Ack) -> Completion[None]:
        """Call RemoteQMEndReceive with the handle that the read returned."""
        return _done(
            self._qm2qm.call(
                "end_receive",
                timeout=ANSWER_TIMEOUT,
                hang_up=True,
                pphContext=started.handle,
                dwAck=int(ack),
            )
        )

    def cancel(self, request_id: int) -> None:
        """Calls RemoteQMCancelReceive (3.2.4.7)."""
        if self._qm2qm.withdraw(request_id):
            return
        handles = self._handles
        self._qm2qm.call(
            "cancel_receive", hQueue=handles.handle, pQueue=handles.queue, dwRequestID=request_id
        )

    def create_cursor(self) -> Completion[int]:
        """Calls R_QMCreateRemoteCursor. The server ignores the transfer buffer, but it must be present."""
        created = self._qmcomm.call(
            "create_remote_cursor", timeout=ANSWER_TIMEOUT, ptb1=_IGNORED, hQueue=self._handles.handle
        ).then(checked)
        return created.then(lambda results: Completion.of(int(results.phCursor)))

    def close_cursor(self, cursor: int) -> None:
        """Calls RemoteQMCloseCursor (3.2.4.8)."""
        self._qm2qm.call("close_cursor", hQueue=self._handles.handle, hCursor=cursor)

    def purge(self) -> Completion[None]:
        """Call RemoteQMPurgeQueue (3.2.4.4). A server reports a failure as an HRESULT or as a fault."""
        return _done(self._qm2qm.call("purge_queue", timeout=PURGE_TIMEOUT, hQueue=self._handles.handle))

    def close(self) -> None:
        """Calls RemoteQMCloseQueue (3.2.4.9), and closes both bindings."""
        self._qm2qm.call("close_queue", pphContext=self._session)
        self._qm2qm.close(CLOSE_PATIENCE)
        if not self._qmcomm.lost:
            self._qmcomm.call("close_remote_queue_context", pphContext=self._handles.context)
            self._qmcomm.close(CLOSE_PATIENCE)

    def _lost(self, reason: str) -> None:
        self._qmcomm.close()
        self.on_lost(reason)


def _version(qm2qm: Binding) -> Completion[tuple[int, int, int]]:
    """Calls RemoteQmGetVersion, a method that Windows NT and 2000 do not have (QP-206)."""
    version: Completion[tuple[int, int, int]] = Completion()

    def on_version(done: Completion[Any]) -> None:
        failure = done.exception()
        if failure is None:
            results = done.result()
            version.resolve((results.pMajor, results.pMinor, results.pBuildNumber))
        elif isinstance(failure, RpcFault) and failure.status == OP_RANGE:
            version.resolve(_OLDEST)
        else:
            version.fail(failure)

    qm2qm.call("get_version", timeout=OPEN_TIMEOUT).add_done_callback(on_version)
    return version


def _not_cancelled(results: Any) -> Completion[Any]:
    if results.result == REMOTE_CANCELED_BY_CLIENT:
        return failed(OperationCancelled("the read was cancelled"))
    return checked(results)


def _started(desc: Any, sequential_id: int, handle: bytes | None) -> Started:
    return Started(desc.lpBuffer or b"", int(desc.dwArriveTime), int(sequential_id), handle)


def _done(call: Completion[Any]) -> Completion[None]:
    return call.then(checked).then(lambda _: Completion.of(None))
