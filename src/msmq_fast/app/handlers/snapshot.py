"""Requests about a snapshot of the running store (section 8.1 of the protocol)."""

from __future__ import annotations

from dataclasses import asdict

from msmq_fast.app.arguments import Field, arguments
from msmq_fast.app.session import Handler, Session
from msmq_fast.protocol.errors import InvalidParameter, MSMQError, UnsupportedOperation
from msmq_fast.protocol.frames import Frame
from msmq_fast.store.backup import Manifest
from msmq_fast.store.completion import Completion
from msmq_fast.store.errors import BackupError
from msmq_fast.store.snapshots import Snapshots

_MOST: int = 1 << 62


def _snapshots(session: Session) -> Snapshots:
    found = session.service.snapshots
    if found is None:
        raise UnsupportedOperation("this store cannot be copied")
    return found


def _make(session: Session, request_id: int, payload: memoryview) -> None:
    rate = Field("bytes per second", int, type(None), maximum=_MOST, default=None)
    directory, bytes_per_second = arguments(payload, Field("directory", str, type(None), default=None), rate)
    snapshots = _snapshots(session)
    session.manager.guard.administer(session.token, "make a snapshot of the store")
    try:
        snapshot = snapshots.begin(directory, bytes_per_second)
    except BackupError as error:
        raise InvalidParameter(str(error)) from None
    session.snapshots.add(snapshot)
    answered: Completion[Manifest] = Completion()

    def ended(done: Completion[Manifest]) -> None:
        session.snapshots.discard(snapshot)
        error = done.exception()
        if error is None:
            answered.resolve(done.result())
        else:
            answered.fail(MSMQError(str(error)))

    session.manager.audit.recorded(answered, session.token, "make snapshot", snapshot.place, _described)
    session.when(request_id, answered, lambda manifest: asdict(manifest) | {"url": snapshot.url})
    snapshot.done.add_done_callback(ended)


def _described(manifest: Manifest) -> str:
    return f"bytes: {manifest.size}"


def _progress(session: Session, request_id: int, payload: memoryview) -> None:
    arguments(payload)
    session.manager.guard.administer(session.token, "look at a snapshot of the store")
    current = _snapshots(session).current
    session.reply(request_id, None if current is None else [current.written, current.total])


HANDLERS: dict[int, Handler] = {
    Frame.SNAPSHOT: _make,
    Frame.SHOW_SNAPSHOT: _progress,
}
